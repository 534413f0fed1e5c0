//! `tls` of a listener.

use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

use subak_certificate::{
    About, Certificate as Loaded, CertificateError, OcspStatus, Wanted, is_covered_by, pem_fault,
};

use super::{Reader, View, acme};
use crate::defaults;
use crate::diagnostic::Diagnostic;
use crate::model::{
    Certificate, ClientVerification, PemFile, Route, Tls, TlsProfile, TlsVersion, UnknownName,
};
use crate::pattern::HostPattern;
use crate::problem::Problem;
use crate::tree::{Node, Value};
use crate::vocabulary::{CERTIFICATE, CLIENT, TLS};

pub(super) fn read(reader: &mut Reader<'_>, node: &Node) -> Tls {
    let view = View::of(node, &TLS);
    let mut certificates: Vec<Certificate> = Vec::new();
    for item in view.items("certificates") {
        let Some(one) = certificate(reader, item) else { continue };
        twice(reader, item, &one, &certificates);
        certificates.push(one);
    }
    if let Some(node) = view.node("certificates")
        && view.items("certificates").is_empty()
    {
        let diagnostic = Diagnostic::error(node.span, "there is no certificate");
        reader.push(diagnostic.label("expected { chain = \"site.pem\", key = \"site.key\" }"));
    }
    let profile = match view.string("profile") {
        Some("modern") => TlsProfile::Modern,
        _ => TlsProfile::Intermediate,
    };
    Tls {
        certificates,
        acme: acme::names(reader, &view),
        unknown_name: match view.string("unknown_name") {
            Some("refuse") => UnknownName::Refuse,
            _ => UnknownName::Default,
        },
        profile,
        min_version: min_version(reader, &view, profile),
        tickets: match view.node("tickets").map(|node| &node.value) {
            Some(Value::Boolean(false)) => None,
            _ => Some(view.duration("tickets", defaults::TICKET_PERIOD)),
        },
        client: view.node("client").and_then(|node| client(reader, node)),
    }
}

fn min_version(reader: &mut Reader<'_>, view: &View<'_>, profile: TlsProfile) -> TlsVersion {
    let of_profile = match profile {
        TlsProfile::Modern => TlsVersion::Tls13,
        TlsProfile::Intermediate => TlsVersion::Tls12,
    };
    let version = match view.string("min_version") {
        Some("1.2") => TlsVersion::Tls12,
        Some("1.3") => TlsVersion::Tls13,
        _ => of_profile,
    };
    if let Some(node) = view.node("min_version").filter(|_| version < of_profile) {
        let diagnostic = Diagnostic::error(node.span, "the profile \"modern\" is TLS 1.3 alone");
        reader.push(diagnostic.label("expected \"1.3\"").help("profile = \"intermediate\""));
    }
    version.max(of_profile)
}

fn certificate(reader: &mut Reader<'_>, item: &Node) -> Option<Certificate> {
    let view = View::of(item, &CERTIFICATE);
    let chain = view.node("chain");
    let chain = chain.and_then(|node| pem(reader, node, Wanted::Certificate, "a certificate"));
    let key = view.node("key");
    let key = key.and_then(|node| pem(reader, node, Wanted::PrivateKey, "a private key"));
    if let (Some(node), Some(file)) = (view.node("key"), &key) {
        guarded(reader, node, &file.path);
    }
    let ocsp = match view.node("ocsp") {
        None => None,
        Some(node) => {
            let (path, contents) = reader.file(node, defaults::MAX_PEM_BYTES)?;
            Some(PemFile { path, contents })
        }
    };
    let (chain, key) = chain.zip(key)?;
    let response = ocsp.as_ref().map(PemFile::pem);
    let loaded = Loaded::load(&chain.pem(), &key.pem(), response.as_ref());
    let at = item_of((&view, &["ocsp", "key", "chain"]), item, &loaded);
    let loaded = reader.take(&at, loaded.map_err(problem))?;
    let now = seconds(reader.files.now());
    if let Some(node) = view.node("chain") {
        let help = "renew it; a running Subak takes the new file by itself";
        expiry(reader, node, loaded.about(), ("clients refuse it then", help));
    }
    if let (Some(node), Some(ocsp)) = (view.node("ocsp"), loaded.ocsp()) {
        let message = match ocsp.status {
            OcspStatus::Revoked => Some("it says that the certificate is revoked"),
            OcspStatus::Unknown => Some("it says that the authority does not know the certificate"),
            OcspStatus::Good if !ocsp.holds(now) => Some("it is not in force now"),
            OcspStatus::Good => None,
        };
        if let Some(message) = message {
            let diagnostic = Diagnostic::warning(node.span, message);
            reader.push(diagnostic.label("not stapled").help("fetch another one: openssl ocsp"));
        }
    }
    Some(Certificate { chain, key, ocsp, loaded })
}

