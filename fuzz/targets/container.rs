//! The container of every structure: any bytes, as they are, under a header's checksum that holds, and repaired.
#![no_main]

use fullbloom_fuzz::{file, forms, memory, structures};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(init: memory::limit(), |data: &[u8]| forms::check_each(data, structures::check));

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0 && file::mutate(&mut data[..size], u64::from(seed)).is_some() {
        return size;
    }
    fuzzer_mutate(data, size, max_size)
});
