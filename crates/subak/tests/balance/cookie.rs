//! Clients that carry a cookie: who serves them, what they are told, and what endpoints see of it.

use std::net::TcpListener;
use std::path::Path;
use std::sync::mpsc;

use crate::support::http2::{
    h2_exchange, h2_over, prior_knowledge, run, self_made_certificate, tls,
};
use crate::support::{Answer, Client, Endpoint, Setup, Subak, fresh_address, ok, wait_until};
use bytes::Bytes;
use h2::client::SendRequest;
use http::Request;

const STICK: &str = "stick = { cookie = \"S\" }";

/// A request with this Cookie field on a connection of its own.
#[track_caller]
fn ask(subak: &Subak, cookie: &str) -> Answer {
    let mut client = subak.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
    client.answer()
}

/// Name and value of the cookie that an answer sets.
fn pair(answer: &Answer) -> Option<&str> {
    answer.field("set-cookie").and_then(|set| set.split(';').next())
}

/// A client that has been here once: who served it, and its cookie.
#[track_caller]
fn new_client(subak: &Subak) -> (String, String) {
    let answer = subak.client().get("/");
    let cookie = pair(&answer).expect("a cookie for a new client");
    (answer.text(), cookie.to_owned())
}

/// Whoever answers serves the client from now on, by its new cookie.
#[track_caller]
fn moves(subak: &Subak, cookie: &str) -> (String, String) {
    let answer = ask(subak, cookie);
    assert_eq!(answer.status, 200);
    let new = pair(&answer).expect("another cookie").to_owned();
    assert_ne!(new, cookie);
    (answer.text(), new)
}

#[track_caller]
fn assert_stays(subak: &Subak, cookie: &str, with: &str) {
    for _ in 0..4 {
        let answer = ask(subak, cookie);
        assert_eq!((answer.status, &*answer.text()), (200, with));
        assert_eq!(answer.field("set-cookie"), None, "it has the right one already");
    }
}

/// Reloads and waits until it is in force; `generation` counts from 1.
#[track_caller]
fn reload(subak: &Subak, setup: &Setup, generation: usize) {
    subak.write_config(&setup.text());
    subak.signal("HUP");
    subak.wait_for_log(&format!("configuration reloaded generation={generation}\n"));
}

/// An endpoint that answers a request when it is told to, and others at once.
fn gate(name: &str, gated: &'static str) -> (Endpoint, mpsc::Sender<()>) {
    let (open, opened) = mpsc::channel();
    let opened = std::sync::Mutex::new(opened);
    let answer = ok(name);
    let endpoint = Endpoint::scripted(move |served| {
        while let Some(request) = served.request() {
            if request.line.contains(gated) {
                opened.lock().expect("gate").recv().expect("opened");
            }
            served.send(&answer);
        }
    });
    (endpoint, open)
}

#[test]
fn a_client_comes_back_to_its_endpoint_and_is_told_once() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak = Setup::before(&[&a, &b]).workers(2).pool(STICK).start();
    let first = subak.client().get("/");
    let set = first.field("set-cookie").expect("a cookie");
    let (pair, attributes) = set.split_once(';').expect("attributes");
    assert_eq!(attributes, " Path=/; HttpOnly; SameSite=Lax");
    let value = pair.strip_prefix("S=").expect("its name");
    assert_eq!(value.len(), 33);
    assert!(value.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)));
    assert_eq!(first.text(), "a");
    assert_stays(&subak, pair, "a");
    let (other, cookie) = new_client(&subak);
    assert_eq!(other, "b");
    assert_stays(&subak, &cookie, "b");
}

#[test]
fn endpoints_see_the_other_cookies_as_they_were_and_ours_never() {
    let a = Endpoint::named("a");
    let subak = Setup::before(&[&a]).pool(STICK).start();
    let (_, cookie) = new_client(&subak);
    for (sent, seen) in [
        (format!("x=1;  y=\"2\" ;{cookie}; z"), vec!["x=1;  y=\"2\" ; z"]),
        (cookie.clone(), vec![]),
        ("S=forged; x=1".to_owned(), vec!["x=1"]),
        (format!("x=1\r\nCookie: {cookie}\r\ncookie: y=2"), vec!["x=1", "y=2"]),
        ("x=1 ;s=2; SS=3".to_owned(), vec!["x=1 ;s=2; SS=3"]),
    ] {
        ask(&subak, &sent);
        let requests = a.requests();
        assert_eq!(requests.last().expect("a request").all("cookie"), seen, "{sent}");
    }
}

