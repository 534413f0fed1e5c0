//! Lines of text by a format: nginx's `log_format`, HAProxy's `log-format`, read backwards.
//!
//! A format is pieces of text with fields between them. A field ends where the text after it begins,
//! so two fields need something between them.

use std::fmt;

use crate::line::{Line, Meaning, Unit};

/// nginx's and Apache's "combined".
pub(crate) const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                                   $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// The "common log format": the same without its last two fields.
pub(crate) const COMMON: &str =
    "$remote_addr - $remote_user [$time_local] \"$request\" $status $body_bytes_sent";

/// What HAProxy writes with `option httplog`. Captured headers, which may be there or not, are left
/// to the last field.
pub(crate) const HAPROXY: &str = "%ci:%cp [%tr] %ft %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %CC %CS %tsc \
                                  %ac/%fc/%bc/%sc/%rc %sq/%bq %hr\"%r\"";

/// Most fields of a format.
const MOST_FIELDS: usize = 256;

/// Whether the moment of a line is when its request began or when it ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Stamp {
    /// Subak's own logs, and HAProxy's `%t` and `%tr`.
    Began,
    /// nginx writes a line, and its time, at the end.
    Ended,
}

/// A compiled format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Pattern {
    /// Where a line begins. Lines by syslog have something before it.
    first: Box<[u8]>,
    fields: Box<[(Meaning, Box<[u8]>)]>,
    /// Whether there may be a header of syslog in front, which ends with `]: `.
    has_syslog: bool,
    pub(crate) stamp: Stamp,
}

/// Why a text is no format.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoFormat(String);

impl fmt::Display for NoFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for NoFormat {}

impl Pattern {
    /// Reads a format in the words of nginx (`$status`) or of HAProxy (`%ST`). A whole directive,
    /// `log_format main '…' '…';`, is as good as its text.
    pub(crate) fn read(text: &str) -> Result<Pattern, NoFormat> {
        let text = undirected(text);
        let is_nginx = text.contains('$');
        let mut parts = parts(&text, is_nginx)?.into_iter().peekable();
        let first = match parts.next_if(|part| matches!(part, Part::Text(_))) {
            Some(Part::Text(text)) => text,
            _ => Vec::new(),
        };
        let mut pattern = Pattern {
            first: first.into(),
            fields: Box::default(),
            has_syslog: !is_nginx,
            stamp: if is_nginx { Stamp::Ended } else { Stamp::Began },
        };
        let mut fields: Vec<(Meaning, Box<[u8]>)> = Vec::new();
        while let Some(part) = parts.next() {
            let Part::Field(name) = part else { continue };
            let meaning = if is_nginx { by_nginx(&name) } else { by_haproxy(&name) };
            if matches!(name.as_str(), "T" | "Tl" | "Ts") && !is_nginx {
                pattern.stamp = Stamp::Ended;
            }
            let until = match parts.next_if(|part| matches!(part, Part::Text(_))) {
                Some(Part::Text(text)) => text,
                _ if parts.peek().is_some() => {
                    let why = format!("nothing stands between {name} and what follows it");
                    return Err(NoFormat(format!("{why}: nobody can tell where it ends")));
                }
                _ => Vec::new(),
            };
            match fields.last_mut() {
                // An address of IPv6 has colons of its own: the last one is before the port.
                Some((last @ Meaning::Client, colon)) if **colon == *b":" => {
                    *last = Meaning::ClientAndPort;
                    *colon = until.into();
                }
                _ => fields.push((meaning, until.into())),
            }
            if fields.len() > MOST_FIELDS {
                return Err(NoFormat(format!("a format has at most {MOST_FIELDS} fields")));
            }
        }
        if fields.iter().all(|(meaning, _)| *meaning == Meaning::Nothing) {
            let why = "it has none of the fields that are needed";
            return Err(NoFormat(format!("{why}: nginx's begin with $, HAProxy's with %")));
        }
        pattern.fields = fields.into();
        Ok(pattern)
    }

    /// What the line says, unless it is of another format.
    pub(crate) fn line<'a>(&self, text: &'a [u8]) -> Option<Line<'a>> {
        let behind_syslog = || {
            let begin = memchr::memmem::find(text, b"]: ")?;
            self.line_from(&text[begin + 3..])
        };
        self.line_from(text).or_else(|| self.has_syslog.then(behind_syslog).flatten())
    }

    fn line_from<'a>(&self, text: &'a [u8]) -> Option<Line<'a>> {
        let mut rest = text.strip_prefix(&*self.first)?;
        let mut line = Line::default();
        for (meaning, until) in &self.fields {
            let end = match until.is_empty() {
                true => rest.len(),
                false => memchr::memmem::find(rest, until)?,
            };
            if !line.set(*meaning, &rest[..end]) {
                return None;
            }
            rest = &rest[end + until.len()..];
        }
        rest.is_empty().then_some(line)
    }

    /// Whether a line of this format can say that.
    #[cfg(test)]
    fn has(&self, wanted: Meaning) -> bool {
        self.fields.iter().any(|(meaning, _)| *meaning == wanted)
    }
}

