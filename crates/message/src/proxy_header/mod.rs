//! Who is behind the proxy before us? The header of the PROXY protocol, versions 1 and 2, as bytes.
//!
//! A proxy puts one header before everything else on a connection, before TLS too. It names the ends
//! of the client's connection, or says that the connection is the proxy's own (`LOCAL`, `UNKNOWN`).
//! Version 1 is a line of text, version 2 is binary and may say more: ALPN, the server name, what TLS
//! the client spoke. Source: "The PROXY protocol, versions 1 & 2", W. Tarreau, 2020.
//!
//! [`read`] takes what has arrived so far and never asks for more than a header can have: a line of
//! [`V1_MOST`] bytes, or [`V2_MOST`] bytes of version 2. [`write()`] is its inverse. No input or output.
//! Reading allocates nothing; writing appends.

mod crc32c;
mod tlv;
mod v1;
mod v2;

use std::fmt;
use std::net::{IpAddr, SocketAddr};

pub use tlv::{Tls, Tlvs};

/// Bytes of the longest line of version 1, its end included.
pub const V1_MOST: usize = 107;
/// Bytes of the longest header of version 2 that is read. The specification allows 65,551; what
/// proxies send has some hundred, with a client's certificate two thousand.
pub const V2_MOST: usize = 4096;

/// How a header is written.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Version {
    /// A line of text.
    V1,
    /// Binary.
    V2,
}

/// The ends of the client's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Ends {
    /// The client's.
    pub source: SocketAddr,
    /// The proxy's: where the client has connected to.
    pub destination: SocketAddr,
}

/// What a header says.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ProxyHeader<'a> {
    /// How it was written.
    pub version: Version,
    /// None: the connection is the proxy's own, or came to it by something that has no addresses of
    /// the internet. Then the connection itself says who is there.
    pub ends: Option<Ends>,
    /// What else it says; nothing in version 1.
    pub tlvs: Tlvs<'a>,
}

/// How far a header has been read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Progress<'a> {
    /// What has arrived begins no header.
    Absent,
    /// What has arrived begins a header, or may.
    Incomplete,
    /// A header.
    Complete {
        /// What it says.
        header: ProxyHeader<'a>,
        /// How many bytes it has.
        consumed: usize,
    },
}

/// Why a header cannot be read.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ProxyHeaderError {
    /// The line of version 1 does not end in time.
    LineTooLong,
    /// The line of version 1 is not what the specification says.
    Line,
    /// The header has a version nobody knows.
    Version,
    /// The header has a command nobody knows.
    Command,
    /// The header is longer than [`V2_MOST`].
    TooLong,
    /// The addresses do not fit into the length that the header says it has.
    Addresses,
    /// What follows the addresses has lengths that do not fit.
    Tlv,
    /// The checksum is another one.
    Checksum,
}

impl fmt::Display for ProxyHeaderError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ProxyHeaderError::LineTooLong => {
                write!(out, "the line does not end within {V1_MOST} bytes")
            }
            ProxyHeaderError::Line => {
                out.write_str("the line is not \"PROXY TCP4|TCP6 SOURCE DESTINATION PORT PORT\"")
            }
            ProxyHeaderError::Version => out.write_str("its version is neither 1 nor 2"),
            ProxyHeaderError::Command => out.write_str("its command is neither LOCAL nor PROXY"),
            ProxyHeaderError::TooLong => write!(out, "it has more than {V2_MOST} bytes"),
            ProxyHeaderError::Addresses => out.write_str("it is too short for its addresses"),
            ProxyHeaderError::Tlv => out.write_str("lengths behind the addresses do not fit"),
            ProxyHeaderError::Checksum => out.write_str("its checksum is wrong"),
        }
    }
}

impl std::error::Error for ProxyHeaderError {}

/// Reads a header at the beginning of `bytes`, of either version. Whatever begins otherwise is
/// [`Progress::Absent`], as soon as that is certain.
///
/// # Errors
/// [`ProxyHeaderError`]: it begins as a header and is none.
pub fn read(bytes: &[u8]) -> Result<Progress<'_>, ProxyHeaderError> {
    if begins(bytes, v2::SIGNATURE) {
        return v2::read(bytes);
    }
    if begins(bytes, v1::PREFIX) {
        return v1::read(bytes);
    }
    Ok(Progress::Absent)
}

/// Whether `bytes` begin with `prefix`, as far as they are there.
fn begins(bytes: &[u8], prefix: &[u8]) -> bool {
    let both = bytes.len().min(prefix.len());
    bytes[..both] == prefix[..both]
}

/// What a header is to say of a client's connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Announced<'a> {
    /// Its ends. One family is made of two: IPv4 goes into IPv6.
    pub ends: Ends,
    /// What was agreed on by ALPN. Not in version 1.
    pub alpn: Option<&'a [u8]>,
    /// The name the client has asked for (SNI). Not in version 1.
    pub authority: Option<&'a [u8]>,
    /// What TLS it speaks. Not in version 1.
    pub tls: Option<Tls<'a>>,
    /// Whether a checksum goes along. Not in version 1.
    pub checksum: bool,
}

impl From<Ends> for Announced<'_> {
    fn from(ends: Ends) -> Self {
        Announced { ends, alpn: None, authority: None, tls: None, checksum: false }
    }
}

/// Appends a header that announces a client; without one, that the connection is our own. Texts that
/// are too long for a header are left out.
pub fn write(out: &mut Vec<u8>, version: Version, announced: Option<&Announced<'_>>) {
    match version {
        Version::V1 => v1::write(out, announced.map(|announced| announced.ends)),
        Version::V2 => v2::write(out, announced),
    }
}

impl Ends {
    /// The two in one family.
    fn in_one_family(self) -> Ends {
        if self.source.is_ipv4() == self.destination.is_ipv4() {
            return self;
        }
        let wide = |address: SocketAddr| match address.ip() {
            IpAddr::V4(ip) => SocketAddr::new(ip.to_ipv6_mapped().into(), address.port()),
            IpAddr::V6(_) => address,
        };
        Ends { source: wide(self.source), destination: wide(self.destination) }
    }
}

/// IPv4 in IPv6 is IPv4, as on connections that arrive.
fn canonical(ip: IpAddr, port: u16) -> SocketAddr {
    SocketAddr::new(ip.to_canonical(), port)
}

#[cfg(test)]
mod tests;
