//! TLS to clients, seen by other people's programs: `openssl s_client` and `curl`.

mod support;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256, SignatureAlgorithm,
};
use support::{Client, Endpoint, Subak, fresh_address, fresh_directory, wait_until};

/// Certificates in a directory, which goes with it.
struct Files {
    directory: PathBuf,
}

impl Files {
    fn new() -> Files {
        Files { directory: fresh_directory() }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        let new = self.path(&format!("{name}.new"));
        fs::write(&new, contents).expect("write");
        fs::rename(new, self.path(name)).expect("rename");
    }

    /// A certificate for these names that has signed itself; its PEM.
    fn make(&self, file: &str, names: &[&str], algorithm: &'static SignatureAlgorithm) -> String {
        let (chain, key) = certificate(names, algorithm);
        self.write(&format!("{file}.pem"), &chain);
        self.write(&format!("{file}.key"), key);
        chain
    }

    /// An authority of this name: `FILE.pem` and `FILE.key`.
    fn authority(&self, file: &str, name: &str) -> Issuer<'static, KeyPair> {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(Vec::new()).expect("parameters");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.distinguished_name.push(DnType::CommonName, name);
        self.write(&format!("{file}.key"), key.serialize_pem());
        self.write(&format!("{file}.pem"), params.self_signed(&key).expect("an authority").pem());
        Issuer::new(params, key)
    }

    /// A client's certificate that it has signed.
    fn client(&self, file: &str, issuer: &Issuer<'static, KeyPair>) {
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![format!("{file}.internal")]).expect("names");
        params.distinguished_name.push(DnType::CommonName, file);
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = params.signed_by(&key, issuer).expect("a certificate");
        self.write(&format!("{file}.pem"), certificate.pem());
        self.write(&format!("{file}.key"), key.serialize_pem());
    }

    /// The path of a file, as commands are given it.
    fn text(&self, name: &str) -> String {
        self.path(name).to_str().expect("text").to_owned()
    }

    /// As an item of `certificates`.
    fn item(&self, file: &str) -> String {
        let (chain, key) = (self.path(&format!("{file}.pem")), self.path(&format!("{file}.key")));
        format!("{{ chain = {chain:?}, key = {key:?} }}")
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.directory);
    }
}

fn certificate(names: &[&str], algorithm: &'static SignatureAlgorithm) -> (String, String) {
    let key = KeyPair::generate_for(algorithm).expect("a key");
    let names: Vec<_> = names.iter().map(|name| (*name).to_owned()).collect();
    let params = CertificateParams::new(names).expect("names");
    (params.self_signed(&key).expect("a certificate").pem(), key.serialize_pem())
}

/// A listener that answers everything itself.
fn answering(address: &str, listener: &str) -> String {
    format!(
        "workers = 2\n[listener.web]\nbind = {address:?}\n{listener}\n\
         [[listener.web.route]]\nrespond = {{ status = 200, body = \"hello\\n\" }}\n"
    )
}

