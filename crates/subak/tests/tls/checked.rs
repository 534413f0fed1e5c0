//! What `subak check` sees of certificates before anybody is refused because of them.

use std::process::Command;

use crate::support::Authority;

/// What it says of a configuration, and its exit status.
fn checked(authority: &Authority, config: &str) -> (String, Option<i32>) {
    let file = authority.path("subak.toml");
    std::fs::write(&file, config).expect("write");
    let output = Command::new(env!("CARGO_BIN_EXE_subak")).args(["check", &file]).output();
    let output = output.expect("subak");
    let said = String::from_utf8_lossy(&output.stdout) + String::from_utf8_lossy(&output.stderr);
    (said.into_owned(), output.status.code())
}

/// `{ chain = …, key = … }` of this kind.
fn item(authority: &Authority, chain: &str, key: &str) -> String {
    let (chain, key) = (authority.path(chain), authority.path(key));
    format!("{{ chain = {chain:?}, key = {key:?} }}")
}

#[test]
fn hosts_of_routes_without_a_certificate_are_warned_of() {
    let authority = Authority::new();
    authority.sign("site", "*.example.com", 2020..4000);
    let config = |hosts: &str| {
        let certificate = item(&authority, "site.pem", "site.key");
        format!(
            "[listener.web]\nbind = \"127.0.0.1:8443\"\ntls = {{ certificates = [{certificate}] }}\n\
             [[listener.web.route]]\nhost = {hosts}\nrespond = {{ status = 200 }}\n"
        )
    };
    for hosts in ["\"a.example.com\"", "[\"a.example.com\", \"*.example.com\"]"] {
        let (said, status) = checked(&authority, &config(hosts));
        assert!(!said.contains("no certificate is for") && status == Some(0), "{hosts}: {said}");
    }
    for (hosts, told) in [
        ("\"example.com\"", "no certificate is for example.com, which routes ask for"),
        ("\"a.b.example.com\"", "no certificate is for a.b.example.com,"),
        ("[\"a.example.com\", \"*.other.test\"]", "no certificate is for *.other.test,"),
        ("[\"a.test\", \"b.test\", \"a.example.com\"]", "for a.test and b.test,"),
        ("[\"a.test\", \"b.test\", \"c.test\"]", "for a.test and 2 more hosts,"),
    ] {
        let (said, status) = checked(&authority, &config(hosts));
        assert!(said.contains(told) && status == Some(0), "{hosts}: {said}");
    }
}

#[test]
fn what_endpoints_would_refuse_is_found_before_they_do() {
    let authority = Authority::new();
    authority.sign("own", "client.internal", 2020..4000);
    authority.sign("other", "client.internal", 2020..4000);
    authority.sign("old", "client.internal", 2019..2020);
    let config = |pool: &str| {
        format!(
            "[listener.web]\nbind = \"127.0.0.1:8080\"\npool = \"app\"\n\
             [pool.app]\nendpoints = [\"10.0.0.2:8443\"]\n{pool}\n"
        )
    };
    let shows = |chain: &str, key: &str| {
        config(&format!("tls = {{ certificate = {} }}", item(&authority, chain, key)))
    };
    let (said, status) = checked(&authority, &shows("own.pem", "own.key"));
    assert_eq!(status, Some(0), "{said}");
    let (said, status) = checked(&authority, &shows("own.pem", "other.key"));
    assert!(said.contains("that is the key of another certificate"), "{said}");
    assert_eq!(status, Some(2), "{said}");
    let (said, status) = checked(&authority, &shows("old.pem", "old.key"));
    assert!(said.contains("the certificate has expired: 2020-01-01"), "{said}");
    assert!(said.contains("endpoints refuse it then") && status == Some(0), "{said}");

    let (said, status) = checked(&authority, &config("protocol = \"auto\""));
    assert!(said.contains("without TLS this is HTTP/1.1") && status == Some(0), "{said}");
    let (said, _) = checked(&authority, &config("protocol = \"auto\"\ntls = true"));
    assert!(!said.contains("without TLS"), "{said}");
}