enum Part {
    Text(Vec<u8>),
    Field(String),
}

/// `log_format main '$a ' '$b';` without the directive.
fn undirected(text: &str) -> String {
    let text = text.trim_end_matches(['\n', '\r']);
    let Some(rest) = text.trim_start().strip_prefix("log_format ") else { return text.to_owned() };
    let mut out = String::new();
    let mut quote = None;
    let mut letters = rest.chars();
    while let Some(letter) = letters.next() {
        match quote {
            Some(_) if letter == '\\' => out.extend(letters.next()),
            Some(open) if open == letter => quote = None,
            Some(_) => out.push(letter),
            None if matches!(letter, '\'' | '"') => quote = Some(letter),
            None => {}
        }
    }
    out
}

fn parts(text: &str, is_nginx: bool) -> Result<Vec<Part>, NoFormat> {
    let sign = if is_nginx { '$' } else { '%' };
    let mut parts = Vec::new();
    let mut literal = Vec::new();
    let mut rest = text;
    while let Some(place) = rest.find(sign) {
        literal.extend_from_slice(&rest.as_bytes()[..place]);
        rest = &rest[place + 1..];
        if let Some(after) = rest.strip_prefix(sign) {
            literal.push(sign as u8);
            rest = after;
            continue;
        }
        let (name, is_quoted, after) = name(rest, is_nginx)
            .ok_or_else(|| NoFormat(format!("no name follows {sign} in {sign}{rest}")))?;
        if is_quoted {
            literal.push(b'"');
        }
        if !literal.is_empty() {
            parts.push(Part::Text(std::mem::take(&mut literal)));
        }
        parts.push(Part::Field(name.to_owned()));
        if is_quoted {
            literal.push(b'"');
        }
        rest = after;
    }
    literal.extend_from_slice(rest.as_bytes());
    if !literal.is_empty() {
        parts.push(Part::Text(literal));
    }
    Ok(parts)
}

/// The name at the beginning, whether its value is in quotes, and what follows.
fn name(text: &str, is_nginx: bool) -> Option<(&str, bool, &str)> {
    let is_in_name = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    if is_nginx {
        if let Some(rest) = text.strip_prefix('{') {
            let (name, rest) = rest.split_once('}')?;
            return Some((name, false, rest));
        }
        let end = text.find(|letter| !is_in_name(letter)).unwrap_or(text.len());
        return (end > 0).then(|| (&text[..end], false, &text[end..]));
    }
    let (flags, text) = match text.strip_prefix('{') {
        Some(rest) => rest.split_once('}')?,
        None => ("", text),
    };
    let is_quoted = flags.contains("+Q");
    if let Some(rest) = text.strip_prefix('[') {
        let (name, rest) = rest.split_once(']')?;
        return Some((name, is_quoted, rest));
    }
    let end = text.find(|letter: char| !letter.is_ascii_alphabetic()).unwrap_or(text.len());
    (end > 0).then(|| (&text[..end], is_quoted, &text[end..]))
}

fn by_nginx(name: &str) -> Meaning {
    match name {
        "time_iso8601" => Meaning::IsoMoment,
        "time_local" => Meaning::DayFirstMoment,
        "msec" => Meaning::EpochMoment,
        "remote_addr" => Meaning::Client,
        "request" => Meaning::RequestLine,
        "request_method" => Meaning::Method,
        "request_uri" => Meaning::Uri,
        "status" => Meaning::Status,
        "bytes_sent" | "body_bytes_sent" => Meaning::BytesOut,
        "proxy_host" | "proxy_upstream_name" => Meaning::Pool,
        "upstream_addr" => Meaning::Endpoint,
        "request_time" => Meaning::Total(Unit::Seconds),
        "upstream_response_time" => Meaning::AtEndpoint(Unit::Seconds),
        "upstream_header_time" => Meaning::FirstByte(Unit::Seconds),
        _ => Meaning::Nothing,
    }
}

