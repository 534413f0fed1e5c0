//! `acme`: who issues certificates, and which names listeners want them for.

use std::path::PathBuf;

use subak_certificate::Wanted;

use super::tls::pem;
use super::{Reader, View, listener, secret};
use crate::address::Address;
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::model::{Acme, AcmeChallenge, AcmeKeyType, BackOff, ExternalAccount};
use crate::pattern::{self, HostPattern};
use crate::problem::Problem;
use crate::tree::{Entry, Node, Value};
use crate::vocabulary::{ACME, ACME_BACK_OFF, EXTERNAL_ACCOUNT, LISTENER, TLS};

const LETS_ENCRYPT: &str = "https://acme-v02.api.letsencrypt.org/directory";
const LETS_ENCRYPT_STAGING: &str = "https://acme-staging-v02.api.letsencrypt.org/directory";
const STORAGE: &str = "/var/lib/subak/acme";
const EXAMPLE: &str = "[acme]\naccept_terms = true\nemail = \"ops@example.com\"";
/// Where validators come to, as the RFCs have it.
const HTTP_PORT: u16 = 80;
const TLS_PORT: u16 = 443;

/// The names that a listener wants certificates for; each list is one certificate.
pub(super) fn names(reader: &mut Reader<'_>, tls: &View<'_>) -> Vec<Vec<Box<str>>> {
    let mut lists = Vec::new();
    for item in tls.items("acme") {
        let nodes = match &item.value {
            Value::Array(items) => items.as_slice(),
            _ => std::slice::from_ref(item),
        };
        let mut list: Vec<Box<str>> = Vec::new();
        for node in nodes {
            let name = reader.text(node, name);
            list.extend(name.filter(|name| !list.contains(name)));
        }
        if list.len() > defaults::MAX_ACME_NAMES {
            let message =
                format!("one certificate stands for at most {} names", defaults::MAX_ACME_NAMES);
            reader
                .push(Diagnostic::error(item.span, message).label("give some a list of their own"));
        }
        if nodes.is_empty() {
            let diagnostic = Diagnostic::error(item.span, "a certificate for no name");
            reader.push(diagnostic.label("expected at least one name"));
        }
        if !list.is_empty() {
            lists.push(list);
        }
    }
    lists
}

/// `acme`, with everything that only it and the listeners together can tell.
pub(super) fn read(
    reader: &mut Reader<'_>,
    root: &View<'_>,
    listeners: &[listener::Read],
) -> Option<Acme> {
    let wanting = wanting(root.entries_of("listener"));
    let count: usize =
        listeners.iter().flat_map(|read| &read.listener.tls).map(|tls| tls.acme.len()).sum();
    if let (Some(node), true) = (wanting.first(), count > defaults::MAX_ACME_CERTIFICATES) {
        let message = format!("at most {} certificates by ACME", defaults::MAX_ACME_CERTIFICATES);
        reader.push(Diagnostic::error(node.span, message));
    }
    let Some(entry) = root.entry("acme") else {
        if let Some(node) = wanting.first() {
            let diagnostic =
                Diagnostic::error(node.span, "nothing says who issues this certificate");
            reader.push(diagnostic.label("expected a table [acme]").help(EXAMPLE));
        }
        return None;
    };
    let view = View::of(&entry.node, &ACME);
    if !view.boolean("accept_terms", true) {
        let message = "the authority's terms of service are not accepted";
        let diagnostic = Diagnostic::error(entry.key_span, message);
        let help = "read them (the directory names their place as `termsOfService`) and say \
                    accept_terms = true";
        reader.push(diagnostic.label("expected `accept_terms = true`").help(help).derived());
    }
    if view.node("email").is_none() {
        let warning = Diagnostic::warning(entry.key_span, "the authority cannot write to anybody");
        let help = "email = \"ops@example.com\"";
        reader.push(warning.label("there is no `email`").help(help).derived());
    }
    if wanting.is_empty() {
        let warning = Diagnostic::warning(entry.key_span, "nobody wants a certificate by ACME");
        let help = "tls = { acme = [\"example.com\"] } in a listener";
        reader.push(warning.label("no listener has `tls.acme`").help(help).derived());
    }
    let directory = view
        .node("directory")
        .map_or(Some(LETS_ENCRYPT.into()), |node| reader.text(node, directory));
    let back_off = view.table("back_off", &ACME_BACK_OFF);
    let initial = back_off.duration("initial", defaults::ACME_BACK_OFF_INITIAL);
    let max = back_off.duration("max", defaults::ACME_BACK_OFF_MAX.max(initial));
    reader.at_most(&back_off, ("initial", initial), ("max", max));
    let storage = match view.node("storage") {
        Some(node) => reader.directory(node).join(view.string("storage").unwrap_or_default()),
        None => PathBuf::from(STORAGE),
    };
    Some(Acme {
        directory: directory?,
        email: view.node("email").and_then(|node| reader.text(node, email)),
        storage,
        ca: view
            .node("ca")
            .and_then(|node| pem(reader, node, Wanted::Certificate, "a certificate")),
        challenges: challenges(reader, &view, &wanting, listeners),
        key_type: match view.string("key_type") {
            Some("p384") => AcmeKeyType::P384,
            Some("rsa2048") => AcmeKeyType::Rsa2048,
            _ => AcmeKeyType::P256,
        },
        profile: view.string("profile").map(Box::from),
        external_account: view.node("external_account").and_then(|node| external(reader, node)),
        back_off: BackOff { initial, max: max.max(initial) },
    })
}

