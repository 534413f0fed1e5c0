//! What a line looks like: `json`, `combined`, a list of JSON keys, or a text with the names that users
//! of nginx (`$status`) and HAProxy (`%ST`) know.
//!
//! Reading a format can fail and happens with the configuration; compiling it, when a snapshot is
//! built, cannot: constants become text, and headers get the slots they are captured in.

use std::fmt;

use crate::compiled::{Compiled, Pieces, Then, Wanted};
use crate::encode;
use crate::fields::Field;
use crate::page::Page;
use crate::syslog::Syslog;

/// nginx's and Apache's "combined".
const COMBINED: &str = "$remote_addr - $remote_user [$time_local] \"$request\" $status \
                        $body_bytes_sent \"$http_referer\" \"$http_user_agent\"";

/// The keys of `json`, in order. They stay as they are; more may follow.
const JSON: &[&str] = &[
    "time",
    "listener",
    "client",
    "client_port",
    "method",
    "scheme",
    "host",
    "path",
    "query",
    "protocol",
    "status",
    "bytes_in",
    "bytes_out",
    "route",
    "pool",
    "endpoint",
    "tries",
    "queue_ms",
    "connect_ms",
    "first_byte_ms",
    "total_ms",
    "end",
    "fault",
    "user_agent",
    "referer",
    "decision",
];

/// A format that has been read.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Format {
    parts: Vec<Part>,
    style: Style,
}

#[derive(Clone, PartialEq, Eq, Debug)]
enum Part {
    Text(String),
    Field(Field),
    RequestHeader(String),
    AnswerHeader(String),
}

/// How values are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Style {
    /// Strings in quotes, numbers bare, null where there is nothing.
    Json,
    /// Bare, `-` where there is nothing.
    Text,
}

/// What a format cannot be read for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Unknown {
    /// What stands there.
    pub found: String,
    /// What is wrong with it.
    pub why: &'static str,
    /// Every name that could have stood there.
    pub known: Vec<String>,
}

impl fmt::Display for Unknown {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}: `{}`", self.why, self.found)
    }
}

impl std::error::Error for Unknown {}

impl Default for Format {
    fn default() -> Format {
        Format::of_keys(JSON.iter().copied()).expect("the keys of json are known: a test")
    }
}

impl Format {
    /// Reads `json`, `combined`, or a text with names.
    ///
    /// # Errors
    /// [`Unknown`]: what cannot be read of it.
    pub fn read(text: &str) -> Result<Format, Unknown> {
        match text {
            "json" => Ok(Format::default()),
            "combined" => read_text(COMBINED),
            text => read_text(text),
        }
    }

    /// JSON with these keys, in this order. Besides those of fields there are `user_agent`, `referer`,
    /// `request_header.NAME` and `response_header.NAME`.
    ///
    /// # Errors
    /// [`Unknown`], also for a key that comes twice, and where there is none.
    pub fn of_keys<'a>(keys: impl IntoIterator<Item = &'a str>) -> Result<Format, Unknown> {
        let mut parts = Vec::new();
        let mut seen: Vec<&str> = Vec::new();
        for key in keys {
            if seen.contains(&key) {
                return Err(unknown(key, "this key comes twice", Vec::new()));
            }
            seen.push(key);
            let before = if parts.is_empty() { '{' } else { ',' };
            let mut text = format!("{before}\"");
            // Names of headers may hold no quote: they are tokens.
            text.push_str(key);
            text.push_str("\":");
            parts.push(Part::Text(text));
            parts.push(of_key(key)?);
        }
        if parts.is_empty() {
            return Err(unknown("[]", "a line says nothing without a key", keys_known()));
        }
        parts.push(Part::Text("}".into()));
        Ok(Format { parts, style: Style::Json })
    }

    /// Makes it ready to write, for a listener, process and machine that do not change any more. What
    /// it wants of requests is added to `wanted`; for syslog every line begins with a header.
    pub fn compile(
        &self,
        wanted: &mut Wanted,
        (listener, generation): (&str, u64),
        syslog: Option<&Syslog>,
    ) -> Compiled {
        let mut pieces = Pieces::default();
        if let Some(syslog) = syslog {
            pieces.text(syslog.before_time().as_bytes());
            pieces.field(Field::Time, Style::Text);
            pieces.text(syslog.after_time(&hostname()).as_bytes());
        }
        for part in &self.parts {
            match part {
                Part::Text(text) => pieces.text(text.as_bytes()),
                Part::Field(Field::Pid) => pieces.text(std::process::id().to_string().as_bytes()),
                Part::Field(Field::Generation) => pieces.text(generation.to_string().as_bytes()),
                Part::Field(Field::Hostname) => pieces.text(&self.string(&hostname())),
                Part::Field(Field::Listener) => pieces.text(&self.string(listener)),
                Part::Field(field) => {
                    wanted.note(*field);
                    pieces.field(*field, self.style);
                }
                Part::RequestHeader(name) => {
                    let slot = wanted.slot(name);
                    pieces.then(Then::RequestHeader(slot, self.style));
                }
                Part::AnswerHeader(name) => {
                    pieces.then(Then::AnswerHeader(name.as_bytes().into(), self.style));
                }
            }
        }
        pieces.finish()
    }

    /// What stays the same, as it stands in every line.
    fn string(&self, value: &str) -> Vec<u8> {
        let mut page = Page::default();
        encode::value(Some(value.as_bytes()), self.style, &mut page);
        page.exchange(Vec::new())
    }
}

