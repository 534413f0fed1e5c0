//! Fields by which a client could make an endpoint read another request than Subak does: other spellings
//! of a name, fields that `Connection` takes out, and trailers.

use crate::support::{Client, Endpoint, Message, Setup, Subak};

/// Before an endpoint, with these keys of the listener and of the pool, and with tables behind them.
fn before(listener: &str, pool: &str, tail: &str) -> (Subak, Endpoint) {
    let endpoint = Endpoint::named("pool");
    let subak = Setup::before(&[&endpoint]).listener(listener).pool(pool).tail(tail).start();
    (subak, endpoint)
}

/// What the endpoint sees of a request with these fields.
#[track_caller]
fn seen(subak: &Subak, endpoint: &Endpoint, fields: &str) -> Message {
    assert_eq!(status(subak, fields), 200, "{fields}");
    endpoint.requests().pop().expect("a request")
}

#[track_caller]
fn status(subak: &Subak, fields: &str) -> u16 {
    let mut client = subak.client();
    client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.answer().status
}

#[track_caller]
fn assert_names(request: &Message, absent: &[&str], present: &[(&str, &str)]) {
    for name in absent {
        assert_eq!(request.all(name), [""; 0], "{name}");
    }
    for (name, value) in present {
        assert_eq!(request.all(name), [*value], "{name}");
    }
}

#[test]
fn connection_names_nothing_that_decides_or_goes_from_end_to_end() {
    let route = "[[listener.web.route]]\nheader = { X-Role = \"admin\" }\nrespond = 403\n";
    let (subak, endpoint) = before(
        "rate = { rate = \"1000/s\", key = \"header:X-Api-Key\" }",
        "balance = { algorithm = \"hash\", key = \"header:X-Tenant\" }",
        route,
    );
    for name in [
        "X-Api-Key",
        "x-api-key",
        "X-Tenant",
        "X-Role",
        "Cookie",
        "Authorization",
        "Host",
        "Content-Type",
        "Content-Disposition",
        "Forwarded",
        "X-Forwarded-For",
        "X-Forwarded-Proto",
        "X-Forwarded-User",
        "X-Client-Cert-Verify",
        "Range",
        "If-Unmodified-Since",
        "Accept-Language",
        "Cache-Control",
        "Date",
    ] {
        for connection in
            [name.to_owned(), format!("close, {name}"), format!("close\r\nConnection: ,{name},")]
        {
            let fields =
                format!("Connection: {connection}\r\n{name}: a\r\n").replace("Host: a\r\n", "");
            assert_eq!(status(&subak, &fields), 400, "{fields}");
        }
    }
    assert_eq!(endpoint.requests().len(), 0);
    let fields = "Connection: keep-alive, X-Hop\r\nX-Hop: 1\r\nX-Api-Key: k\r\nX-Tenant: t\r\n";
    let request = seen(&subak, &endpoint, fields);
    assert_names(&request, &["x-hop", "connection"], &[("x-api-key", "k"), ("x-tenant", "t")]);
}

#[test]
fn every_spelling_of_a_removed_or_set_field_is_removed() {
    let (subak, endpoint) = before(
        "request_headers = { remove = [\"X-Internal-Auth\"] }",
        "request_headers = { set = { X-Role = \"guest\", Via_Proxy = \"yes\" }, add = { X-Seen = \"1\" } }",
        "",
    );
    let request = seen(
        &subak,
        &endpoint,
        "X-Internal_Auth: 1\r\nX_INTERNAL_AUTH: 2\r\nX.Internal.Auth: 3\r\nx-internal-auth: 4\r\n\
         X~Internal+Auth: 5\r\nX_Role: admin\r\nx.role: admin\r\nX-Role: admin\r\nVia-Proxy: no\r\n\
         X-Internal-Author: 6\r\nX_Other: 7\r\nX.Other: 8\r\nX_Seen: 9\r\n",
    );
    let names: Vec<_> = request.fields.iter().map(|(name, _)| name.as_str()).collect();
    let odd: Vec<_> = names.iter().filter(|name| name.contains("internal")).collect();
    assert_eq!(odd, [&"x-internal-author"], "{names:?}");
    assert_names(
        &request,
        &["x_role", "x.role", "via-proxy"],
        &[("x-role", "guest"), ("via_proxy", "yes")],
    );
    // Nobody has said anything of these.
    assert_names(
        &request,
        &[],
        &[("x_other", "7"), ("x.other", "8"), ("x_seen", "9"), ("x-seen", "1")],
    );
}

