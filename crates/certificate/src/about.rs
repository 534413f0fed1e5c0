//! What a certificate says of itself, for choosing it, for people, and for seeing that it expires.
//!
//! Times are seconds since 1970, UTC.

use std::fmt::Write;
use std::net::IpAddr;
use std::path::Path;
use std::sync::Arc;

use rustls::pki_types::CertificateDer;
use x509_parser::certificate::X509Certificate;
use x509_parser::extensions::GeneralName;
use x509_parser::prelude::FromDer;
use x509_parser::public_key::PublicKey;

/// Names of one certificate that count; public authorities stop at 100.
const MAX_NAMES: usize = 1000;

/// What a certificate says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct About {
    /// Where it came from, for messages.
    pub source: Arc<Path>,
    /// The names it is good for, in lower case: `example.com`, `*.example.com`, `192.0.2.1`.
    pub names: Vec<Box<str>>,
    /// Whose it is: `CN=example.com`.
    pub subject: Box<str>,
    /// Who has signed it.
    pub issuer: Box<str>,
    /// Whether it has signed itself.
    pub is_self_signed: bool,
    /// Its number, hexadecimal.
    pub serial: Box<str>,
    /// SHA-256 of it, hexadecimal.
    pub fingerprint: Box<str>,
    /// What it signs with.
    pub key: KeyKind,
    /// When it is good.
    pub validity: Validity,
    serial_bytes: Box<[u8]>,
}

/// The time in which a certificate is good.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Validity {
    /// From this second.
    pub from: i64,
    /// To this second.
    pub to: i64,
}

/// What a certificate signs with.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum KeyKind {
    /// An elliptic curve: the cheapest to sign with that every client knows.
    Ecdsa,
    /// Ed25519; few browsers take it.
    Ed25519,
    /// RSA.
    Rsa,
    /// Something else.
    Other,
}

impl KeyKind {
    /// As it is shown.
    pub fn name(self) -> &'static str {
        match self {
            KeyKind::Ecdsa => "ecdsa",
            KeyKind::Ed25519 => "ed25519",
            KeyKind::Rsa => "rsa",
            KeyKind::Other => "other",
        }
    }
}

impl Validity {
    /// Whether `now` lies within.
    pub fn holds(self, now: i64) -> bool {
        (self.from..=self.to).contains(&now)
    }
}

impl About {
    /// Reads a certificate.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn of(der: &CertificateDer<'_>, source: Arc<Path>) -> Result<About, String> {
        let parsed = parse(der)?;
        let key = match parsed.public_key().parsed() {
            Ok(PublicKey::EC(_)) => KeyKind::Ecdsa,
            Ok(PublicKey::RSA(_)) => KeyKind::Rsa,
            _ if parsed.public_key().algorithm.algorithm.to_id_string() == "1.3.101.112" => {
                KeyKind::Ed25519
            }
            _ => KeyKind::Other,
        };
        let validity = parsed.validity();
        Ok(About {
            source,
            names: names_of(&parsed),
            subject: parsed.subject().to_string().into(),
            issuer: parsed.issuer().to_string().into(),
            is_self_signed: parsed.subject() == parsed.issuer(),
            serial: hexadecimal(parsed.raw_serial()),
            fingerprint: fingerprint(der),
            key,
            validity: Validity {
                from: validity.not_before.timestamp(),
                to: validity.not_after.timestamp(),
            },
            serial_bytes: parsed.raw_serial().into(),
        })
    }

    pub(crate) fn serial_bytes(&self) -> &[u8] {
        &self.serial_bytes
    }
}

pub(crate) fn parse<'a>(der: &'a CertificateDer<'_>) -> Result<X509Certificate<'a>, String> {
    match X509Certificate::from_der(der) {
        Ok(([], parsed)) => Ok(parsed),
        Ok(_) => Err("something follows the first certificate in its own section".into()),
        Err(error) => Err(format!("the first certificate cannot be read: {error}")),
    }
}

/// The subject's alternative names; the common name counts where there are none.
fn names_of(parsed: &X509Certificate<'_>) -> Vec<Box<str>> {
    let alternative = parsed.subject_alternative_name().ok().flatten();
    if let Some(alternative) = alternative {
        let names = alternative.value.general_names.iter().filter_map(name_of);
        return names.take(MAX_NAMES).collect();
    }
    let common = parsed.subject().iter_common_name().filter_map(|name| name.as_str().ok());
    common.take(1).map(|name| name.to_ascii_lowercase().into()).collect()
}

fn name_of(name: &GeneralName<'_>) -> Option<Box<str>> {
    match name {
        GeneralName::DNSName(name) => Some(name.to_ascii_lowercase().into()),
        GeneralName::IPAddress(bytes) => address(bytes).map(|address| address.to_string().into()),
        _ => None,
    }
}

/// An address as certificates write it: four bytes or sixteen.
pub(crate) fn address(bytes: &[u8]) -> Option<IpAddr> {
    let v4 = <[u8; 4]>::try_from(bytes).map(IpAddr::from);
    v4.or_else(|_| <[u8; 16]>::try_from(bytes).map(IpAddr::from)).ok()
}

/// SHA-256 of the whole certificate.
pub(crate) fn fingerprint(der: &[u8]) -> Box<str> {
    hexadecimal(aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, der).as_ref())
}

pub(crate) fn hexadecimal(bytes: &[u8]) -> Box<str> {
    let mut text = String::with_capacity(bytes.len() * 2);
    for byte in bytes {
        let _ = write!(text, "{byte:02x}");
    }
    text.into()
}
