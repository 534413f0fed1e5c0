//! TLS to endpoints: who is trusted, which name has to be there, what is said of those who are refused.
//! The endpoint is nginx, with certificates of every kind.

use std::process::Command;

use crate::support::{Admin, Authority, Endpoint, Nginx, Setup, Subak, fresh_address, wait_until};

/// Kinds of certificates, and what is said of each.
const REFUSED: &[(&str, &str)] = &[
    ("expired", "its certificate has expired: Wed, 01 Jan 2020 00:00:00 GMT; renew"),
    ("early", "its certificate is not yet valid: it is from Wed, 01 Jan 3000 00:00:00 GMT"),
    ("selfsigned", "its certificate is self-signed and not trusted"),
    ("stranger", "its certificate is signed by nobody who is trusted"),
    ("othername", "its certificate is not for app.internal but for other.internal"),
    ("cleartext", "what it sends is not TLS"),
];

/// nginx with one server for each kind, and where each listens.
struct Served {
    authority: Authority,
    places: Vec<(&'static str, String)>,
    _nginx: Nginx,
}

impl Served {
    fn start() -> Option<Served> {
        let authority = Authority::new();
        let stranger = Authority::new();
        authority.sign("good", "app.internal", 2020..4000);
        authority.sign("client", "client.internal", 2020..4000);
        authority.sign("expired", "app.internal", 2010..2020);
        authority.sign("early", "app.internal", 3000..4000);
        authority.sign("othername", "other.internal", 2020..4000);
        authority.sign_itself("selfsigned", "app.internal");
        stranger.sign("stranger", "app.internal", 2020..4000);
        for file in ["stranger.pem", "stranger.key"] {
            std::fs::copy(stranger.path(file), authority.path(file)).expect("copied");
        }
        let kinds = ["good", "short", "picky"].into_iter();
        let kinds = kinds.chain(REFUSED.iter().map(|(kind, _)| *kind));
        let places: Vec<_> = kinds.map(|kind| (kind, fresh_address())).collect();
        let said = "return 200 \"$ssl_server_name $ssl_session_reused $connection_requests \
                    $ssl_client_s_dn\";";
        let server = |(kind, address): &(&str, String)| {
            let certificate = match *kind {
                "short" | "picky" => "good",
                kind => kind,
            };
            let more = match *kind {
                "short" => "keepalive_timeout 0;",
                "picky" => "ssl_verify_client on; ssl_client_certificate ca.pem;",
                _ => "",
            };
            match *kind {
                "cleartext" => format!("server {{ listen {address}; {said} }}\n"),
                _ => format!(
                    "server {{ listen {address} ssl; ssl_certificate {certificate}.pem;\n\
                     ssl_certificate_key {certificate}.key; {more}\n{said} }}\n"
                ),
            }
        };
        let servers: String = places.iter().map(server).collect();
        let nginx = Nginx::start(authority.directory(), &servers, &places[0].1)?;
        Some(Served { authority, places, _nginx: nginx })
    }

    fn place(&self, kind: &str) -> String {
        let place = self.places.iter().find(|(one, _)| *one == kind);
        place.expect("a kind").1.clone()
    }

