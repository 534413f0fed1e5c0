//! Untrusted bytes in a line: nothing a client sends can begin a new line, end a value, or make a
//! terminal do something.
//!
//! JSON: text that is no UTF-8 gets U+FFFD in its place; control characters, the C1 ones too, are
//! `\u00XX`. Text: as nginx's `escape=default`, `\xHH` for quote, backslash and everything outside of
//! printable ASCII. Nearly all values need none of that and are copied whole after one look.

/// Bytes of one value that are written; what is longer ends in an ellipsis.
pub(crate) const MOST_BYTES: usize = 8 * 1024;

const HEX: &[u8; 16] = b"0123456789abcdef";

/// Whether a byte stands for itself in either form.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = 0x20;
    while byte < 0x7f {
        plain[byte] = byte != b'"' as usize && byte != b'\\' as usize;
        byte += 1;
    }
    plain
};

/// The inside of a JSON string.
#[inline]
pub(crate) fn json(value: &[u8], out: &mut Vec<u8>) {
    if value.len() <= MOST_BYTES && value.iter().all(|byte| PLAIN[usize::from(*byte)]) {
        out.extend_from_slice(value);
    } else {
        json_carefully(value, out);
    }
}

/// The inside of a text that may stand in quotes or between spaces.
#[inline]
pub(crate) fn text(value: &[u8], out: &mut Vec<u8>) {
    if value.len() <= MOST_BYTES && value.iter().all(|byte| PLAIN[usize::from(*byte)]) {
        out.extend_from_slice(value);
    } else {
        text_carefully(value, out);
    }
}

#[cold]
fn json_carefully(value: &[u8], out: &mut Vec<u8>) {
    let shown = &value[..value.len().min(MOST_BYTES)];
    for chunk in shown.utf8_chunks() {
        for character in chunk.valid().chars() {
            match character {
                '"' => out.extend_from_slice(b"\\\""),
                '\\' => out.extend_from_slice(b"\\\\"),
                '\n' => out.extend_from_slice(b"\\n"),
                '\r' => out.extend_from_slice(b"\\r"),
                '\t' => out.extend_from_slice(b"\\t"),
                // Line separators of JavaScript; some readers end a line there.
                control if control.is_control() || matches!(control, '\u{2028}' | '\u{2029}') => {
                    let code = control as usize;
                    out.extend_from_slice(b"\\u");
                    for shift in [12, 8, 4, 0] {
                        out.push(HEX[code >> shift & 15]);
                    }
                }
                other => out.extend_from_slice(other.encode_utf8(&mut [0; 4]).as_bytes()),
            }
        }
        if !chunk.invalid().is_empty() {
            out.extend_from_slice("\u{fffd}".as_bytes());
        }
    }
    if shown.len() < value.len() {
        out.extend_from_slice("…".as_bytes());
    }
}

#[cold]
fn text_carefully(value: &[u8], out: &mut Vec<u8>) {
    let shown = &value[..value.len().min(MOST_BYTES)];
    for byte in shown {
        if PLAIN[usize::from(*byte)] {
            out.push(*byte);
        } else {
            let (high, low) = (HEX[usize::from(byte >> 4)], HEX[usize::from(byte & 15)]);
            out.extend_from_slice(&[
                b'\\',
                b'x',
                high.to_ascii_uppercase(),
                low.to_ascii_uppercase(),
            ]);
        }
    }
    if shown.len() < value.len() {
        out.extend_from_slice(b"...");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn both(value: &[u8]) -> (String, String) {
        let (mut as_json, mut as_text) = (Vec::new(), Vec::new());
        json(value, &mut as_json);
        text(value, &mut as_text);
        (String::from_utf8(as_json).unwrap(), String::from_utf8(as_text).unwrap())
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