#[test]
fn a_cookie_that_names_nobody_is_ignored_and_replaced() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak = Setup::before(&[&a, &b]).pool(STICK).start();
    let (_, good) = new_client(&subak);
    let other = Setup::before(&[&a, &b]).pool(STICK).start();
    let (_, foreign) = new_client(&other);
    let last = if good.ends_with('A') { 'B' } else { 'A' };
    let tampered = format!("{}{last}", &good[..good.len() - 1]);
    let cut = &good[..good.len() - 1];
    let long = format!("{good}A");
    let endless = format!("S={}", "x".repeat(8000));
    for (turn, cookie) in
        ["S=", "S", "S=b", &a.address(), &foreign, &tampered, cut, &long, &endless]
            .iter()
            .enumerate()
    {
        let answer = ask(&subak, cookie);
        // Balanced as if it were not there.
        assert_eq!((answer.status, &*answer.text()), (200, ["b", "a"][turn % 2]), "{cookie}");
        let new = pair(&answer).expect("a good one").to_owned();
        assert_stays(&subak, &new, ["b", "a"][turn % 2]);
    }
}

#[test]
fn the_cookie_of_one_pool_means_nothing_to_another() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let keys = crate::support::fresh_directory().join("keys");
    write_keys(&keys, &["a key that both pools have"]);
    let stick = format!("stick = {{ cookie = \"S\", keys_file = {keys:?} }}");
    let (listener, address) = (fresh_address(), [a.address(), b.address()]);
    // The same endpoints, and the same keys.
    let tail = format!(
        "[listener.more]\nbind = {listener:?}\npool = \"api\"\n\
         [pool.api]\nbalance = \"round_robin\"\nendpoints = {address:?}\n{stick}"
    );
    let subak = Setup::before(&[&a, &b]).pool(&stick).tail(&tail).start();
    let (_, cookie) = new_client(&subak);
    let mut client = Client::connect(&listener);
    for turn in 0..4 {
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
        let answer = client.answer();
        assert_eq!(answer.text(), ["a", "b"][turn % 2]);
        assert!(pair(&answer).is_some_and(|new| new != cookie));
    }
    let _ = std::fs::remove_dir_all(keys.parent().expect("its directory"));
}

#[test]
fn attributes_are_as_configured() {
    let a = Endpoint::named("a");
    for (stick, attributes) in [
        ("path = \"/app\", same_site = \"strict\"", " Path=/app; HttpOnly; SameSite=Strict"),
        (
            "secure = true, http_only = false, same_site = \"none\"",
            " Path=/; Secure; SameSite=None",
        ),
    ] {
        let stick = format!("stick = {{ cookie = \"S\", {stick} }}");
        let subak = Setup::before(&[&a]).pool(&stick).start();
        let answer = subak.client().get("/");
        let set = answer.field("set-cookie").expect("a cookie");
        assert_eq!(set.split_once(';').expect("attributes").1, attributes);
    }
}

#[test]
fn the_endpoints_own_cookies_and_header_edits_stay_beside_it() {
    let own =
        "HTTP/1.1 200 OK\r\nSet-Cookie: own=1\r\nSet-Cookie: S=own\r\nContent-Length: 0\r\n\r\n";
    let a = Endpoint::answering(own);
    let subak = Setup::before(&[&a]).pool(STICK).start();
    let sets = subak.client().get("/").all("set-cookie").len();
    assert_eq!(sets, 3);
    // Edits are for what endpoints say.
    let edits = "response_headers = { remove = [\"Set-Cookie\"] }";
    let subak = Setup::before(&[&a]).pool(STICK).listener(edits).start();
    let answer = subak.client().get("/");
    assert_eq!(answer.all("set-cookie").len(), 1);
    assert!(pair(&answer).is_some_and(|cookie| cookie.len() == 2 + 33));
}