    /// What a pool says to trust the authority.
    fn tls(&self, more: &str) -> String {
        format!(
            "tls = {{ ca = {:?}, server_name = \"app.internal\"{more} }}",
            self.authority.path("ca.pem")
        )
    }
}

fn explained(subak: &Subak) -> String {
    let admin = Admin::of(subak);
    let output = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["explain", "--socket", admin.socket().to_str().expect("a path")])
        .arg(format!("http://{}/", subak.address()))
        .env("NO_COLOR", "1")
        .output()
        .expect("subak explain");
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn an_endpoint_is_asked_by_its_name_its_connections_are_kept_and_sessions_go_on() {
    let Some(served) = Served::start() else { return };
    let subak = Setup::before_addresses([served.place("good")]).pool(&served.tls("")).start();
    for number in 1..=3 {
        let (status, body) = subak.get("/");
        assert_eq!(
            (status, &*body),
            (200, &*format!("app.internal . {number} ")),
            "{}",
            subak.log()
        );
    }
    // Each request on a connection of its own: the second goes on with the session of the first.
    let subak = Setup::before_addresses([served.place("short")]).pool(&served.tls("")).start();
    assert_eq!(subak.get("/").1, "app.internal . 1 ");
    for _ in 0..3 {
        assert_eq!(subak.get("/").1, "app.internal r 1 ");
    }
}

#[test]
fn an_endpoint_that_cannot_show_who_it_is_gets_no_request_and_the_log_and_explain_say_why() {
    let Some(served) = Served::start() else { return };
    for (kind, reason) in REFUSED {
        let subak = Setup::before_addresses([served.place(kind)])
            .pool(&served.tls(""))
            .pool("back_off = \"1m\"")
            .start();
        let (status, body) = subak.get("/");
        assert_eq!(status, 502, "{kind}: {body}");
        subak.wait_for_log("no TLS with an endpoint");
        let log = subak.log();
        let line = log
            .lines()
            .find(|line| line.contains("WARN") && line.contains("no TLS with an endpoint"));
        let line = line.unwrap_or_else(|| panic!("{kind}: {log}"));
        assert!(line.contains(reason) && line.contains(&served.place(kind)), "{kind}: {line}");
        let explained = explained(&subak);
        let why = reason.split(';').next().expect("a reason");
        assert!(explained.contains(&format!("TLS: {why}")), "{kind}: {explained}");
        let status = Admin::of(&subak).endpoint(&served.place(kind));
        assert_eq!(status["refusal"], format!("TLS: {why}"), "{status:#}");
    }
}

#[test]
fn a_request_that_finds_no_tls_is_served_by_another_endpoint_whatever_its_method() {
    let Some(served) = Served::start() else { return };
    let subak = Setup::before_addresses([served.place("expired"), served.place("good")])
        .pool(&served.tls(""))
        .pool("retry = { budget = 0, min_per_second = 0 }")
        .start();
    let mut client = subak.client();
    for _ in 0..4 {
        client.send("POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 2\r\n\r\nhi");
        assert_eq!(client.answer().status, 200, "{}", subak.log());
    }
}

#[test]
fn who_is_trusted_by_its_own_certificate_by_nothing_at_all_or_by_ours_is_served() {
    let Some(served) = Served::start() else { return };
    let path = |file: &str| served.authority.path(file);
    let own =
        format!("tls = {{ ca = {:?}, server_name = \"app.internal\" }}", path("selfsigned.pem"));
    let subak = Setup::before_addresses([served.place("selfsigned")]).pool(&own).start();
    assert_eq!(subak.get("/").0, 200, "{}", subak.log());

    let subak =
        Setup::before_addresses([served.place("expired")]).pool("tls = { verify = false }").start();
    assert_eq!(subak.get("/").0, 200, "{}", subak.log());
    assert!(subak.log().contains("certificates are not verified"), "{}", subak.log());
    let problems = Admin::of(&subak).status()["problems"].to_string();
    assert!(problems.contains("certificate") && problems.contains("pool app"), "{problems}");

    let shown = format!(
        ", certificate = {{ chain = {:?}, key = {:?} }}",
        path("client.pem"),
        path("client.key")
    );
    let subak = Setup::before_addresses([served.place("picky")]).pool(&served.tls(&shown)).start();
    assert_eq!(subak.get("/").1, "app.internal . 1 CN=client.internal");
    // nginx answers by itself where a certificate is missing.
    let subak = Setup::before_addresses([served.place("picky")]).pool(&served.tls("")).start();
    assert_eq!(subak.get("/").0, 400);
}

#[test]
fn probes_go_by_tls_as_requests_do_and_say_why_an_endpoint_is_down() {
    let Some(served) = Served::start() else { return };
    let subak = Setup::before_addresses([served.place("expired"), served.place("good")])
        .pool(&served.tls(""))
        .pool("health = { http = \"/\", interval = \"1s\", fast_interval = \"500ms\" }")
        .start();
    let admin = Admin::of(&subak);
    wait_until("both are known", || {
        let expired = admin.endpoint(&served.place("expired"))["reason"].to_string();
        let good = admin.endpoint(&served.place("good"));
        expired.contains("TLS handshake failed: its certificate has expired")
            && good["probe"].to_string().contains("passed")
            && good["state"] == "ready"
    });
    assert_eq!(admin.endpoint(&served.place("expired"))["state"], "down");

    // A check may have another name, or none.
    let subak = Setup::before_addresses([served.place("othername")])
        .pool(&served.tls(""))
        .pool(
            "health = { http = \"/\", server_name = \"other.internal\", interval = \"1s\", \
             fast_interval = \"500ms\" }",
        )
        .start();
    let admin = Admin::of(&subak);
    wait_until("the check passes", || {
        admin.endpoint(&served.place("othername"))["probe"].to_string().contains("passed")
    });
    assert_eq!(subak.get("/").0, 502);
}

#[test]
fn a_reload_that_wants_tls_otherwise_leaves_no_connection_in_use() {
    let Some(served) = Served::start() else { return };
    let setup = |tls: &str| {
        Setup::before_addresses([served.place("expired")]).bind("127.0.0.1:0").pool(tls)
    };
    // The address stays: the configuration is the same but for `tls`.
    let address = fresh_address();
    let text = |tls: &str| setup(tls).bind(&address).text();
    let unverified = text("tls = { verify = false }");
    let subak = Subak::start_at(&unverified, &address);
    assert_eq!(subak.get("/").0, 200);
    subak.write_config(&text(&served.tls("")));
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded");
    assert_eq!(subak.get("/").0, 502, "a connection that nobody has verified was used");
}

#[test]
fn an_endpoint_that_does_not_end_its_handshake_is_late_to_connect() {
    let endpoint = Endpoint::scripted(|served| {
        served.read_to_end();
    });
    let subak = Setup::before(&[&endpoint])
        .pool("tls = { verify = false }\ntimeouts = { connect = \"200ms\" }")
        .start();
    assert_eq!(subak.get("/").0, 504);
    subak.wait_for_log("no handshake in time");
}
