//! Certificates of clients: who is let in, what endpoints hear of them, and what ends when trust does.

use std::fs;
use std::thread;
use std::time::{Duration, SystemTime};

use crate::programs::{Files, answering, certificate, curl, s_client};
use crate::support::{Endpoint, Subak, fresh_address};
use rcgen::PKCS_ECDSA_P256_SHA256;

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
fn who_was_revoked_is_refused_as_soon_as_the_list_says_so() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let authority = files.authority("ca", "clients");
    for client in ["alice", "bob"] {
        files.client(client, &authority);
    }
    files.revoke("list.pem", &["alice"], &authority);
    let address = fresh_address();
    let (item, ca, list) = (files.item("site"), files.path("ca.pem"), files.path("list.pem"));
    let tls = format!(
        "tls = {{ certificates = [{item}], client = {{ ca = {ca:?}, crl = {list:?}, \
         mode = \"optional\" }} }}"
    );
    let subak = Subak::start_at(&answering(&address, &tls), &address);
    let is_served = |name: &str| {
        ["-tls1_2", "-tls1_3"].map(|version| {
            let [certificate, key] = ["pem", "key"].map(|end| files.text(&format!("{name}.{end}")));
            let said = s_client(&address, &[version, "-cert", &certificate, "-key", &key]);
            let is_served = said.contains("200 OK");
            assert!(is_served || said.contains("certificate revoked"), "{said}");
            is_served
        })
    };
    assert_eq!(is_served("alice"), [false; 2]);
    assert_eq!(is_served("bob"), [true; 2]);
    // Nobody needs a certificate here: hers is refused for what it is.
    assert!(s_client(&address, &[]).contains("200 OK"));
    files.revoke("list.pem", &["alice", "bob"], &authority);
    subak.wait_for_log("was read again");
    assert_eq!(is_served("bob"), [false; 2]);
}

#[test]
fn no_session_outlives_the_certificate_it_began_with() {
    let files = Files::new();
    files.make("site", &["a.example"], &PKCS_ECDSA_P256_SHA256);
    let authority = files.authority("ca", "first");
    let address = fresh_address();
    let (item, ca) = (files.item("site"), files.path("ca.pem"));
    let tls = format!("tls = {{ certificates = [{item}], client = {{ ca = {ca:?} }} }}");
    let _subak = Subak::start_at(&answering(&address, &tls), &address);
    let since = |time: SystemTime| time.duration_since(SystemTime::UNIX_EPOCH).expect("after 1970");
    // Long enough for two handshakes on a machine that is busy.
    let end = since(SystemTime::now()) + Duration::from_secs(8);
    files.client_until("alice", &authority, end);
    let versions = ["-tls1_2", "-tls1_3"];
    for version in versions {
        let shown = ["-cert", &files.text("alice.pem"), "-key", &files.text("alice.key")];
        let kept = ["-sess_out", &files.text(version)];
        let said = s_client(&address, &[&[version][..], &shown, &kept].concat());
        assert!(said.contains("200 OK"), "{said}");
    }
    let left = end + Duration::from_secs(2);
    thread::sleep(left.saturating_sub(since(SystemTime::now())));
    for version in versions {
        let said = s_client(&address, &[version, "-sess_in", &files.text(version)]);
        assert!(said.contains("Reused, TLSv1") && !said.contains("200 OK"), "{said}");
    }
}