fn of_key(key: &str) -> Result<Part, Unknown> {
    let header = |name: &str, part: fn(String) -> Part| match is_token(name) {
        true => Ok(part(name.to_ascii_lowercase())),
        false => Err(unknown(key, "this is no header name", Vec::new())),
    };
    match key {
        "user_agent" => Ok(Part::RequestHeader("user-agent".into())),
        "referer" => Ok(Part::RequestHeader("referer".into())),
        _ => match (key.strip_prefix("request_header."), key.strip_prefix("response_header.")) {
            (Some(name), _) => header(name, Part::RequestHeader),
            (_, Some(name)) => header(name, Part::AnswerHeader),
            _ => Field::by_json(key)
                .map(Part::Field)
                .ok_or_else(|| unknown(key, "no field has this key", keys_known())),
        },
    }
}

fn read_text(text: &str) -> Result<Format, Unknown> {
    let mut parts: Vec<Part> = Vec::new();
    let mut plain = String::new();
    let mut rest = text;
    while let Some(character) = rest.chars().next() {
        let (part, after) = match character {
            '$' => nginx(&rest[1..])?,
            '%' => haproxy(&rest[1..])?,
            '\n' | '\r' => {
                return Err(unknown("a line end", "a line cannot hold another", Vec::new()));
            }
            other => (Part::Text(other.to_string()), &rest[other.len_utf8()..]),
        };
        rest = after;
        match part {
            Part::Text(text) => plain.push_str(&text),
            part => {
                if !plain.is_empty() {
                    parts.push(Part::Text(std::mem::take(&mut plain)));
                }
                parts.push(part);
            }
        }
    }
    if parts.is_empty() {
        let known = vec!["json".into(), "combined".into()];
        return Err(unknown(text, "this format names no field", known));
    }
    if !plain.is_empty() {
        parts.push(Part::Text(plain));
    }
    Ok(Format { parts, style: Style::Text })
}

/// What follows a `$`, and what follows that.
fn nginx(rest: &str) -> Result<(Part, &str), Unknown> {
    if let Some(after) = rest.strip_prefix('$') {
        return Ok((Part::Text("$".into()), after));
    }
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let (name, after) = match rest.strip_prefix('{').and_then(|inner| inner.split_once('}')) {
        Some(braced) => braced,
        None => rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len())),
    };
    let dashes = |name: &str| name.replace('_', "-");
    let part = if let Some(field) = Field::by_nginx(name) {
        Part::Field(field)
    } else if let Some(header) = name.strip_prefix("http_").filter(|name| is_token(name)) {
        Part::RequestHeader(dashes(header))
    } else if let Some(header) = name.strip_prefix("sent_http_").filter(|name| is_token(name)) {
        Part::AnswerHeader(dashes(header))
    } else {
        let fields = Field::ALL.iter().flat_map(|field| field.nginx());
        let known = fields.map(|name| format!("${name}")).collect();
        return Err(unknown(&format!("${name}"), "no field has this name", known));
    };
    Ok((part, after))
}

