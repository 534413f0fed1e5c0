//! Who a client is, by the certificate it has proved to hold.
//!
//! Everything is written so that it fits into a header field and cannot be taken for something else:
//! a subject as in RFC 4514 with its escapes, names with every byte escaped that could end one. What
//! a certificate says is its authority's word, and not every authority looks at each character.

use std::fmt::Write;

use rustls::pki_types::CertificateDer;
use x509_parser::extensions::GeneralName;
use x509_parser::objects::{oid_registry, oid2abbrev};
use x509_parser::x509::{AttributeTypeAndValue, X509Name};

use crate::about::{address, fingerprint, hexadecimal, parse};

/// Names of one certificate that are passed on.
const MAX_NAMES: usize = 100;

/// A client that has shown a certificate which a configured authority has signed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ClientIdentity {
    /// Whose it is (RFC 4514): `CN=alice,O=Example`.
    pub subject: Box<str>,
    /// Who has signed it (RFC 4514).
    pub issuer: Box<str>,
    /// Its alternative names: `DNS:a.internal, URI:spiffe://example/a`.
    pub names: Box<str>,
    /// Its number, hexadecimal.
    pub serial: Box<str>,
    /// SHA-256 of the certificate, hexadecimal.
    pub fingerprint: Box<str>,
    /// The certificate itself as a byte sequence of structured fields (RFC 9440): `:MIIB…:`.
    pub certificate: Box<str>,
    /// When it ends, in seconds since 1970.
    pub ends_at: i64,
}

impl ClientIdentity {
    /// What the client's own certificate says; none when it cannot be read, which the handshake would
    /// have refused.
    pub fn of(der: &CertificateDer<'_>) -> Option<ClientIdentity> {
        let parsed = parse(der).ok()?;
        let mut names = String::new();
        if let Ok(Some(alternative)) = parsed.subject_alternative_name() {
            for name in alternative.value.general_names.iter().take(MAX_NAMES) {
                let (kind, text) = match name {
                    GeneralName::DNSName(name) => ("DNS", plain(name)),
                    GeneralName::RFC822Name(name) => ("email", plain(name)),
                    GeneralName::URI(name) => ("URI", plain(name)),
                    GeneralName::IPAddress(bytes) => match address(bytes) {
                        Some(address) => ("IP", address.to_string()),
                        None => continue,
                    },
                    _ => continue,
                };
                let comma = if names.is_empty() { "" } else { ", " };
                let _ = write!(names, "{comma}{kind}:{text}");
            }
        }
        Some(ClientIdentity {
            subject: distinguished(parsed.subject()),
            issuer: distinguished(parsed.issuer()),
            names: names.into(),
            serial: hexadecimal(parsed.raw_serial()),
            fingerprint: fingerprint(der),
            certificate: format!(":{}:", base64(der)).into(),
            ends_at: parsed.validity().not_after.timestamp(),
        })
    }
}

/// A name with everything escaped by `%` that is not plain printable ASCII or could separate names.
fn plain(name: &str) -> String {
    let mut text = String::with_capacity(name.len());
    for byte in name.bytes() {
        match byte {
            b',' | b'"' | b'\\' | b' ' => {
                let _ = write!(text, "%{byte:02X}");
            }
            0x21..=0x7e => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "%{byte:02X}");
            }
        }
    }
    text
}

/// RFC 4514: the last part first, values escaped; bytes beyond printable ASCII as `\XX`.
fn distinguished(name: &X509Name<'_>) -> Box<str> {
    let mut text = String::new();
    let parts: Vec<_> = name.iter_rdn().collect();
    for part in parts.iter().rev() {
        if !text.is_empty() {
            text.push(',');
        }
        for (place, attribute) in part.iter().enumerate() {
            if place > 0 {
                text.push('+');
            }
            attribute_to(&mut text, attribute);
        }
    }
    text.into()
}

fn attribute_to(text: &mut String, attribute: &AttributeTypeAndValue<'_>) {
    let kind = attribute.attr_type();
    match oid2abbrev(kind, oid_registry()) {
        Ok(name) => text.push_str(name),
        Err(_) => text.push_str(&kind.to_id_string()),
    }
    text.push('=');
    let Ok(value) = attribute.as_str() else {
        // A kind of text that is none: its bytes, as the RFC wants it.
        let _ = write!(text, "#{}", hexadecimal(attribute.as_slice()));
        return;
    };
    let last = value.len().saturating_sub(1);
    for (place, byte) in value.bytes().enumerate() {
        match byte {
            b'"' | b'+' | b',' | b';' | b'<' | b'>' | b'\\' | b'=' => {
                text.push('\\');
                text.push(char::from(byte));
            }
            b' ' | b'#' if place == 0 || (byte == b' ' && place == last) => {
                text.push('\\');
                text.push(char::from(byte));
            }
            0x20..=0x7e => text.push(char::from(byte)),
            _ => {
                let _ = write!(text, "\\{byte:02X}");
            }
        }
    }
}

/// RFC 4648, with padding.
fn base64(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let mut text = String::with_capacity(bytes.len().div_ceil(3) * 4);
    for group in bytes.chunks(3) {
        let byte = |place: usize| group.get(place).copied().map_or(0, u32::from);
        let word = byte(0) << 16 | byte(1) << 8 | byte(2);
        for place in 0..4 {
            match place <= group.len() {
                true => text.push(char::from(DIGITS[(word >> (18 - 6 * place)) as usize & 63])),
                false => text.push('='),
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DnType, KeyPair, SanType};

    use super::*;

    #[test]
    fn base64_is_that_of_the_rfc() {
        let cases =
            [("", ""), ("f", "Zg=="), ("fo", "Zm8="), ("foo", "Zm9v"), ("foob", "Zm9vYg==")];
        for (plain, expected) in cases {
            assert_eq!(base64(plain.as_bytes()), expected);
        }
    }

    #[test]
    fn no_part_of_a_name_can_be_taken_for_another() {
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.distinguished_name.push(DnType::OrganizationName, "Evil, CN=admin");
        params.distinguished_name.push(DnType::CommonName, "#a\u{fc}+b\r\nX: y ");
        let uri = "spiffe://x/a, DNS:admin\"".try_into().expect("IA5");
        params.subject_alt_names =
            vec![SanType::URI(uri), SanType::IpAddress([192, 0, 2, 1].into())];
        let key = KeyPair::generate().expect("key");
        let made = params.self_signed(&key).expect("certificate");
        let identity = ClientIdentity::of(made.der()).expect("readable");
        assert_eq!(&*identity.subject, r"O=Evil\, CN\=admin,CN=\#a\C3\BC\+b\0D\0AX: y\ ");
        assert_eq!(&*identity.names, "URI:spiffe://x/a%2C%20DNS:admin%22, IP:192.0.2.1");
        assert_eq!(identity.fingerprint.len(), 64);
        assert!(identity.certificate.starts_with(":MII") && identity.certificate.ends_with(":"));
    }
}
