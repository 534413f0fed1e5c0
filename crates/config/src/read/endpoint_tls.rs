//! `tls` of a pool.

use std::net::IpAddr;
use std::sync::Arc;

use subak_certificate::{Certificate, Wanted};

use super::{Reader, View, endpoint, tls};
use crate::diagnostic::Diagnostic;
use crate::model::{EndpointTls, PemFile};
use crate::pattern::{self, HostPattern};
use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::vocabulary::{ENDPOINT_CERTIFICATE, ENDPOINT_TLS};

pub(super) fn read(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    endpoints: &endpoint::Read,
) -> Option<EndpointTls> {
    let node = view.node("tls")?;
    if let Value::Boolean(false) = node.value {
        return None;
    }
    endpoints.are_no_sockets(reader, node.span, "TLS to endpoints needs network addresses");
    let view = View::of(node, &ENDPOINT_TLS);
    let verify = view.boolean("verify", true);
    if let Some(node) = view.node("verify").filter(|_| !verify) {
        let warning = Diagnostic::warning(node.span, "whoever is on the way can be the endpoint");
        reader.push(
            warning
                .label("certificates are not verified")
                .help("to trust one self-signed certificate, name its file: ca = \"endpoint.pem\""),
        );
        for (key, what) in [("ca", "trusted"), ("crl", "looked for")] {
            if let Some(entry) = view.entry(key) {
                let diagnostic =
                    Diagnostic::error(entry.key_span, format!("`{key}` has no effect"));
                reader.push(diagnostic.label(format!("nothing is {what} with verify = false")));
            }
        }
    }
    let mut authorities = |key| {
        let node = view.node(key)?;
        let (wanted, what) = match key {
            "crl" => (Wanted::RevocationList, "a list of revoked certificates"),
            _ => (Wanted::Certificate, "a certificate"),
        };
        tls::pem(reader, node, wanted, what)
    };
    let (ca, crl) = (authorities("ca"), authorities("crl"));
    Some(EndpointTls {
        ca,
        crl,
        server_name: view.node("server_name").and_then(|node| reader.text(node, server_name)),
        certificate: view.node("certificate").and_then(|node| certificate(reader, node)),
        verify,
    })
}

fn certificate(reader: &mut Reader<'_>, node: &Node) -> Option<(PemFile, PemFile)> {
    let view = View::of(node, &ENDPOINT_CERTIFICATE);
    let chain_node = view.node("chain");
    let chain =
        chain_node.and_then(|node| tls::pem(reader, node, Wanted::Certificate, "a certificate"));
    let key_node = view.node("key")?;
    let key = tls::pem(reader, key_node, Wanted::PrivateKey, "a private key")?;
    if reader.files.open_to_all(&key.path) {
        let message = format!("{} may be read by everybody on this machine", key.path.display());
        let warning = Diagnostic::warning(key_node.span, message).label("this is a secret");
        reader.push(warning.help(format!("chmod 600 {}", key.path.display())));
    }
    let chain = chain?;
    let loaded = Certificate::load(&chain.pem(), &key.pem(), None);
    let at = tls::item_of((&view, &["key", "chain"]), node, &loaded);
    let loaded = reader.take(&at, loaded.map_err(tls::problem))?;
    let help = "renew it, then reload";
    tls::expiry(reader, chain_node?, loaded.about(), ("endpoints refuse it then", help));
    Some((chain, key))
}

/// The name of a host, or an address.
pub(super) fn server_name(text: &str) -> Result<Arc<str>, Problem> {
    if text.parse::<IpAddr>().is_ok() {
        return Ok(Arc::from(text));
    }
    match pattern::host(text) {
        Ok(HostPattern::Exact(_)) if !text.contains([':', '[']) => {
            Ok(Arc::from(text.trim_end_matches('.').to_ascii_lowercase()))
        }
        _ => {
            let expected = "expected a host such as \"api.internal\", or an address";
            let problem = Problem::expected("this is no name in a certificate", expected);
            Err(match text.rsplit_once(':') {
                Some((name, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => {
                    problem.help(format!("without the port: \"{name}\""))
                }
                _ => problem,
            })
        }
    }
}