/// What `openssl s_client` says; it sends one request.
fn s_client(address: &str, options: &[&str]) -> String {
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
fn shows(said: &str, pem: &str) -> bool {
    let flat = |text: &str| text.replace(['\r', '\n'], "");
    flat(said).contains(&flat(pem))
}

fn curl(options: &[&str]) -> String {
    let output = Command::new("curl")
        .args(["-s", "-S", "--max-time", "20"])
        .args(options)
        .output()
        .expect("curl");
    let text =
        [output.stdout, output.stderr].map(|text| String::from_utf8_lossy(&text).into_owned());
    text.concat()
}

#[test]
fn the_name_and_the_kind_of_key_choose_the_certificate() {
    let files = Files::new();
    let ecdsa = files.make("ecdsa", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let rsa = files.make("rsa", &["a.example"], &PKCS_RSA_SHA256);
    let wild = files.make("wild", &["*.example"], &PKCS_ECDSA_P256_SHA256);
    let all = ["ecdsa", "rsa", "wild"].map(|file| files.item(file)).join(", ");
    let address = fresh_address();
    let config = answering(&address, &format!("tls = {{ certificates = [{all}] }}"));
    let subak = Subak::start_at(&config, &address);
    let cases: [(&[&str], &str, &str); 8] = [
        (&["-servername", "a.example"], &ecdsa, "by name, the cheaper key"),
        (&["-servername", "A.Example"], &ecdsa, "in any case"),
        (&["-servername", "b.example"], &wild, "by wildcard"),
        (&["-servername", "c.b.example"], &ecdsa, "a wildcard is for one label"),
        (&["-servername", "other.test"], &ecdsa, "the default"),
        (&["-noservername"], &ecdsa, "no name"),
        (
            &["-servername", "a.example", "-tls1_3", "-sigalgs", "rsa_pss_rsae_sha256"],
            &rsa,
            "RSA alone",
        ),
        (
            &["-servername", "a.example", "-tls1_2", "-cipher", "ECDHE-RSA-AES128-GCM-SHA256"],
            &rsa,
            "RSA by cipher",
        ),
    ];
    for (options, expected, what) in cases {
        let said = s_client(&address, options);
        assert!(shows(&said, expected) && said.contains("HTTP/1.1 200"), "{what}\n{said}");
    }
    let refused = config.replace("tls = {", "tls = { unknown_name = \"refuse\", ");
    subak.write_config(&refused);
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded");
    for options in [&["-servername", "other.test"][..], &["-noservername"]] {
        let said = s_client(&address, options);
        assert!(said.contains("alert number 112") && !said.contains("HTTP/1.1 200"), "{said}");
    }
    assert!(shows(&s_client(&address, &["-servername", "b.example"]), &wild));
    subak.wait_for_log("no certificate for \"other.test\"");
}

#[test]
fn profiles_say_who_is_served() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let address = fresh_address();
    let item = files.item("site");
    let modern = format!("tls = {{ certificates = [{item}], profile = \"modern\" }}");
    let _subak = Subak::start_at(&answering(&address, &modern), &address);
    let old = s_client(&address, &["-tls1_2"]);
    assert!(old.contains("alert protocol version") && !old.contains("HTTP/1.1 200"), "{old}");
    let new = s_client(&address, &["-tls1_3", "-alpn", "h2,http/1.1"]);
    assert!(new.contains("ALPN protocol: h2"), "{new}");
}

#[test]
fn sessions_are_resumed_by_all_workers_and_over_a_reload_until_their_key_is_gone() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let address = fresh_address();
    let tls = |more: &str| {
        answering(&address, &format!("tls = {{ certificates = [{}]{more} }}", files.item("site")))
    };
    let subak = Subak::start_at(&tls(""), &address);
    for version in ["-tls1_2", "-tls1_3"] {
        let session = files.path("session");
        let session = session.to_str().expect("text");
        let said = s_client(&address, &[version, "-servername", "a.example", "-sess_out", session]);
        assert!(said.contains("New, TLSv1"), "{said}");
        for _ in 0..4 {
            let said =
                s_client(&address, &[version, "-servername", "a.example", "-sess_in", session]);
            assert!(said.contains("Reused, TLSv1") && said.contains("200 OK"), "{said}");
        }
        // Something else changes, the keys stay.
        subak.write_config(&tls("").replace("hello", "hello again"));
        subak.signal("HUP");
        wait_until("the reload", || {
            curl(&["-k", &format!("https://{address}/")]).contains("again")
        });
        let said = s_client(&address, &[version, "-servername", "a.example", "-sess_in", session]);
        assert!(said.contains("Reused, TLSv1"), "{said}");
        subak.write_config(&tls(""));
        subak.signal("HUP");
        wait_until("the reload back", || {
            !curl(&["-k", &format!("https://{address}/")]).contains("again")
        });
    }
    subak.write_config(&tls(", tickets = \"1s\""));
    subak.signal("HUP");
    let session = files.path("short");
    let session = session.to_str().expect("text");
    let resumes = || {
        let said =
            s_client(&address, &["-tls1_2", "-servername", "a.example", "-sess_in", session]);
        said.contains("Reused, TLSv1")
    };
    s_client(&address, &["-tls1_2", "-servername", "a.example", "-sess_out", session]);
    wait_until("the key is gone", || !resumes());
    subak.write_config(&tls(", tickets = false"));
    subak.signal("HUP");
    wait_until("no ticket is given", || {
        !s_client(&address, &["-tls1_2"]).contains("TLS session ticket:")
    });
}

