//! The container of every structure: any bytes, as they are and with checksums that hold.
#![no_main]

use bloomery_fuzz::{file, memory, structures};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(init: memory::limit(), |data: &[u8]| {
    structures::check(data);
    let mut repaired = data.to_vec();
    file::repair(&mut repaired);
    structures::check(&repaired);
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0 && file::mutate(&mut data[..size], u64::from(seed)).is_some() {
        return size;
    }
    fuzzer_mutate(data, size, max_size)
});
