//! Certificates by themselves, from Pebble: Let's Encrypt's own small authority, made to test clients.
//!
//! Runs where `pebble` and `pebble-challtestsrv` are found, on PATH or in the directory that PEBBLE
//! names; elsewhere it says so and tests nothing.

use std::fs;
use std::io::{BufRead, BufReader};
use std::net::{IpAddr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;

use crate::support::http2::run;
use crate::support::{Admin, Subak, fresh_address, fresh_directory, wait_until};
use rcgen::{CertificateParams, KeyPair};
use serde_json::{Value, json};
use subak_certificate::Anybody;
use tokio_rustls::TlsConnector;
use tokio_rustls::rustls::pki_types::pem::PemObject;
use tokio_rustls::rustls::pki_types::{CertificateDer, ServerName};
use tokio_rustls::rustls::{ClientConfig, crypto::aws_lc_rs};

/// Where Pebble asks, at whatever address DNS tells it.
const HTTP_PORT: u16 = 8080;
const TLS_PORT: u16 = 8443;

/// What Pebble is made to do.
struct Mood {
    /// Of all requests, so many in a hundred are refused for their nonce.
    refused_nonces: u32,
    /// How long certificates hold.
    validity_s: u32,
    wants_external_account: bool,
}

const USUAL: Mood =
    Mood { refused_nonces: 5, validity_s: 7_776_000, wants_external_account: false };
/// The key of the external account `kid-1`.
const EXTERNAL_KEY: &str = "zWNDZM6eQGHWpSRTPal5eIUYFTu7EajVIoguysqZ9wG44nMEtx3MUAsUDkMTQ12W";

struct Pebble {
    children: Vec<Child>,
    directory: PathBuf,
    address: String,
}

/// The programs; none: they are not here.
fn programs() -> Option<[PathBuf; 2]> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let named = std::env::var_os("PEBBLE").map(PathBuf::from);
    let places: Vec<_> = named.into_iter().chain(std::env::split_paths(&path)).collect();
    let find = |name: &str| places.iter().map(|place| place.join(name)).find(|file| file.is_file());
    let found = find("pebble").zip(find("pebble-challtestsrv")).map(|(one, other)| [one, other]);
    if found.is_none() {
        eprintln!("SKIPPED: pebble and pebble-challtestsrv are not here (PATH, PEBBLE)");
    }
    found
}

impl Pebble {
    /// One that finds every name at `host`.
    fn start([pebble, dns]: &[PathBuf; 2], host: IpAddr, mood: &Mood) -> Pebble {
        let directory = fresh_directory();
        let (address, management, resolver) = (fresh_address(), fresh_address(), fresh_address());
        let ip = address.parse::<SocketAddr>().expect("an address").ip();
        let key = KeyPair::generate().expect("key");
        let params = CertificateParams::new(vec![ip.to_string()]).expect("parameters");
        let certificate = params.self_signed(&key).expect("certificate");
        fs::write(directory.join("ca.pem"), certificate.pem()).expect("write");
        fs::write(directory.join("key.pem"), key.serialize_pem()).expect("write");
        let config = json!({ "pebble": {
            "listenAddress": address,
            "managementListenAddress": management,
            "certificate": directory.join("ca.pem"),
            "privateKey": directory.join("key.pem"),
            "httpPort": HTTP_PORT,
            "tlsPort": TLS_PORT,
            "externalAccountBindingRequired": mood.wants_external_account,
            "externalAccountMACKeys": { "kid-1": EXTERNAL_KEY },
            "retryAfter": { "authz": 1, "order": 1 },
            "profiles": { "default": { "description": "", "validityPeriod": mood.validity_s } },
        }});
        let file = directory.join("pebble.json");
        fs::write(&file, config.to_string()).expect("write");
        let mut resolving = Command::new(dns);
        resolving.args(["-http01", "", "-https01", "", "-tlsalpn01", "", "-doh", ""]);
        resolving.args(["-management", &fresh_address(), "-dnsserver", &resolver]);
        resolving.args(["-defaultIPv4", &host.to_string(), "-defaultIPv6", ""]);
        let mut serving = Command::new(pebble);
        serving.arg("-config").arg(&file).args(["-dnsserver", &resolver]);
        serving.env("PEBBLE_VA_NOSLEEP", "1").env("PEBBLE_AUTHZREUSE", "0");
        serving.env("PEBBLE_WFE_NONCEREJECT", mood.refused_nonces.to_string());
        let children = vec![
            started(&mut resolving, "Starting management server"),
            started(&mut serving, "Listening on"),
        ];
        Pebble { children, directory, address }
    }

    /// `[acme]` for it, with this storage.
    fn acme(&self, storage: &Path, challenge: &str, more: &str) -> String {
        let ca = self.directory.join("ca.pem");
        format!(
            "[acme]\naccept_terms = true\nemail = \"ops@example.test\"\n\
             directory = \"https://{}/dir\"\nca = {ca:?}\nstorage = {storage:?}\n\
             challenge = {challenge:?}\nback_off = {{ initial = \"1s\", max = \"2s\" }}\n{more}\n",
            self.address
        )
    }
}