#[test]
fn an_ocsp_response_is_stapled() {
    let data = Path::new(env!("CARGO_MANIFEST_DIR")).join("../certificate/testdata");
    let path = |name: &str| data.join(name);
    let (chain, key, ocsp) = (path("site.pem"), path("site.key"), path("site.ocsp"));
    let address = fresh_address();
    let tls = format!(
        "tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?}, ocsp = {ocsp:?} }}] }}"
    );
    let _subak = Subak::start_at(&answering(&address, &tls), &address);
    for version in ["-tls1_2", "-tls1_3"] {
        let said = s_client(&address, &[version, "-servername", "example.com", "-status"]);
        assert!(said.contains("Cert Status: good"), "{said}");
    }
}

#[test]
fn an_ocsp_response_that_is_renewed_is_stapled_and_one_that_is_not_good_is_not() {
    let files = Files::new();
    let authority = files.authority("ca", "sites");
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["a.example".into()]).expect("names");
    files.write("site.pem", params.signed_by(&key, &authority).expect("a certificate").pem());
    files.write("site.key", key.serialize_pem());
    let openssl = |arguments: &[&str]| {
        let done = Command::new("openssl").args(arguments).current_dir(&files.directory).output();
        let done = done.expect("openssl");
        assert!(done.status.success(), "{arguments:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).trim().to_owned()
    };
    let serial = openssl(&["x509", "-noout", "-serial", "-in", "site.pem"]);
    let serial = serial.strip_prefix("serial=").expect("a serial number");
    // What the authority keeps of the certificate, and what it says of it for so many days.
    let respond = |kept: &str, days: &str| {
        files.write("index.txt", format!("{kept}\t{serial}\tunknown\t/CN=site\n"));
        openssl(&[
            "ocsp",
            "-index",
            "index.txt",
            "-CA",
            "ca.pem",
            "-rsigner",
            "ca.pem",
            "-rkey",
            "ca.key",
            "-issuer",
            "ca.pem",
            "-cert",
            "site.pem",
            "-respout",
            "new.ocsp",
            "-noverify",
            "-ndays",
            days,
        ]);
        fs::rename(files.path("new.ocsp"), files.path("site.ocsp")).expect("rename");
    };
    let (valid, revoked) = ("V\t491231235959Z\t", "R\t491231235959Z\t240101000000Z");
    respond(valid, "3");
    let address = fresh_address();
    let (chain, key, ocsp) =
        (files.path("site.pem"), files.path("site.key"), files.path("site.ocsp"));
    let tls = format!(
        "tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?}, ocsp = {ocsp:?} }}] }}"
    );
    let subak = Subak::start_at(&answering(&address, &tls), &address);
    // Until when the response that is stapled holds.
    let stapled = || {
        let said = s_client(&address, &["-servername", "a.example", "-status"]);
        let until = said.lines().find_map(|line| line.trim().strip_prefix("Next Update: "));
        assert!(said.contains("200 OK"), "{said}");
        until.filter(|_| said.contains("Cert Status: good")).map(str::to_owned)
    };
    let first = stapled();
    assert!(first.is_some());
    respond(valid, "9");
    wait_until("the new response is stapled", || stapled().is_some_and(|_| stapled() != first));
    let second = stapled();
    files.write("site.ocsp", "no response");
    subak.wait_for_log("the new file is not used, the old one goes on");
    assert_eq!(stapled(), second);
    respond(revoked, "9");
    wait_until("nothing is stapled", || stapled().is_none());
    subak.wait_for_log("the OCSP response is stale or not good");
}

