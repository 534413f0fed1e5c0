//! The head of a request: what is asked of whom, however it was written.

use crate::authority::Authority;
use crate::error::{Fault, HeadError};
use crate::fields::Fields;
use crate::known::Known;
use crate::method::{Method, parse_method};
use crate::path::{self, EncodedSlashes, PathRules};
use crate::version::{Scheme, Version};

/// The form of a request's target (RFC 9112, 3.2).
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Form {
    /// `/path?query`; also every HTTP/2 request with a path.
    #[default]
    Origin,
    /// `http://host/path?query`
    Absolute,
    /// `*`, or an absolute target without a path, with OPTIONS: the whole server.
    Asterisk,
    /// `host:port` with CONNECT.
    Authority,
}

/// The head of a request. Reused: [`RequestHead::clear`] keeps the buffers and the scheme.
///
/// After a head was read, `Host` in [`RequestHead::fields`] is the effective host: an absolute
/// target and an `:authority` have replaced it where it differed (RFC 9112, 3.2.2).
#[derive(Clone, Debug, Default)]
pub struct RequestHead {
    /// The method; its spelling is [`RequestHead::method_text`].
    pub method: Method,
    /// The version it was received in.
    pub version: Version,
    /// How the client reached us. Set by whoever owns the connection; an absolute target must
    /// agree with it.
    pub scheme: Scheme,
    /// The fields.
    pub fields: Fields,
    form: Form,
    host_rewritten: bool,
    has_authority: bool,
    has_query: bool,
    has_normal: bool,
    /// Method, target, and the target in origin form where it is not a part of it.
    line: Vec<u8>,
    method_len: u32,
    target: Span,
    path: Span,
    query: Span,
    /// The authority of an absolute target, as written.
    authority_text: Span,
    authority: Authority,
    normal: Vec<u8>,
    /// Empty where it is the normal form.
    compared: Vec<u8>,
}

/// A range of [`RequestHead::line`].
#[derive(Clone, Copy, Debug, Default)]
struct Span {
    start: u32,
    end: u32,
}

impl Span {
    fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start as usize..self.end as usize]
    }
}

impl RequestHead {
    /// An empty head for a connection of this scheme.
    pub fn new(scheme: Scheme) -> RequestHead {
        RequestHead { scheme, ..RequestHead::default() }
    }

    /// Empties it; keeps buffers and scheme.
    pub fn clear(&mut self) {
        self.method = Method::Get;
        self.version = Version::Http11;
        self.fields.clear();
        self.clear_target();
    }

    /// The method as written.
    pub fn method_text(&self) -> &[u8] {
        &self.line[..self.method_len as usize]
    }

    /// The target as written.
    pub fn target(&self) -> &[u8] {
        self.target.of(&self.line)
    }

    /// The form of the target.
    pub fn form(&self) -> Form {
        self.form
    }

    /// The path as written, never empty: `/` where an absolute target has none, `*` in asterisk
    /// form, and the whole target in authority form. Where [encoded slashes](path::EncodedSlashes) are
    /// decoded, they are slashes here.
    pub fn path(&self) -> &[u8] {
        self.path.of(&self.line)
    }

    /// The query as written, without its `?`; `None` without a `?`.
    pub fn query(&self) -> Option<&[u8]> {
        self.has_query.then(|| self.query.of(&self.line))
    }

    /// What is written in a request line to an endpoint: [path](RequestHead::path) and query.
    pub fn forward_target(&self) -> &[u8] {
        let end = if self.has_query { self.query.end } else { self.path.end };
        Span { start: self.path.start, end }.of(&self.line)
    }

    /// The path in normal form, see [`path`]: what rewrites are made from.
    pub fn normal_path(&self) -> &[u8] {
        if self.has_normal { &self.normal } else { self.path() }
    }

    /// The path that routes and limits look at: in normal form, without parameters. See [`path`].
    #[inline]
    pub fn compared_path(&self) -> &[u8] {
        if self.compared.is_empty() { self.normal_path() } else { &self.compared }
    }

    /// The effective authority; `None` only for HTTP/1.0 without Host.
    pub fn authority(&self) -> Option<&Authority> {
        self.has_authority.then_some(&self.authority)
    }

    /// The effective host in lower case for routing, empty when there is none.
    pub fn host(&self) -> &[u8] {
        if self.has_authority { self.authority.host() } else { b"" }
    }

    /// True when the received Host differed from an absolute target and was replaced by it.
    pub fn host_was_rewritten(&self) -> bool {
        self.host_rewritten
    }

