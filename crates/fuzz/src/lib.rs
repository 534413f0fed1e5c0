//! One check per parser: arbitrary bytes in, a panic where a promise is broken.
//!
//! The checks are plain functions, so that libFuzzer drives them (`fuzz/fuzz_targets/`) and an ordinary
//! test replays what it once found interesting (`tests/corpus.rs`, on stable, without a
//! sanitizer). Each has an
//! oracle of its own that reads the same bytes slowly and by other means; none calls the parser's
//! own helpers.

#![forbid(unsafe_code)]

pub mod access_log;
pub mod agent_check;
pub mod chunked_body;
pub mod config;
pub mod cookie;
pub mod h2_translate;
pub mod path;
pub mod proxy_header;
pub mod request_head;
pub mod response_head;
pub mod scenario;
pub mod sni;

mod plain;

/// Panics where the input breaks a promise.
pub type Check = fn(&[u8]);

/// Every check by the name of its target and its corpus.
pub const CHECKS: &[(&str, Check)] = &[
    ("request_head", request_head::check),
    ("response_head", response_head::check),
    ("chunked_body", chunked_body::check),
    ("path", path::check),
    ("config", config::check),
    ("agent_check", agent_check::check),
    ("cookie", cookie::check),
    ("h2_translate", h2_translate::check),
    ("proxy_header", proxy_header::check),
    ("sni", sni::check),
    ("access_log", access_log::check),
    ("scenario", scenario::check),
];

/// Where to cut an input: everywhere while that is cheap, else at 64 places spread over it.
fn cuts(len: usize) -> impl Iterator<Item = usize> {
    let step = (len / 64).max(1);
    let step = if len <= 256 { 1 } else { step };
    (0..len).step_by(step).chain([len])
}