/// Starts a program and waits until it says so.
fn started(command: &mut Command, ready: &str) -> Child {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .expect("start");
    let mut lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
    let is_ready = lines.any(|line| line.is_ok_and(|line| line.contains(ready)));
    assert!(is_ready, "{command:?} has ended");
    // Its pipe has to be read; it ends with the program.
    std::thread::spawn(move || lines.for_each(drop));
    child
}

impl Drop for Pebble {
    fn drop(&mut self) {
        for child in &mut self.children {
            let _ = child.kill();
            let _ = child.wait();
        }
        let _ = fs::remove_dir_all(&self.directory);
    }
}

/// A front that wants a certificate for `names`, in cleartext and by TLS at `host`.
fn config(host: IpAddr, names: &str, acme: &str) -> String {
    format!(
        "workers = 1\nadmin = {{ socket = \"{}/admin.sock\" }}\n{acme}\n\
         [listener.http]\nbind = \"{host}:{HTTP_PORT}\"\n\
         route = [{{ respond = {{ status = 200, body = \"plain\" }} }}]\n\
         [listener.https]\nbind = \"{host}:{TLS_PORT}\"\ntls = {{ acme = {names} }}\n\
         route = [{{ respond = {{ status = 200, body = \"secret\" }} }}]\n",
        fresh_directory().display()
    )
}

fn fresh_host() -> IpAddr {
    fresh_address().parse::<SocketAddr>().expect("an address").ip()
}

fn start(host: IpAddr, config: &str) -> Subak {
    Subak::start_at(config, &format!("{host}:{HTTP_PORT}"))
}

/// What is known of the only certificate.
fn told(subak: &Subak) -> Value {
    Admin::of(subak).status()["acme"][0].clone()
}

fn wait_for(subak: &Subak, state: &str) -> Value {
    wait_until(&format!("the certificate is {state}"), || told(subak)["state"] == *state);
    told(subak)
}

/// The certificate that a client gets to see, whoever has signed it.
fn shown(host: IpAddr, name: &str) -> CertificateDer<'static> {
    let provider = Arc::new(aws_lc_rs::default_provider());
    let anybody = Arc::new(Anybody::new(&provider));
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .expect("versions")
        .dangerous()
        .with_custom_certificate_verifier(anybody)
        .with_no_client_auth();
    let name = ServerName::try_from(name.to_owned()).expect("a name");
    run(async move {
        let tcp = tokio::net::TcpStream::connect((host, TLS_PORT)).await.expect("connect");
        let tls = TlsConnector::from(Arc::new(config)).connect(name, tcp).await;
        let tls = tls.expect("handshake");
        tls.get_ref().1.peer_certificates().expect("certificates")[0].clone()
    })
}

fn holds(certificate: &CertificateDer<'_>, text: &str) -> bool {
    certificate.windows(text.len()).any(|part| part == text.as_bytes())
}

fn mode(path: &Path) -> u32 {
    use std::os::unix::fs::PermissionsExt;
    fs::metadata(path).expect("a file").permissions().mode() & 0o777
}

#[test]
fn http_01_gets_a_certificate_for_several_names_in_spite_of_refused_nonces() {
    let Some(programs) = programs() else { return };
    let host = fresh_host();
    let mood = Mood { refused_nonces: 50, ..USUAL };
    let pebble = Pebble::start(&programs, host, &mood);
    let storage = fresh_directory().join("acme");
    let acme = pebble.acme(&storage, "http-01", "");
    let text = config(host, "[[\"a.example.test\", \"b.example.test\"]]", &acme);
    let subak = start(host, &text);
    let told = wait_for(&subak, "issued");
    assert!(told["issuer"].as_str().is_some_and(|issuer| issuer.contains("Pebble")), "{told}");
    assert_eq!((&told["failures"], &told["problem"]), (&json!(0), &Value::Null), "{told}");
    for name in ["a.example.test", "B.example.test"] {
        wait_until("workers show it", || holds(&shown(host, name), "Pebble Intermediate"));
    }
    assert_eq!(subak.get("/.well-known/acme-challenge/x"), (200, "plain".into()), "nobody asks");
    // Kept for the next process: as a whole, for its owner, and taken over at once.
    let file = PathBuf::from(told["file"].as_str().expect("a path"));
    assert_eq!((mode(&file), mode(&storage)), (0o600, 0o700));
    let kept = CertificateDer::from_pem_file(&file).expect("PEM");
    let before = shown(host, "a.example.test");
    assert_eq!(kept, before);
    drop(subak);
    let subak = start(host, &text);
    assert_eq!(shown(host, "a.example.test"), before);
    let metrics = Admin::of(&subak).ask("GET", "/metrics", "").text();
    assert!(
        metrics.contains("subak_acme_orders_total{name=\"a.example.test\",result=\"issued\"} 0")
    );
    assert!(metrics.contains("subak_acme_placeholder{name=\"a.example.test\"} 0"), "{metrics}");
    assert!(metrics.contains("subak_acme_certificate_end_timestamp_seconds"), "{metrics}");
    let _ = fs::remove_dir_all(storage);
}