    /// Replaces path and query by a target in origin form, for rewrites.
    ///
    /// # Errors
    /// As for a received target; the head then has none and must not be used.
    pub fn set_target(&mut self, target: &[u8], rules: PathRules) -> Result<(), Fault> {
        if !is_visible(target) {
            return Err(Fault::TargetCharacter);
        }
        self.line.truncate(self.method_len as usize);
        self.has_query = false;
        self.has_normal = false;
        self.compared.clear();
        self.form = Form::Origin;
        self.path = Span::default();
        self.target = self.append(target)?;
        self.set_origin(self.target, rules)
    }

    /// Bytes of memory the buffers hold.
    pub fn capacity_bytes(&self) -> usize {
        self.line.capacity()
            + self.normal.capacity()
            + self.compared.capacity()
            + self.authority.capacity_bytes()
            + self.fields.capacity_bytes()
    }

    /// Gives back what a large head needed: for connections that go idle.
    pub fn shrink_to(&mut self, bytes: usize, fields: usize) {
        self.line.shrink_to(bytes);
        self.normal.shrink_to(bytes);
        self.compared.shrink_to(bytes);
        self.fields.shrink_to(bytes, fields);
    }

    fn clear_target(&mut self) {
        self.form = Form::Origin;
        self.host_rewritten = false;
        self.has_authority = false;
        self.has_query = false;
        self.has_normal = false;
        self.line.clear();
        self.method_len = 0;
        self.target = Span::default();
        self.path = Span::default();
        self.query = Span::default();
        self.authority_text = Span::default();
        self.normal.clear();
        self.compared.clear();
    }

    /// Takes method and target of a received head; the fields follow.
    pub(crate) fn set_line(
        &mut self,
        method: &[u8],
        target: &[u8],
        rules: PathRules,
    ) -> Result<(), Fault> {
        self.clear_target();
        self.method = parse_method(method).ok_or(Fault::Method)?;
        self.line.extend_from_slice(method);
        self.method_len = method.len() as u32;
        self.target = self.append(target)?;
        if self.method == Method::Connect {
            return self.set_connect(target);
        }
        match target {
            [b'/', ..] => self.set_origin(self.target, rules),
            b"*" if self.method == Method::Options => {
                self.form = Form::Asterisk;
                self.path = self.target;
                Ok(())
            }
            _ => self.set_absolute(target, rules),
        }
    }

    /// Settles Host of an HTTP/1 head against the target's authority once the fields are there.
    pub(crate) fn settle_host(&mut self) -> Result<(), HeadError> {
        let fields = &mut self.fields;
        if !fields.has(Known::Host) {
            // HTTP/1.1 needs one even beside an absolute target (RFC 9112, 3.2).
            return match self.version {
                Version::Http11 => Err(HeadError { fault: Fault::HostMissing, offset: 0 }),
                _ => self.write_host(),
            };
        }
        if fields.was_repeated(Known::Host) {
            return Err(HeadError {
                fault: Fault::HostTwice,
                offset: fields.offset_of(Known::Host),
            });
        }
        let value = fields.get(Known::Host).unwrap_or_default();
        let same = if self.has_authority {
            self.authority.names_same(value)
        } else {
            self.has_authority = self.authority.parse(value);
            self.has_authority.then_some(true)
        };
        match same {
            Some(true) => return Ok(()),
            Some(false) => {}
            None => {
                let offset = fields.offset_of(Known::Host);
                return Err(HeadError { fault: Fault::HostInvalid, offset });
            }
        }
        self.host_rewritten = true;
        self.write_host()
    }

    /// Settles the Host fields of an HTTP/2 head: `:authority`, a Host field, or both if equal.
    pub(crate) fn settle_repeated_host(&mut self) -> Result<(), Fault> {
        let mut hosts = self.fields.get_all(Known::Host);
        let Some(first) = hosts.next() else { return Err(Fault::HostMissing) };
        if !self.authority.parse(first) {
            return Err(Fault::HostInvalid);
        }
        self.has_authority = true;
        let (mut repeated, mut equal) = (false, true);
        for host in hosts {
            repeated = true;
            equal &= self.authority.names_same(host) == Some(true);
        }
        if !equal {
            return Err(Fault::HostDiffers);
        }
        if repeated {
            self.fields.keep_only_first(Known::Host);
        }
        Ok(())
    }

    /// Gives the head an authority that did not come with a target (`:authority`).
    pub(crate) fn set_authority(&mut self, text: &[u8]) -> Result<(), Fault> {
        self.has_authority = self.authority.parse(text);
        if self.has_authority { Ok(()) } else { Err(Fault::HostInvalid) }
    }

    /// Makes the target's authority the Host field.
    fn write_host(&mut self) -> Result<(), HeadError> {
        if !self.has_authority {
            return Ok(());
        }
        self.fields
            .set_known(Known::Host, self.authority_text.of(&self.line))
            .map_err(|_| HeadError { fault: Fault::HostInvalid, offset: 0 })
    }