/// Clients that make a handshake for every request, until they are told to stop.
fn asking(address: &str) -> (Arc<AtomicBool>, thread::JoinHandle<(usize, Vec<String>)>) {
    let stop = Arc::new(AtomicBool::new(false));
    let (stopped, url) = (stop.clone(), format!("https://{address}/"));
    let asking = thread::spawn(move || {
        let (mut served, mut failed) = (0, Vec::new());
        while !stopped.load(Ordering::SeqCst) {
            match &*curl(&["-k", &url]) {
                "hello\n" => served += 1,
                said => failed.push(said.to_owned()),
            }
        }
        (served, failed)
    });
    (stop, asking)
}

#[test]
fn what_is_renewed_on_disk_is_served_and_what_is_wrong_is_not() {
    let files = Files::new();
    let first = files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let address = fresh_address();
    let tls = format!("tls = {{ certificates = [{}] }}", files.item("site"));
    let subak = Subak::start_at(&answering(&address, &tls), &address);
    let (stop, asking) = asking(&address);
    let served = || s_client(&address, &["-servername", "a.example"]);
    assert!(shows(&served(), &first));
    // The chain first, the key a while later, as some tools do it.
    let (second, key) = certificate(&["a.example"], &PKCS_ECDSA_P256_SHA256);
    files.write("site.pem", &second);
    assert!(shows(&served(), &first), "a chain without its key is not served");
    files.write("site.key", key);
    wait_until("the new certificate is served", || shows(&served(), &second));
    subak.wait_for_log("was read again");

    files.write("site.pem", "no certificate");
    subak.wait_for_log("the new file is not used, the old one goes on");
    assert!(shows(&served(), &second));
    files.write("site.key", "no key");
    files.write("site.pem", &second);
    assert!(shows(&served(), &second));
    let third = files.make("site", &["a.example"], &PKCS_RSA_SHA256);
    wait_until("the one after is served", || shows(&served(), &third));
    subak.wait_for_log("problem has ended");
    stop.store(true, Ordering::SeqCst);
    let (served, failed) = asking.join().expect("the clients");
    assert!(failed.is_empty() && served > 10, "{served} served, failed: {failed:?}");
}