/// Where an error stands: at the file that it is about, which one of these names.
pub(super) fn item_of(
    (view, files): (&View<'_>, &[&str]),
    item: &Node,
    loaded: &Result<Loaded, CertificateError>,
) -> Node {
    let Err(error) = loaded else { return item.clone() };
    let names = |name: &&str| {
        matches!(view.node(name).map(|node| &node.value),
            Some(Value::String(text)) if error.path.ends_with(text.trim_start_matches("./")))
    };
    let at = files.iter().copied().find(names).and_then(|name| view.node(name));
    at.unwrap_or(item).clone()
}

pub(super) fn problem(error: CertificateError) -> Problem {
    Problem::expected(error.to_string(), "expected a chain and its own key, both PEM")
}

/// Another certificate of the same kind of key is there for some of its names.
fn twice(reader: &mut Reader<'_>, item: &Node, one: &Certificate, before: &[Certificate]) {
    let about = one.loaded.about();
    let known = |name: &str| {
        let is_known = |other: &Certificate| {
            let other = other.loaded.about();
            other.key == about.key && other.names.iter().any(|one| **one == *name)
        };
        before.iter().any(is_known)
    };
    if let Some(name) = about.names.iter().find(|name| known(name)) {
        let message = format!("there is a certificate for {name} already");
        let warning = Diagnostic::warning(item.span, message);
        let label = format!(
            "this one, with a key of the same kind ({}), is not used for it",
            about.key.name()
        );
        reader.push(warning.label(label));
    }
}

/// Warns of a certificate that is refused now, or will be soon; says by whom, and what to do.
pub(super) fn expiry(
    reader: &mut Reader<'_>,
    node: &Node,
    about: &About,
    (label, help): (&'static str, &'static str),
) {
    let now = seconds(reader.files.now());
    let message = if about.validity.to < now {
        format!("the certificate has expired: {}", date(about.validity.to))
    } else if about.validity.from > now {
        format!("the certificate is not good before {}", date(about.validity.from))
    } else if about.validity.to < now + defaults::EXPIRES_SOON.as_secs().cast_signed() {
        format!("the certificate expires soon: {}", date(about.validity.to))
    } else {
        return;
    };
    reader.push(Diagnostic::warning(node.span, message).label(label).help(help));
}

/// Hosts of routes that no certificate is for: their clients are shown another one, and refuse it.
pub(super) fn hosts(reader: &mut Reader<'_>, node: &Node, tls: &Tls, routes: &[Route]) {
    let view = View::of(node, &TLS);
    let of_files = tls.certificates.iter().flat_map(|one| &one.loaded.about().names);
    let names: Vec<&str> = of_files.chain(tls.acme.iter().flatten()).map(|name| &**name).collect();
    let is_covered = |host: &HostPattern| match host {
        HostPattern::Exact(host) => is_covered_by(host, names.iter().copied()),
        // Which of them clients ask for is not known: one certificate for any is enough.
        HostPattern::Suffix(suffix) => names.iter().any(|name| name.ends_with(&**suffix)),
    };
    let mut bare: Vec<String> = Vec::new();
    for host in routes.iter().flat_map(|route| &route.hosts).filter(|host| !is_covered(host)) {
        let shown = match host {
            HostPattern::Exact(host) => host.to_string(),
            HostPattern::Suffix(suffix) => format!("*{suffix}"),
        };
        if !bare.contains(&shown) {
            bare.push(shown);
        }
    }
    // Without a certificate there is an error already.
    let (Some(node), [first, others @ ..]) = (view.node("certificates"), &*bare) else { return };
    if names.is_empty() {
        return;
    }
    let more = match others {
        [] => String::new(),
        [other] => format!(" and {other}"),
        others => format!(" and {} more hosts", others.len()),
    };
    let message = format!("no certificate is for {first}{more}, which routes ask for");
    let label = match tls.unknown_name {
        UnknownName::Default => "whoever asks for it gets the first of these and refuses it",
        UnknownName::Refuse => "whoever asks for it is refused",
    };
    reader.push(Diagnostic::warning(node.span, message).label(label));
}

fn date(seconds: i64) -> String {
    let since = std::time::Duration::from_secs(u64::try_from(seconds).unwrap_or_default());
    subak_certificate::date(UNIX_EPOCH + since)
}

fn seconds(time: SystemTime) -> i64 {
    let since = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    i64::try_from(since.as_secs()).unwrap_or(i64::MAX)
}

/// Warns of a key that everybody on the machine may read.
fn guarded(reader: &mut Reader<'_>, node: &Node, path: &Path) {
    if reader.files.open_to_all(path) {
        let message = format!("{} may be read by everybody on this machine", path.display());
        let warning = Diagnostic::warning(node.span, message).label("this is a private key");
        reader.push(warning.help(format!("chmod 640 {}", path.display())));
    }
}

fn client(reader: &mut Reader<'_>, node: &Node) -> Option<ClientVerification> {
    let view = View::of(node, &CLIENT);
    let ca = view.node("ca").and_then(|node| {
        let file = pem(reader, node, Wanted::Certificate, "a certificate")?;
        let read = Loaded::authorities(&file.pem()).map(|_| file);
        reader.take(node, read.map_err(problem))
    });
    let crl = match view.node("crl") {
        None => None,
        Some(node) => {
            let file = pem(reader, node, Wanted::RevocationList, "a list of revoked certificates")?;
            let read = Loaded::revoked(&file.pem()).map(|_| file);
            Some(reader.take(node, read.map_err(problem))?)
        }
    };
    Some(ClientVerification {
        ca: ca?,
        crl,
        is_required: view.string("mode") != Some("optional"),
        headers: view.boolean("headers", true),
        certificate_header: view.boolean("certificate_header", false),
    })
}

/// A PEM file that has a section of what is wanted.
pub(super) fn pem(
    reader: &mut Reader<'_>,
    node: &Node,
    wanted: Wanted,
    what: &str,
) -> Option<PemFile> {
    let (path, contents) = reader.file(node, defaults::MAX_PEM_BYTES)?;
    let text = String::from_utf8_lossy(&contents);
    let found = text.lines().any(|line| {
        let name =
            line.trim().strip_prefix("-----BEGIN ").and_then(|line| line.strip_suffix("-----"));
        name.is_some_and(|name| name.ends_with(wanted.label()))
    });
    if !found {
        let fault = pem_fault(&contents, wanted);
        let fault = fault.unwrap_or_else(|| format!("holds no {}", &what[2..]));
        let problem = Problem::expected(
            format!("{} {fault}", path.display()),
            format!("expected {what} in PEM"),
        );
        reader.take::<()>(node, Err(problem));
        return None;
    }
    Some(PemFile { path, contents })
}
