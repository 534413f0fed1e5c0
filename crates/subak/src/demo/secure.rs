//! `--tls`: a certificate that the demonstration makes for itself, in a directory that goes with it.

use std::fs::{self, DirBuilder, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::crypto::aws_lc_rs;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

/// What the certificate stands for.
const NAMES: [&str; 2] = ["localhost", "127.0.0.1"];

/// A certificate on disk, and clients that trust it and nothing else.
pub(super) struct Secure {
    directory: PathBuf,
    connector: TlsConnector,
}

impl Secure {
    /// Makes one, for the user who runs this alone.
    pub(super) fn new() -> io::Result<Secure> {
        let made = rcgen::generate_simple_self_signed(NAMES.map(String::from).to_vec());
        let made = made.map_err(io::Error::other)?;
        let mut roots = RootCertStore::empty();
        roots.add(made.cert.der().clone()).map_err(io::Error::other)?;
        let config = ClientConfig::builder_with_provider(Arc::new(aws_lc_rs::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(io::Error::other)?
            .with_root_certificates(roots)
            .with_no_client_auth();
        // The directory must not be there already: who could have made it could read the key.
        let name = format!("subak-demo-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        let made_directory = DirBuilder::new().mode(0o700).create(&directory);
        made_directory.map_err(|error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
        })?;
        let secure = Secure { directory, connector: Arc::new(config).into() };
        write(&secure.chain(), &made.cert.pem())?;
        write(&secure.key(), &made.signing_key.serialize_pem())?;
        Ok(secure)
    }

    /// The certificate.
    pub(super) fn chain(&self) -> PathBuf {
        self.directory.join("cert.pem")
    }

    /// Its key.
    pub(super) fn key(&self) -> PathBuf {
        self.directory.join("key.pem")
    }

    /// How clients of the demonstration connect.
    pub(super) fn connector(&self) -> &TlsConnector {
        &self.connector
    }
}

impl Drop for Secure {
    fn drop(&mut self) {
        // What stays behind is a certificate that nobody trusts.
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn write(path: &Path, text: &str) -> io::Result<()> {
    let mut file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(path)?;
    file.write_all(text.as_bytes())
}