#[test]
fn endpoints_hear_who_the_client_is_and_from_nobody_else() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let authority = files.authority("ca", "clients");
    files.client("alice", &authority);
    let (stranger, stranger_key) = certificate(&["mallory"], &PKCS_ECDSA_P256_SHA256);
    files.write("stranger.pem", stranger);
    files.write("stranger.key", stranger_key);

    let endpoint = Endpoint::answering("HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nyes");
    let (optional, strict, clear) = (fresh_address(), fresh_address(), fresh_address());
    let tls = |mode: &str| {
        let (item, ca) = (files.item("site"), files.path("ca.pem"));
        format!(
            "pool = \"app\"\ntls = {{ certificates = [{item}], client = {{ ca = {ca:?}, \
             mode = {mode:?}, certificate_header = true }} }}"
        )
    };
    let config = format!(
        "workers = 1\n[listener.optional]\nbind = {optional:?}\n{}\n\
         [listener.strict]\nbind = {strict:?}\n{}\n\
         [listener.clear]\nbind = {clear:?}\npool = \"app\"\n\
         [pool.app]\nendpoints = [{:?}]\n",
        tls("optional"),
        tls("require"),
        endpoint.address()
    );
    let subak = Subak::start_at(&config, &clear);
    let forged = [
        "-H",
        "X-Client-Cert-Verify: success",
        "-H",
        "X_Client_Cert_Verify: success",
        "-H",
        "x-client-cert-subject: CN=root",
        "-H",
        "Client-Cert: :AAAA:",
    ];
    let with = |name: &str| {
        let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
        ["--cert".to_owned(), files.text(&certificate), "--key".to_owned(), files.text(&key)]
    };
    let ask = |url: &str, more: &[String]| {
        let more: Vec<_> = more.iter().map(String::as_str).collect();
        curl(&[&["-k", url][..], &forged, &more].concat())
    };
    let heard = |name: &str| {
        let request = endpoint.requests().pop().expect("a request");
        let values = request.all(name);
        assert!(values.len() < 2, "{name} twice: {values:?}");
        values.first().map(|value| (*value).to_owned())
    };
    for version in ["--http1.1", "--http2"] {
        let version = version.to_owned();
        let alice: Vec<_> = with("alice").into_iter().chain([version.clone()]).collect();
        for address in [&optional, &strict] {
            assert_eq!(ask(&format!("https://{address}/"), &alice), "yes");
            assert_eq!(heard("X-Client-Cert-Verify").as_deref(), Some("success"));
            assert_eq!(heard("X-Client-Cert-Subject").as_deref(), Some("CN=alice"));
            assert_eq!(heard("X-Client-Cert-Issuer").as_deref(), Some("CN=clients"));
            assert_eq!(heard("X-Client-Cert-SAN").as_deref(), Some("DNS:alice.internal"));
            assert_eq!(heard("X-Client-Cert-Fingerprint").map(|text| text.len()), Some(64));
            assert!(heard("Client-Cert").is_some_and(|value| value.starts_with(":MII")));
            assert_eq!(heard("X_Client_Cert_Verify"), None);
        }
        assert_eq!(ask(&format!("https://{optional}/"), std::slice::from_ref(&version)), "yes");
        assert_eq!(heard("X-Client-Cert-Verify").as_deref(), Some("none"));
        assert_eq!(heard("X-Client-Cert-Subject").or(heard("Client-Cert")), None);
        let count = endpoint.requests().len();
        let said = ask(&format!("https://{strict}/"), std::slice::from_ref(&version));
        assert!(said.contains("curl: ("), "{said}");
        for address in [&optional, &strict] {
            let mallory: Vec<_> = with("stranger").into_iter().chain([version.clone()]).collect();
            let said = ask(&format!("https://{address}/"), &mallory);
            assert!(said.contains("curl: ("), "{said}");
        }
        assert_eq!(endpoint.requests().len(), count, "strangers got through");
    }
    // Who comes by another way is no better off.
    assert_eq!(ask(&format!("http://{}/", subak.address()), &[]), "yes");
    for name in
        ["X-Client-Cert-Verify", "X_Client_Cert_Verify", "X-Client-Cert-Subject", "Client-Cert"]
    {
        assert_eq!(heard(name), None, "{name}");
    }
    let mut client = subak.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nTrailer: Client-Cert\r\n\r\n\
         1\r\nx\r\n0\r\nClient-Cert: :AAAA:\r\nX-Other: kept\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    let received = endpoint.received().concat();
    let received = String::from_utf8_lossy(&received).to_ascii_lowercase();
    assert!(received.contains("x-other: kept") && !received.contains(":aaaa:"), "{received}");
}

#[test]
fn no_session_outlives_the_trust_in_who_signed_for_it() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    files.client("alice", &files.authority("ca", "first"));
    let other = files.authority("other", "second");
    files.client("bob", &other);
    files.authority("third", "third");
    let address = fresh_address();
    let config = |ca: &str| {
        let (item, ca) = (files.item("site"), files.path(ca));
        answering(
            &address,
            &format!("tls = {{ certificates = [{item}], client = {{ ca = {ca:?} }} }}"),
        )
    };
    let subak = Subak::start_at(&config("ca.pem"), &address);
    let versions = ["-tls1_2", "-tls1_3"];
    let session = |name: &str, version: &str| files.text(&format!("{name}{version}"));
    // Who shows a certificate gets a session.
    let begin = |name: &str| {
        for version in versions {
            let (certificate, key) = (format!("{name}.pem"), format!("{name}.key"));
            let shown = ["-cert", &files.text(&certificate), "-key", &files.text(&key)];
            let kept = ["-sess_out", &session(name, version)];
            let said = s_client(&address, &[&[version][..], &shown, &kept].concat());
            assert!(said.contains("200 OK"), "{said}");
        }
    };
    // Who has one needs no certificate as long as it counts.
    let goes_on = |name: &str| {
        versions.map(|version| {
            let said = s_client(&address, &[version, "-sess_in", &session(name, version)]);
            let (is_resumed, is_served) = (said.contains("Reused, TLSv1"), said.contains("200 OK"));
            assert_eq!(is_resumed, is_served, "{said}");
            is_served
        })
    };
    begin("alice");
    assert_eq!(goes_on("alice"), [true; 2]);
    files.write("ca.pem", fs::read(files.path("other.pem")).expect("the other authority"));
    subak.wait_for_log("who may sign for clients was read again");
    assert_eq!(goes_on("alice"), [false; 2], "her authority's file has another in it");
    begin("bob");
    assert_eq!(goes_on("bob"), [true; 2]);
    subak.write_config(&config("third.pem"));
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded");
    assert_eq!(goes_on("bob"), [false; 2], "the configuration names another authority");
    assert_eq!(goes_on("alice"), [false; 2]);
}

