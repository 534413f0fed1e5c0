//! Writes the seeds of every corpus: the lists of ambiguous messages, configurations from the tests,
//! lines of agents, cookies, headers of the PROXY protocol, hellos of TLS, logs and scenarios. `cargo run --manifest-path fuzz/Cargo.toml --no-default-features --example seeds`.

use std::fs;
use std::io::Result;
use std::path::Path;

use subak_health::LINE_MAX;
use subak_message::Method;
use subak_message::ambiguous::{ANSWERS, REQUESTS};
use subak_message::proxy_header::{Announced, Ends, Tls, Version, write};

fn main() -> Result<()> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut heads = Vec::new();
    let mut bodies = Vec::new();
    let mut paths: Vec<Vec<u8>> = Vec::new();
    for case in REQUESTS {
        heads.push(case.bytes.to_vec());
        bodies.extend(chunked_body(case.bytes));
        paths.extend(target(case.bytes));
    }
    let mut answers = Vec::new();
    for case in ANSWERS {
        for upgrade in [0, 4] {
            let kind = upgrade | u8::from(case.method == Method::Head);
            answers.push([&[kind], case.bytes].concat());
        }
        bodies.extend(chunked_body(case.bytes));
    }
    for path in ["/a/../../b", "//a//./b/..", "/%2e%2e;/", "/%41%2fb%00", "/a%5c..%2F.%2e/"] {
        paths.push(path.into());
    }
    let mut configurations = Vec::new();
    for folder in ["crates/config/tests/diagnostics", "examples"] {
        let Ok(entries) = fs::read_dir(root.join("..").join(folder)) else { continue };
        for entry in entries {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "toml") {
                configurations.push(fs::read(path)?);
            }
        }
    }
    let mut scenarios = Vec::new();
    for entry in fs::read_dir(root.join("../scenarios"))? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            scenarios.push(fs::read(path)?);
        }
    }
    scenarios.extend(LOADS.map(|load| SCENARIO.replace("rate = 9", load).into_bytes()));
    for (name, seeds) in [
        ("request_head", heads),
        ("response_head", answers),
        ("chunked_body", bodies),
        ("path", paths),
        ("config", configurations),
        ("agent_check", agent_lines()),
        ("cookie", cookies()),
        ("h2_translate", http2_requests()),
        ("proxy_header", proxy_headers()),
        ("sni", hellos()),
        ("access_log", logs()),
        ("scenario", scenarios),
    ] {
        let folder = root.join("corpus").join(name);
        fs::create_dir_all(&folder)?;
        for (at, seed) in seeds.iter().enumerate() {
            fs::write(folder.join(format!("seed-{at:03}")), seed)?;
        }
        println!("{name}: {} seeds", seeds.len());
    }
    Ok(())
}

/// A small scenario, and what its load can be.
const SCENARIO: &str = "title = \"T\"\nquestion = \"?\"\nlasts = \"9s\"\nalgorithms = [\"first\"]\n\
    assert = [\"p95 of first < 9ms\"]\n[load]\nrate = 9\n[[endpoint]]\nservice = \"pareto:2ms:2.5\"\n\
    [[fault]]\nendpoints = [0]\nat = \"1s\"\nlasts = \"3s\"\nwhat = \"deploy:1s:1s\"\n\
    [[herd]]\nat = \"1s\"\nrequests = 9\nwithin = \"1s\"\n";
const LOADS: [&str; 7] = [
    "rate = [{ to = 9, over = \"1s\" }]\neven = true",
    "rate = 9\nbursts = { times = 2.0, last = \"1s\", apart = \"2s\" }",
    "rate = 9\ndaily = { swing = 0.5, period = \"9s\" }",
    "users = 9\nthink = \"1s\"\npatience = \"1s\"",
    "log = \"a.log\"",
    "rate = 9\nclients = { people = [3, 2] }\nobjects = { count = 9, zipf = 1.0 }",
    "rate = 9\nclients = 4",
];