/// How names can be proven, by what the configuration says or by the ports of its listeners.
fn challenges(
    reader: &mut Reader<'_>,
    view: &View<'_>,
    wanting: &[&Node],
    listeners: &[listener::Read],
) -> Vec<AcmeChallenge> {
    let has = |port: u16, is_tls: bool| {
        listeners.iter().map(|read| &read.listener).filter(|one| one.tls.is_some() == is_tls).any(
            |listener| {
                listener.bind.iter().any(|bind| {
                    matches!(bind, Address::Inet(address) if port == 0 || address.port() == port)
                })
            },
        )
    };
    match view.string("challenge") {
        Some("tls-alpn-01") => return vec![AcmeChallenge::TlsAlpn01],
        Some("http-01") => {
            if let (Some(node), false) = (view.node("challenge"), has(0, false)) {
                let message = "http-01 needs a listener without TLS";
                let help = "[listener.http]\nbind = \"0.0.0.0:80\"";
                let diagnostic = Diagnostic::error(node.span, message).label("there is none");
                reader.push(diagnostic.help(help).derived());
            }
            return vec![AcmeChallenge::Http01];
        }
        _ => {}
    }
    let possible = [
        (has(HTTP_PORT, false), AcmeChallenge::Http01),
        (has(TLS_PORT, true), AcmeChallenge::TlsAlpn01),
    ];
    let possible: Vec<_> =
        possible.into_iter().filter_map(|(is, challenge)| is.then_some(challenge)).collect();
    if let (Some(node), true) = (wanting.first(), possible.is_empty()) {
        let message = "the authority cannot see that these names are yours";
        let label = "no listener is at port 80 without TLS, or at port 443 with it";
        let help = "bind one there; or, if such a port is forwarded to one of them, say which with \
                    acme.challenge = \"http-01\" or \"tls-alpn-01\"";
        reader.push(Diagnostic::error(node.span, message).label(label).help(help).derived());
    }
    possible
}

/// Where listeners list names.
fn wanting<'a>(listeners: &'a [Entry]) -> Vec<&'a Node> {
    let of = |entry: &'a Entry| {
        let tls = View::of(&entry.node, &LISTENER).node("tls")?;
        View::of(tls, &TLS).node("acme")
    };
    let is_some = |node: &&Node| matches!(&node.value, Value::Array(items) if !items.is_empty());
    listeners.iter().filter_map(of).filter(is_some).collect()
}

fn external(reader: &mut Reader<'_>, node: &Node) -> Option<ExternalAccount> {
    let view = View::of(node, &EXTERNAL_ACCOUNT);
    let (path, key) = view.node("key_file").and_then(|node| secret::base64_key(reader, node))?;
    Some(ExternalAccount::new(view.string("id")?.into(), path, key))
}

/// A name that an authority can be asked for.
fn name(text: &str) -> Result<Box<str>, Problem> {
    let expected = "expected a name such as \"example.com\"";
    if text.parse::<std::net::IpAddr>().is_ok() {
        let problem = Problem::expected("certificates by ACME are for names only", expected);
        return Err(problem.help("an address needs a certificate of your own: `certificates`"));
    }
    match pattern::host(text)? {
        HostPattern::Exact(name) if name.contains('.') => Ok(name.to_string().into()),
        HostPattern::Exact(_) => {
            let message = "no authority stands for a name without a dot";
            Err(Problem::expected(message, expected))
        }
        HostPattern::Suffix(_) => {
            let message =
                "a wildcard can only be proven by DNS (dns-01), which this version has not";
            let help = "list the names one by one, or let another program get the certificate and \
                        name its files under `certificates`";
            Err(Problem::expected(message, expected).help(help))
        }
    }
}

fn directory(text: &str) -> Result<Box<str>, Problem> {
    match text {
        "letsencrypt" => return Ok(LETS_ENCRYPT.into()),
        "letsencrypt-staging" => return Ok(LETS_ENCRYPT_STAGING.into()),
        _ => {}
    }
    let rest = text.strip_prefix("https://");
    let is_url = rest.is_some_and(|rest| {
        rest.bytes().all(|byte| byte.is_ascii_graphic()) && !rest.starts_with(['/', ':', '@'])
    });
    match is_url {
        true if rest != Some("") => Ok(text.into()),
        _ => {
            let expected = "expected \"letsencrypt\", \"letsencrypt-staging\" or a URL with https";
            Err(Problem::expected("this is no ACME directory", expected))
        }
    }
}

fn email(text: &str) -> Result<Box<str>, Problem> {
    let is_one = text.split_once('@').is_some_and(|(who, place)| {
        !who.is_empty() && !place.is_empty() && !place.contains('@') && !who.contains(':')
    });
    match is_one && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b',') {
        true => Ok(text.into()),
        false => {
            let expected = "expected one address such as \"ops@example.com\"";
            Err(Problem::expected("this is no address of mail", expected))
        }
    }
}