#[test]
fn who_comes_without_tls_is_told_so_or_sent_on() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let (clear, secure) = (fresh_address(), fresh_address());
    let config = format!(
        "{}\nhsts = {{ max_age = \"730d\", include_subdomains = true }}\n\
         [listener.clear]\nbind = {clear:?}\nredirect_to_https = 8443\n\
         [[listener.clear.route]]\npath = \"/.well-known/acme-challenge/\"\n\
         respond = {{ status = 200, body = \"token\" }}\n",
        answering(&secure, &format!("tls = {{ certificates = [{}] }}", files.item("site")))
            .replace("[[listener.web.route]]\nrespond", "route = [{ respond")
            .replace("\\n\" }\n", "\\n\" } }]"),
    );
    let subak = Subak::start_at(&config, &secure);
    let told = subak.client().get("/");
    assert_eq!(told.status, 400);
    assert!(told.text().contains("https://"), "{}", told.text());
    assert_eq!(told.field("Strict-Transport-Security"), None, "not without TLS");
    let mut preface = subak.client();
    preface.send("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
    assert_eq!(preface.answer().status, 400);
    let said = curl(&["-k", "-i", "--http1.1", &format!("https://{secure}/")]);
    assert!(
        said.to_ascii_lowercase()
            .contains("strict-transport-security: max-age=63072000; includesubdomains\r\n"),
        "{said}"
    );

    let mut client = Client::connect(&clear);
    client.send("POST /a?b=c HTTP/1.1\r\nHost: www.a.example:80\r\nContent-Length: 0\r\n\r\n");
    let sent_on = client.answer();
    assert_eq!(sent_on.status, 308);
    assert_eq!(sent_on.field("Location"), Some("https://www.a.example:8443/a?b=c"));
    let challenge = Client::connect(&clear).get("/.well-known/acme-challenge/x");
    assert_eq!((challenge.status, challenge.text()), (200, "token".into()));
    let mut nameless = Client::connect(&clear);
    nameless.send("GET / HTTP/1.0\r\n\r\n");
    assert_eq!(nameless.answer().status, 400);
}

#[test]
fn keys_are_in_no_log() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_RSA_SHA256);
    let address = fresh_address();
    let config =
        answering(&address, &format!("tls = {{ certificates = [{}] }}", files.item("site")));
    files.write("subak.toml", config);
    let log = fs::File::create(files.path("log")).expect("a log");
    let mut child = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["serve", "--log", "trace", "--config"])
        .arg(files.path("subak.toml"))
        .stderr(log)
        .spawn()
        .expect("subak");
    let url = format!("https://{address}/");
    wait_until("it serves", || curl(&["-k", &url]) == "hello\n");
    let key = fs::read_to_string(files.path("site.key")).expect("the key");
    files.write("site.key", "-----BEGIN PRIVATE KEY-----\nsecret0123\n-----END PRIVATE KEY-----\n");
    let logged = || fs::read_to_string(files.path("log")).expect("the log");
    wait_until("the bad key is noticed", || logged().contains("the new file is not used"));
    child.kill().expect("kill");
    child.wait().expect("wait");
    let logged = logged();
    let lines: Vec<_> = key.lines().filter(|line| !line.starts_with("---")).collect();
    assert!(lines.len() > 10 && logged.contains("serving workers="), "{logged}");
    for secret in lines.into_iter().chain(["secret0123", "PRIVATE KEY"]) {
        assert!(!logged.contains(secret), "the log has {secret}");
    }
}
