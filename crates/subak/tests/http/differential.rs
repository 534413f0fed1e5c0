//! The same bytes through Subak, nginx and HAProxy, each before an endpoint of its own: Subak takes
//! nothing that both refuse, and what it takes reaches the endpoint as it does through the others.
//!
//! `make test` installs both; one that is missing is skipped, loudly.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use crate::support::{Client, Endpoint, Setup, fresh_address, fresh_directory, ok, wait_until};
use subak_message::ambiguous::REQUESTS;

/// What a proxy may take before it counts as waiting for more. Its own limits are shorter.
const PATIENCE: Duration = Duration::from_secs(4);

/// Messages beside the strictness list: ordinary ones, and doubtful ones from smuggling research that
/// differ in one byte from them.
#[rustfmt::skip] // One case a line.
const MORE: &[(&str, &[u8])] = &[
    ("two requests", b"GET /1 HTTP/1.1\r\nHost: a\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    ("body that is a request", b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 36\r\nConnection: close\r\n\r\nGET /2 HTTP/1.1\r\nHost: smuggled\r\n\r\n\r\n"),
    ("chunk that is a request", b"POST /1 HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\nConnection: close\r\n\r\n24\r\nGET /2 HTTP/1.1\r\nHost: smuggled\r\n\r\n\r\n\r\n0\r\n\r\n"),
    ("GET with length and a request behind", b"GET /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\n\r\nhelloGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    ("length 0 and a request behind", b"POST /1 HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\nGET /2 HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n"),
    ("DELETE with chunks", b"DELETE / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ("length of another name", b"POST / HTTP/1.1\r\nHost: a\r\nX-Content-Length: 5\r\nContent-Length: 3\r\n\r\nabc"),
    ("length in Connection", b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Content-Length\r\nContent-Length: 3\r\n\r\nabc"),
    ("coding in Connection", b"POST / HTTP/1.1\r\nHost: a\r\nConnection: Transfer-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ("coding in a second case", b"POST / HTTP/1.1\r\nHost: a\r\ntransfer-encoding: Chunked\r\n\r\n3\r\nabc\r\n0\r\n\r\n"),
    ("chunk size in capitals", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nA\r\n0123456789\r\n0\r\n\r\n"),
    ("HTTP/1.0 with length", b"POST / HTTP/1.0\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc"),
    ("HTTP/1.0 keep-alive and another", b"GET /1 HTTP/1.0\r\nHost: a\r\nConnection: keep-alive\r\n\r\nGET /2 HTTP/1.0\r\nHost: a\r\n\r\n"),
    ("expectation with its body", b"POST / HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\nabc"),
    ("tabs around a length", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length:\t3\t\r\n\r\nabc"),
    ("trailer that is a length", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0\r\nContent-Length: 9\r\n\r\n"),
    ("many zeros for the last chunk", b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n0000\r\n\r\n"),
];

/// A proxy that is running before an endpoint of its own.
struct Proxy {
    name: &'static str,
    endpoint: Endpoint,
    address: String,
    child: Option<(Child, PathBuf)>,
}

/// What became of a message: the bodies that the endpoint was given, in order; none when any part of
/// it was refused or left waiting.
type Fate = Option<Vec<Vec<u8>>>;

impl Proxy {
    fn start(name: &'static str, command: impl Fn(&str, &str, &Path) -> Command) -> Option<Proxy> {
        let (endpoint, address, directory) = (recorder(), fresh_address(), fresh_directory());
        let mut command = command(&address, &endpoint.address(), &directory);
        // Debian keeps both where an ordinary PATH does not look.
        command.env("PATH", format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default()));
        let child = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
            Ok(child) => child,
            Err(error) => {
                eprintln!("SKIPPED: the comparison with {name}: {error}");
                let _ = std::fs::remove_dir_all(directory);
                return None;
            }
        };
        let proxy = Proxy { name, endpoint, address, child: Some((child, directory)) };
        wait_until("the proxy listens", || std::net::TcpStream::connect(&proxy.address).is_ok());
        Some(proxy)
    }

    fn nginx() -> Option<Proxy> {
        Proxy::start("nginx", |address, endpoint, directory| {
            let path = directory.display();
            let text = format!(
                "daemon off; master_process off; pid {path}/pid; error_log {path}/error.log;\n\
                 events {{ worker_connections 256; }}\n\
                 http {{ access_log off; client_body_temp_path {path}/a; proxy_temp_path {path}/b;\n\
                 fastcgi_temp_path {path}/c; uwsgi_temp_path {path}/d; scgi_temp_path {path}/e;\n\
                 client_header_timeout 1s; client_body_timeout 1s; keepalive_timeout 1s;\n\
                 server {{ listen {address}; location / {{ proxy_pass http://{endpoint};\n\
                 proxy_http_version 1.1; proxy_set_header Connection \"\";\n\
                 proxy_set_header Host $http_host; }} }} }}\n"
            );
            std::fs::write(directory.join("nginx.conf"), text).expect("write");
            let mut command = Command::new("nginx");
            command.arg("-p").arg(directory).arg("-c").arg(directory.join("nginx.conf"));
            command
        })
    }

    fn haproxy() -> Option<Proxy> {
        Proxy::start("haproxy", |address, endpoint, directory| {
            let text = format!(
                "global\n  maxconn 256\ndefaults\n  mode http\n  timeout client 1s\n  timeout server 5s\n\
                 \x20 timeout connect 5s\n  timeout http-request 1s\n  timeout http-keep-alive 1s\n\
                 frontend f\n  bind {address}\n  default_backend b\nbackend b\n  server s {endpoint}\n"
            );
            std::fs::write(directory.join("haproxy.cfg"), text).expect("write");
            let mut command = Command::new("haproxy");
            command.arg("-db").arg("-f").arg(directory.join("haproxy.cfg"));
            command
        })
    }

    fn fate(&self, bytes: &[u8]) -> Fate {
        let before = self.endpoint.requests().len();
        let mut client = Client::connect(&self.address);
        client.socket().set_read_timeout(PATIENCE);
        // A proxy that refuses early closes early; what it said can still be read.
        let _ = client.try_send(bytes);
        let mut answers = 0;
        // Until it closes or waits for more.
        let method = if bytes.starts_with(b"HEAD") { "HEAD" } else { "GET" };
        while let Ok(answer) = client.try_answer(method) {
            if answer.status != 200 {
                return None;
            }
            answers += 1;
            if self.endpoint.requests().len() - before == answers && count(bytes) == answers {
                break;
            }
        }
        let given = self.endpoint.requests().split_off(before);
        (answers > 0 && given.len() == answers)
            .then(|| given.into_iter().map(|request| request.body).collect())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some((child, directory)) = &mut self.child {
            let _ = child.kill();
            let _ = child.wait();
            let _ = std::fs::remove_dir_all(directory);
        }
    }
}

/// The most requests these bytes can be read as.
fn count(bytes: &[u8]) -> usize {
    bytes.windows(7).filter(|seven| *seven == b" HTTP/1").count().max(1)
}

fn recorder() -> Endpoint {
    Endpoint::scripted(|served| {
        while served.request().is_some() {
            served.send(ok("x"));
        }
    })
}

#[test]
fn subak_takes_nothing_that_both_others_refuse_and_reads_the_rest_as_they_do() {
    let others: Vec<_> = [Proxy::nginx(), Proxy::haproxy()].into_iter().flatten().collect();
    let endpoint = recorder();
    let setup = Setup::before(&[&endpoint])
        .listener("timeouts = { head = \"1s\", body_idle = \"1s\", keep_alive = \"1s\" }");
    let subak = setup.start();
    let address = subak.address().to_owned();
    let ours = Proxy { name: "subak", endpoint, address, child: None };
    let listed = REQUESTS.iter().map(|case| (case.name, case.bytes));
    let (mut wrong, mut taken, mut stricter) = (Vec::new(), 0, Vec::new());
    for (name, bytes) in listed.chain(MORE.iter().copied()) {
        let here = ours.fate(bytes);
        let there: Vec<_> = others.iter().map(|other| (other.name, other.fate(bytes))).collect();
        let Some(bodies) = here else {
            if there.len() == 2 && there.iter().all(|(_, fate)| fate.is_some()) {
                stricter.push(name);
            }
            continue;
        };
        taken += 1;
        if there.len() == 2 && there.iter().all(|(_, fate)| fate.is_none()) {
            wrong.push(format!("{name}: taken, and refused by both others"));
        }
        for (other, fate) in there {
            if let Some(theirs) = fate
                && theirs != bodies
            {
                wrong.push(format!("{name}: {bodies:?}, through {other} {theirs:?}"));
            }
        }
    }
    println!("refused here and taken by both others: {stricter:#?}");
    assert!(taken > 40, "only {taken} messages were taken");
    assert!(wrong.is_empty(), "{} differ:\n{}", wrong.len(), wrong.join("\n"));
}
