//! Certificates: read from storage, made as placeholders, made for challenges; and keys for new ones.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use rcgen::{
    CertificateParams, CustomExtension, DistinguishedName, DnType, KeyPair, PKCS_ECDSA_P256_SHA256,
    PKCS_ECDSA_P384_SHA384, PKCS_RSA_SHA256, RsaKeySize, SigningKey,
};
use rustls::crypto::aws_lc_rs::sign::any_supported_type;
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;
use rustls::sign::CertifiedKey;
use subak_certificate::{Certificate, Pem, is_covered_by};
use subak_config::AcmeKeyType;

use crate::due::Life;

/// What the subject of a certificate says that only stands in for one.
const PLACEHOLDER: &str = "Subak placeholder: no certificate has been issued yet";

/// A certificate that was issued, and how long it holds.
#[derive(Clone, Debug)]
pub(crate) struct Held {
    pub(crate) certificate: Certificate,
    pub(crate) life: Life,
}

/// Reads key and chain from one text, and sees that they stand for `names`.
pub(crate) fn read(pem: &str, path: &Path, names: &[Box<str>]) -> Result<Held, String> {
    let certificate = load(pem, path)?;
    let about = certificate.about();
    let stands_for = || about.names.iter().map(|name| &**name);
    if let Some(missing) = names.iter().find(|name| !is_covered_by(name, stands_for())) {
        return Err(format!("the certificate does not stand for {missing}"));
    }
    let (begins, ends) = (moment(about.validity.from), moment(about.validity.to));
    if ends <= begins {
        return Err("the certificate ends before it begins".into());
    }
    let leaf = certificate.key().end_entity_cert().map_err(|error| error.to_string())?;
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, leaf);
    let draw = digest.as_ref().iter().take(4).fold(0, |draw, byte| draw << 8 | u32::from(*byte));
    Ok(Held { life: Life { begins, ends, draw }, certificate })
}

fn load(pem: &str, path: &Path) -> Result<Certificate, String> {
    let file = Pem { path: path.to_owned(), contents: Bytes::copy_from_slice(pem.as_bytes()) };
    Certificate::load(&file, &file, None).map_err(|error| error.problem)
}

fn moment(seconds: i64) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_secs(u64::try_from(seconds).unwrap_or(0))
}

/// A certificate of our own that nobody trusts, until there is one.
pub(crate) fn placeholder(names: &[Box<str>]) -> Result<Certificate, String> {
    let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
    let mut params = CertificateParams::new(names).map_err(made)?;
    params.distinguished_name = DistinguishedName::new();
    params.distinguished_name.push(DnType::CommonName, PLACEHOLDER);
    let (key, certificate) = self_signed(&params)?;
    load(&format!("{}{}", key.serialize_pem(), certificate.pem()), Path::new("acme"))
}

/// What proves to a validator that `name` is ours (RFC 8737): `digest` is that of the key authorization.
pub(crate) fn for_challenge(name: &str, authorization: &str) -> Result<Arc<CertifiedKey>, String> {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, authorization.as_bytes());
    let mut params = CertificateParams::new(vec![name.to_owned()]).map_err(made)?;
    params.custom_extensions = vec![CustomExtension::new_acme_identifier(digest.as_ref())];
    // Not looked at any further: the critical extension is for validators, and nobody else knows it.
    let (key, certificate) = self_signed(&params)?;
    let key = PrivateKeyDer::from_pem_slice(key.serialize_pem().as_bytes());
    let key = key.map_err(|error| error.to_string())?;
    let key = any_supported_type(&key).map_err(|error| error.to_string())?;
    Ok(Arc::new(CertifiedKey::new(vec![certificate.der().clone()], key)))
}

fn self_signed(params: &CertificateParams) -> Result<(KeyPair, rcgen::Certificate), String> {
    let key = new_key(AcmeKeyType::P256)?;
    let certificate = params.self_signed(&key).map_err(made)?;
    Ok((key, certificate))
}