fn by_haproxy(name: &str) -> Meaning {
    match name {
        "t" | "tr" | "trl" | "trg" | "T" | "Tl" => Meaning::DayFirstMoment,
        "Ts" => Meaning::EpochMoment,
        "ci" | "src" => Meaning::Client,
        "r" => Meaning::RequestLine,
        "HM" => Meaning::Method,
        "HU" => Meaning::Uri,
        "ST" => Meaning::Status,
        "B" => Meaning::BytesOut,
        "b" => Meaning::Pool,
        "s" => Meaning::Endpoint,
        "Ta" | "Tt" => Meaning::Total(Unit::Millis),
        "Tr" => Meaning::FirstByte(Unit::Millis),
        "TR" | "Tq" | "Tw" => Meaning::Before(Unit::Millis),
        _ => Meaning::Nothing,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(format: &str) -> Pattern {
        Pattern::read(format).unwrap()
    }

    fn text(found: Option<&[u8]>) -> &str {
        std::str::from_utf8(found.unwrap_or(b"(none)")).unwrap()
    }

    #[test]
    fn combined_and_common() {
        let line = r#"2001:db8::7 - - [21/Nov/2026:17:12:33 +0000] "GET /a?b HTTP/1.1" 200 5 "-" "curl \x22""#;
        let found = read(COMBINED).line(line.as_bytes()).unwrap();
        assert_eq!((text(found.client), text(found.uri)), ("2001:db8::7", "/a?b"));
        assert_eq!((found.status, found.bytes_out, found.total), (Some(200), Some(5), None));
        let end = line.find(" \"-\"").unwrap();
        assert!(read(COMMON).line(&line.as_bytes()[..end]).is_some());
        assert!(read(COMBINED).line(format!("{line} 0.005").as_bytes()).is_none());
        assert!(read(COMBINED).line(b"").is_none());
    }

    #[test]
    fn a_directive_of_nginx_with_times_and_upstreams() {
        let format = read(
            "log_format timed '$remote_addr [$time_local] \"$request\" $status '\n\
             '${request_time}s $upstream_addr|$upstream_response_time';",
        );
        let line = "10.0.0.1 [21/Nov/2026:17:12:33 +0000] \"GET / HTTP/1.1\" 502 \
                    0.130s 10.0.0.2:80, 10.0.0.3:80|0.1, 0.030";
        let found = format.line(line.as_bytes()).unwrap();
        assert_eq!(text(found.endpoint), "10.0.0.3:80");
        assert_eq!((found.total, found.at_endpoint), (Some(130_000), Some(30_000)));
        assert_eq!(format.stamp, Stamp::Ended);
    }

    #[test]
    fn haproxys_own_with_and_without_captures_and_syslog() {
        let format = read(HAPROXY);
        for (before, captured) in [
            ("", ""),
            ("Feb  6 12:14:14 localhost haproxy[14389]: ", "{1wt.eu} {} "),
            ("<134>1 2026-11-21T17:12:33Z host haproxy[7]: ", ""),
        ] {
            let line = format!(
                "{before}2001:db8::7:33317 [06/Feb/2009:12:14:14.655] web static/srv1 \
                 10/2/30/69/109 200 2750 - - ---- 1/1/1/1/0 0/0 {captured}\"GET /i HTTP/1.1\""
            );
            let found = format.line(line.as_bytes()).expect("fits");
            assert_eq!((text(found.client), text(found.uri)), ("2001:db8::7", "/i"));
            assert_eq!((text(found.pool), text(found.endpoint)), ("static", "srv1"));
            let times = (found.total, found.before, found.first_byte);
            assert_eq!(times, (Some(109_000), Some(12_000), Some(69_000)));
        }
        let refused = "1.2.3.4:5 [06/Feb/2009:12:14:14.655] web web/<NOSRV> \
                       -1/-1/-1/-1/0 400 2750 - - PR-- 1/1/0/0/0 0/0 \"<BADREQ>\"";
        let found = format.line(refused.as_bytes()).unwrap();
        assert_eq!((found.endpoint, found.uri), (None, None));
    }

    #[test]
    fn formats_in_haproxys_words() {
        let format = read("%[src] %{+Q}r %ST %Ta%%");
        let line = format.line(b"10.0.0.1 \"GET /a HTTP/1.1\" 200 12%").unwrap();
        assert_eq!((text(line.client), text(line.uri)), ("10.0.0.1", "/a"));
        assert_eq!(line.total, Some(12_000));
        assert!(format.has(Meaning::Status));
        assert_eq!(read("%T %ST").stamp, Stamp::Ended);
    }

    #[test]
    fn what_is_no_format_is_told() {
        for (format, part) in [
            ("$remote_addr$status", "nothing stands between remote_addr"),
            ("hello", "none of the fields"),
            ("$host $scheme", "none of the fields"),
            ("$status $", "no name follows"),
        ] {
            let why = Pattern::read(format).unwrap_err().to_string();
            assert!(why.contains(part), "{format}: {why}");
        }
    }
}
