//! Framing beside nginx and HAProxy: whatever is accepted here, they read as the same messages, or
//! refuse; and what the serialiser writes, both accept as the same message again.
//!
//! Each message is followed by another request on its connection. A proxy that sees the first
//! message end elsewhere answers a different number of requests, or reports another target or body.
//! `make test` installs both; a proxy that is missing is skipped, loudly.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use subak_message::ambiguous::{ANSWERS, REQUESTS, Verdict};
use subak_message::h1::{
    Asked, ChunkedDecoder, ConnectionOut, Progress, RequestOut, parse_request, parse_response,
    write_chunk_end, write_chunk_prefix, write_last_chunk, write_request_head,
};
use subak_message::{BodyLength, Fields, HeadLimits, Known, Method, RequestHead, ResponseHead};

const NEXT: &[u8] = b"GET /next HTTP/1.1\r\nHost: next\r\nConnection: close\r\n\r\n";
/// What the other proxies may take before they count as waiting for more.
const PATIENCE: Duration = Duration::from_secs(3);

/// One request as an endpoint sees it: method, target, body.
#[derive(Clone, PartialEq, Eq, Debug)]
struct Seen(String);

impl Seen {
    fn new(method: &[u8], target: &[u8], body: &[u8]) -> Seen {
        Seen(format!("{} {} {}", method.escape_ascii(), target.escape_ascii(), body.escape_ascii()))
    }
}

/// Reads one message and its body from the start of `bytes`; `None` unless it is all there and good.
fn read_request(bytes: &[u8], head: &mut RequestHead) -> Option<(Vec<u8>, BodyLength, usize)> {
    let Ok(Progress::Complete { consumed, framing }) =
        parse_request(bytes, &HeadLimits::default(), head)
    else {
        return None;
    };
    let (body, used) = read_body(&bytes[consumed..], framing.body)?;
    Some((body, framing.body, consumed + used))
}

fn read_body(rest: &[u8], length: BodyLength) -> Option<(Vec<u8>, usize)> {
    match length {
        BodyLength::None => Some((Vec::new(), 0)),
        BodyLength::Known(length) => {
            let length = usize::try_from(length).ok()?;
            Some((rest.get(..length)?.to_vec(), length))
        }
        BodyLength::UntilClose => Some((rest.to_vec(), rest.len())),
        BodyLength::Chunked => {
            let mut buffer = rest.to_vec();
            let decoded = ChunkedDecoder::new().decode(&mut buffer).ok()?;
            buffer.truncate(decoded.data);
            decoded.finished.then_some((buffer, decoded.consumed))
        }
    }
}

/// Answers each request with what it saw, until a proxy closes.
fn serve_echo(mut stream: TcpStream) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::new();
    let mut head = RequestHead::default();
    let mut chunk = [0; 4096];
    loop {
        while let Some((body, _, used)) = read_request(&buffer, &mut head) {
            buffer.drain(..used);
            let Seen(seen) = Seen::new(head.method_text(), head.forward_target(), &body);
            let text = if head.method == Method::Head { "" } else { seen.as_str() };
            let length = seen.len();
            let answer = format!("HTTP/1.1 200 OK\r\nContent-Length: {length}\r\n\r\n{text}");
            stream.write_all(answer.as_bytes())?;
        }
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&chunk[..length]);
    }
}

/// Sends one fixed answer to whatever comes first, then closes.
fn serve_fixed(mut stream: TcpStream, answer: &[u8]) -> std::io::Result<()> {
    let mut buffer = Vec::new();
    let mut chunk = [0; 4096];
    while !buffer.windows(4).any(|window| window == b"\r\n\r\n") {
        let length = stream.read(&mut chunk)?;
        if length == 0 {
            return Ok(());
        }
        buffer.extend_from_slice(&chunk[..length]);
    }
    stream.write_all(answer)
}