/// A new private key.
pub(crate) fn new_key(kind: AcmeKeyType) -> Result<KeyPair, String> {
    let key = match kind {
        AcmeKeyType::P256 => KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256),
        AcmeKeyType::P384 => KeyPair::generate_for(&PKCS_ECDSA_P384_SHA384),
        AcmeKeyType::Rsa2048 => KeyPair::generate_rsa_for(&PKCS_RSA_SHA256, RsaKeySize::_2048),
    };
    key.map_err(made)
}

/// The request for a certificate that stands for `names` and holds `key`, in DER.
pub(crate) fn request(names: &[Box<str>], key: &impl SigningKey) -> Result<Vec<u8>, String> {
    let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
    let mut params = CertificateParams::new(names).map_err(made)?;
    params.distinguished_name = DistinguishedName::new();
    let request = params.serialize_request(key).map_err(made)?;
    Ok(request.der().to_vec())
}

fn made(error: rcgen::Error) -> String {
    format!("no certificate can be made: {error}")
}

#[cfg(test)]
mod tests {
    use x509_parser::prelude::{FromDer, X509Certificate};

    use super::*;

    fn pem(names: &[&str], kind: AcmeKeyType) -> (String, String) {
        let key = new_key(kind).unwrap();
        let names: Vec<_> = names.iter().map(|name| name.to_string()).collect();
        let certificate = CertificateParams::new(names).unwrap().self_signed(&key).unwrap();
        (key.serialize_pem(), certificate.pem())
    }

    fn read(pem: &str, names: &[Box<str>]) -> Result<Held, String> {
        super::read(pem, Path::new("a.pem"), names)
    }

    #[test]
    fn key_and_chain_are_read_from_one_text_whatever_the_kind_of_key() {
        for kind in [AcmeKeyType::P256, AcmeKeyType::P384, AcmeKeyType::Rsa2048] {
            let (key, chain) = pem(&["a.test", "b.test"], kind);
            let names = ["b.test".into(), "a.test".into()];
            let held = read(&format!("{key}{chain}"), &names).unwrap();
            assert!(held.life.ends > SystemTime::now() && held.life.begins < SystemTime::now());
            let again = read(&format!("{key}{chain}"), &names).unwrap();
            assert_eq!(held.life, again.life, "what is drawn stays");
        }
    }

    #[test]
    fn what_does_not_belong_together_is_refused() {
        let (key, chain) = pem(&["a.test"], AcmeKeyType::P256);
        let (other, _) = pem(&["a.test"], AcmeKeyType::P256);
        let names = ["a.test".into()];
        let refused = |text: &str, names: &[Box<str>]| read(text, names).unwrap_err();
        refused(&format!("{other}{chain}"), &names);
        assert!(refused(&format!("{key}{chain}"), &["b.test".into()]).contains("b.test"));
        assert!(refused(&key, &names).contains("no certificate"));
        assert!(refused(&chain, &names).contains("private key"));
        refused("", &names);
        refused("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", &names);
    }

    #[test]
    fn a_challenge_is_answered_by_a_certificate_with_the_digest_in_a_critical_extension() {
        let key = for_challenge("a.test", "token.thumb").unwrap();
        let (_, parsed) = X509Certificate::from_der(&key.cert[0]).unwrap();
        let names = parsed.subject_alternative_name().unwrap().unwrap();
        assert_eq!(names.value.general_names.len(), 1);
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, b"token.thumb");
        let mut extensions = parsed.extensions().iter();
        let found = extensions.find(|one| one.oid.to_id_string() == "1.3.6.1.5.5.7.1.31");
        let extension = found.expect("acmeIdentifier");
        assert!(extension.critical && extension.value.ends_with(digest.as_ref()));
    }

    #[test]
    fn a_placeholder_says_what_it_is() {
        let made = placeholder(&["a.test".into()]).unwrap();
        assert!(made.about().subject.contains(PLACEHOLDER) && made.about().is_self_signed);
        assert_eq!(made.about().names, ["a.test".into()]);
    }
}