/// Logs, each behind the byte that says how it is written.
fn logs() -> Vec<Vec<u8>> {
    let combined =
        "10.1.0.7 - - [21/Nov/2026:17:12:01 +0000] \"GET /7 HTTP/1.1\" 200 5 \"-\" \"-\"\n";
    let common = "::1 - bob [06/Feb/2026:12:14:14 +0100] \"POST /a?b HTTP/2.0\" 503 -\n";
    let haproxy = "Feb  6 12:14:14 localhost haproxy[14389]: 10.0.1.2:33317 \
                   [06/Feb/2026:12:14:14.655] http-in static/srv1 10/0/30/69/109 200 2750 - - ---- \
                   1/1/1/1/0 0/0 {1wt.eu} {} \"GET /index.html HTTP/1.1\"\r\n";
    let given =
        "1795219200.123 10.0.0.1 \"GET /%20 HTTP/1.1\" 10.0.0.2:80, 10.0.0.3:80 0.250 200 77\n";
    let json = "{\"time\":\"2026-11-21T00:00:00.006Z\",\"client\":\"198.18.3.9\",\"url\":\"/p\",\
                \"status\":200,\"bytes_out\":4502,\"endpoint\":\"10.0.0.10:80\",\"queue_ms\":0,\
                \"total_ms\":3.5,\"method\":\"GET\",\"pool\":\"p\"}\n";
    let mut logs = Vec::new();
    for (format, line) in [(1, json), (2, combined), (3, common), (4, haproxy), (5, given)] {
        let again = line.replace(":14:14", ":14:13").replace(":12:01", ":12:00");
        let torn = &line[..line.len() / 2];
        for text in [line.repeat(3), format!("{line}{again}"), format!("{line}{torn}\n\n{line}")] {
            for first in [0, format] {
                logs.push([&[first], text.as_bytes()].concat());
            }
        }
    }
    logs
}

/// Requests of HTTP/2 as lines, good ones and such as HTTP/1.1 would read differently; and frames.
fn http2_requests() -> Vec<Vec<u8>> {
    let lines = [
        "GET\n/\nexample.com\n",
        "POST\n/a/%2e/b?c\nExample.com:8443\ncookie:a=1\nte:trailers\ncookie:b=2\ncontent-length:3",
        "GET\n/\n-\nhost:a",
        "GET\n/\nA\nhost:a",
        "GET\n/\na\nhost:b",
        "OPTIONS\n*\na\n",
        "CONNECT\na:1\na:1\n",
        "GET\n/ HTTP/1.1\r\nX: y\na\n",
        "GET\nhttps://b/\na\n",
        "GET\n/#x\na\n",
        "get\n/\na\n",
        "GET /\n/\na\n",
        "GET\n/\na@b\n",
        "GET\n/\na\nconnection:close",
        "GET\n/\na\ntransfer-encoding:chunked",
        "GET\n/\na\nte:gzip",
        "PUT\n/x\na\ncontent-length:+1",
        "PUT\n/x\na\ncontent-length:1\ncontent-length:1",
        "PUT\n/x\na\nexpect:100-continue\ncontent-length:10",
        "GET\n/\na\nx: \t padded \t \ny:",
        "GET\n/\na\nx:a\r b\nX:upper",
        "GET\n/../x\na\n",
        "PATCH\n//a//./b/..\n[::1]:80\nforwarded:for=1\nx_y:1\nhttp2-settings:AA",
    ];
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    let preface = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
    let frames: [&[u8]; 3] = [
        b"\0\0\0\x04\0\0\0\0\0",
        b"\0\0\x03\x01\x05\x80\0\0\x01\x82\x86\x84",
        b"\0\0\x08\x06\0\0\0\0\0pingping",
    ];
    seeds.push([&preface[..], &frames.concat()].concat());
    seeds
}

