//! A line, written to the end of a buffer: no allocation but for growth, no formatting machinery.

use std::io::Write;
use std::net::IpAddr;
use std::time::Duration;

use subak_telemetry::Cause;

use crate::captured::{HOST, METHOD, PATH, QUERY};
use crate::entry::Entry;
use crate::escape;
use crate::fields::Field;
use crate::format::{Compiled, Piece, Style};
use crate::wall::{Wall, digits};

/// The status that stands for "no answer" where a number has to stand: nginx's.
const NO_ANSWER: u16 = 499;

/// Writes the line of `entry`, with its end.
pub(crate) fn line(compiled: &Compiled, entry: &Entry<'_>, wall: &mut Wall, out: &mut Vec<u8>) {
    for piece in &compiled.pieces {
        match piece {
            Piece::Text(text) => out.extend_from_slice(text),
            Piece::Field(field, Style::Json) => as_json(*field, entry, wall, out),
            Piece::Field(field, Style::Text) => as_text(*field, entry, wall, out),
            Piece::RequestHeader(slot, style) => value(entry.request.get(*slot), *style, out),
            Piece::AnswerHeader(name, style) => {
                let found = entry.answer.get(name).filter(|_| entry.status != 0);
                value(found, *style, out);
            }
        }
    }
}

/// Writes the line of `entry`, as a worker that has just begun would: for tests and measurements.
pub fn write(compiled: &Compiled, entry: &Entry<'_>, out: &mut Vec<u8>) {
    line(compiled, entry, &mut Wall::default(), out);
}

