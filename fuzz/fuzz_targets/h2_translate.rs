#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| subak_fuzz::h2_translate::check(data));