    fn append(&mut self, text: &[u8]) -> Result<Span, Fault> {
        let start = self.line.len();
        let end = u32::try_from(start + text.len()).map_err(|_| Fault::TargetTooLong)?;
        self.line.extend_from_slice(text);
        Ok(Span { start: start as u32, end })
    }

    fn set_connect(&mut self, target: &[u8]) -> Result<(), Fault> {
        self.form = Form::Authority;
        self.path = self.target;
        self.has_authority = self.authority.parse(target);
        self.authority_text = self.target;
        match self.authority.port() {
            Some(_) => Ok(()),
            None => Err(Fault::TargetForm),
        }
    }

    fn set_absolute(&mut self, target: &[u8], rules: PathRules) -> Result<(), Fault> {
        let (scheme, rest) = split_scheme(target).ok_or(Fault::TargetForm)?;
        let end = rest.iter().position(|byte| matches!(byte, b'/' | b'?' | b'#'));
        let (authority, rest) = rest.split_at(end.unwrap_or(rest.len()));
        self.set_authority(authority)?;
        let start = self.target.end - (authority.len() + rest.len()) as u32;
        self.authority_text = Span { start, end: start + authority.len() as u32 };
        if scheme != self.scheme {
            return Err(Fault::Misdirected);
        }
        if rest.is_empty() && self.method == Method::Options {
            self.form = Form::Asterisk;
            self.path = self.append(b"*")?;
            return Ok(());
        }
        self.form = Form::Absolute;
        if rest.first() == Some(&b'/') {
            let start = self.target.end - rest.len() as u32;
            return self.set_origin(Span { start, end: self.target.end }, rules);
        }
        // An empty path means "/"; path and query stand together at the end of the line.
        let start = self.append(b"/")?.start;
        let end = self.append(rest)?.end;
        self.set_origin(Span { start, end }, rules)
    }

    /// Splits a target in origin form into path and query and makes the forms of the path.
    fn set_origin(&mut self, span: Span, rules: PathRules) -> Result<(), Fault> {
        let text = span.of(&self.line);
        if !text.is_ascii() || memchr::memchr(b'#', text).is_some() {
            return Err(Fault::TargetCharacter);
        }
        self.path = span;
        if let Some(at) = memchr::memchr(b'?', text) {
            self.has_query = true;
            self.path.end = span.start + at as u32;
            self.query = Span { start: self.path.end + 1, end: span.end };
        }
        if rules.encoded_slashes == EncodedSlashes::Decode {
            self.decode_slashes()?;
        }
        self.has_normal = path::normalise(self.path.of(&self.line), rules, &mut self.normal)?;
        if self.has_normal {
            path::strip_parameters(&self.normal, rules, &mut self.compared);
        }
        Ok(())
    }

    /// Puts a copy of path and query, with slashes for `%2F`, in their place.
    fn decode_slashes(&mut self) -> Result<(), Fault> {
        if !path::decode_slashes(self.path.of(&self.line), &mut self.normal) {
            return Ok(());
        }
        let decoded = std::mem::take(&mut self.normal);
        self.path = self.append(&decoded)?;
        self.normal = decoded;
        if self.has_query {
            let query = self.query.start as usize - 1..self.query.end as usize;
            let start = self.line.len() as u32 + 1;
            self.line.extend_from_within(query);
            self.query = Span { start, end: self.line.len() as u32 };
        }
        Ok(())
    }
}

impl PartialEq for RequestHead {
    /// Equal in everything a request means or is forwarded with; buffers may differ.
    fn eq(&self, other: &RequestHead) -> bool {
        self.method_text() == other.method_text()
            && self.target() == other.target()
            && self.version == other.version
            && self.scheme == other.scheme
            && self.form == other.form
            && self.fields == other.fields
            && self.authority() == other.authority()
            && self.normal_path() == other.normal_path()
            && self.compared_path() == other.compared_path()
            && self.forward_target() == other.forward_target()
    }
}

impl Eq for RequestHead {}

/// Only visible ASCII. httparse has made sure of that for request lines, apart from bytes above 127.
pub(crate) fn is_visible(target: &[u8]) -> bool {
    target.iter().all(u8::is_ascii_graphic)
}

fn split_scheme(target: &[u8]) -> Option<(Scheme, &[u8])> {
    for scheme in [Scheme::Http, Scheme::Https] {
        let name = scheme.as_str().as_bytes();
        if let Some((head, rest)) = target.split_at_checked(name.len())
            && head.eq_ignore_ascii_case(name)
            && let Some(rest) = rest.strip_prefix(b"://")
        {
            return Some((scheme, rest));
        }
    }
    None
}