/// A request with these Cookie fields over HTTP/2; who answered, and the cookie it sets.
async fn h2_ask(
    send: &SendRequest<Bytes>,
    uri: &str,
    cookies: &[&str],
) -> (String, Option<String>) {
    let request =
        cookies.iter().fold(Request::get(uri), |request, cookie| request.header("cookie", *cookie));
    let request = request.body(()).expect("request");
    let (answer, body) = h2_exchange(send.clone(), request, None).await;
    let set = answer.headers().get("set-cookie").map(|set| set.to_str().expect("text").to_owned());
    (body, set)
}

#[test]
fn over_http2_the_cookie_works_however_the_client_splits_it() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let subak = Setup::before(&[&a, &b]).pool(STICK).start();
    prior_knowledge(&subak, async |send| {
        let uri = "http://example.com/";
        let (by, set) = h2_ask(&send, uri, &[]).await;
        assert_eq!(by, "a");
        let set = set.expect("a cookie");
        let pair = set.split(';').next().expect("a pair");
        for cookies in [vec![pair], vec!["x=1", pair, "y=2"], vec![&*format!("x=1; {pair}; y=2")]] {
            assert_eq!(h2_ask(&send, uri, &cookies).await, ("a".to_owned(), None));
        }
        assert_eq!(h2_ask(&send, uri, &["S=x"]).await.0, "b");
    });
    let seen = |requests: Vec<crate::support::Message>| -> Vec<Option<String>> {
        requests.iter().map(|request| request.field("cookie").map(str::to_owned)).collect()
    };
    let both = Some("x=1; y=2".to_owned());
    assert_eq!(seen(a.requests()), [None, None, both.clone(), both]);
    assert_eq!(seen(b.requests()), [None]);
}

#[test]
fn the_cookie_is_secure_where_the_client_came_by_tls() {
    let a = Endpoint::named("a");
    let directory = crate::support::fresh_directory();
    let trusted = self_made_certificate(&directory);
    let plain = fresh_address();
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    let subak = Setup::before(&[&a])
        .listener(&format!("tls = {{ certificates = [{{ chain = {chain:?}, key = {key:?} }}] }}"))
        .pool(STICK)
        .tail(&format!("[listener.plain]\nbind = {plain:?}\npool = \"app\""))
        .start();
    let address = subak.socket_address();
    let set = run(tokio::task::LocalSet::new().run_until(async {
        let send = h2_over(tls(address, trusted, &["h2"]).await).await;
        h2_ask(&send, "https://localhost/", &[]).await.1.expect("a cookie")
    }));
    let (pair, attributes) = set.split_once(';').expect("attributes");
    assert_eq!(attributes, " Path=/; Secure; HttpOnly; SameSite=Lax");
    let mut client = Client::connect(&plain);
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\nCookie: {pair}\r\n\r\n"));
    assert_eq!(client.answer().field("set-cookie"), None, "the same endpoint, the same cookie");
    let answer = Client::connect(&plain).get("/");
    assert!(!answer.field("set-cookie").expect("a cookie").contains("Secure"));
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_retried_request_names_the_endpoint_that_answered() {
    let resetting = Endpoint::scripted(|served| {
        served.request();
        served.reset();
    });
    let good = Endpoint::named("good");
    let subak = Setup::before(&[&resetting, &good]).pool(STICK).start();
    let (by, cookie) = new_client(&subak);
    assert_eq!((&*by, resetting.requests().len()), ("good", 1));
    assert_stays(&subak, &cookie, "good");
    assert_eq!(resetting.requests().len(), 1);
}

#[test]
fn a_client_whose_endpoint_breaks_off_moves_to_the_one_that_answered() {
    // Answers well at first, and resets every connection from then on.
    let failing = Endpoint::scripted(|served| {
        if served.number == 0 {
            served.request();
            served.send("HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhome");
        } else {
            served.request();
            served.reset();
        }
    });
    let good = Endpoint::named("good");
    let subak = Setup::before(&[&failing, &good]).pool(STICK).start();
    let (by, cookie) = new_client(&subak);
    assert_eq!(by, "home");
    let (by, cookie) = moves(&subak, &cookie);
    assert_eq!(by, "good");
    assert_stays(&subak, &cookie, "good");
}

#[test]
fn a_client_of_an_endpoint_that_refuses_moves_and_does_not_move_back() {
    let home = Endpoint::answering_once(
        "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 4\r\n\r\nhome",
    );
    let address = home.address();
    let good = Endpoint::named("good");
    let subak = Setup::before(&[&home, &good])
        .pool(STICK)
        .pool("back_off = { initial = \"200ms\", max = \"200ms\" }")
        .start();
    let (by, cookie) = new_client(&subak);
    assert_eq!(by, "home");
    drop(home);
    wait_until("nobody listens", || TcpListener::bind(&*address).is_ok());
    let (by, new) = moves(&subak, &cookie);
    assert_eq!(by, "good");
    let risen = Endpoint::on_inet(&address, |served| {
        while served.request().is_some() {
            served.send(ok("risen"));
        }
    });
    wait_until("it is asked again", || subak.get("/").1 == "risen");
    assert_stays(&subak, &new, "good");
    drop(risen);
}

#[test]
fn a_draining_endpoint_keeps_its_clients_and_one_in_maintenance_loses_them() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let address = fresh_address();
    let setup = |state: &str| {
        let endpoints = [format!("{}{state}", a.address()), b.address()];
        Setup::before_addresses(endpoints).bind(&address).pool(STICK)
    };
    let subak = setup("").start();
    let (by, cookie) = new_client(&subak);
    assert_eq!(by, "a");
    for (generation, state) in [(2, " state=drain"), (3, " weight=0")] {
        reload(&subak, &setup(state), generation);
        assert_stays(&subak, &cookie, "a");
        for _ in 0..3 {
            assert_eq!(new_client(&subak).0, "b", "{state}: no new clients");
        }
    }
    reload(&subak, &setup(" state=maintenance"), 4);
    let (by, new) = moves(&subak, &cookie);
    assert_eq!(by, "b");
    reload(&subak, &setup(""), 5);
    assert_stays(&subak, &new, "b");
    // The old cookie is still good for whoever has kept it.
    assert_stays(&subak, &cookie, "a");
}