/// What a field is, before it is written in a style.
enum Value<'a> {
    Nothing,
    /// What a client may have had a hand in.
    Untrusted(&'a [u8]),
    /// Names of ours, which need no escape.
    Name(&'a str),
    /// Names from the configuration.
    Configured(&'a str),
    Number(u64),
    Milliseconds(Duration),
    Seconds(Duration),
    Address(IpAddr),
    Hex(u64),
}

fn as_json(field: Field, entry: &Entry<'_>, wall: &mut Wall, out: &mut Vec<u8>) {
    match of(field, entry) {
        Value::Untrusted(bytes) => value(Some(bytes), Style::Json, out),
        Value::Configured(text) => value(Some(text.as_bytes()), Style::Json, out),
        Value::Name(name) => quoted(out, |out| out.extend_from_slice(name.as_bytes())),
        Value::Address(address) => quoted(out, |out| ip(address, out)),
        Value::Hex(number) => quoted(out, |out| hex(number, out)),
        Value::Number(number) => decimal(number, out),
        Value::Milliseconds(duration) => milliseconds(duration, out),
        Value::Seconds(duration) => seconds(duration, out),
        Value::Nothing => match field {
            Field::Time => quoted(out, |out| composed(field, entry, wall, out)),
            Field::Target | Field::RequestLine if entry.request.get(METHOD).is_some() => {
                quoted(out, |out| target_or_line(field, entry, escape::json, out));
            }
            _ => out.extend_from_slice(b"null"),
        },
    }
}

fn as_text(field: Field, entry: &Entry<'_>, wall: &mut Wall, out: &mut Vec<u8>) {
    match of(field, entry) {
        Value::Untrusted(bytes) => value(Some(bytes), Style::Text, out),
        Value::Configured(text) => value(Some(text.as_bytes()), Style::Text, out),
        Value::Name(name) => out.extend_from_slice(name.as_bytes()),
        Value::Address(address) => ip(address, out),
        Value::Hex(number) => hex(number, out),
        Value::Number(number) => decimal(number, out),
        // HAProxy's are whole.
        Value::Milliseconds(duration) => decimal(duration.as_millis() as u64, out),
        Value::Seconds(duration) => seconds(duration, out),
        Value::Nothing => match field {
            Field::Status => decimal(NO_ANSWER.into(), out),
            Field::StatusOrMinus | Field::QueueMs | Field::ConnectMs | Field::FirstByteMs => {
                out.extend_from_slice(b"-1");
            }
            Field::Target | Field::RequestLine if entry.request.get(METHOD).is_some() => {
                target_or_line(field, entry, escape::text, out);
            }
            _ => composed(field, entry, wall, out),
        },
    }
}

#[inline]
fn of<'a>(field: Field, entry: &Entry<'a>) -> Value<'a> {
    let since_pick = |until: subak_base::Tick| entry.picked.map(|picked| until.since(picked));
    let captured = |slot| entry.request.get(slot).map(Value::Untrusted);
    let in_line = |is_known: bool, duration| is_known.then_some(duration);
    let found = match field {
        Field::Listener => Some(Value::Configured(entry.listener)),
        Field::Client => entry.client.map(Value::Address),
        Field::ClientPort => entry.peer.map(|(_, port)| Value::Number(port.into())),
        Field::Peer => entry.peer.map(|(address, _)| Value::Address(address)),
        Field::Method => captured(METHOD),
        Field::Scheme => Some(Value::Name(if entry.is_tls { "https" } else { "http" })),
        Field::Host => captured(HOST),
        Field::Path => captured(PATH),
        Field::Query => captured(QUERY),
        Field::Protocol => Some(Value::Name(entry.protocol)),
        Field::Status | Field::StatusOrMinus => number(entry.status),
        Field::BytesIn => Some(Value::Number(entry.bytes_in)),
        Field::BytesOut => Some(Value::Number(entry.bytes_out)),
        Field::BodyBytesOut => {
            Some(Value::Number(entry.bytes_out.saturating_sub(entry.head_bytes_out)))
        }
        Field::Route => entry.route.map(|route| Value::Number(route as u64)),
        Field::Pool => entry.pool.map(Value::Configured),
        Field::Endpoint => entry.endpoint.map(Value::Configured),
        Field::Tries => Some(Value::Number(entry.tries.into())),
        Field::Retries => Some(Value::Number(entry.tries.saturating_sub(1).into())),
        Field::Stick => entry.stick.map(|stick| Value::Name(stick.name())),
        Field::HeadMs => Some(Value::Milliseconds(entry.head)),
        Field::QueueMs => in_line(entry.pool.is_some(), entry.queue).map(Value::Milliseconds),
        Field::ConnectMs => in_line(entry.tries > 0, entry.connect).map(Value::Milliseconds),
        Field::ConnectSeconds => in_line(entry.tries > 0, entry.connect).map(Value::Seconds),
        Field::FirstByteMs => entry.first_byte.and_then(since_pick).map(Value::Milliseconds),
        Field::FirstByteSeconds => entry.first_byte.and_then(since_pick).map(Value::Seconds),
        Field::EndpointMs => since_pick(entry.ended).map(Value::Milliseconds),
        Field::EndpointSeconds => since_pick(entry.ended).map(Value::Seconds),
        Field::TotalMs => Some(Value::Milliseconds(entry.ended.since(entry.began))),
        Field::TotalSeconds => Some(Value::Seconds(entry.ended.since(entry.began))),
        Field::End => Some(Value::Name(entry.failure.map_or("ok", Cause::name))),
        Field::Fault => entry.failure.map(|cause| Value::Name(cause.blame().name())),
        Field::EndLetters => Some(Value::Name(letters(entry.failure, entry.status != 0))),
        Field::Decision => entry.decision.map(Value::Hex),
        Field::Tls => entry.tls.map(Value::Name),
        _ => None,
    };
    found.unwrap_or(Value::Nothing)
}

fn number(status: u16) -> Option<Value<'static>> {
    (status != 0).then_some(Value::Number(status.into()))
}

/// What is put together of several things; `-` for what is not there.
fn composed(field: Field, entry: &Entry<'_>, wall: &mut Wall, out: &mut Vec<u8>) {
    let mut thousandths = [b'.', 0, 0, 0];
    match field {
        Field::Time | Field::TimeMillis | Field::Epoch => {
            let moment = wall.at(entry.began, entry.ended);
            digits(&mut thousandths[1..], moment.millisecond.into());
            match field {
                Field::Time => out.extend_from_slice(moment.iso),
                Field::TimeMillis => out.extend_from_slice(moment.day_first),
                _ => decimal(moment.second, out),
            }
            out.extend_from_slice(&thousandths);
            if field == Field::Time {
                out.push(b'Z');
            }
        }
        Field::TimeOfDay => {
            out.extend_from_slice(wall.at(entry.began, entry.ended).day_first);
            out.extend_from_slice(b" +0000");
        }
        Field::EpochSeconds => decimal(wall.at(entry.began, entry.ended).second, out),
        _ => out.push(b'-'),
    }
}