#[test]
fn tls_alpn_01_gets_one_and_it_is_renewed_before_it_expires() {
    let Some(programs) = programs() else { return };
    let host = fresh_host();
    let pebble = Pebble::start(&programs, host, &Mood { validity_s: 16, ..USUAL });
    let storage = fresh_directory();
    let acme = pebble.acme(&storage, "tls-alpn-01", "");
    let subak = start(host, &config(host, "[\"a.example.test\"]", &acme));
    wait_for(&subak, "issued");
    wait_until("workers show it", || holds(&shown(host, "a.example.test"), "Pebble Intermediate"));
    let first = shown(host, "a.example.test");
    wait_until("the authority has said when to renew", || told(&subak)["by_authority"] == true);
    wait_until("another one is in force", || shown(host, "a.example.test") != first);
    let told = told(&subak);
    assert_eq!((&told["state"], &told["failures"]), (&json!("issued"), &json!(0)), "{told}");
    assert_eq!(told["issued"], 2, "{told}");
    let _ = fs::remove_dir_all(storage);
}

#[test]
fn an_order_that_fails_is_a_problem_until_it_succeeds() {
    let Some(programs) = programs() else { return };
    let host = fresh_host();
    // Every name leads to somewhere else, where nobody answers.
    let pebble = Pebble::start(&programs, fresh_host(), &USUAL);
    let storage = fresh_directory();
    let acme = pebble.acme(&storage, "http-01", "");
    let names = "[\"a.example.test\"]";
    let subak = start(host, &config(host, names, &acme));
    assert!(holds(&shown(host, "a.example.test"), "Subak placeholder"));
    wait_until("the order has failed", || told(&subak)["failures"] == 1);
    let status = Admin::of(&subak).status();
    let problem = &status["problems"][0];
    assert_eq!(problem["kind"], "certificate", "{status}");
    assert_eq!(problem["what"], "acme a.example.test", "{status}");
    let detail = problem["detail"].as_str().expect("words");
    assert!(detail.contains("a.example.test: ") && detail.contains("(connection)"), "{detail}");
    assert!(detail.contains("placeholder"), "{detail}");
    assert!(holds(&shown(host, "a.example.test"), "Subak placeholder"));
    // Another authority, who finds it: a reload takes it up without a restart.
    let pebble = Pebble::start(&programs, host, &USUAL);
    let admin = Admin::of(&subak).socket().clone();
    let text = config(host, names, &pebble.acme(&storage, "http-01", ""));
    let place = text.lines().find(|line| line.starts_with("admin")).expect("admin").to_owned();
    subak.write_config(&text.replace(&place, &format!("admin = {{ socket = {admin:?} }}")));
    subak.signal("HUP");
    wait_for(&subak, "issued");
    assert_eq!(Admin::of(&subak).status()["problems"], json!([]));
    wait_until("workers show it", || holds(&shown(host, "a.example.test"), "Pebble Intermediate"));
    let _ = fs::remove_dir_all(storage);
}

#[test]
fn of_two_processes_on_one_storage_one_orders_and_either_answers() {
    let Some(programs) = programs() else { return };
    let (asked, other) = (fresh_host(), fresh_host());
    let external = fresh_directory().join("eab.key");
    fs::write(&external, EXTERNAL_KEY).expect("write");
    let mood = Mood { wants_external_account: true, ..USUAL };
    // Whoever orders, the authority asks the first one.
    let pebble = Pebble::start(&programs, asked, &mood);
    let storage = fresh_directory();
    let more = format!("external_account = {{ id = \"kid-1\", key_file = {external:?} }}");
    let acme = pebble.acme(&storage, "tls-alpn-01", &more);
    let names = "[\"a.example.test\"]";
    // Nobody is there to answer: the order of the other fails.
    let orders = start(other, &config(other, names, &acme));
    wait_until("it has failed", || told(&orders)["failures"].as_u64().is_some_and(|n| n > 0));
    // The first one knows of that, and is much more patient.
    let patient = acme.replace("initial = \"1s\", max = \"2s\"", "initial = \"1h\", max = \"1h\"");
    let answers = start(asked, &config(asked, names, &patient));
    wait_for(&orders, "issued");
    wait_for(&answers, "issued");
    let issued = [&orders, &answers].map(|subak| told(subak)["issued"].clone());
    assert_eq!(issued, [json!(1), json!(0)]);
    wait_until("both show it", || {
        let shown = [asked, other].map(|host| shown(host, "a.example.test"));
        holds(&shown[0], "Pebble Intermediate") && shown[0] == shown[1]
    });
    let count = |part: &str| fs::read_dir(storage.join(part)).expect("a directory").count();
    assert_eq!((count("accounts"), count("certificates")), (1, 1));
    assert_eq!(count("challenges/tls-alpn-01"), 0, "nothing waits any more");
    let _ = fs::remove_dir_all(storage);
}