#[test]
fn a_client_of_an_ejected_endpoint_moves() {
    let broken = "HTTP/1.1 500 Oh\r\nContent-Length: 6\r\n\r\nbroken";
    let (a, b) = (Endpoint::answering(broken), Endpoint::named("b"));
    let subak = Setup::before(&[&a, &b])
        .pool(STICK)
        .pool("eject = { consecutive = 3, share = 0, latency = false, base = \"1m\" }")
        .start();
    let (_, cookie) = new_client(&subak);
    // Its endpoint answers, however badly: the client stays.
    for _ in 0..2 {
        let answer = ask(&subak, &cookie);
        assert_eq!((answer.status, answer.field("set-cookie")), (500, None));
    }
    let (by, new) = moves(&subak, &cookie);
    assert_eq!(by, "b");
    assert_stays(&subak, &new, "b");
}

#[test]
fn a_full_endpoint_lends_its_client_to_another_for_one_request() {
    let (home, open) = gate("home", "/slow");
    let other = Endpoint::named("other");
    let subak = Setup::before(&[&home, &other]).pool(STICK).pool("max_in_flight = 1").start();
    let (by, cookie) = new_client(&subak);
    assert_eq!(by, "home");
    let mut slow = subak.client();
    slow.send(format!("GET /slow HTTP/1.1\r\nHost: a\r\nCookie: {cookie}\r\n\r\n"));
    home.wait_for_requests(2);
    let answer = ask(&subak, &cookie);
    assert_eq!((&*answer.text(), answer.field("set-cookie")), ("other", None));
    open.send(()).expect("gate");
    assert_eq!(slow.answer().text(), "home");
    wait_until("it has settled", || ask(&subak, &cookie).text() == "home");
    assert_stays(&subak, &cookie, "home");
}

#[test]
fn a_client_keeps_its_endpoint_when_the_list_is_turned_round() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let address = fresh_address();
    let subak = Setup::before(&[&a, &b]).bind(&address).pool(STICK).start();
    let (by, cookie) = new_client(&subak);
    assert_eq!(by, "a");
    reload(&subak, &Setup::before(&[&b, &a]).bind(&address).pool(STICK), 2);
    assert_stays(&subak, &cookie, "a");
    reload(&subak, &Setup::before(&[&b]).bind(&address).pool(STICK), 3);
    let (by, cookie) = moves(&subak, &cookie);
    assert_eq!(by, "b");
    assert_stays(&subak, &cookie, "b");
}

