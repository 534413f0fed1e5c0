//! Field names that an endpoint reads as one.
//!
//! CGI (RFC 3875, 4.1.18) and its heirs (FastCGI, WSGI, Rack, PHP) hand `X-Role` to a program as
//! `HTTP_X_ROLE`: letters in upper case, and `_` for whatever is neither letter nor digit. So `X_Role`,
//! `x.role` and `X-Role` are one name there. A guard that looks at `X-Role` alone guards nothing.

/// Whether a CGI-style endpoint reads both names as one: equal letters in either case, equal digits,
/// and any other bytes at the other places.
#[inline]
pub fn is_alike(one: &[u8], other: &[u8]) -> bool {
    one.len() == other.len()
        && one.iter().zip(other).all(|(one, other)| folded(*one) == folded(*other))
}

/// The byte as a CGI-style endpoint reads it, in lower case and with `-` for every mark.
#[inline]
pub(crate) const fn folded(byte: u8) -> u8 {
    if byte.is_ascii_alphanumeric() { byte.to_ascii_lowercase() } else { b'-' }
}

/// Whether a name has a mark other than `-`, and so is a second spelling of the name with `-`.
pub(crate) fn is_odd(name: &[u8]) -> bool {
    name.iter().any(|byte| !byte.is_ascii_alphanumeric() && *byte != b'-')
}

#[cfg(test)]
mod tests {
    use super::{is_alike, is_odd};

    #[test]
    fn every_mark_is_the_same_mark_and_letters_have_no_case() {
        for mark in "!#$%&'*+-.^_`|~".chars() {
            let name = format!("x{mark}INTERNAL{mark}auth");
            assert!(is_alike(name.as_bytes(), b"X-Internal-Auth"), "{name}");
            assert_eq!(is_odd(name.as_bytes()), mark != '-', "{name}");
        }
        for other in
            ["X-Internal-Auth2", "XInternal-Auth", "X-Internal-Buth", "X--Internal-Aut", ""]
        {
            assert!(!is_alike(other.as_bytes(), b"X-Internal-Auth"), "{other}");
        }
        assert!(is_alike(b"", b"") && !is_odd(b"") && !is_odd(b"X-1"));
    }
}