/// Lines that agents send, and lines they should not send.
fn agent_lines() -> Vec<Vec<u8>> {
    let short = [
        "up 75%\n",
        "ready up 100% maxconn:30\r\n",
        "drain\n",
        "MAINT # rack 4 is moved\n",
        "down # disk full\n",
        "stopped#not a reason",
        "fail,50%,\tmaxconn:0",
        "up down up 10% 10% 20%\n",
        "ready drain maint",
        "",
        "\n",
        "\r\nup",
        "#",
        "# only words",
        "up #\x1b[31m red\n",
        "25600% 25601% 4294967296% -1% +1% 1.5% %\n",
        "maxconn: maxconn:x MAXCONN:4294967295 maxconn:4294967296\n",
        "wieght=3 yes no\n",
        " , ,\t, up , ",
        "up\0down",
    ];
    let mut lines: Vec<Vec<u8>> = short.iter().map(|line| line.as_bytes().to_vec()).collect();
    lines.push(b"up \xff\xfe # \xc3\x28 caf\xc3\xa9\n".to_vec());
    // At the bound, a byte beyond it inside a word, beyond it behind a description.
    for (start, end, length) in [
        ("up ", "maxconn:30", LINE_MAX),
        ("up ", "maxconn:30", LINE_MAX + 1),
        ("down # ", "words", LINE_MAX + 4),
    ] {
        let blanks = " ".repeat(length - start.len() - end.len());
        lines.push([start, &blanks, end].concat().into_bytes());
    }
    lines
}

/// A name, and fields that have it in every place, or not at all.
fn cookies() -> Vec<Vec<u8>> {
    let fields = [
        "a=1; s=x; b=2",
        "s=x; a=1",
        "a=1; s=x",
        "s=x",
        "s=",
        "s",
        "=s",
        "s=1; s=2",
        "s=1;;s=2;",
        ";s=1;",
        " ; s = x ; ",
        "a;b;;c",
        "S=1; ss=2; as=3",
        "a=\"1; s=2\"; b=3",
        "a=s=1; s==; b==",
        "s=x\na=1\ns=y; b=2",
        "a=1\nb=2",
        "s=1\n\ns=2\n;",
        "\ts=x\t;\ta=1\t",
        "s=\u{e9}; \u{e9}=s",
        "s=x;a=1 ;s=y; b=2  ;s=z",
    ];
    fields.iter().map(|lines| format!("s\n{lines}").into_bytes()).collect()
}

/// Headers of both versions and families, with all they can say, and some that are none.
fn proxy_headers() -> Vec<Vec<u8>> {
    let lines = [
        "PROXY UNKNOWN\r\n",
        "PROXY UNKNOWN ffff::1 ffff::2 65535 65535\r\nGET",
        "PROXY TCP4 1.1.1.1 1.1.1.1 01 1\r\n",
        "PROXY TCP6 ::ffff:1.2.3.4 ::1 1 1\r\n",
        "PROXY TCP4 1.1.1.1",
        "PROXY TCP4 255.255.255.255 255.255.255.255 65535 65535\r\n",
        "PROXY TCP6 ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff ::1 65535 0\r\nGET / HTTP/1.1\r\n",
        "PROXY TCP4 1.1.1.1 1.1.1.1 1 1 \r\n",
        "PROXY \r\n",
        "\r\n\r\n\0\r\nQUIT\n\u{21}\u{31}\0\0",
        "\r\n\r\n\0\r\nQUIT\n\u{21}\0\0\u{7}\u{20}\0\u{4}\u{1}\0\0\0",
        "\r\n\r\n\0\r\nQUIT\n\u{22}\0\0\0",
        "\r\n\r\n\0\r\nQUIT\n\u{20}\u{7f}\0\u{2}ab",
        "GET / HTTP/1.1\r\n\r\n",
    ];
    let mut seeds: Vec<Vec<u8>> = lines.iter().map(|line| line.as_bytes().to_vec()).collect();
    let tls = Tls {
        version: Some(b"TLSv1.3"),
        cipher: Some(b"TLS_AES_128_GCM_SHA256"),
        common_name: Some(b"client"),
        verified: true,
    };
    for (source, destination) in [("192.0.2.1:1", "192.0.2.2:443"), ("[2001:db8::1]:2", "[::1]:80")]
    {
        let (Ok(source), Ok(destination)) = (source.parse(), destination.parse()) else { continue };
        let bare = Announced::from(Ends { source, destination });
        let full = Announced {
            alpn: Some(b"h2"),
            authority: Some(b"example.com"),
            tls: Some(tls),
            checksum: true,
            ..bare
        };
        for (version, announced) in [(Version::V1, bare), (Version::V2, bare), (Version::V2, full)]
        {
            let mut seed = Vec::new();
            write(&mut seed, version, Some(&announced));
            seeds.push(seed);
        }
    }
    let mut local = Vec::new();
    write(&mut local, Version::V2, None);
    seeds.push(local);
    seeds
}

