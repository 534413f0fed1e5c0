//! Certificates on disk, and other people's programs that ask by TLS: `openssl s_client` and `curl`.

use std::fs;
use std::io::Write;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::support::fresh_directory;
use rcgen::{
    BasicConstraints, CertificateParams, CertificateRevocationListParams, DnType,
    ExtendedKeyUsagePurpose, IsCa, Issuer, KeyIdMethod, KeyPair, RevokedCertParams, SerialNumber,
    SignatureAlgorithm, date_time_ymd,
};

/// Certificates in a directory, which goes with it.
pub(crate) struct Files {
    pub directory: PathBuf,
}

impl Files {
    pub(crate) fn new() -> Files {
        Files { directory: fresh_directory() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    pub(crate) fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let new = self.path(&format!("{name}.new"));
        fs::write(&new, contents).expect("write");
        fs::rename(new, self.path(name)).expect("rename");
    }

    /// A certificate for these names that has signed itself; its PEM.
    pub(crate) fn make(
        &self,
        file: &str,
        names: &[&str],
        algorithm: &'static SignatureAlgorithm,
    ) -> String {
        let (chain, key) = certificate(names, algorithm);
        self.write(&format!("{file}.pem"), &chain);
        self.write(&format!("{file}.key"), key);
        chain
    }

    /// An authority of this name: `FILE.pem` and `FILE.key`.
    pub(crate) fn authority(&self, file: &str, name: &str) -> Issuer<'static, KeyPair> {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        self.write(&format!("{file}.key"), key.serialize_pem());
        self.write(&format!("{file}.pem"), params.self_signed(&key).expect("an authority").pem());
        Issuer::new(params, key)
    }

    /// A client's certificate that it has signed.
    pub(crate) fn client(&self, file: &str, issuer: &Issuer<'static, KeyPair>) {
        self.client_until(file, issuer, Duration::from_secs(64_000_000_000));
    }

    /// One that ends so long after 1970.
    pub(crate) fn client_until(
        &self,
        file: &str,
        issuer: &Issuer<'static, KeyPair>,
        end: Duration,
    ) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![format!("{file}.internal")]).expect("names");
        params.not_after = date_time_ymd(1970, 1, 1) + end;
        params.distinguished_name.push(DnType::CommonName, file);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        params.serial_number = Some(serial(file));
        let certificate = params.signed_by(&key, issuer).expect("a certificate");
        self.write(&format!("{file}.pem"), certificate.pem());
        self.write(&format!("{file}.key"), key.serialize_pem());
    }

    /// A list of clients' certificates, by their files, that their authority has taken back.
    pub(crate) fn revoke(&self, list: &str, clients: &[&str], issuer: &Issuer<'static, KeyPair>) {
        let (before, after) = (date_time_ymd(2020, 1, 1), date_time_ymd(4000, 1, 1));
        let revoked = |client: &&str| RevokedCertParams {
            serial_number: serial(client),
            revocation_time: before,
            reason_code: None,
            invalidity_date: None,
        };
        let params = CertificateRevocationListParams {
            this_update: before,
            next_update: after,
            crl_number: SerialNumber::from(clients.len() as u64),
            issuing_distribution_point: None,
            revoked_certs: clients.iter().map(revoked).collect(),
            key_identifier_method: KeyIdMethod::Sha256,
        };
        self.write(list, params.signed_by(issuer).expect("a list").pem().expect("PEM"));
    }

    /// The path of a file, as commands are given it.
    pub(crate) fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    /// As an item of `certificates`.
    pub(crate) fn item(&self, file: &str) -> String {
        let (chain, key) = (self.path(&format!("{file}.pem")), self.path(&format!("{file}.key")));
        format!("{{ chain = {chain:?}, key = {key:?} }}")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

pub(crate) fn certificate(
    names: &[&str],
    algorithm: &'static SignatureAlgorithm,
) -> (String, String) {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = CertificateParams::new(names).expect("names");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

/// A listener that answers everything itself.
pub(crate) fn answering(address: &str, listener: &str) -> String {
    format!(
        "workers = 2\n[listener.web]\nbind = {address:?}\n{listener}\n\
         [[listener.web.route]]\nrespond = {{ status = 200, body = \"hello\\n\" }}\n"
    )
}

/// What `openssl s_client` says; it sends one request.
pub(crate) fn s_client(address: &str, options: &[&str]) -> String {
    let mut child = Command::new("timeout")
        .args(["20", "openssl", "s_client", "-connect", address, "-ign_eof"])
        .args(options)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("openssl");
    let mut stdin = child.stdin.take().expect("stdin");
    // Who was refused may be gone already.
    let _ = stdin.write_all(b"GET / HTTP/1.1\r\nHost: a.example\r\nConnection: close\r\n\r\n");
    drop(stdin);
    let output = child.wait_with_output().expect("openssl");
    [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned()).concat()
}

/// Whether that has shown this certificate.
pub(crate) fn shows(said: &str, pem: &str) -> bool {
    let flat = |text: &str| text.replace(['\r', '\n'], "");
    flat(said).contains(&flat(pem))
}

pub(crate) fn curl(options: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-s", "-S", "--max-time", "20"])
        .args(options)
        .output()
        .expect("curl");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    text.concat()
}

/// The number of a client's certificate.
fn serial(file: &str) -> SerialNumber {
    SerialNumber::from_slice(file.as_bytes())
}