#[test]
fn other_spellings_of_what_proxies_say_reach_no_endpoint_from_anybody() {
    let (subak, endpoint) = before("trusted_proxies = [\"127.0.0.77\"]", "", "");
    let fields = "X.Forwarded.For: 6.6.6.6\r\nX_Real.IP: 6.6.6.6\r\nX-Forwarded~Proto: https\r\n\
                  X.Forwarded-Port: 443\r\nTrue.Client_IP: 6.6.6.6\r\nX.Client.Cert.Verify: success\r\n\
                  Client.Cert: x\r\nContent.Length: 7\r\n";
    for from in ["127.0.0.1", "127.0.0.77"] {
        let mut client = Client::connect_from(from, subak.address());
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(client.answer().status, 200);
        let request = endpoint.requests().pop().expect("a request");
        let names: Vec<_> = request.fields.iter().map(|(name, _)| name.clone()).collect();
        let expected = ["host", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host"];
        assert_eq!(names, expected, "from {from}");
    }
}

#[test]
fn other_spellings_of_a_key_or_a_condition_reach_no_endpoint() {
    let route = "[[listener.web.route]]\nheader = { X-Role = \"admin\" }\nrespond = 403\n";
    let (subak, endpoint) =
        before("rate = { rate = \"1000/s\", key = \"header:X-Api-Key\" }", "", route);
    let fields = "X_Api_Key: other\r\nX.Role: admin\r\nX-Api-Key: mine\r\nx-role: user\r\n";
    let request = seen(&subak, &endpoint, fields);
    let expected = [("x-api-key", "mine"), ("x-role", "user")];
    assert_names(&request, &["x_api_key", "x.role"], &expected);
}

#[test]
fn trailers_of_a_request_have_nothing_that_decides_or_is_removed() {
    let route = "[[listener.web.route]]\nheader = { X-Role = \"admin\" }\nrespond = 403\n";
    let (subak, endpoint) = before(
        "rate = { rate = \"1000/s\", key = \"header:X-Api-Key\" }\n\
         request_headers = { remove = [\"X-Internal\"], set = { X-Env = \"prod\" } }",
        "",
        route,
    );
    let mut client = subak.client();
    client.send(
        "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nx\r\n0\r\n\
         X-Api-Key: 1\r\nX.Role: admin\r\nx_internal: 1\r\nX-INTERNAL: 1\r\nX-Env: test\r\n\
         X-Client-Cert-Verify: success\r\nX.Forwarded.For: 6.6.6.6\r\nX-Checksum: 1\r\n\r\n",
    );
    assert_eq!(client.answer().status, 200);
    let request = endpoint.request();
    assert_eq!(request.trailers, [("x-checksum".to_owned(), "1".to_owned())]);
    assert_names(&request, &[], &[("x-env", "prod")]);
}

#[test]
fn trailers_of_a_request_have_nothing_that_only_trusted_proxies_may_write() {
    let (subak, endpoint) = before(
        "trusted_proxies = { from = [\"127.0.0.77\"], field = \"x-our-client\", \
         also = [\"X-Auth-User\", \"X-Team-*\"] }",
        "",
        "",
    );
    for from in ["127.0.0.2", "127.0.0.77"] {
        let mut client = Client::connect_from(from, subak.address());
        client.send(
            "POST / HTTP/1.1\r\nHost: a\r\nX-Our-Client: 192.0.2.7\r\nTransfer-Encoding: chunked\r\n\r\n\
             1\r\nx\r\n0\r\nX-Our-Client: 6.6.6.6\r\nX-Auth-User: admin\r\nX-Team-Id: 7\r\n\
             X_Auth_User: z\r\nX-Checksum: 1\r\n\r\n",
        );
        assert_eq!(client.answer().status, 200, "{from}");
        let request = endpoint.requests().pop().expect("a request");
        assert_eq!(request.trailers, [("x-checksum".to_owned(), "1".to_owned())], "{from}");
    }
}

#[test]
fn a_proxy_that_names_its_client_unreadably_is_answered_400() {
    let (subak, endpoint) = before(
        "trusted_proxies = { from = [\"127.0.0.77\"], field = \"forwarded\" }\n\
         allow = [\"127.0.0.77\", \"127.0.0.2\"]",
        "",
        "",
    );
    let mut client = Client::connect_from("127.0.0.77", subak.address());
    client
        .send("GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=1.2.3.4;x=\", for=203.0.113.9\r\n\r\n");
    assert_eq!(client.answer().status, 400);
    // Whom nobody trusts may say what it likes: nobody reads it.
    let mut client = Client::connect_from("127.0.0.2", subak.address());
    client.send("GET / HTTP/1.1\r\nHost: a\r\nForwarded: for=\"\r\n\r\n");
    assert_eq!(client.answer().status, 200);
    assert_eq!(endpoint.requests().len(), 1);
}

#[test]
fn conditions_keys_and_limits_see_no_forwarding_field_of_an_untrusted_client() {
    let (subak, endpoint) = before(
        "trusted_proxies = [\"127.0.0.77\"]\n\
         rate = { rate = \"1/h\", burst = 2, key = \"header:X-Forwarded-For\" }",
        "",
        "[[listener.web.route]]\nheader = { X-Forwarded-Proto = \"https\" }\nrespond = 202\n\
         [[listener.web.route]]\nheader = { X-Real-IP = \"10.0.0.1\" }\nrespond = 203\n",
    );
    let ask = |from: &str, fields: &str| {
        let mut client = Client::connect_from(from, subak.address());
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        client.answer().status
    };
    // Counted by the address: what the client says of itself is no key.
    assert_eq!(ask("127.0.0.2", "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\n"), 200);
    assert_eq!(ask("127.0.0.2", "X-Forwarded-For: 1.1.1.2\r\nX-Real-IP: 10.0.0.1\r\n"), 200);
    assert_eq!(ask("127.0.0.2", "X-Forwarded-For: 1.1.1.3\r\n"), 429);
    assert_eq!(endpoint.requests().len(), 2);
    // A trusted proxy is believed, in the field it writes.
    let trusted = "X-Forwarded-For: 1.1.1.4\r\nX-Forwarded-Proto: https\r\n";
    assert_eq!(ask("127.0.0.77", trusted), 202);
    assert_eq!(ask("127.0.0.77", "X-Forwarded-For: 1.1.1.5\r\nX-Real-IP: 10.0.0.1\r\n"), 200);
}

#[test]
fn what_proxies_say_of_certificates_goes_on_from_those_that_write_it_alone() {
    let trusted = "trusted_proxies = { from = [\"127.0.0.77\"], also = [\"X-Client-Cert-*\"] }";
    let (subak, endpoint) = before(trusted, "", "");
    let fields =
        "X-Client-Cert-Verify: success\r\nX-Client-Cert-Subject: CN=x\r\nClient-Cert: y\r\n";
    for (from, verify) in [("127.0.0.1", &[][..]), ("127.0.0.77", &["success"])] {
        let mut client = Client::connect_from(from, subak.address());
        client.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
        assert_eq!(client.answer().status, 200);
        let request = endpoint.requests().pop().expect("a request");
        assert_eq!(request.all("x-client-cert-verify"), verify, "from {from}");
        assert_eq!(request.all("client-cert"), [""; 0], "from {from}");
    }
}

#[test]
fn no_spelling_of_h2c_becomes_a_tunnel() {
    let (subak, endpoint) = before("", "", "");
    for upgrade in [
        "h2c",
        "H2C/1",
        "h2c/1.1, websocket",
        "websocket,h2c",
        "websocket\r\nUpgrade: h2C-14",
        "\"h2c\"",
        "h2",
        "HTTP/2.0",
    ] {
        let fields = format!("Connection: Upgrade\r\nUpgrade: {upgrade}\r\n");
        let request = seen(&subak, &endpoint, &fields);
        assert_names(&request, &["upgrade", "connection"], &[]);
    }
}

#[test]
fn the_field_that_trusted_proxies_write_is_the_one_that_is_believed() {
    let all = "X-Forwarded-For: 1.1.1.1\r\nX-Forwarded-Proto: https\r\nX-Forwarded-Host: x.test\r\n\
               Forwarded: for=2.2.2.2;proto=https;host=\"f.test\"\r\nX-Real-IP: 3.3.3.3\r\n\
               CF-Connecting-IP: 4.4.4.4\r\nX-Our-Client: 5.5.5.5\r\n";
    for (field, client, proto, host) in [
        ("x-forwarded-for", "1.1.1.1", "https", "x.test"),
        ("forwarded", "2.2.2.2", "https", "f.test"),
        ("x-real-ip", "3.3.3.3", "http", "a"),
        ("cf-connecting-ip", "4.4.4.4", "http", "a"),
        ("X-Our-Client", "5.5.5.5", "http", "a"),
    ] {
        let (subak, endpoint) = before(
            &format!(
                "trusted_proxies = {{ from = [\"127.0.0.77\"], field = \"{field}\" }}\n\
                 forwarded_headers = {{ forwarded = true }}"
            ),
            "",
            &format!(
                "[[listener.web.route]]\nclient = \"{client}\"\npath = \"/who\"\nrespond = 204\n"
            ),
        );
        for (from, status) in [("127.0.0.77", 204), ("127.0.0.1", 200)] {
            let mut asking = Client::connect_from(from, subak.address());
            asking.send(format!("GET /who HTTP/1.1\r\nHost: a\r\n{all}\r\n"));
            assert_eq!(asking.answer().status, status, "{field} from {from}");
        }
        let mut proxy = Client::connect_from("127.0.0.77", subak.address());
        proxy.send(format!("GET / HTTP/1.1\r\nHost: a\r\n{all}\r\n"));
        assert_eq!(proxy.answer().status, 200, "{field}");
        let request = endpoint.requests().pop().expect("a request");
        let list = format!("{client}, 127.0.0.77");
        let expected =
            [("x-forwarded-for", &*list), ("x-forwarded-proto", proto), ("x-forwarded-host", host)];
        assert_names(&request, &[], &expected);
        let forwarded = request.all("forwarded").join("|");
        assert!(forwarded.starts_with(&format!("for={client}")), "{field}: {forwarded}");
        assert!(
            forwarded.ends_with(", for=127.0.0.77;host=\"a\";proto=http"),
            "{field}: {forwarded}"
        );
        for name in ["X-Real-IP", "CF-Connecting-IP", "X-Our-Client"] {
            let is_it = name.eq_ignore_ascii_case(field);
            // A name that nobody has configured says nothing of a client.
            let goes_on = is_it || name == "X-Our-Client";
            assert_eq!(request.field(name).is_some(), goes_on, "{name} where {field} is written");
        }
    }
}

/// A listener that lets one request by each key through.
fn one_each(key: &str) -> (Subak, Endpoint) {
    before(&format!("rate = {{ rate = \"1/h\", burst = 1, key = \"{key}\" }}"), "", "")
}

fn asked(subak: &Subak, target: &str, fields: &str) -> u16 {
    let mut client = subak.client();
    client.send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n{fields}\r\n"));
    client.answer().status
}

#[test]
fn a_request_with_several_values_of_a_key_is_counted_by_each_of_them() {
    // How a request brings these values.
    type Bring = fn(&[&str]) -> (String, String);
    let bring: [(&str, Bring); 3] = [
        ("query:k", |values| {
            let pairs: Vec<_> = values.iter().map(|value| format!("k={value}")).collect();
            (format!("/?{}", pairs.join("&")), String::new())
        }),
        ("header:X-Api-Key", |values| {
            let lines = values.iter().map(|value| format!("X-Api-Key: {value}\r\n"));
            ("/".to_owned(), lines.collect())
        }),
        ("cookie:k", |values| {
            let pairs: Vec<_> = values.iter().map(|value| format!("k={value}")).collect();
            ("/".to_owned(), format!("Cookie: {}\r\n", pairs.join("; ")))
        }),
    ];
    for (key, bring) in bring {
        let (subak, endpoint) = one_each(key);
        let ask = |values: &[&str]| {
            let (target, fields) = bring(values);
            asked(&subak, &target, &fields)
        };
        assert_eq!(ask(&["a", "a", "a"]), 200, "{key}: equal values are one");
        assert_eq!(ask(&["a"]), 429, "{key}");
        // Whichever of them the endpoint reads, the first or the last: it was used up before.
        assert_eq!(ask(&["b", "a"]), 429, "{key}");
        assert_eq!(ask(&["a", "b"]), 429, "{key}");
        assert_eq!(ask(&["b", "c"]), 200, "{key}: refused requests use nothing up");
        assert_eq!(ask(&["b"]), 429, "{key}");
        assert_eq!(ask(&["c"]), 429, "{key}");
        let nine: Vec<_> = (0..9).map(|number| format!("n{number}")).collect();
        let nine: Vec<_> = nine.iter().map(String::as_str).collect();
        assert_eq!(ask(&nine), 400, "{key}: more values than are counted");
        assert_eq!(ask(&nine[..8]), 200, "{key}");
        assert_eq!(endpoint.requests().len(), 3, "{key}");
    }
}

#[test]
fn places_under_way_are_taken_by_each_value_and_given_back() {
    let (subak, _endpoint) =
        before("limits = { in_flight = { most = 1, key = \"query:k\" } }", "", "");
    for _ in 0..3 {
        assert_eq!(asked(&subak, "/?k=a&k=b", ""), 200);
        assert_eq!(asked(&subak, "/?k=b&k=c", ""), 200);
    }
}

#[test]
fn a_route_that_refuses_is_taken_as_soon_as_one_of_several_values_calls_for_it() {
    let (subak, _endpoint) = before(
        "",
        "",
        "[[listener.web.route]]\npath = \"/deny\"\nquery = { mode = \"write\" }\nrespond = 403\n\
         [[listener.web.route]]\npath = \"/allow\"\nnot = { query = { mode = \"read\" } }\nrespond = 403\n\
         [[listener.web.route]]\npath = \"/by-header\"\nnot = { header = { X-Mode = \"read\" } }\nrespond = 403\n",
    );
    for (target, fields, status) in [
        ("/deny", "", 200),
        ("/deny?mode=read", "", 200),
        ("/deny?mode=read&mode=write", "", 403),
        ("/deny?mode=write&mode=read", "", 403),
        ("/allow", "", 403),
        ("/allow?mode=read", "", 200),
        ("/allow?mode=read&mode=read", "", 200),
        ("/allow?mode=read&mode=write", "", 403),
        ("/allow?mode=write&mode=read", "", 403),
        ("/by-header", "", 403),
        ("/by-header", "X-Mode: read\r\n", 200),
        ("/by-header", "X-Mode: read\r\nX-Mode: write\r\n", 403),
        ("/by-header", "X-Mode: write\r\nx-mode: read\r\n", 403),
    ] {
        assert_eq!(asked(&subak, target, fields), status, "{target} {fields}");
    }
}
