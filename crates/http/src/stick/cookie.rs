//! Stickiness by cookie: the client carries the [token](super::token) of its endpoint.
//!
//! The cookie is Subak's own business: it is taken out of the request, whatever it says, and the
//! endpoint sees the other cookies as they were. One that names nobody is as good as none. An answer
//! sets the cookie only where the client has not the right one already.

use subak_message::{Fields, Known};

use crate::stick::Tokens;

/// The cookie of one pool, as one listener sets it.
#[derive(Debug)]
pub(crate) struct CookieStick {
    name: Box<[u8]>,
    /// What follows the value, from the first semicolon on.
    attributes: Box<[u8]>,
    tokens: Tokens,
}

/// What a client's cookie says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Claim {
    /// The client belongs to this endpoint.
    pub(crate) index: usize,
    /// It is signed with the key that signs now.
    pub(crate) is_current: bool,
}

impl CookieStick {
    /// A cookie of this name; `attributes` follow its value, each after `; `.
    pub(crate) fn new(name: &str, attributes: &str, tokens: Tokens) -> CookieStick {
        CookieStick {
            name: name.as_bytes().into(),
            attributes: attributes.as_bytes().into(),
            tokens,
        }
    }

    /// Takes the cookie out of a request; what it says, if it was made here. Of several the first that
    /// was: browsers send the one with the longest path first.
    pub(crate) fn take(&self, fields: &mut Fields) -> Option<Claim> {
        let claim = fields.cookies(&self.name).find_map(|value| {
            let index = self.tokens.read(value)?;
            Some(Claim { index, is_current: value == self.tokens.of(index) })
        });
        fields.remove_cookie(&self.name);
        claim
    }

    /// Makes an answer set the cookie for this endpoint.
    pub(crate) fn give(&self, fields: &mut Fields, index: usize) {
        let token = self.tokens.of(index);
        let value = [&self.name, &b"="[..], token, &self.attributes].concat();
        if let Err(error) = fields.push_known(Known::SetCookie, &value) {
            tracing::debug!(%error, "a sticky cookie was left out");
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stick::Keys;

    const OLD: &str = "a key of sixteen";
    const NEW: &str = "another key of more bytes";

    fn stick(keys: &[&str], pool: &str) -> CookieStick {
        let endpoints = ["http://10.0.0.1:80", "http://10.0.0.2:80"];
        let tokens = Tokens::new(&Keys::new(keys), pool, &endpoints);
        CookieStick::new("S", "; Path=/; HttpOnly", tokens)
    }

    fn request(cookies: &[&str]) -> Fields {
        let mut fields = Fields::new();
        for cookies in cookies {
            fields.push_received(b"Cookie", cookies.as_bytes()).unwrap();
        }
        fields
    }

    fn value(stick: &CookieStick, index: usize) -> String {
        String::from_utf8(stick.tokens.of(index).to_vec()).unwrap()
    }

    #[test]
    fn what_was_given_comes_back_as_what_it_was() {
        let stick = stick(&[NEW], "app");
        for index in [0, 1] {
            let mut answer = Fields::new();
            answer.push(b"set-cookie", b"a=1").unwrap();
            stick.give(&mut answer, index);
            let set = answer.get_all(Known::SetCookie).nth(1).unwrap();
            let pair = set.strip_suffix(b"; Path=/; HttpOnly").unwrap();
            let mut fields = request(&["a=1"]);
            fields.push_received(b"cookie", pair).unwrap();
            assert_eq!(stick.take(&mut fields), Some(Claim { index, is_current: true }));
            assert_eq!(fields, request(&["a=1"]));
        }
    }

    #[test]
    fn a_cookie_that_names_nobody_is_taken_out_and_ignored() {
        let app = stick(&[NEW], "app");
        let foreign = value(&stick(&[NEW], "api"), 0);
        let other_key = value(&stick(&[OLD], "app"), 0);
        let mut tampered = value(&app, 0);
        tampered.replace_range(32.., if tampered.ends_with('A') { "B" } else { "A" });
        for value in ["", "x", "10.0.0.1:80", &foreign, &other_key, &tampered] {
            let mut fields = request(&[&format!("a=1; S={value}; b=2")]);
            assert_eq!(app.take(&mut fields), None, "{value}");
            assert_eq!(fields.get(Known::Cookie), Some(&b"a=1; b=2"[..]));
        }
    }

    #[test]
    fn of_several_the_first_that_names_somebody_counts() {
        let stick = stick(&[NEW], "app");
        let (first, second) = (value(&stick, 0), value(&stick, 1));
        let mut fields = request(&["S=x", &format!("S={second}; a=1; S={first}")]);
        assert_eq!(stick.take(&mut fields), Some(Claim { index: 1, is_current: true }));
        let left: Vec<_> = fields.get_all(Known::Cookie).collect();
        assert_eq!(left, [b"a=1"]);
    }

    #[test]
    fn a_cookie_by_an_older_key_is_good_and_known_as_such() {
        let old = value(&stick(&[OLD], "app"), 1);
        let mut fields = request(&[&format!("S={old}")]);
        let claim = stick(&[NEW, OLD], "app").take(&mut fields);
        assert_eq!(claim, Some(Claim { index: 1, is_current: false }));
        assert!(fields.is_empty());
    }
}
