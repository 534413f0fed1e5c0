//! Version 2: a signature of 12 bytes, version and command, family and transport, the length of the
//! rest; then addresses, then TLVs.
//!
//! `LOCAL` is taken whatever stands behind it, as the specification wants. Families and transports that
//! a TCP listener has no use for (UDP, unix sockets) leave the connection's own ends in force.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use super::tlv::{self, CRC32C, TLV_HEAD, Tlvs};
use super::{
    Announced, Ends, Progress, ProxyHeader, ProxyHeaderError, V2_MOST, Version, canonical, crc32c,
};

pub(super) const SIGNATURE: &[u8] = b"\r\n\r\n\0\r\nQUIT\n";
/// Bytes before the addresses.
const HEAD: usize = 16;
const LOCAL: u8 = 0x0;
const PROXY: u8 = 0x1;
const UNSPECIFIED: u8 = 0x00;
const TCP4: u8 = 0x11;
const TCP6: u8 = 0x21;
/// Bytes of addresses, by family.
const UNSPECIFIED_BYTES: usize = 0;
const INET_BYTES: usize = 12;
const INET6_BYTES: usize = 36;
const UNIX_BYTES: usize = 216;

pub(super) fn read(bytes: &[u8]) -> Result<Progress<'_>, ProxyHeaderError> {
    let Some(&[version_and_command, family, high, low]) =
        bytes.get(SIGNATURE.len()..HEAD).and_then(<[u8]>::first_chunk)
    else {
        return Ok(Progress::Incomplete);
    };
    if version_and_command >> 4 != 2 {
        return Err(ProxyHeaderError::Version);
    }
    let command = version_and_command & 0xf;
    if command > PROXY {
        return Err(ProxyHeaderError::Command);
    }
    let consumed = HEAD + usize::from(u16::from_be_bytes([high, low]));
    if consumed > V2_MOST {
        return Err(ProxyHeaderError::TooLong);
    }
    let Some(rest) = bytes.get(HEAD..consumed) else { return Ok(Progress::Incomplete) };
    let header = match command {
        LOCAL => ProxyHeader { version: Version::V2, ends: None, tlvs: Tlvs::default() },
        _ => proxied(&bytes[..consumed], family, rest)?,
    };
    Ok(Progress::Complete { header, consumed })
}

fn proxied<'a>(
    whole: &[u8],
    family: u8,
    rest: &'a [u8],
) -> Result<ProxyHeader<'a>, ProxyHeaderError> {
    let size = match family >> 4 {
        0 => UNSPECIFIED_BYTES,
        1 => INET_BYTES,
        2 => INET6_BYTES,
        3 => UNIX_BYTES,
        // What nobody knows has addresses of a size that nobody knows.
        _ => return Ok(ProxyHeader { version: Version::V2, ends: None, tlvs: Tlvs::default() }),
    };
    let (addresses, behind) = rest.split_at_checked(size).ok_or(ProxyHeaderError::Addresses)?;
    let tlvs = Tlvs::new(behind)?;
    if let Some(checksum) = tlvs.get(CRC32C) {
        let at = checksum.as_ptr().addr() - rest.as_ptr().addr() + HEAD;
        let zeroed = whole.iter().enumerate().map(|(index, byte)| match index {
            index if (at..at + 4).contains(&index) => &0,
            _ => byte,
        });
        if *checksum != crc32c::of(zeroed).to_be_bytes() {
            return Err(ProxyHeaderError::Checksum);
        }
    }
    let ends = match family {
        TCP4 => inet::<4, Ipv4Addr>(addresses),
        TCP6 => inet::<16, Ipv6Addr>(addresses),
        _ => None,
    };
    Ok(ProxyHeader { version: Version::V2, ends, tlvs })
}

/// Source, destination, source port, destination port.
fn inet<const N: usize, A: From<[u8; N]> + Into<IpAddr>>(bytes: &[u8]) -> Option<Ends> {
    let (source, rest) = bytes.split_first_chunk::<N>()?;
    let (destination, ports) = rest.split_first_chunk::<N>()?;
    let &[a, b, c, d] = ports else { return None };
    let end = |ip: [u8; N], port| canonical(A::from(ip).into(), u16::from_be_bytes(port));
    Some(Ends { source: end(*source, [a, b]), destination: end(*destination, [c, d]) })
}

pub(super) fn write(out: &mut Vec<u8>, announced: Option<&Announced<'_>>) {
    let begin = out.len();
    out.extend_from_slice(SIGNATURE);
    let Some(announced) = announced else {
        out.extend_from_slice(&[2 << 4 | LOCAL, UNSPECIFIED, 0, 0]);
        return;
    };
    let Ends { source, destination } = announced.ends.in_one_family();
    let family = if source.is_ipv4() { TCP4 } else { TCP6 };
    out.extend_from_slice(&[2 << 4 | PROXY, family, 0, 0]);
    for address in [source, destination] {
        match address.ip() {
            IpAddr::V4(ip) => out.extend_from_slice(&ip.octets()),
            IpAddr::V6(ip) => out.extend_from_slice(&ip.octets()),
        }
    }
    out.extend_from_slice(&source.port().to_be_bytes());
    out.extend_from_slice(&destination.port().to_be_bytes());
    // Room for the checksum is kept free.
    let end = begin + V2_MOST - if announced.checksum { TLV_HEAD + 4 } else { 0 };
    for (kind, text) in [(tlv::ALPN, announced.alpn), (tlv::AUTHORITY, announced.authority)] {
        if let Some(text) = text {
            tlv::append(out, kind, text, end);
        }
    }
    if let Some(tls) = &announced.tls {
        tlv::append_tls(out, tls, end);
    }
    if announced.checksum {
        tlv::append(out, CRC32C, &[0; 4], begin + V2_MOST);
    }
    // At most V2_MOST.
    let length = (out.len() - begin - HEAD) as u16;
    out[begin + HEAD - 2..begin + HEAD].copy_from_slice(&length.to_be_bytes());
    if announced.checksum {
        let checksum = crc32c::of(&out[begin..]).to_be_bytes();
        let at = out.len() - 4;
        out[at..].copy_from_slice(&checksum);
    }
}
