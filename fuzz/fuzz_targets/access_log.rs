#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| subak_fuzz::access_log::check(data));
