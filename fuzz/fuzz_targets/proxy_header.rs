#![no_main]

libfuzzer_sys::fuzz_target!(|data: &[u8]| subak_fuzz::proxy_header::check(data));
