//! The balancers: their configuration files and their processes.

use std::fmt;
use std::fs::{self, File};
use std::io::{self, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::str::FromStr;
use std::thread;
use std::time::{Duration, Instant};

use subak_balance::catalogue;
use subak_lab::load::{self, LoadPlan};
use subak_lab::process;
use subak_lab::secret::Certificate;

use crate::{during, failure};

/// Time a balancer has to listen after its start, and to end after SIGTERM.
const PATIENCE: Duration = Duration::from_secs(10);
/// How often it is looked whether it does.
const LOOK_EVERY: Duration = Duration::from_millis(10);
/// What the others balance by too.
const USUAL_ALGORITHM: &str = "round_robin";

/// The files of the certificate.
const CHAIN: &str = "chain.pem";
const KEY: &str = "key.pem";
const BOTH: &str = "both.pem";

/// A balancer and the way it is configured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    /// By [`USUAL_ALGORITHM`].
    Subak,
    /// By this algorithm of the catalogue.
    SubakBy(&'static str),
    Nginx,
    /// With `multi_accept on`.
    NginxMultiAccept,
    /// With `proxy_buffering off`.
    NginxUnbuffered,
    Haproxy,
    /// With buffers that hold a 64 KiB answer.
    HaproxyLargeBuffers,
    /// With `option splice-response`.
    HaproxySplice,
}

const KINDS: [(Kind, &str); 7] = [
    (Kind::Subak, "subak"),
    (Kind::Nginx, "nginx"),
    (Kind::NginxMultiAccept, "nginx-multi-accept"),
    (Kind::NginxUnbuffered, "nginx-unbuffered"),
    (Kind::Haproxy, "haproxy"),
    (Kind::HaproxyLargeBuffers, "haproxy-large-buffers"),
    (Kind::HaproxySplice, "haproxy-splice"),
];

/// What [`Kind::SubakBy`] is called before the name of its algorithm.
const SUBAK_BY: &str = "subak-";

impl Kind {
    /// Subak by the algorithm of this name or alias.
    pub(crate) fn subak_by(algorithm: &str) -> Result<Kind, String> {
        match catalogue::find(algorithm) {
            Some(listing) => Ok(Kind::SubakBy(listing.name)),
            None => {
                let known: Vec<&str> = catalogue::names().collect();
                Err(format!("no algorithm is called {algorithm:?}; there are {}", known.join(", ")))
            }
        }
    }

    /// Whether this is Subak, by whatever algorithm.
    pub(crate) fn is_subak(self) -> bool {
        matches!(self, Kind::Subak | Kind::SubakBy(_))
    }

    /// Whether this is some configuration of nginx.
    pub(crate) fn is_nginx(self) -> bool {
        matches!(self, Kind::Nginx | Kind::NginxMultiAccept | Kind::NginxUnbuffered)
    }

    /// Whether this is some configuration of HAProxy.
    pub(crate) fn is_haproxy(self) -> bool {
        matches!(self, Kind::Haproxy | Kind::HaproxyLargeBuffers | Kind::HaproxySplice)
    }

    fn program(self, subak: &Path) -> PathBuf {
        match self {
            Kind::Subak | Kind::SubakBy(_) => subak.to_owned(),
            _ if self.is_nginx() => "nginx".into(),
            _ => "haproxy".into(),
        }
    }

    /// What the program says it is, on one line.
    pub(crate) fn version(self, subak: &Path) -> io::Result<String> {
        let program = self.program(subak);
        let option = if self.is_subak() { "--version" } else { "-v" };
        let output =
            Command::new(&program).arg(option).output().map_err(during(program.display()))?;
        let text = [output.stdout, output.stderr].concat();
        let text = String::from_utf8_lossy(&text);
        Ok(text.lines().next().unwrap_or_default().trim().to_owned())
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Kind::SubakBy(algorithm) = self {
            return f.pad(&format!("{SUBAK_BY}{algorithm}"));
        }
        let name = KINDS.iter().find(|(kind, _)| kind == self).map_or("", |(_, name)| name);
        f.pad(name)
    }
}

impl FromStr for Kind {
    type Err = String;

    fn from_str(text: &str) -> Result<Kind, String> {
        if let Some(algorithm) = text.strip_prefix(SUBAK_BY) {
            return Kind::subak_by(algorithm);
        }
        KINDS.iter().find(|(_, name)| *name == text).map(|(kind, _)| *kind).ok_or_else(|| {
            let known: Vec<&str> = KINDS.iter().map(|(_, name)| *name).collect();
            format!("there are {}, and {SUBAK_BY}ALGORITHM", known.join(", "))
        })
    }
}

/// Where a balancer listens.
#[derive(Clone, Copy, Debug)]
struct Ports {
    http1: SocketAddr,
    /// HTTP/2 by prior knowledge.
    http2: SocketAddr,
    /// TLS, both protocols by ALPN.
    tls: SocketAddr,
}

/// What is needed to start any balancer.
#[derive(Clone, Debug)]
pub(crate) struct Setting {
    /// The Subak binary.
    pub(crate) subak: PathBuf,
    /// Where configurations, logs and temporary files go.
    pub(crate) directory: PathBuf,
    /// Whom to balance over.
    pub(crate) endpoints: Vec<SocketAddr>,
    /// The CPU the balancer has.
    pub(crate) cpu: usize,
    /// What it shows who connects by TLS.
    pub(crate) certificate: Certificate,
    /// Whether it writes an access log.
    pub(crate) access_logs: bool,
}

/// A running balancer. Dropping it ends it.
pub(crate) struct Balancer {
    pub(crate) kind: Kind,
    ports: Ports,
    process: Child,
    /// The process and its children; fixed once it serves.
    pub(crate) pids: Vec<u32>,
}

impl Balancer {
    /// Writes the configuration, starts the program and waits until it balances.
    pub(crate) fn start(kind: Kind, setting: &Setting) -> io::Result<Balancer> {
        let directory = setting.directory.join(kind.to_string());
        fs::create_dir_all(&directory).map_err(during(directory.display()))?;
        let http1 = free_address()?;
        // Subak tells the protocols apart by their first bytes.
        let http2 = if kind.is_subak() { http1 } else { free_address()? };
        let ports = Ports { http1, http2, tls: free_address()? };
        let Certificate { chain, key, .. } = &setting.certificate;
        // HAProxy wants both in one file.
        for (name, contents) in
            [(CHAIN, chain.clone()), (KEY, key.clone()), (BOTH, format!("{chain}{key}"))]
        {
            let file = directory.join(name);
            write_secret(&file, &contents).map_err(during(file.display()))?;
        }
        let (file, text) = configuration(kind, &directory, ports, setting);
        let file = directory.join(file);
        fs::write(&file, text).map_err(during(file.display()))?;
        let log_path = directory.join("output.log");
        let log = File::create(&log_path).map_err(during(log_path.display()))?;

        let program = kind.program(&setting.subak);
        let mut command = Command::new(&program);
        match kind {
            _ if kind.is_subak() => command.arg("serve").arg("--config").arg(&file),
            _ if kind.is_nginx() => command.arg("-p").arg(&directory).arg("-c").arg(&file),
            _ => command.arg("-db").arg("-f").arg(&file),
        };
        command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
        process::confine(&mut command, setting.cpu);
        let process = command.spawn().map_err(during(program.display()))?;
        let mut balancer = Balancer { kind, ports, process, pids: Vec::new() };
        balancer.await_service().map_err(|error| {
            let said = fs::read_to_string(&log_path).unwrap_or_default();
            failure(format!("{kind} does not serve: {error}\n{}", said.trim()))
        })?;
        Ok(balancer)
    }

    /// Where HTTP/1.1 is served.
    pub(crate) fn http1(&self) -> SocketAddr {
        self.ports.http1
    }

    /// Where HTTP/2 by prior knowledge is served.
    pub(crate) fn http2(&self) -> SocketAddr {
        self.ports.http2
    }

    /// Where TLS is served.
    pub(crate) fn tls(&self) -> SocketAddr {
        self.ports.tls
    }

    fn await_service(&mut self) -> io::Result<()> {
        let start = Instant::now();
        while let Err(error) = TcpStream::connect(self.ports.http1) {
            if let Some(status) = self.process.try_wait()? {
                return Err(failure(format!("ended with {status}")));
            }
            if start.elapsed() > PATIENCE {
                return Err(during(self.ports.http1)(error));
            }
            thread::sleep(LOOK_EVERY);
        }
        let plan = LoadPlan::get(self.ports.http1, "/small").users(3).requests(30);
        let report = load::run(&plan)?;
        if report.answered != 30 {
            return Err(failure(format!("{} of 30 requests failed", report.failures)));
        }
        self.pids = process::tree(self.process.id())?;
        Ok(())
    }
}

impl Drop for Balancer {
    fn drop(&mut self) {
        let start = Instant::now();
        // An error means that it has ended already.
        let _ = process::terminate(self.process.id());
        while let Ok(None) = self.process.try_wait() {
            if start.elapsed() > PATIENCE {
                eprintln!("{} does not end; killing it", self.kind);
                let _ = self.process.kill();
                let _ = self.process.wait();
                return;
            }
            thread::sleep(LOOK_EVERY);
        }
    }
}

/// Writes a file that others cannot read.
fn write_secret(path: &Path, contents: &str) -> io::Result<()> {
    let mut options = fs::OpenOptions::new();
    let mut file = options.write(true).create(true).truncate(true).mode(0o600).open(path)?;
    file.write_all(contents.as_bytes())
}

/// An address on loopback that is free now.
fn free_address() -> io::Result<SocketAddr> {
    TcpListener::bind("127.0.0.1:0")?.local_addr()
}

/// The configuration file's name and contents.
fn configuration(
    kind: Kind,
    directory: &Path,
    ports: Ports,
    setting: &Setting,
) -> (&'static str, String) {
    let endpoints = &setting.endpoints;
    let each = |line: &dyn Fn(usize, &SocketAddr) -> String, between: &str| {
        let lines: Vec<String> = endpoints.iter().enumerate().map(|(i, e)| line(i, e)).collect();
        lines.join(between)
    };
    let on = |yes: bool| if yes { "on" } else { "off" }.to_owned();
    // The one user who may write to the directory; without root, nginx keeps its own.
    let user = if process::is_root() { "user root;" } else { "" };
    let (name, template, mut values) = match kind {
        Kind::Subak | Kind::SubakBy(_) => {
            let algorithm = if let Kind::SubakBy(name) = kind { name } else { USUAL_ALGORITHM };
            let endpoints = each(&|_, address| format!("\"{address}\""), ", ");
            (
                "subak.toml",
                include_str!("../../../../../bench/subak.toml"),
                vec![
                    ("endpoints", endpoints),
                    ("algorithm", algorithm.to_owned()),
                    ("directory", directory.display().to_string()),
                ],
            )
        }
        _ if kind.is_nginx() => (
            "nginx.conf",
            include_str!("../../../../../bench/nginx.conf"),
            vec![
                ("endpoints", each(&|_, address| format!("        server {address};"), "\n")),
                ("user", user.to_owned()),
                ("directory", directory.display().to_string()),
                ("multi_accept", on(kind == Kind::NginxMultiAccept)),
                ("buffering", on(kind != Kind::NginxUnbuffered)),
            ],
        ),
        _ => {
            let line =
                |index, address: &SocketAddr| format!("    server endpoint{index} {address}");
            let size = if kind == Kind::HaproxyLargeBuffers { 80 * 1024 } else { 16 * 1024 };
            let splice =
                if kind == Kind::HaproxySplice { "    option splice-response" } else { "" };
            let capture = match setting.access_logs {
                true => "    capture request header User-Agent len 128",
                false => "",
            };
            (
                "haproxy.cfg",
                include_str!("../../../../../bench/haproxy.cfg"),
                vec![
                    ("endpoints", each(&line, "\n")),
                    ("buffer", size.to_string()),
                    ("splice", splice.to_owned()),
                    ("capture", capture.to_owned()),
                ],
            )
        }
    };
    let (log, log_format) = match setting.access_logs {
        true => access_log(kind, directory),
        false => no_access_log(kind),
    };
    values.push(("access_log", log));
    values.push(("log_format", log_format));
    values.push(("http1", ports.http1.to_string()));
    values.push(("http2", ports.http2.to_string()));
    values.push(("tls", ports.tls.to_string()));
    for (name, file) in [("chain", CHAIN), ("key", KEY), ("both", BOTH)] {
        values.push((name, directory.join(file).display().to_string()));
    }
    let text = values.iter().fold(template.to_owned(), |text, (name, value)| {
        text.replace(&format!("{{{{{name}}}}}"), value)
    });
    (name, text)
}

/// What turns the access log on: JSON with the same eleven fields, into a file. Subak and nginx write
/// 64 KiB at a time, or after a second; HAProxy writes no files, and hands every line to its standard
/// output, which is one.
fn access_log(kind: Kind, directory: &Path) -> (String, String) {
    let file = directory.join("access.json");
    let file = file.display();
    if kind.is_subak() {
        let keys = "\"time\", \"client\", \"client_port\", \"request\", \"status\", \"bytes_out\", \
                    \"pool\", \"endpoint\", \"connect_ms\", \"total_ms\", \"user_agent\"";
        (
            format!("access_log = {{ path = \"{file}\", format = [{keys}], flush = \"1s\" }}"),
            String::new(),
        )
    } else if kind.is_nginx() {
        let format = "log_format bench escape=json '{\"time\":\"$time_iso8601\",\"client\":\"$remote_addr\",\
                      \"client_port\":$remote_port,\"request\":\"$request\",\"status\":$status,\
                      \"bytes_out\":$bytes_sent,\"pool\":\"$proxy_host\",\"endpoint\":\"$upstream_addr\",\
                      \"connect_s\":\"$upstream_connect_time\",\"total_s\":$request_time,\
                      \"user_agent\":\"$http_user_agent\"}';";
        (format!("access_log {file} bench buffer=64k flush=1s;"), format.to_owned())
    } else {
        let format = "    log global\n    log-format '{\"time\":\"%t\",\"client\":\"%ci\",\"client_port\":%cp,\
                      \"request\":%{+Q}r,\"status\":%ST,\"bytes_out\":%B,\"pool\":\"%b\",\"endpoint\":\"%s\",\
                      \"connect_ms\":%Tc,\"total_ms\":%Ta,\"user_agent\":%{+Q}[capture.req.hdr(0)]}'";
        ("    log stdout format raw local0 info".into(), format.to_owned())
    }
}

fn no_access_log(kind: Kind) -> (String, String) {
    (if kind.is_nginx() { "access_log off;".into() } else { String::new() }, String::new())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_placeholder_is_left_in_any_configuration() {
        let address: SocketAddr = "127.0.0.1:8080".parse().expect("an address");
        let ports = Ports { http1: address, http2: address, tls: address };
        let certificate = Certificate::new().expect("a certificate");
        let by = (Kind::SubakBy("least_packets"), "subak-least_packets");
        for (kind, name) in KINDS.into_iter().chain([by]) {
            assert_eq!((name.parse::<Kind>(), kind.to_string()), (Ok(kind), name.to_owned()));
            let mut setting = Setting {
                subak: PathBuf::new(),
                directory: PathBuf::new(),
                endpoints: vec![address, address],
                cpu: 0,
                certificate: certificate.clone(),
                access_logs: true,
            };
            let (_, logged) = configuration(kind, Path::new("/d"), ports, &setting);
            setting.access_logs = false;
            let (_, text) = configuration(kind, Path::new("/d"), ports, &setting);
            assert!(logged.contains("client_port") && !text.contains("client_port"), "{name}");
            for text in [&text, &logged] {
                let settings = text.lines().filter(|line| !line.trim_start().starts_with('#'));
                for line in settings {
                    assert!(!line.contains("{{"), "{name}: {line}");
                }
            }
            assert_eq!(text.matches("127.0.0.1:8080").count(), if kind.is_subak() { 4 } else { 5 });
        }
        assert_eq!("subak-lrt".parse(), Ok(Kind::SubakBy("least_response_time")));
        assert!("subak-most".parse::<Kind>().expect_err("unknown").contains("least_packets"));
        assert!("apache".parse::<Kind>().expect_err("unknown").contains("haproxy"));
    }
}