fn endpoint(serve: impl Fn(TcpStream) + Clone + Send + 'static) -> SocketAddr {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = listener.local_addr().expect("bound");
    thread::spawn(move || {
        for stream in listener.incoming().flatten() {
            let serve = serve.clone();
            thread::spawn(move || serve(stream));
        }
    });
    address
}

/// A proxy under test; ended on drop.
struct Proxy {
    name: &'static str,
    child: Child,
    address: SocketAddr,
    folder: PathBuf,
}

impl Proxy {
    /// Starts nginx before an endpoint; `None` where it is not installed.
    fn nginx(endpoint: SocketAddr) -> Option<Proxy> {
        Proxy::start("nginx", |address, folder| {
            let path = folder.display();
            let configuration = format!(
                "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;\n\
                 worker_processes 1; events {{ worker_connections 256; }}\n\
                 http {{ access_log off; client_body_temp_path {path}/a; proxy_temp_path {path}/b;\n\
                 fastcgi_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
                 server {{ listen {address}; location / {{ proxy_pass http://{endpoint};\n\
                 proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
                 proxy_set_header Host $http_host; }} }} }}\n"
            );
            let file = folder.join("nginx.conf");
            std::fs::write(&file, configuration).expect("written");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(folder).arg("-c").arg(file);
            command
        })
    }

    /// Starts HAProxy before an endpoint; `None` where it is not installed.
    fn haproxy(endpoint: SocketAddr) -> Option<Proxy> {
        Proxy::start("haproxy", |address, folder| {
            let configuration = format!(
                "global\n  maxconn 256\ndefaults\n  mode http\n  timeout client 5s\n  timeout server 5s\n\
                 \x20 timeout connect 5s\nfrontend f\n  bind {address}\n  default_backend b\n\
                 backend b\n  server s {endpoint}\n"
            );
            let file = folder.join("haproxy.cfg");
            std::fs::write(&file, configuration).expect("written");
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(file);
            command
        })
    }

    fn start(name: &'static str, command: impl Fn(SocketAddr, &Path) -> Command) -> Option<Proxy> {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let address = listener.local_addr().expect("bound");
        drop(listener);
        let folder = std::env::temp_dir().join(format!("subak-differential-{}", address.port()));
        std::fs::create_dir_all(&folder).expect("a folder");
        let mut command = command(address, &folder);
        // Debian keeps both where an ordinary PATH does not look.
        let path = std::env::var("PATH").unwrap_or_default();
        command.env("PATH", format!("{path}:/usr/sbin:/usr/local/sbin"));
        let child = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) if error.kind() == ErrorKind::NotFound => {
                eprintln!("SKIPPED: the comparison with {name}, which is not installed");
                return None;
            }
            Err(error) => panic!("{name}: {error}"),
        };
        let proxy = Proxy { name, child, address, folder };
        let deadline = Instant::now() + Duration::from_secs(20);
        while TcpStream::connect(address).is_err() {
            assert!(Instant::now() < deadline, "{name} does not listen on {address}");
            thread::sleep(Duration::from_millis(10));
        }
        Some(proxy)
    }

    /// nginx knows methods of capital letters, `-` and `_` only, and no `OPTIONS *`.
    fn lacks(&self, Seen(seen): &Seen) -> bool {
        let mut words = seen.split(' ');
        let method = words.next().unwrap_or_default();
        let asterisk = words.next() == Some("*");
        let plain = method.bytes().all(|byte| byte.is_ascii_uppercase() || b"-_".contains(&byte));
        self.name == "nginx" && (asterisk || !plain)
    }

    /// Everything the proxy answers to these bytes, until it closes or waits too long.
    fn exchange(&self, bytes: &[u8]) -> Vec<u8> {
        let mut stream = TcpStream::connect(self.address).expect("it listens");
        stream.set_read_timeout(Some(PATIENCE)).expect("a limit");
        // A proxy that refuses early closes early; what it said can still be read.
        let _ = stream.write_all(bytes);
        let mut answers = Vec::new();
        let _ = stream.read_to_end(&mut answers);
        answers
    }

    /// The requests it forwarded from these bytes, by what the endpoint saw; `None` when it refused
    /// one of them.
    fn forwarded(&self, bytes: &[u8], methods: &[Method]) -> Option<Vec<Seen>> {
        let answers = self.exchange(bytes);
        let mut head = ResponseHead::default();
        let mut methods = methods.iter();
        let mut seen = Vec::new();
        let mut at = 0;
        while at < answers.len() {
            let method = *methods.as_slice().first().unwrap_or(&Method::Get);
            let asked = Asked { method, upgrade: false };
            let Ok(Progress::Complete { consumed, framing }) =
                parse_response(&answers[at..], &HeadLimits::default(), &asked, &mut head)
            else {
                panic!("{}: no answer: {}", self.name, answers[at..].escape_ascii())
            };
            at += consumed;
            if head.is_interim() {
                continue;
            }
            if head.status != 200 {
                return None;
            }
            methods.next();
            let (body, used) = read_body(&answers[at..], framing.body)?;
            at += used;
            let text = String::from_utf8(body).expect("echoed as ASCII");
            seen.push(Seen(if method == Method::Head { "HEAD".into() } else { text }));
        }
        Some(seen)
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.folder);
    }
}

