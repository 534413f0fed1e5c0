//! Which certificate does a client get? By the name it asks for, then by the kind of key it takes.
//!
//! Looking up reads one immutable table behind an atomic pointer; [`CertificateStore::set`] builds
//! another one and swaps it in, while connections are made. Certificates come from files and from
//! ACME; each origin sets its own.

use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use rustls::SignatureScheme;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use subak_certificate::{Certificate, Names};

/// Where certificates come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Origin {
    /// The files that the configuration names.
    Files,
    /// An authority that is asked by ACME.
    Acme,
}

/// What becomes of a client that asks for a name without a certificate, or for none.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub enum UnknownName {
    /// It gets the default certificate: the first one.
    #[default]
    Default,
    /// Its handshake is refused.
    Refuse,
}

/// The certificates of one listener.
#[derive(Debug)]
pub struct CertificateStore {
    table: ArcSwap<Table>,
    /// What the table was made of; locked to change it, never to look up.
    parts: Mutex<Parts>,
    unknown: UnknownName,
}

#[derive(Clone, Default, Debug)]
struct Parts {
    files: Vec<Certificate>,
    acme: Vec<Certificate>,
}

/// Keys that are equally good for a name, cheapest to sign with first.
type Choice = Vec<Certificate>;

#[derive(Default, Debug)]
struct Table {
    by_name: Names<Choice>,
    default: Choice,
}

impl CertificateStore {
    /// A store with these certificates from files.
    pub fn new(files: Vec<Certificate>, unknown: UnknownName) -> CertificateStore {
        let parts = Parts { files, acme: Vec::new() };
        let table = ArcSwap::from_pointee(Table::of(&parts));
        CertificateStore { table, parts: Mutex::new(parts), unknown }
    }

    /// Replaces all certificates of one origin. Handshakes from now on see them; connections that
    /// are there stay.
    pub fn set(&self, origin: Origin, certificates: Vec<Certificate>) {
        let mut parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match origin {
            Origin::Files => parts.files = certificates,
            Origin::Acme => parts.acme = certificates,
        }
        self.table.store(Arc::new(Table::of(&parts)));
    }

    /// The certificates of one origin.
    pub fn of(&self, origin: Origin) -> Vec<Certificate> {
        let parts = self.parts.lock().unwrap_or_else(PoisonError::into_inner);
        match origin {
            Origin::Files => parts.files.clone(),
            Origin::Acme => parts.acme.clone(),
        }
    }

    /// All certificates, those from files first.
    pub fn all(&self) -> Vec<(Origin, Certificate)> {
        let of = |origin| self.of(origin).into_iter().map(move |one| (origin, one));
        of(Origin::Files).chain(of(Origin::Acme)).collect()
    }

    /// Whether a handshake that asks for this name is to be refused before it costs anything.
    pub fn refuses(&self, name: Option<&str>) -> bool {
        self.unknown == UnknownName::Refuse
            && name.is_none_or(|name| self.table.load().by_name.find(name).is_none())
    }

    /// The certificate for a client that asks for `name` and takes these signatures.
    pub fn find(
        &self,
        name: Option<&str>,
        signatures: &[SignatureScheme],
    ) -> Option<Arc<CertifiedKey>> {
        let table = self.table.load();
        let choice = match name.and_then(|name| table.by_name.find(name)) {
            Some(choice) => choice,
            None if self.unknown == UnknownName::Default => &table.default,
            None => return None,
        };
        let suits = |one: &&Certificate| one.key().key.choose_scheme(signatures).is_some();
        // Where none suits, the handshake says so itself, by the alert that is meant for it.
        choice.iter().find(suits).or(choice.first()).map(|one| one.key().clone())
    }
}

impl ResolvesServerCert for CertificateStore {
    fn resolve(&self, hello: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        self.find(hello.server_name(), hello.signature_schemes())
    }
}

impl Table {
    fn of(parts: &Parts) -> Table {
        let mut table = Table::default();
        // Of two for the same name and kind of key the first counts, and files before ACME.
        for certificate in parts.files.iter().chain(&parts.acme) {
            for name in &certificate.about().names {
                add(table.by_name.entry(name), certificate);
            }
        }
        let mut all = parts.files.iter().chain(&parts.acme);
        let Some(first) = all.next() else { return table };
        add(&mut table.default, first);
        // The same names with another kind of key are the default as well.
        let is_same = |one: &&Certificate| {
            let (names, others) = (&one.about().names, &first.about().names);
            names.len() == others.len() && names.iter().all(|name| others.contains(name))
        };
        all.filter(is_same).for_each(|one| add(&mut table.default, one));
        table
    }
}

