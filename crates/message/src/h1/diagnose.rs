//! The cold path: httparse says that a head is bad, this says what is bad about it and where.
//!
//! A slow reading of the same grammar. It never runs for a head that is accepted.

use crate::error::{Fault, HeadError};
use crate::fields::is_token_byte;

/// What is wrong with a request head that httparse refused. `start` is where its line begins.
#[cold]
pub(super) fn request(head: &[u8], start: usize, error: httparse::Error) -> HeadError {
    if error == httparse::Error::TooManyHeaders {
        return HeadError { fault: Fault::TooManyFields, offset: start };
    }
    let at = |fault, offset| HeadError { fault, offset };
    let line = line_of(head, start);
    let Some(method_end) = line.iter().position(|&byte| !is_token_byte(byte)) else {
        return at(Fault::Method, start);
    };
    if method_end == 0 || line[method_end] != b' ' {
        let fault = if method_end == 0 { Fault::RequestLine } else { Fault::Method };
        return at(fault, start + method_end);
    }
    let target_start = method_end + 1;
    let target = &line[target_start..];
    let Some(target_len) = target.iter().position(|&byte| byte <= b' ' || byte == 0x7f) else {
        return at(Fault::TargetCharacter, start + target_start);
    };
    match target[target_len] {
        b' ' if target_len == 0 => return at(Fault::RequestLine, start + target_start),
        b' ' => {}
        b'\r' | b'\n' => return at(Fault::NotHttp, start + target_start + target_len),
        _ => return at(Fault::TargetCharacter, start + target_start + target_len),
    }
    if std::str::from_utf8(&target[..target_len]).is_err() {
        return at(Fault::TargetCharacter, start + target_start);
    }
    let version_start = target_start + target_len + 1;
    if let Some(fault) = version(&line[version_start..]) {
        return at(fault, start + version_start);
    }
    after_version(head, start + version_start, Fault::RequestLine)
}

/// What is wrong with an answer's head that httparse refused.
#[cold]
pub(super) fn response(head: &[u8], error: httparse::Error) -> HeadError {
    if error == httparse::Error::TooManyHeaders {
        return HeadError { fault: Fault::TooManyFields, offset: 0 };
    }
    let line = line_of(head, 0);
    if let Some(fault) = version(line) {
        return HeadError { fault, offset: 0 };
    }
    let in_status = matches!(error, httparse::Error::Status | httparse::Error::Version);
    match line_end(head, 0) {
        // A bad line end in the reason or right behind the status.
        Err(error) if error.offset >= b"HTTP/1.1 200".len() => error,
        Ok(Some(next)) if !in_status => fields(head, next, Fault::StatusLine),
        _ => HeadError { fault: Fault::StatusLine, offset: 0 },
    }
}

/// What is wrong with a section of field lines that begins at `start`; `otherwise` if nothing that
/// this grammar knows.
pub(super) fn fields(head: &[u8], start: usize, otherwise: Fault) -> HeadError {
    let mut at = start;
    while at < head.len() && !head[at..].starts_with(b"\r\n") {
        if let Some(error) = field_line(head, at) {
            return error;
        }
        match line_end(head, at) {
            Ok(Some(next)) => at = next,
            Ok(None) => break,
            Err(error) => return error,
        }
    }
    HeadError { fault: otherwise, offset: start }
}

/// The line end at the end of the version, then the fields.
fn after_version(head: &[u8], version_start: usize, otherwise: Fault) -> HeadError {
    let end = version_start + b"HTTP/1.1".len();
    match head.get(end..) {
        Some([b'\r', b'\n', ..]) => fields(head, end + 2, otherwise),
        Some([b'\n', ..]) => HeadError { fault: Fault::BareLf, offset: end },
        Some([b'\r', _, ..]) => HeadError { fault: Fault::BareCr, offset: end },
        _ => HeadError { fault: otherwise, offset: end.min(head.len()) },
    }
}

/// What is wrong with the name, the colon or the value of one line, apart from its end.
fn field_line(head: &[u8], start: usize) -> Option<HeadError> {
    let line = line_of(head, start);
    let name_len = line.iter().position(|&byte| !is_token_byte(byte))?;
    let offset = start + name_len;
    let fault = match (name_len, line[name_len]) {
        (0, b' ' | b'\t') => Fault::Folded,
        (0, b'\n') => Fault::BareLf,
        (0, b'\r') => Fault::BareCr,
        (0, _) => Fault::FieldName,
        (_, b':') => {
            let value = &line[name_len..];
            let bad = value.iter().position(|&b| (b < b' ' && b != b'\t') || b == 0x7f)?;
            let offset = offset + bad;
            return match value[bad] {
                b'\r' | b'\n' => None,
                _ => Some(HeadError { fault: Fault::ValueControl, offset }),
            };
        }
        (_, b' ' | b'\t') => Fault::SpaceBeforeColon,
        (_, _) => Fault::FieldName,
    };
    Some(HeadError { fault, offset })
}

/// Where the line after the one at `start` begins; `None` when it is cut off.
fn line_end(head: &[u8], start: usize) -> Result<Option<usize>, HeadError> {
    let Some(end) = memchr::memchr2(b'\r', b'\n', &head[start..]).map(|at| start + at) else {
        return Ok(None);
    };
    match (head[end], head.get(end + 1)) {
        (b'\n', _) => Err(HeadError { fault: Fault::BareLf, offset: end }),
        (_, Some(b'\n')) => Ok(Some(end + 2)),
        (_, Some(_)) => Err(HeadError { fault: Fault::BareCr, offset: end }),
        (_, None) => Ok(None),
    }
}

/// The line at `start`, with its line end.
fn line_of(head: &[u8], start: usize) -> &[u8] {
    let rest = &head[start..];
    memchr::memchr(b'\n', rest).map_or(rest, |at| &rest[..=at])
}

/// Something that is not HTTP/1.0 or HTTP/1.1; `None` for these and what may still become these.
fn version(text: &[u8]) -> Option<Fault> {
    let common = text.iter().zip(b"HTTP/1.").take_while(|(a, b)| a == b).count();
    match (common, text.get(common)) {
        (7, None | Some(b'0' | b'1')) | (_, None) => None,
        (7, Some(_)) => Some(Fault::Version),
        (5.., Some(b'0'..=b'9')) => Some(Fault::Version),
        _ => Some(Fault::NotHttp),
    }
}
