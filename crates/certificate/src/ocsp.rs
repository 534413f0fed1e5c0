//! An OCSP response (RFC 6960) as it is stapled: DER from a file that something else keeps fresh.
//!
//! What is looked at is what decides whether stapling helps: that the responder has answered, that
//! the answer is about this certificate, what it says, and until when. The signature is the client's
//! to check.

use std::fmt;

use x509_parser::asn1_rs::{Any, FromDer, GeneralizedTime};

/// What the authority says of a certificate.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OcspStatus {
    /// It is good.
    Good,
    /// It is revoked: clients will refuse it.
    Revoked,
    /// The authority does not know it.
    Unknown,
}

/// A response about one certificate.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct OcspResponse {
    der: Box<[u8]>,
    /// What it says.
    pub status: OcspStatus,
    /// From when, in seconds since 1970.
    pub from: i64,
    /// Until when; none: until there is another one.
    pub to: Option<i64>,
}

/// Why a response cannot be stapled.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum OcspError {
    /// It is no OCSP response in DER.
    Malformed,
    /// The responder has answered with an error, by its number.
    Refused(u8),
    /// It is about other certificates.
    Another,
}

impl fmt::Display for OcspError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            OcspError::Malformed => {
                out.write_str("is no OCSP response in DER; `openssl ocsp -respout FILE` writes one")
            }
            OcspError::Refused(number) => {
                write!(out, "the responder has answered with error {number} and no status")
            }
            OcspError::Another => {
                out.write_str("is about another certificate: its serial number is not in it")
            }
        }
    }
}

impl std::error::Error for OcspError {}

/// Tags of the structures that are walked through.
const CONTEXT_0: u8 = 0xa0;
const ENUMERATED: u8 = 0x0a;
const GENERALIZED_TIME: u8 = 0x18;
const INTEGER: u8 = 0x02;
const OCTET_STRING: u8 = 0x04;
const OID: u8 = 0x06;
const SEQUENCE: u8 = 0x30;
/// Statuses: good and unknown have no contents, revoked says when.
const GOOD: u8 = 0x80;
const REVOKED: u8 = 0xa1;
const UNKNOWN: u8 = 0x82;

impl OcspResponse {
    /// Reads a response and finds what it says of the certificate of that serial number.
    ///
    /// # Errors
    /// [`OcspError`].
    pub fn read(der: &[u8], serial: &[u8]) -> Result<OcspResponse, OcspError> {
        let mut whole = Elements(der);
        let mut response = whole.expect(SEQUENCE)?;
        if !whole.0.is_empty() {
            return Err(OcspError::Malformed);
        }
        match response.expect(ENUMERATED)?.0 {
            [0] => {}
            [number] => return Err(OcspError::Refused(*number)),
            _ => return Err(OcspError::Malformed),
        }
        let mut bytes = response.expect(CONTEXT_0)?.expect(SEQUENCE)?;
        bytes.expect(OID)?;
        let mut basic = bytes.expect(OCTET_STRING)?.expect(SEQUENCE)?;
        let mut data = basic.expect(SEQUENCE)?;
        data.skip_if(CONTEXT_0)?;
        // Who answers, by name or by key, and when.
        data.next()?;
        data.expect(GENERALIZED_TIME)?;
        let mut singles = data.expect(SEQUENCE)?;
        while !singles.0.is_empty() {
            let mut single = singles.expect(SEQUENCE)?;
            let mut id = single.expect(SEQUENCE)?;
            id.expect(SEQUENCE)?;
            id.expect(OCTET_STRING)?;
            id.expect(OCTET_STRING)?;
            if id.expect(INTEGER)?.0 != serial {
                continue;
            }
            let status = match single.next()?.0 {
                GOOD => OcspStatus::Good,
                REVOKED => OcspStatus::Revoked,
                UNKNOWN => OcspStatus::Unknown,
                _ => return Err(OcspError::Malformed),
            };
            let from = single.time()?;
            let to = match single.skip_if(CONTEXT_0)? {
                Some(mut next) => Some(next.time()?),
                None => None,
            };
            return Ok(OcspResponse { der: der.into(), status, from, to });
        }
        Err(OcspError::Another)
    }

    /// What is stapled.
    pub fn der(&self) -> &[u8] {
        &self.der
    }

    /// Whether clients take it at that time.
    pub fn holds(&self, now: i64) -> bool {
        now >= self.from && self.to.is_none_or(|to| now <= to)
    }
}

/// DER elements one behind the other.
struct Elements<'a>(&'a [u8]);

impl<'a> Elements<'a> {
    /// The tag and the contents of the next one.
    fn next(&mut self) -> Result<(u8, Elements<'a>), OcspError> {
        let tag = *self.0.first().ok_or(OcspError::Malformed)?;
        let (rest, any) = Any::from_der(self.0).map_err(|_| OcspError::Malformed)?;
        self.0 = rest;
        Ok((tag, Elements(any.data)))
    }

    fn expect(&mut self, tag: u8) -> Result<Elements<'a>, OcspError> {
        let (found, contents) = self.next()?;
        if found == tag { Ok(contents) } else { Err(OcspError::Malformed) }
    }

    fn skip_if(&mut self, tag: u8) -> Result<Option<Elements<'a>>, OcspError> {
        match self.0.first() {
            Some(found) if *found == tag => self.expect(tag).map(Some),
            _ => Ok(None),
        }
    }

    fn time(&mut self) -> Result<i64, OcspError> {
        let text = self.expect(GENERALIZED_TIME)?;
        let time = GeneralizedTime::from_bytes(text.0).and_then(|time| time.utc_datetime());
        time.map(|time| time.unix_timestamp()).map_err(|_| OcspError::Malformed)
    }
}
