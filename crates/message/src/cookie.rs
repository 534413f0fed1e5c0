//! The cookies of a request: which values does a name have, and what is left without it?
//!
//! A `Cookie` value is read as browsers write it and RFC 6265 (5.4) says: pieces between semicolons,
//! each a name, `=` and a value. Nothing is unquoted or decoded. A piece without `=` has no name.
//!
//! Taking a cookie out rewrites nothing else: the other pieces stay byte for byte, in their order and
//! in their fields. It happens in place, without an allocation. O(bytes of the `Cookie` fields).

use std::ops::Range;

use crate::fields::{CANONICAL, Fields};
use crate::known::Known;

impl Fields {
    /// The values of all cookies of this name, in order. Names compare with case.
    pub fn cookies<'a>(&'a self, name: &'a [u8]) -> impl Iterator<Item = &'a [u8]> {
        self.get_all(Known::Cookie)
            .flat_map(|value| value.split(|byte| *byte == b';'))
            .filter_map(move |piece| value_of(piece, name))
    }

    /// Takes out all cookies of this name, and `Cookie` fields that have nothing else; true when there
    /// was one.
    pub fn remove_cookie(&mut self, name: &[u8]) -> bool {
        if !self.has(Known::Cookie) {
            return false;
        }
        let mut found = false;
        self.retain_entries(|bytes, entry| {
            if entry.known != Known::Cookie {
                return true;
            }
            let start = entry.value_start as usize;
            let value = &mut bytes[start..start + entry.value_len as usize];
            let Some(left) = take_out(value, name) else { return true };
            found = true;
            entry.value_start += left.start as u32;
            entry.value_len = left.len() as u32;
            // The end of the line does not follow any more.
            entry.flags &= !CANONICAL;
            !left.is_empty()
        });
        found
    }
}

/// The value of this piece, if it is the cookie of this name.
fn value_of<'a>(piece: &'a [u8], name: &[u8]) -> Option<&'a [u8]> {
    let equals = piece.iter().position(|byte| *byte == b'=')?;
    let is_it = piece[..equals].trim_ascii() == name;
    is_it.then(|| piece[equals + 1..].trim_ascii())
}

/// Moves the pieces that are not this cookie together; where they stand then, or none when the cookie
/// is not among them.
fn take_out(value: &mut [u8], name: &[u8]) -> Option<Range<usize>> {
    let (mut from, mut to) = (0, 0);
    let (mut found, mut kept) = (false, false);
    loop {
        let end = value[from..].iter().position(|byte| *byte == b';');
        let end = end.map_or(value.len(), |length| from + length);
        if value_of(&value[from..end], name).is_some() {
            found = true;
        } else {
            if kept {
                value[to] = b';';
                to += 1;
            }
            value.copy_within(from..end, to);
            to += end - from;
            kept = true;
        }
        if end == value.len() {
            break;
        }
        from = end + 1;
    }
    let left = &value[..to];
    let says_nothing = left.iter().all(|byte| *byte == b';' || byte.is_ascii_whitespace());
    let start = to - left.trim_ascii_start().len();
    let end = left.trim_ascii_end().len();
    found.then_some(if says_nothing { 0..0 } else { start..end })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fields(values: &[&str]) -> Fields {
        let mut fields = Fields::new();
        for value in values {
            fields.push_received(b"cookie", value.as_bytes()).unwrap();
        }
        fields
    }

    /// What is left of the `Cookie` fields without the cookie `s`.
    fn left_of(values: &[&str]) -> Vec<String> {
        let mut fields = fields(values);
        fields.remove_cookie(b"s");
        fields.iter().map(|field| String::from_utf8(field.value.to_vec()).unwrap()).collect()
    }

    #[test]
    fn the_other_cookies_stay_byte_for_byte() {
        for (before, after) in [
            ("a=1; s=x; b=2", "a=1; b=2"),
            ("s=x; a=1", "a=1"),
            ("a=1; s=x", "a=1"),
            ("a=1;s=x;b=2", "a=1;b=2"),
            ("a=1 ;  s=x ;   b=2", "a=1 ;   b=2"),
            (" s = x ;a=\"1; b=2\"", "a=\"1; b=2\""),
            ("s=1; s=2; a=s=3; s=4", "a=s=3"),
            ("S=1; ss=2; s; =s", "S=1; ss=2; s; =s"),
            ("a;;s=x;;b", "a;;;b"),
        ] {
            assert_eq!(left_of(&[before]), [after], "{before:?}");
        }
    }

    #[test]
    fn a_field_that_had_nothing_else_is_gone() {
        for alone in ["s=", "s=x", "s=x;", "; s=x ; ;", "s=1; s=2"] {
            assert!(left_of(&[alone]).is_empty(), "{alone:?}");
            assert_eq!(left_of(&["a=1; s=x", alone, "b=2"]), ["a=1", "b=2"], "{alone:?}");
            assert_eq!(left_of(&["", alone, ";"]), ["", ";"], "{alone:?}: those were empty before");
        }
    }

    #[test]
    fn every_value_of_a_name_is_found_in_order() {
        let fields = fields(&["s=1; t=2", "x", "u; s = 3 ;s=", "S=4; s"]);
        let values: Vec<_> = fields.cookies(b"s").collect();
        assert_eq!(values, [&b"1"[..], b"3", b""]);
        assert!(fields.cookies(b"z").next().is_none());
        assert!(Fields::new().cookies(b"s").next().is_none());
    }

    #[test]
    fn where_the_cookie_is_not_nothing_is_touched() {
        let mut fields = fields(&["a=1; b=2"]);
        let before = fields.clone();
        assert!(!fields.remove_cookie(b"s"));
        assert_eq!(fields, before);
        assert!(!Fields::new().remove_cookie(b"s"));
    }
}