/// What was accepted here: the message as received and as forwarded, and what an endpoint sees.
struct Accepted {
    name: String,
    received: Vec<u8>,
    written: Vec<u8>,
    method: Method,
    seen: Seen,
}

fn accept(name: &str, bytes: &[u8]) -> Option<Accepted> {
    let mut head = RequestHead::default();
    let (body, length, used) = read_request(bytes, &mut head)?;
    // An upgrade and CONNECT end the messages of a connection; `close` ends them here.
    let last = head
        .fields
        .get_all(Known::Connection)
        .any(|value| !value.eq_ignore_ascii_case(b"keep-alive") && !value.is_empty());
    let http10 = head.version != subak_message::Version::Http11;
    if used != bytes.len() || last || http10 || head.method == Method::Connect {
        return None;
    }
    let mut written = Vec::new();
    let to = RequestOut {
        target: head.forward_target(),
        default_host: b"endpoint",
        body: length,
        connection: ConnectionOut::Implied,
        expect_continue: false,
    };
    write_request_head(&mut written, &head, &to);
    if length == BodyLength::Chunked {
        if !body.is_empty() {
            write_chunk_prefix(&mut written, body.len());
            written.extend_from_slice(&body);
            write_chunk_end(&mut written);
        }
        write_last_chunk(&mut written, &Fields::new());
    } else {
        written.extend_from_slice(&body);
    }
    let seen = match head.method {
        Method::Head => Seen("HEAD".into()),
        _ => Seen::new(head.method_text(), head.forward_target(), &body),
    };
    Some(Accepted {
        name: name.into(),
        received: bytes.to_vec(),
        written,
        method: head.method,
        seen,
    })
}

/// The list, and near misses of it that are accepted: one or two bytes changed.
fn accepted_requests() -> Vec<Accepted> {
    let mut accepted: Vec<Accepted> =
        REQUESTS.iter().filter_map(|case| accept(case.name, case.bytes)).collect();
    assert!(accepted.len() >= 25, "{} of the list can be compared", accepted.len());
    let listed = accepted.len();
    // A fixed sequence (xorshift), so that a difference can be reproduced by its number.
    let mut random = 0x9e37_79b9_7f4a_7c15_u64;
    let mut draw = |below: usize| {
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        (random % below as u64) as usize
    };
    const BYTES: &[u8] = b"\r\n :;,/%.0159afAFxX\t\"\\=-+_\x80";
    for number in 0..6000 {
        let case = &REQUESTS[draw(REQUESTS.len())];
        let mut bytes = case.bytes.to_vec();
        for _ in 0..=draw(2) {
            let at = draw(bytes.len());
            let byte = BYTES[draw(BYTES.len())];
            match draw(3) {
                0 => bytes[at] = byte,
                1 => bytes.insert(at, byte),
                _ => drop(bytes.remove(at)),
            }
        }
        accepted.extend(accept(&format!("near {:?}, number {number}", case.name), &bytes));
        if accepted.len() == listed + 400 {
            break;
        }
    }
    assert!(accepted.len() >= listed + 200, "{} near misses", accepted.len() - listed);
    accepted
}

