//! Fields on their way to the library and back.

use std::sync::LazyLock;

use http::{HeaderMap, HeaderName, HeaderValue};
use subak_message::{Fields, HeadError, Known, h2 as grammar};

/// The known names as the library wants them, which need not be told apart a second time.
static NAMES: LazyLock<Box<[HeaderName]>> = LazyLock::new(|| {
    Known::ALL.iter().map(|known| HeaderName::from_static(known.lower_name())).collect()
});

/// Fields that go on, as the library wants them; without those that `but` says.
pub(super) fn map(fields: &Fields, but: impl Fn(Known) -> bool) -> HeaderMap {
    let mut map = HeaderMap::with_capacity(fields.len() + 1);
    let names = &**NAMES;
    for field in grammar::onward(fields) {
        if but(field.known) {
            continue;
        }
        let name = match names.get((field.known as usize).wrapping_sub(Known::ALL[0] as usize)) {
            Some(name) => Some(name.clone()),
            None => HeaderName::from_bytes(field.name).ok(),
        };
        if let (Some(name), Ok(value)) = (name, HeaderValue::from_bytes(field.value)) {
            map.append(name, value);
        }
    }
    map
}

/// A length, as a value.
pub(super) fn length(number: u64) -> HeaderValue {
    let mut digits = [0; 20];
    let mut at = digits.len();
    let mut rest = number;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    // Digits are fit to be a value.
    HeaderValue::from_bytes(&digits[at..]).unwrap_or_else(|_| HeaderValue::from(number))
}

/// Trailers as the rest of Subak has them, without what may not stand there.
///
/// # Errors
/// One of them is malformed.
pub(super) fn received(map: &HeaderMap) -> Result<Box<Fields>, HeadError> {
    let mut fields = Box::new(Fields::new());
    for (name, value) in map {
        grammar::push(&mut fields, name.as_str().as_bytes(), value.as_bytes())
            .map_err(|fault| HeadError { fault, offset: 0 })?;
    }
    fields.keep_trailers();
    Ok(fields)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_known_name_is_itself() {
        for known in Known::ALL {
            let mut fields = Fields::new();
            fields.push_known(*known, b"value").expect("a field");
            let map = map(&fields, |_| false);
            match grammar::onward(&fields).next() {
                None => assert!(map.is_empty(), "{known:?} went on"),
                Some(_) => assert_eq!(map[known.name()], "value", "{known:?}"),
            }
            let without = super::map(&fields, |name| name == *known);
            assert!(without.is_empty(), "{known:?} was to be left out");
        }
    }

    #[test]
    fn other_names_go_on_in_lower_case_as_often_as_they_come() {
        let mut fields = Fields::new();
        for (name, value) in
            [("X-One", "a"), ("Set-Cookie", "b"), ("x-one", "c"), ("Set-Cookie", "d")]
        {
            fields.push(name.as_bytes(), value.as_bytes()).expect("a field");
        }
        let map = map(&fields, |_| false);
        assert_eq!(map.get_all("x-one").iter().collect::<Vec<_>>(), ["a", "c"]);
        assert_eq!(map.get_all("set-cookie").iter().collect::<Vec<_>>(), ["b", "d"]);
        assert_eq!(map.len(), 4);
    }

    #[test]
    fn lengths_are_decimal() {
        for number in [0, 1, 9, 10, 65_536, u64::MAX] {
            assert_eq!(length(number), number.to_string());
        }
    }
}
