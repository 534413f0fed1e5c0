//! The path that the endpoint of a rewriting route sees.
//!
//! A rewrite sees the normalised path, and what it makes is normalised again with slashes merged, so
//! that pieces put side by side cannot make a dot segment, a broken escape or a second host. What is
//! no path then is refused like any other that is none. The query stays as the client wrote it.

use subak_config::Rewrite;
use subak_message::{HeadError, PathRules, RequestHead, path};

use crate::failure::Failure;

/// Writes the target that the endpoint sees to `out`, which is empty; nothing when the path does not
/// fit and goes on as it would without a rewrite.
///
/// # Errors
/// [`Failure::BadHead`], when the path that comes out is none.
pub(crate) fn target(
    rewrite: &Rewrite,
    head: &RequestHead,
    out: &mut Vec<u8>,
) -> Result<bool, Failure> {
    if !head.normal_path().starts_with(b"/") || !rewrite.apply(head.normal_path(), out) {
        return Ok(false);
    }
    let mut normal = Vec::new();
    let rules = PathRules { merge_slashes: true };
    match path::normalise(out, rules, &mut normal) {
        Ok(false) => {}
        Ok(true) => *out = normal,
        Err(fault) => {
            out.clear();
            return Err(Failure::BadHead(HeadError { fault, offset: 0 }));
        }
    }
    if let Some(query) = head.query() {
        out.push(b'?');
        out.extend_from_slice(query);
    }
    Ok(true)
}
