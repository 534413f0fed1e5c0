//! Version 1: `PROXY TCP4 192.0.2.1 192.0.2.2 56324 443\r\n`.
//!
//! Read as strictly as it is specified: one space between words, decimal ports without leading zeros.
//! What follows `UNKNOWN` is passed over.

use std::io::Write as _;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::{Ends, Progress, ProxyHeader, ProxyHeaderError, Tlvs, V1_MOST, Version, canonical};

pub(super) const PREFIX: &[u8] = b"PROXY ";

pub(super) fn read(bytes: &[u8]) -> Result<Progress<'_>, ProxyHeaderError> {
    let within = &bytes[..bytes.len().min(V1_MOST)];
    let Some(end) = within.windows(2).position(|two| two == b"\r\n") else {
        return match within.len() < V1_MOST {
            true => Ok(Progress::Incomplete),
            false => Err(ProxyHeaderError::LineTooLong),
        };
    };
    let line = bytes.get(PREFIX.len()..end).ok_or(ProxyHeaderError::Line)?;
    let header = ProxyHeader { version: Version::V1, ends: ends(line)?, tlvs: Tlvs::default() };
    Ok(Progress::Complete { header, consumed: end + 2 })
}

fn ends(line: &[u8]) -> Result<Option<Ends>, ProxyHeaderError> {
    let line = std::str::from_utf8(line).map_err(|_| ProxyHeaderError::Line)?;
    let mut words = line.split(' ');
    let family = words.next().unwrap_or_default();
    if family == "UNKNOWN" {
        return Ok(None);
    }
    let mut next = || words.next().ok_or(ProxyHeaderError::Line);
    let (source, destination) = (next()?, next()?);
    let (source_port, destination_port) = (port(next()?)?, port(next()?)?);
    let address = |text: &str, port| {
        let ip: Option<IpAddr> = match family {
            "TCP4" => text.parse::<Ipv4Addr>().ok().map(IpAddr::from),
            "TCP6" => text.parse::<Ipv6Addr>().ok().map(IpAddr::from),
            _ => None,
        };
        ip.map(|ip| canonical(ip, port)).ok_or(ProxyHeaderError::Line)
    };
    let ends = Ends {
        source: address(source, source_port)?,
        destination: address(destination, destination_port)?,
    };
    match words.next() {
        None => Ok(Some(ends)),
        Some(_) => Err(ProxyHeaderError::Line),
    }
}

fn port(text: &str) -> Result<u16, ProxyHeaderError> {
    let is_plain = text.bytes().all(|byte| byte.is_ascii_digit());
    let has_zeros = text.len() > 1 && text.starts_with('0');
    match text.parse() {
        Ok(port) if is_plain && !has_zeros => Ok(port),
        _ => Err(ProxyHeaderError::Line),
    }
}

pub(super) fn write(out: &mut Vec<u8>, ends: Option<Ends>) {
    let Some(ends) = ends.map(Ends::in_one_family) else {
        out.extend_from_slice(b"PROXY UNKNOWN\r\n");
        return;
    };
    let Ends { source, destination } = ends;
    let family = if source.is_ipv4() { "TCP4" } else { "TCP6" };
    let (from, to) = (plain(source), plain(destination));
    let (from_port, to_port) = (source.port(), destination.port());
    // Writing to memory cannot fail.
    let _ = write!(out, "PROXY {family} {from} {to} {from_port} {to_port}\r\n");
}

/// An address whose text every reader knows: IPv4 in IPv6 is written in hexadecimal, because some
/// read no dots there.
fn plain(address: SocketAddr) -> String {
    match address.ip() {
        IpAddr::V6(ip) if ip.to_ipv4_mapped().is_some() => {
            let [.., high, low] = ip.segments();
            format!("::ffff:{high:x}:{low:x}")
        }
        ip => ip.to_string(),
    }
}