/// A file that only its owner may read.
#[track_caller]
fn write_keys(file: &Path, keys: &[&str]) {
    std::fs::write(file, keys.join("\n")).expect("write");
    let own = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(file, own).expect("make it secret");
}

#[test]
fn keys_are_rotated_without_losing_a_client() {
    const OLD: &str = "000102030405060708090a0b0c0d0e0f";
    const NEW: &str = "# of this year\nanother key that is long enough";
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let directory = crate::support::fresh_directory();
    let file = directory.join("keys");
    let stick = format!("stick = {{ cookie = \"S\", keys_file = {file:?} }}");
    let setup = Setup::before(&[&a, &b]).pool(&stick);
    write_keys(&file, &[OLD]);
    let subak = setup.start();
    let (by, old) = new_client(&subak);
    assert_eq!(by, "a");
    write_keys(&file, &[NEW, OLD]);
    reload(&subak, &setup, 2);
    // The same endpoint, by a cookie that is signed with the new key.
    let (by, new) = moves(&subak, &old);
    assert_eq!(by, "a");
    assert_stays(&subak, &new, "a");
    write_keys(&file, &[NEW]);
    reload(&subak, &setup, 3);
    assert_stays(&subak, &new, "a");
    assert!(pair(&ask(&subak, &old)).is_some(), "the old key is not believed any more");
    // Another Subak with the same keys knows the client.
    drop(subak);
    let subak = setup.start();
    assert_stays(&subak, &new, "a");
    assert!(!subak.log().contains("keys_file"), "nothing to warn of");
    // A file without a key changes nothing.
    write_keys(&file, &["short"]);
    subak.signal("HUP");
    subak.wait_for_log("keys");
    assert_stays(&subak, &new, "a");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn without_a_file_of_keys_a_reload_keeps_clients_and_a_restart_forgets_them() {
    let (a, b) = (Endpoint::named("a"), Endpoint::named("b"));
    let setup = Setup::before(&[&a, &b]).pool(STICK);
    let subak = setup.start();
    let (_, cookie) = new_client(&subak);
    reload(&subak, &setup, 2);
    assert_stays(&subak, &cookie, "a");
    assert_eq!(subak.log().matches("keys_file").count(), 1, "{}", subak.log());
    drop(subak);
    let subak = setup.start();
    assert!(pair(&ask(&subak, &cookie)).is_some_and(|new| new != cookie));
}

#[test]
fn a_tunnel_is_opened_to_the_clients_endpoint_and_tells_a_new_client() {
    let tunnel = |name: &'static str| {
        Endpoint::scripted(move |served| {
            if served.request().is_some() {
                served.send(format!(
                    "HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\n\
                     Upgrade: websocket\r\nX-Name: {name}\r\n\r\n"
                ));
                served.read_to_end();
            }
        })
    };
    let (a, b) = (tunnel("a"), tunnel("b"));
    let subak = Setup::before(&[&a, &b]).pool(STICK).start();
    let upgrade = |cookie: &str| {
        let mut client = subak.client();
        client.send(format!(
            "GET / HTTP/1.1\r\nHost: a\r\nConnection: upgrade\r\nUpgrade: websocket\r\n{cookie}\r\n"
        ));
        let answer = client.head();
        assert_eq!(answer.status, 101);
        answer
    };
    let first = upgrade("");
    let cookie = format!("Cookie: {}\r\n", pair(&first).expect("a cookie"));
    assert_eq!(first.field("x-name"), Some("a"));
    for _ in 0..3 {
        let answer = upgrade(&cookie);
        assert_eq!((answer.field("x-name"), answer.field("set-cookie")), (Some("a"), None));
    }
}

#[test]
fn when_nobody_can_serve_a_sticky_client_it_is_told_as_everybody() {
    let a = Endpoint::named("a");
    let address = fresh_address();
    let setup = |state: &str| {
        let endpoints = [format!("{}{state}", a.address())];
        Setup::before_addresses(endpoints).bind(&address).pool(STICK)
    };
    let subak = setup("").start();
    let (_, cookie) = new_client(&subak);
    reload(&subak, &setup(" state=maintenance"), 2);
    let answer = ask(&subak, &cookie);
    assert_eq!((answer.status, answer.field("set-cookie")), (503, None));
    reload(&subak, &setup(""), 3);
    assert_stays(&subak, &cookie, "a");
}