fn add(choice: &mut Choice, certificate: &Certificate) {
    let kind = certificate.about().key;
    if choice.iter().all(|known| known.about().key != kind) {
        choice.push(certificate.clone());
        choice.sort_by_key(|one| one.about().key);
    }
}

#[cfg(test)]
mod tests {
    use rcgen::{
        CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_ED25519, PKCS_RSA_SHA256,
    };
    use subak_certificate::{KeyKind, Pem};

    use super::*;

    fn certificate(names: &[&str], key: &KeyPair) -> Certificate {
        let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
        let params = CertificateParams::new(names).expect("names");
        let chain = params.self_signed(key).expect("made").pem();
        let key = key.serialize_pem();
        let pem = |text: String| Pem { path: "x.pem".into(), contents: text.into() };
        Certificate::load(&pem(chain), &pem(key), None).expect("loaded")
    }

    fn key(algorithm: &'static rcgen::SignatureAlgorithm) -> KeyPair {
        KeyPair::generate_for(algorithm).expect("key")
    }

    const ECDSA: &[SignatureScheme] = &[SignatureScheme::ECDSA_NISTP256_SHA256];
    const RSA: &[SignatureScheme] =
        &[SignatureScheme::RSA_PSS_SHA256, SignatureScheme::RSA_PKCS1_SHA256];

    fn kind(store: &CertificateStore, name: Option<&str>, takes: &[SignatureScheme]) -> KeyKind {
        let found = store.find(name, takes).expect("a certificate");
        let all = store.all();
        let one = all.iter().find(|(_, one)| Arc::ptr_eq(one.key(), &found));
        one.expect("of the store").1.about().key
    }

    #[test]
    fn the_name_decides_first_and_the_kind_of_key_second() {
        let rsa = certificate(&["a.example"], &key(&PKCS_RSA_SHA256));
        let ecdsa = certificate(&["a.example"], &key(&PKCS_ECDSA_P256_SHA256));
        let wild = certificate(&["*.a.example"], &key(&PKCS_ED25519));
        let store = CertificateStore::new(vec![rsa, ecdsa, wild], UnknownName::Default);
        let both = [RSA, ECDSA].concat();
        assert_eq!(kind(&store, Some("a.example"), &both), KeyKind::Ecdsa);
        assert_eq!(kind(&store, Some("A.example"), RSA), KeyKind::Rsa);
        assert_eq!(kind(&store, Some("x.a.example"), RSA), KeyKind::Ed25519, "the only one");
        // The default is the first one, in both kinds of key.
        assert_eq!(kind(&store, Some("b.example"), ECDSA), KeyKind::Ecdsa);
        assert_eq!(kind(&store, None, RSA), KeyKind::Rsa);
    }

    #[test]
    fn unknown_names_are_refused_where_that_is_wanted() {
        let one = certificate(&["a.example"], &key(&PKCS_ECDSA_P256_SHA256));
        let store = CertificateStore::new(vec![one], UnknownName::Refuse);
        assert!(!store.refuses(Some("a.example")));
        assert!(store.refuses(Some("b.example")) && store.refuses(None));
        assert!(store.find(None, ECDSA).is_none());
    }

    #[test]
    fn each_origin_sets_its_own_and_files_go_first() {
        let file = certificate(&["a.example"], &key(&PKCS_ECDSA_P256_SHA256));
        let acme = certificate(&["a.example", "b.example"], &key(&PKCS_ECDSA_P256_SHA256));
        let store = CertificateStore::new(vec![file.clone()], UnknownName::Default);
        store.set(Origin::Acme, vec![acme.clone()]);
        let found = |name| store.find(Some(name), ECDSA).expect("one");
        assert!(Arc::ptr_eq(&found("a.example"), file.key()));
        assert!(Arc::ptr_eq(&found("b.example"), acme.key()));
        store.set(Origin::Files, Vec::new());
        assert!(Arc::ptr_eq(&found("a.example"), acme.key()));
        assert_eq!(store.all().len(), 1);
        store.set(Origin::Acme, Vec::new());
        assert!(store.find(Some("a.example"), ECDSA).is_none());
    }
}
