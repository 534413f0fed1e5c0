//! A line, written to the end of a page: no allocation but for growth, no formatting machinery.
//!
//! Each style has its own copy of the one table of fields: a field costs a jump, the text before it a
//! store.

use std::net::IpAddr;
use std::time::Duration;

use subak_base::Tick;
use subak_telemetry::Cause;

use crate::captured::{HOST, METHOD, PATH, QUERY};
use crate::compiled::{Compiled, Then};
use crate::entry::{Entry, Sticking};
use crate::escape;
use crate::fields::Field;
use crate::format::Style;
use crate::number::{self, decimal, thousandths};
use crate::page::Page;
use crate::wall::{Moment, Wall};

/// The status that stands for "no answer" where a number has to stand: nginx's.
const NO_ANSWER: u16 = 499;

/// Writes the line of `entry`, with its end.
pub(crate) fn line(compiled: &Compiled, entry: &Entry<'_>, wall: &mut Wall, page: &mut Page) {
    for piece in &compiled.pieces {
        page.put(&piece.text, piece.length.into());
        match &piece.then {
            Then::Json(field) => Out::<true>(page).field(*field, entry, wall),
            Then::Text(field) => Out::<false>(page).field(*field, entry, wall),
            Then::RequestHeader(slot, style) => value(entry.request.get(*slot), *style, page),
            Then::AnswerHeader(name, style) => {
                let found = entry.answer.get(name).filter(|_| entry.status != 0);
                value(found, *style, page);
            }
            Then::Nothing => {}
        }
    }
}

/// Writes what a client or endpoint may have had a hand in.
#[inline]
pub(crate) fn value(found: Option<&[u8]>, style: Style, page: &mut Page) {
    match style {
        Style::Json => Out::<true>(page).value(found),
        Style::Text => Out::<false>(page).value(found),
    }
}

/// A page that is written to in JSON, or as text.
struct Out<'p, const JSON: bool>(&'p mut Page);

