//! What was asked for, as an algorithm's key sees it.

/// The part of a URI that is the key.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Part {
    /// All of it.
    Uri,
    /// Without its query.
    Path,
}

/// That part.
pub(crate) fn object(uri: &[u8], part: Part) -> &[u8] {
    match part {
        Part::Uri => uri,
        Part::Path => uri.split(|byte| *byte == b'?').next().unwrap_or(uri),
    }
}
