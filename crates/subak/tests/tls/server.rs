//! TLS to clients, seen by other people's programs: `openssl s_client` and `curl`.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use crate::programs::{Files, answering, certificate, curl, s_client, shows};
use crate::support::{Admin, Authority, Client, Subak, fresh_address, wait_until};
use rcgen::{CertificateParams, KeyPair, PKCS_ECDSA_P256_SHA256, PKCS_RSA_SHA256};

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
    let sealed =
        "-----BEGIN ENCRYPTED PRIVATE KEY-----\nAA==\n-----END ENCRYPTED PRIVATE KEY-----\n";
    files.write("site.key", sealed);
    files.write("site.pem", &second);
    subak.wait_for_log("protected by a passphrase");
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
fn what_has_expired_or_is_not_good_yet_replaces_nothing_that_holds() {
    let authority = Authority::new();
    authority.sign("site", "a.example", 2020..4000);
    let good = fs::read_to_string(authority.path("site.pem")).expect("read");
    let address = fresh_address();
    let (chain, key) = (authority.path("site.pem"), authority.path("site.key"));
    let tls = |extra: &str| {
        format!("tls = {{ {extra}certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}")
    };
    let subak = Subak::start_at(&answering(&address, &tls("")), &address);
    let serves = |one: &str| shows(&s_client(&address, &["-servername", "a.example"]), one);
    assert!(serves(&good));
    // By the files alone, and by a reload that makes the listener's TLS anew.
    authority.sign("site", "a.example", 2019..2020);
    subak.wait_for_log(
        "the new file is not used, the old one goes on: it has expired (2020-01-01 00:00 UTC)",
    );
    assert!(serves(&good));
    let reload = |extra: &str| {
        let before = subak.log().matches("configuration reloaded").count();
        subak.write_config(&answering(&address, &tls(extra)));
        subak.signal("HUP");
        wait_until("it is reloaded", || {
            subak.log().matches("configuration reloaded").count() > before
        });
    };
    reload("profile = \"modern\", ");
    assert!(serves(&good));
    let problem = || {
        let status = Admin::of(&subak).status();
        let problems = status["problems"].as_array().expect("a list");
        let about = problems.iter().find(|problem| problem["what"] == chain.as_str());
        about.map(|problem| problem["detail"].to_string()).unwrap_or_default()
    };
    wait_until("it is a problem still", || problem().contains("it has expired"));

    authority.sign("site", "a.example", 3000..4000);
    wait_until("the other is another problem", || problem().contains("it is good from"));
    reload("");
    assert!(serves(&good));
    wait_until("which stays", || problem().contains("it is good from"));

    authority.sign("site", "a.example", 2021..4000);
    let newer = fs::read_to_string(authority.path("site.pem")).expect("read");
    wait_until("a good one is served", || serves(&newer));
    wait_until("and the problem is over", || problem().is_empty());

    // At start there is nothing better.
    drop(subak);
    authority.sign("site", "a.example", 2019..2020);
    let expired = fs::read_to_string(authority.path("site.pem")).expect("read");
    let subak = Subak::start_at(&answering(&address, &tls("")), &address);
    assert!(shows(&s_client(&address, &["-servername", "a.example"]), &expired));
    subak.wait_for_log("has expired (2020-01-01 00:00 UTC): clients refuse it");
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