impl<const JSON: bool> Out<'_, JSON> {
    #[inline(always)]
    fn field(&mut self, field: Field, entry: &Entry<'_>, wall: &mut Wall) {
        let moment = |wall| Wall::at(wall, entry.began, entry.ended);
        let text = |slot| entry.request.get(slot);
        let was_tried = entry.tries > 0;
        match field {
            Field::Time => self.iso(moment(wall)),
            Field::TimeOfDay => {
                self.0.put(moment(wall).day_first, 20);
                self.0.put(b" +0000", 6);
            }
            Field::TimeMillis => {
                let moment = moment(wall);
                self.0.put(moment.day_first, 20);
                self.millisecond(moment.millisecond);
            }
            Field::Epoch => {
                let moment = moment(wall);
                decimal(moment.second, self.0);
                self.millisecond(moment.millisecond);
            }
            Field::EpochSeconds => decimal(moment(wall).second, self.0),
            Field::Client => self.address(entry.client),
            Field::ClientPort => self.number(entry.peer.map(|(_, port)| port.into())),
            Field::Peer => self.address(entry.peer.map(|(address, _)| address)),
            Field::Method => self.value(text(METHOD)),
            Field::Scheme => self.word(if entry.is_tls { "https" } else { "http" }),
            Field::Host => self.value(text(HOST)),
            Field::Path => self.value(text(PATH)),
            Field::Query => self.value(text(QUERY)),
            Field::Target | Field::RequestLine => self.target_or_line(field, entry),
            Field::Protocol => self.word(entry.protocol),
            Field::Status if JSON => {
                self.number(Some(entry.status.into()).filter(|status| *status != 0));
            }
            Field::Status => {
                let status = if entry.status == 0 { NO_ANSWER } else { entry.status };
                decimal(status.into(), self.0);
            }
            Field::StatusOrMinus if entry.status == 0 => self.minus_one(),
            Field::StatusOrMinus => decimal(entry.status.into(), self.0),
            Field::GrpcStatus => self.number(entry.grpc_status.map(u64::from)),
            Field::BytesIn => decimal(entry.bytes_in, self.0),
            Field::BytesOut => decimal(entry.bytes_out, self.0),
            Field::BodyBytesOut => {
                decimal(entry.bytes_out.saturating_sub(entry.head_bytes_out), self.0);
            }
            Field::Route => self.number(entry.route.map(|route| route as u64)),
            Field::Pool => self.value(entry.pool.map(str::as_bytes)),
            Field::Endpoint => self.value(entry.endpoint.map(str::as_bytes)),
            Field::Tries => decimal(entry.tries.into(), self.0),
            Field::Retries => decimal(entry.tries.saturating_sub(1).into(), self.0),
            Field::Stick => self.name(entry.stick.map(Sticking::name)),
            Field::HeadMs => self.span(entry.head),
            Field::TlsMs => self.span(entry.handshake),
            Field::QueueMs if entry.pool.is_some() => self.span(entry.queue),
            Field::ConnectMs if was_tried => self.span(entry.connect),
            Field::EndpointTlsMs if was_tried => self.span(entry.endpoint_handshake),
            Field::QueueMs | Field::ConnectMs | Field::EndpointTlsMs => self.minus_one(),
            Field::ConnectSeconds if was_tried => self.seconds(micros(entry.connect)),
            Field::ConnectSeconds => self.nothing(),
            Field::FirstByteMs => match (entry.picked, entry.first_byte) {
                (Some(picked), Some(first_byte)) => self.milliseconds(between(picked, first_byte)),
                _ => self.minus_one(),
            },
            Field::FirstByteSeconds => match (entry.picked, entry.first_byte) {
                (Some(picked), Some(first_byte)) => self.seconds(between(picked, first_byte)),
                _ => self.nothing(),
            },
            Field::EndpointMs => match entry.picked {
                Some(picked) => self.milliseconds(between(picked, entry.ended)),
                None => self.nothing(),
            },
            Field::EndpointSeconds => match entry.picked {
                Some(picked) => self.seconds(between(picked, entry.ended)),
                None => self.nothing(),
            },
            Field::TotalMs => self.milliseconds(between(entry.began, entry.ended)),
            Field::TotalSeconds => self.seconds(between(entry.began, entry.ended)),
            Field::End => self.word(entry.failure.map_or("ok", Cause::name)),
            Field::Fault => self.name(entry.failure.map(|cause| cause.blame().name())),
            Field::EndLetters => {
                self.name(Some(letters(entry.failure, entry.status != 0)));
            }
            Field::Decision => match entry.decision {
                Some(decision) => {
                    self.quote();
                    number::hex(decision, self.0);
                    self.quote();
                }
                None => self.nothing(),
            },
            Field::Tls => self.name(entry.tls),
            // Text since the format was compiled; and the user, whom nobody knows.
            Field::Listener | Field::Pid | Field::Generation | Field::Hostname | Field::User => {
                self.nothing();
            }
        }
    }

    #[inline(always)]
    fn quote(&mut self) {
        if JSON {
            self.0.byte(b'"');
        }
    }

    #[inline(always)]
    fn nothing(&mut self) {
        match JSON {
            true => self.0.put(b"null", 4),
            false => self.0.byte(b'-'),
        }
    }

    /// Nothing, where HAProxy says so in text.
    #[inline(always)]
    fn minus_one(&mut self) {
        match JSON {
            true => self.nothing(),
            false => self.0.put(b"-1", 2),
        }
    }

    #[inline]
    fn value(&mut self, found: Option<&[u8]>) {
        match found {
            Some(bytes) if JSON => {
                self.quote();
                escape::json(bytes, self.0);
                self.quote();
            }
            Some(bytes) if !bytes.is_empty() => escape::text(bytes, self.0),
            _ => self.nothing(),
        }
    }

    /// A word of ours, which needs no escape. In JSON its quotes are text of the format.
    #[inline]
    fn word(&mut self, word: &str) {
        match word.as_bytes().as_array() {
            Some(word) => self.0.put::<8>(word, 8),
            None => self.0.extend(word.as_bytes()),
        }
    }

    #[inline]
    fn name(&mut self, name: Option<&'static str>) {
        match name {
            Some(name) => {
                self.quote();
                self.0.extend(name.as_bytes());
                self.quote();
            }
            None => self.nothing(),
        }
    }

    #[inline]
    fn number(&mut self, number: Option<u64>) {
        match number {
            Some(number) => decimal(number, self.0),
            None => self.nothing(),
        }
    }

    #[inline]
    fn address(&mut self, address: Option<IpAddr>) {
        match address {
            Some(address) => {
                self.quote();
                number::ip(address, self.0);
                self.quote();
            }
            None => self.nothing(),
        }
    }

    #[inline]
    fn iso(&mut self, moment: Moment<'_>) {
        let mut text = *moment.iso;
        [text[20], text[21], text[22]] = number::three(moment.millisecond);
        self.0.put(&text, 24);
    }

    #[inline]
    fn millisecond(&mut self, millisecond: u16) {
        let [a, b, c] = number::three(millisecond);
        self.0.put(&[b'.', a, b, c], 4);
    }

    /// In JSON to the microsecond; HAProxy's are whole.
    #[inline]
    fn milliseconds(&mut self, micros: u64) {
        match JSON {
            true => thousandths(micros, self.0),
            false => decimal(micros / 1000, self.0),
        }
    }

    /// The same of what often took no time.
    #[inline]
    fn span(&mut self, span: Duration) {
        match span.is_zero() {
            true => self.0.byte(b'0'),
            false => self.milliseconds(micros(span)),
        }
    }

    #[inline]
    fn seconds(&mut self, micros: u64) {
        thousandths(micros / 1000, self.0);
    }

    #[inline(never)]
    fn target_or_line(&mut self, field: Field, entry: &Entry<'_>) {
        let escape = if JSON { escape::json } else { escape::text };
        let Some(method) = entry.request.get(METHOD) else { return self.nothing() };
        self.quote();
        if field == Field::RequestLine {
            escape(method, self.0);
            self.0.byte(b' ');
        }
        escape(entry.request.get(PATH).unwrap_or_default(), self.0);
        if let Some(query) = entry.request.get(QUERY) {
            self.0.byte(b'?');
            escape(query, self.0);
        }
        if field == Field::RequestLine {
            self.0.byte(b' ');
            self.0.extend(entry.protocol.as_bytes());
        }
        self.quote();
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_secs() * 1_000_000 + u64::from(duration.subsec_micros())
}