fn target_or_line(
    field: Field,
    entry: &Entry<'_>,
    escape: fn(&[u8], &mut Vec<u8>),
    out: &mut Vec<u8>,
) {
    let part = |slot| entry.request.get(slot).unwrap_or_default();
    if field == Field::RequestLine {
        escape(part(METHOD), out);
        out.push(b' ');
    }
    escape(part(PATH), out);
    if let Some(query) = entry.request.get(QUERY) {
        out.push(b'?');
        escape(query, out);
    }
    if field == Field::RequestLine {
        out.push(b' ');
        out.extend_from_slice(entry.protocol.as_bytes());
    }
}

#[inline]
fn value(found: Option<&[u8]>, style: Style, out: &mut Vec<u8>) {
    match (found, style) {
        (Some(bytes), Style::Json) => quoted(out, |out| escape::json(bytes, out)),
        (Some([]) | None, Style::Text) => out.push(b'-'),
        (Some(bytes), Style::Text) => escape::text(bytes, out),
        (None, Style::Json) => out.extend_from_slice(b"null"),
    }
}

#[inline]
fn quoted(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    out.push(b'"');
    write(out);
    out.push(b'"');
}

#[inline]
fn decimal(number: u64, out: &mut Vec<u8>) {
    out.extend_from_slice(itoa::Buffer::new().format(number).as_bytes());
}

/// `1.234`: a thousandth of the unit is the last digit.
#[inline]
fn thousandths(whole_and_rest: u64, out: &mut Vec<u8>) {
    decimal(whole_and_rest / 1000, out);
    let mut rest = [b'.', 0, 0, 0];
    digits(&mut rest[1..], whole_and_rest % 1000);
    out.extend_from_slice(&rest);
}

fn milliseconds(duration: Duration, out: &mut Vec<u8>) {
    match duration.is_zero() {
        true => out.push(b'0'),
        false => thousandths(duration.as_micros() as u64, out),
    }
}

fn seconds(duration: Duration, out: &mut Vec<u8>) {
    thousandths(duration.as_millis() as u64, out);
}

fn ip(address: IpAddr, out: &mut Vec<u8>) {
    match address {
        IpAddr::V4(address) => {
            for (place, octet) in address.octets().into_iter().enumerate() {
                if place > 0 {
                    out.push(b'.');
                }
                decimal(octet.into(), out);
            }
        }
        // Writing to memory cannot fail.
        IpAddr::V6(address) => _ = write!(out, "{address}"),
    }
}

fn hex(number: u64, out: &mut Vec<u8>) {
    let mut text = [0; 16];
    for (place, digit) in text.iter_mut().rev().enumerate() {
        *digit = b"0123456789abcdef"[(number >> (4 * place) & 15) as usize];
    }
    out.extend_from_slice(&text);
}

/// HAProxy's two letters: who ended it (C the client, S the endpoint, P we; in lower case because time
/// was up), and in which phase (R request, Q queue, C connect, H answer's head, D data).
fn letters(failure: Option<Cause>, is_answered: bool) -> &'static str {
    let Some(cause) = failure else { return "--" };
    match cause {
        Cause::BadHead | Cause::MethodRefused | Cause::NoRoute | Cause::NotSpoken => "PR",
        Cause::BadBody | Cause::BodyTooLarge => "PD",
        Cause::ClientGone if is_answered => "CD",
        Cause::ClientGone => "CH",
        Cause::ClientSlow if is_answered => "cD",
        Cause::ClientSlow => "cR",
        Cause::NoEndpoint | Cause::Connect => "SC",
        Cause::QueueFull | Cause::OutOfDescriptors => "PC",
        Cause::QueueTimeout => "sQ",
        Cause::ConnectTimeout => "sC",
        Cause::Broken if is_answered => "SD",
        Cause::Broken | Cause::RetryStatus => "SH",
        Cause::EndpointIdle if is_answered => "sD",
        Cause::FirstByteTimeout | Cause::EndpointIdle => "sH",
    }
}
