//! Untrusted bytes in a line: nothing a client sends can begin a new line, end a value, or make a
//! terminal do something.
//!
//! JSON: text that is no UTF-8 gets U+FFFD in its place; control characters, the C1 ones too, are
//! `\u00XX`. Text: as nginx's `escape=default`, `\xHH` for quote, backslash and everything outside of
//! printable ASCII. Nearly all values need none of that and are copied whole after one look.

use crate::page::Page;

/// Bytes of one value that are written; what is longer ends in an ellipsis.
pub(crate) const MOST_BYTES: usize = 8 * 1024;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// The inside of a JSON string.
#[inline]
pub(crate) fn json(value: &[u8], page: &mut Page) {
    if value.len() > MOST_BYTES || !page.extend_if_plain(value) {
        json_carefully(value, page);
    }
}

/// The inside of a text that may stand in quotes or between spaces.
#[inline]
pub(crate) fn text(value: &[u8], page: &mut Page) {
    if value.len() > MOST_BYTES || !page.extend_if_plain(value) {
        text_carefully(value, page);
    }
}

#[cold]
#[inline(never)]
fn json_carefully(value: &[u8], page: &mut Page) {
    let shown = &value[..value.len().min(MOST_BYTES)];
    for chunk in shown.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => page.extend(b"\\\""),
                '\\' => page.extend(b"\\\\"),
                '\n' => page.extend(b"\\n"),
                '\r' => page.extend(b"\\r"),
                '\t' => page.extend(b"\\t"),
                // Line separators of JavaScript; some readers end a line there.
                control if control.is_control() || matches!(control, '\u{2028}' | '\u{2029}') => {
                    let code = control as usize;
                    page.extend(b"\\u");
                    for shift in [12, 8, 4, 0] {
                        page.byte(HEX[code >> shift & 15]);
                    }
                }
                other => page.extend(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            page.extend("\u{fffd}".as_bytes());
        }
    }
    if shown.len() < value.len() {
        page.extend("…".as_bytes());
    }
}

#[cold]
#[inline(never)]
fn text_carefully(value: &[u8], page: &mut Page) {
    let shown = &value[..value.len().min(MOST_BYTES)];
    for byte in shown {
        if matches!(byte, b' '..=b'~') && !matches!(byte, b'"' | b'\\') {
            page.byte(*byte);
        } else {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            page.extend(&[b'\\', b'x', high.to_ascii_uppercase(), low.to_ascii_uppercase()]);
        }
    }
    if shown.len() < value.len() {
        page.extend(b"...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(value: &[u8]) -> (String, String) {
        let (mut as_json, mut as_text) = (Page::default(), Page::default());
        json(value, &mut as_json);
        text(value, &mut as_text);
        let string = |mut page: Page| String::from_utf8(page.exchange(Vec::new())).unwrap();
        (string(as_json), string(as_text))
    }

    #[test]
    fn what_is_plain_stays_so() {
        for value in ["", "curl/8.5.0", "/a?b=c&d=%22", "'~ "] {
            assert_eq!(both(value.as_bytes()), (value.into(), value.into()));
        }
    }

    #[test]
    fn what_could_break_a_line_does_not() {
        let nasty = b"a\"b\\c\nd\re\tf\x00\x1b[2J\x7f\xff\xc3\xa4\xc2\x85";
        let (as_json, as_text) = both(nasty);
        assert_eq!(as_json, "a\\\"b\\\\c\\nd\\re\\tf\\u0000\\u001b[2J\\u007f\u{fffd}ä\\u0085");
        assert_eq!(
            as_text,
            "a\\x22b\\x5Cc\\x0Ad\\x0De\\x09f\\x00\\x1B[2J\\x7F\\xFF\\xC3\\xA4\\xC2\\x85"
        );
    }

    #[test]
    fn there_is_an_end_to_a_value() {
        let (as_json, as_text) = both(&[b'x'; MOST_BYTES + 1]);
        assert_eq!(as_json.len(), MOST_BYTES + "…".len());
        assert_eq!(as_text.len(), MOST_BYTES + 3);
        // A character that is cut through is no reason to stop.
        let umlauts = "ä".repeat(MOST_BYTES);
        let (as_json, _) = both(&umlauts.as_bytes()[1..]);
        assert!(as_json.starts_with('\u{fffd}') && as_json.ends_with('…'));
    }
}
