//! What a header of version 2 says beyond addresses: type, length, value, one after the other.

use super::ProxyHeaderError;

pub(super) const ALPN: u8 = 0x01;
pub(super) const AUTHORITY: u8 = 0x02;
pub(super) const CRC32C: u8 = 0x03;
pub(super) const SSL: u8 = 0x20;
pub(super) const SSL_VERSION: u8 = 0x21;
pub(super) const SSL_CN: u8 = 0x22;
pub(super) const SSL_CIPHER: u8 = 0x23;

/// The client spoke TLS.
const CLIENT_SSL: u8 = 0x01;
/// It showed a certificate on this connection.
const CLIENT_CERT_CONN: u8 = 0x02;
/// It showed one in this TLS session.
const CLIENT_CERT_SESS: u8 = 0x04;
/// Bytes of a type and a length.
pub(super) const TLV_HEAD: usize = 3;
/// Bytes of flags and verification before what `SSL` holds.
const SSL_HEAD: usize = 5;

/// All of them, looked through already: their lengths fit.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tlvs<'a> {
    bytes: &'a [u8],
}

/// What TLS a client speaks with the proxy.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Tls<'a> {
    /// As it is usually written: `TLSv1.3`.
    pub version: Option<&'a [u8]>,
    /// The cipher's name.
    pub cipher: Option<&'a [u8]>,
    /// The common name in the client's certificate.
    pub common_name: Option<&'a [u8]>,
    /// Whether the client showed a certificate, and it was verified.
    pub verified: bool,
}

impl<'a> Tlvs<'a> {
    /// Looks whether the lengths fit.
    pub(super) fn new(bytes: &'a [u8]) -> Result<Tlvs<'a>, ProxyHeaderError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (kind, value, behind) = first(rest).ok_or(ProxyHeaderError::Tlv)?;
            if kind == SSL {
                let inner = value.get(SSL_HEAD..).ok_or(ProxyHeaderError::Tlv)?;
                let mut inner = inner;
                while !inner.is_empty() {
                    inner = first(inner).ok_or(ProxyHeaderError::Tlv)?.2;
                }
            }
            rest = behind;
        }
        Ok(Tlvs { bytes })
    }

    /// Type and value of each.
    pub fn iter(&self) -> impl Iterator<Item = (u8, &'a [u8])> {
        each(self.bytes)
    }

    /// The value of the first of this type.
    pub fn get(&self, kind: u8) -> Option<&'a [u8]> {
        self.iter().find_map(|(of, value)| (of == kind).then_some(value))
    }

    /// What the client and the proxy agreed on by ALPN.
    pub fn alpn(&self) -> Option<&'a [u8]> {
        self.get(ALPN)
    }

    /// The name the client asked for.
    pub fn authority(&self) -> Option<&'a [u8]> {
        self.get(AUTHORITY)
    }

    /// What TLS the client speaks with the proxy; none where it speaks none.
    pub fn tls(&self) -> Option<Tls<'a>> {
        let value = self.get(SSL)?;
        let (head, inner) = value.split_at_checked(SSL_HEAD)?;
        let [flags, verify @ ..] = head else { return None };
        if flags & CLIENT_SSL == 0 {
            return None;
        }
        let of = |kind| each(inner).find_map(|(of, value)| (of == kind).then_some(value));
        let has_certificate = flags & (CLIENT_CERT_CONN | CLIENT_CERT_SESS) != 0;
        Some(Tls {
            version: of(SSL_VERSION),
            cipher: of(SSL_CIPHER),
            common_name: of(SSL_CN),
            verified: has_certificate && verify == [0; 4],
        })
    }
}

fn each(bytes: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let (kind, value, behind) = first(rest)?;
        rest = behind;
        Some((kind, value))
    })
}

/// Type and value of the first, and what follows.
fn first(bytes: &[u8]) -> Option<(u8, &[u8], &[u8])> {
    let (&[kind, high, low], rest) = bytes.split_first_chunk::<TLV_HEAD>()?;
    let (value, behind) = rest.split_at_checked(usize::from(u16::from_be_bytes([high, low])))?;
    Some((kind, value, behind))
}

/// Appends one; a value that has no place in `room` bytes is left out.
pub(super) fn append(out: &mut Vec<u8>, kind: u8, value: &[u8], end: usize) {
    let Ok(length) = u16::try_from(value.len()) else { return };
    if out.len() + TLV_HEAD + value.len() <= end {
        out.push(kind);
        out.extend_from_slice(&length.to_be_bytes());
        out.extend_from_slice(value);
    }
}

/// Appends what is known of the client's TLS.
pub(super) fn append_tls(out: &mut Vec<u8>, tls: &Tls<'_>, end: usize) {
    let certificate = if tls.verified { CLIENT_CERT_CONN | CLIENT_CERT_SESS } else { 0 };
    let mut value = vec![CLIENT_SSL | certificate];
    value.extend_from_slice(&u32::from(!tls.verified).to_be_bytes());
    let texts = [(SSL_VERSION, tls.version), (SSL_CN, tls.common_name), (SSL_CIPHER, tls.cipher)];
    for (kind, text) in texts {
        if let Some(text) = text {
            append(&mut value, kind, text, end - out.len().min(end));
        }
    }
    append(out, SSL, &value, end);
}