/// Compares with one proxy; returns how many of the messages it accepted.
fn compare(proxy: &Proxy, accepted: &[Accepted]) -> usize {
    let next = Seen::new(b"GET", b"/next", b"");
    let mut agreed = 0;
    let mut differences = Vec::new();
    for case in accepted {
        let expected = [case.seen.clone(), next.clone()];
        let methods = [case.method, Method::Get];
        let received = [&case.received, NEXT].concat();
        match proxy.forwarded(&received, &methods) {
            Some(seen) if seen == expected => agreed += 1,
            // It reads more strictly than we do.
            None => {}
            Some(seen) => differences.push(format!(
                "{}: received {}\n  here {expected:?}\n  there {seen:?}",
                case.name,
                received.escape_ascii()
            )),
        }
        let written = [&case.written, NEXT].concat();
        match proxy.forwarded(&written, &methods) {
            Some(seen) if seen == expected => {}
            None if proxy.lacks(&case.seen) => {}
            seen => differences.push(format!(
                "{}: written {}\n  here {expected:?}\n  there {seen:?}",
                case.name,
                written.escape_ascii()
            )),
        }
    }
    assert!(differences.is_empty(), "{}: {}", proxy.name, differences.join("\n"));
    agreed
}

#[test]
fn accepted_requests_are_the_same_messages_to_nginx_and_haproxy() {
    let endpoint = endpoint(|stream| drop(serve_echo(stream)));
    let accepted = accepted_requests();
    for proxy in [Proxy::nginx(endpoint), Proxy::haproxy(endpoint)].into_iter().flatten() {
        let agreed = compare(&proxy, &accepted);
        println!("{}: {agreed} of {} read alike, the rest refused", proxy.name, accepted.len());
        // Else the comparison would compare nothing.
        assert!(agreed * 10 >= accepted.len() * 8, "{}: only {agreed} agreed", proxy.name);
    }
}

#[test]
fn accepted_answers_have_the_same_body_to_nginx_and_haproxy() {
    for case in ANSWERS.iter().filter(|case| case.verdict == Verdict::Accepted) {
        let (status, body) = read_answer(case.bytes, case.method);
        let endpoint = endpoint(|stream| drop(serve_fixed(stream, case.bytes)));
        for proxy in [Proxy::nginx(endpoint), Proxy::haproxy(endpoint)].into_iter().flatten() {
            let method = case.method.name().unwrap_or("GET");
            let request = format!("{method} / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
            let answer = proxy.exchange(request.as_bytes());
            let (status_there, body_there) = read_answer(&answer, case.method);
            // Some odd statuses and reasons are refused there.
            if status_there != 502 {
                let there = (status_there, body_there);
                assert_eq!((status, &body), (there.0, &there.1), "{}: {}", proxy.name, case.name);
            }
        }
    }
}

fn read_answer(bytes: &[u8], method: Method) -> (u16, Vec<u8>) {
    let mut head = ResponseHead::default();
    let asked = Asked { method, upgrade: false };
    let mut at = 0;
    loop {
        let progress = parse_response(&bytes[at..], &HeadLimits::default(), &asked, &mut head);
        let Ok(Progress::Complete { consumed, framing }) = progress else {
            panic!("{progress:?}: {}", bytes.escape_ascii())
        };
        at += consumed;
        if !head.is_interim() {
            let (body, _) = read_body(&bytes[at..], framing.body).expect("a whole body");
            return (head.status, body);
        }
    }
}