fn between(earlier: Tick, later: Tick) -> u64 {
    later.0.saturating_sub(earlier.0) / 1000
}

/// HAProxy's two letters: who ended it (C the client, S the endpoint, P we; in lower case because time
/// was up), and in which phase (R request, Q queue, C connect, H answer's head, D data).
fn letters(failure: Option<Cause>, is_answered: bool) -> &'static str {
    let Some(cause) = failure else { return "--" };
    match cause {
        Cause::BadHead
        | Cause::MethodRefused
        | Cause::NoRoute
        | Cause::NotSpoken
        | Cause::NoTls => "PR",
        Cause::Denied | Cause::RateLimited | Cause::TooManyAtOnce => "PR",
        Cause::BadBody | Cause::BodyTooLarge => "PD",
        Cause::ClientGone if is_answered => "CD",
        Cause::ClientGone => "CH",
        Cause::ClientSlow if is_answered => "cD",
        Cause::ClientSlow => "cR",
        Cause::NoEndpoint | Cause::Connect | Cause::Tls => "SC",
        Cause::CallDeadline => "cH",
        Cause::QueueFull | Cause::OutOfDescriptors | Cause::NoPorts | Cause::OutOfMemory => "PC",
        Cause::CircuitOpen | Cause::CircuitFull | Cause::NoSwitch => "PC",
        Cause::QueueTimeout => "sQ",
        Cause::ConnectTimeout => "sC",
        Cause::Broken if is_answered => "SD",
        Cause::Broken | Cause::RetryStatus => "SH",
        Cause::EndpointIdle if is_answered => "sD",
        Cause::FirstByteTimeout | Cause::EndpointIdle => "sH",
    }
}

#[cfg(test)]
mod tests;
