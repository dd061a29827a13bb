//! The container of every structure: any bytes, as they are, under a header's checksum that holds, and repaired.
#![no_main]

use fullbloom_fuzz::{file, memory, structures};
use libfuzzer_sys::{fuzz_mutator, fuzz_target, fuzzer_mutate};

fuzz_target!(init: memory::limit(), |data: &[u8]| {
    let mut given = data.to_vec();
    if structures::check(data) {
        file::repair(&mut given);
        // A repair that leaves files that nobody accepts would make all that follows a test of nothing.
        assert!(structures::is_sound(&given), "a sound file is refused after its repair");
        return;
    }
    file::seal(&mut given);
    if given == data || !structures::check(&given) {
        file::repair(&mut given);
        structures::check(&given);
    }
});

fuzz_mutator!(|data: &mut [u8], size: usize, max_size: usize, seed: u32| {
    if seed % 4 != 0 && file::mutate(&mut data[..size], u64::from(seed)).is_some() {
        return size;
    }
    fuzzer_mutate(data, size, max_size)
});