/// Hellos of clients that ask for names of every kind, and what is none.
fn hellos() -> Vec<Vec<u8>> {
    let (h2, h1) = (&b"h2"[..], &b"http/1.1"[..]);
    let names = [
        "example.com",
        "Example.COM",
        "www.example.com",
        "a.b.example.com",
        ".example.com",
        "*.example.com",
        "example.com.",
        "www.example.com.",
        "other.example",
        "example",
        "com",
        "unknown.test",
        "127.0.0.1",
        "",
        "a_b.example.com",
        "xn--bcher-kva.example.com",
        "example.com\0.test",
    ];
    let mut seeds: Vec<_> =
        names.iter().map(|name| hello(Some(name), &[h2, h1], usize::MAX)).collect();
    seeds.push(hello(None, &[h1], usize::MAX));
    seeds.push(hello(None, &[], usize::MAX));
    seeds.push(hello(Some("example.com"), &[b"acme-tls/1"], usize::MAX));
    seeds.push(hello(None, &[b"acme-tls/1"], usize::MAX));
    seeds.push(hello(Some(&"a".repeat(300)), &[h2], usize::MAX));
    // In records of 7 bytes; two thirds of one; one with another behind it.
    seeds.push(hello(Some("www.example.com"), &[h2], 7));
    let whole = hello(Some("example.com"), &[h2, h1], usize::MAX);
    seeds.push(whole[..whole.len() * 2 / 3].to_vec());
    seeds.push([&whole[..], &whole].concat());
    seeds.push(b"GET / HTTP/1.1\r\nHost: example.com\r\n\r\n".to_vec());
    seeds.push(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec());
    seeds.push(b"\x80\x2e\x01\x03\x01".to_vec());
    seeds.push(b"\x15\x03\x01\0\x02\x02\x28".to_vec());
    seeds
}

/// A hello of TLS 1.2 in records of so many bytes.
fn hello(name: Option<&str>, protocols: &[&[u8]], record: usize) -> Vec<u8> {
    // A length of so many bytes before it.
    fn vector(size: usize, bytes: &[u8]) -> Vec<u8> {
        [&bytes.len().to_be_bytes()[8 - size..], bytes].concat()
    }
    let mut extensions = Vec::new();
    let mut extend = |kind: u8, body: &[u8]| {
        extensions.extend([&[0, kind][..], &vector(2, body)].concat());
    };
    if let Some(name) = name {
        let name = [&[0][..], &vector(2, name.as_bytes())].concat();
        extend(0, &vector(2, &name));
    }
    // Groups; signatures by ECDSA with P-256 and RSA-PSS.
    extend(10, &vector(2, &[0, 29, 0, 23]));
    extend(11, &vector(1, &[0]));
    extend(13, &vector(2, &[4, 3, 8, 4]));
    if !protocols.is_empty() {
        let protocols: Vec<_> = protocols.iter().map(|name| vector(1, name)).collect();
        extend(16, &vector(2, &protocols.concat()));
    }
    let message = [
        &[3, 3][..],
        &[7; 32],
        &vector(1, &[]),
        &vector(2, &[0xc0, 0x2b, 0xc0, 0x2f]),
        &vector(1, &[0]),
        &vector(2, &extensions),
    ];
    let message = [&[1][..], &vector(3, &message.concat())].concat();
    let records = message.chunks(record.min(16_384));
    records.flat_map(|piece| [&[0x16, 3, 1][..], &vector(2, piece)].concat()).collect()
}

/// The body of a message that says chunked, cut into pieces of 5 bytes.
fn chunked_body(message: &[u8]) -> Option<Vec<u8>> {
    let text = message.to_ascii_lowercase();
    let chunked = text.windows(7).any(|window| window == b"chunked");
    let head = text.windows(4).position(|window| window == b"\r\n\r\n")?;
    chunked.then(|| [b"\x05", &message[head + 4..]].concat())
}

fn target(message: &[u8]) -> Option<Vec<u8>> {
    let target = message.split(|&byte| byte == b' ').nth(1)?;
    target.starts_with(b"/").then(|| target.to_vec())
}
