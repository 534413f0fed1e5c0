//! Certificates of every kind, from an authority of the test's own.

use std::path::{Path, PathBuf};

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, date_time_ymd};

use super::fresh_directory;

/// An authority with a directory for what it signs; that is removed with it.
pub(crate) struct Authority {
    directory: PathBuf,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    /// Its own certificate is in `ca.pem`.
    pub(crate) fn new() -> Authority {
        let directory = fresh_directory();
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        // Each has a name of its own, or one could be taken for another with a broken signature.
        let name = format!("authority of {}", directory.display());
        params.distinguished_name.push(DnType::CommonName, name);
        let certificate = params.self_signed(&key).expect("signed");
        std::fs::write(directory.join("ca.pem"), certificate.pem()).expect("write");
        Authority { directory, issuer: Issuer::new(params, key) }
    }

    pub(crate) fn directory(&self) -> &Path {
        &self.directory
    }

    /// A file of the directory, as configurations name it.
    pub(crate) fn path(&self, file: &str) -> String {
        self.directory.join(file).to_str().expect("a path").to_owned()
    }

    /// Signs a certificate for this name, good in these years: `KIND.pem` and `KIND.key`.
    pub(crate) fn sign(&self, kind: &str, name: &str, years: std::ops::Range<i32>) {
        let key = KeyPair::generate().expect("a key");
        let params = params(name, years);
        let certificate = params.signed_by(&key, &self.issuer).expect("signed");
        self.write(kind, &certificate.pem(), &key);
    }

    /// The same, signed by itself.
    pub(crate) fn sign_itself(&self, kind: &str, name: &str) {
        let key = KeyPair::generate().expect("a key");
        let certificate = params(name, 2020..4000).self_signed(&key).expect("signed");
        self.write(kind, &certificate.pem(), &key);
    }

    fn write(&self, kind: &str, certificate: &str, key: &KeyPair) {
        let write = |file: String, text: &str| {
            std::fs::write(self.directory.join(file), text).expect("write");
        };
        write(format!("{kind}.pem"), certificate);
        write(format!("{kind}.key"), &key.serialize_pem());
    }
}

fn params(name: &str, years: std::ops::Range<i32>) -> CertificateParams {
    let mut params = CertificateParams::new(vec![name.to_owned()]).expect("parameters");
    params.distinguished_name.push(DnType::CommonName, name);
    params.not_before = date_time_ymd(years.start, 1, 1);
    params.not_after = date_time_ymd(years.end, 1, 1);
    params
}

impl Drop for Authority {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}