/// What follows a `%`, and what follows that.
fn haproxy(rest: &str) -> Result<(Part, &str), Unknown> {
    if let Some(after) = rest.strip_prefix('%') {
        return Ok((Part::Text("%".into()), after));
    }
    if let Some((sample, after)) = rest.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        let header = |name: &str| {
            let name = sample.strip_prefix(name)?.strip_prefix('(')?.strip_suffix(')')?;
            Some(name.to_ascii_lowercase()).filter(|name| is_token(name))
        };
        let part = header("req.hdr").map(Part::RequestHeader);
        let part = part.or_else(|| header("res.hdr").map(Part::AnswerHeader));
        let known = vec!["%[req.hdr(NAME)]".into(), "%[res.hdr(NAME)]".into()];
        let failed = || unknown(&format!("%[{sample}]"), "this cannot be logged", known);
        return part.map(|part| (part, after)).ok_or_else(failed);
    }
    let is_name = |c: char| c.is_ascii_alphabetic();
    let (name, after) = rest.split_at(rest.find(|c| !is_name(c)).unwrap_or(rest.len()));
    match Field::by_haproxy(name) {
        Some(field) => Ok((Part::Field(field), after)),
        None => {
            let fields = Field::ALL.iter().flat_map(|field| field.haproxy());
            let known = fields.map(|name| format!("%{name}")).collect();
            Err(unknown(&format!("%{name}"), "no field has this name", known))
        }
    }
}

fn is_token(name: &str) -> bool {
    let legal = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$&'*+-.^_`|~".contains(&byte);
    !name.is_empty() && name.bytes().all(legal)
}

fn keys_known() -> Vec<String> {
    let fields = Field::ALL.iter().map(|field| field.json()).filter(|key| !key.is_empty());
    let more = ["user_agent", "referer", "request_header.NAME", "response_header.NAME"];
    fields.chain(more).map(String::from).collect()
}

fn unknown(found: &str, why: &'static str, known: Vec<String>) -> Unknown {
    Unknown { found: found.to_owned(), why, known }
}

fn hostname() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let name = read.trim();
    if name.is_empty() { "-".to_owned() } else { name.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_formats_that_have_names_can_be_read() {
        for name in ["json", "combined"] {
            assert!(Format::read(name).is_ok(), "{name}");
        }
    }

    #[test]
    fn users_of_both_find_their_words() {
        for text in [
            "%ci:%cp [%tr] %f %b/%s %TR/%Tw/%Tc/%Tr/%Ta %ST %B %tsc %r",
            "$remote_addr \"$request\" ${status} $http_x_forwarded_for $sent_http_location",
            "%[req.hdr(X-Tenant)] %[res.hdr(server)] 100%% $$5 $status",
        ] {
            assert!(Format::read(text).is_ok(), "{text}");
        }
    }

    #[test]
    fn what_cannot_be_read_is_named() {
        let found = |text: &str| Format::read(text).unwrap_err().found;
        assert_eq!(found("$remote_adr $status"), "$remote_adr");
        assert_eq!(found("$status %XY"), "%XY");
        assert_eq!(found("%[src] $status"), "%[src]");
        assert_eq!(found("jsn"), "jsn");
        assert_eq!(found(""), "");
        assert_eq!(found("$status\n"), "a line end");
        assert_eq!(found("$status $http_"), "$http_");
        assert_eq!(found("$status ${http_a\"b}"), "$http_a\"b");
        let of_keys = |keys: &[&str]| Format::of_keys(keys.iter().copied()).unwrap_err().found;
        assert_eq!(of_keys(&["time", "stauts"]), "stauts");
        assert_eq!(of_keys(&["time", "time"]), "time");
        assert_eq!(of_keys(&["request_header.a\"b"]), "request_header.a\"b");
        assert_eq!(of_keys(&[]), "[]");
    }

    #[test]
    fn only_what_is_wanted_is_asked_of_a_request() {
        let mut wanted = Wanted::default();
        Format::read("$status $http_a").unwrap().compile(&mut wanted, ("web", 1), None);
        Format::read("$http_b %[req.hdr(A)]").unwrap().compile(&mut wanted, ("web", 1), None);
        let names = [&b"a"[..], &b"b"[..]].map(Box::from).to_vec();
        assert_eq!(wanted, Wanted { request_headers: names, ..Wanted::default() });
        Format::default().compile(&mut wanted, ("web", 1), None);
        assert!(wanted.decision && wanted.first_byte && wanted.connect && !wanted.tls);
    }
}
