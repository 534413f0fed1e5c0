//! Of whom, by which protocol, from where, and what: the part of the command line that says so.

use std::fs;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs};
use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use subak_lab::load::{LoadPlan, Protocol, Request, Tls, addresses};
use subak_lab::trust;

/// The largest file with a body.
const MAX_BODY: u64 = 64 << 20;
/// The most URLs.
const MAX_TARGETS: usize = 1000;
/// The most requests of one list.
const MAX_REQUESTS: usize = 100_000;

#[derive(Args, Debug)]
pub(crate) struct Target {
    /// What to ask for: http://HOST[:PORT]/PATH, or https. Of several, an open loop asks one after the
    /// other in turn, and each user has one; path and host name are the first one's
    #[arg(value_name = "URL", required = true, num_args = 1..=MAX_TARGETS)]
    url: Vec<String>,
    /// Connect there, whatever the URL's host is
    #[arg(long, value_name = "ADDRESS")]
    connect: Option<SocketAddr>,
    /// Only IPv4 addresses of the host
    #[arg(short = '4', long, conflicts_with = "ipv6")]
    ipv4: bool,
    /// Only IPv6 addresses of the host
    #[arg(short = '6', long)]
    ipv6: bool,
    /// HTTP/2, in cleartext by prior knowledge
    #[arg(long)]
    http2: bool,
    /// A new connection for every request
    #[arg(long, conflicts_with = "http2")]
    no_keep_alive: bool,
    /// Certificates of authorities to trust (PEM) [default: the system's]
    #[arg(long, value_name = "FILE")]
    ca: Option<PathBuf>,
    /// Take any certificate
    #[arg(long, conflicts_with = "ca")]
    insecure: bool,
    /// Whom the certificate has to be for [default: the URL's host]
    #[arg(long, value_name = "NAME")]
    server_name: Option<String>,
    /// Addresses to connect from, in turn: one, FIRST-LAST, or a network; may be repeated
    #[arg(long, value_name = "RANGE", value_parser = range)]
    source: Vec<Addresses>,
    /// Addresses that X-Forwarded-For names, in turn; may be repeated
    #[arg(long, value_name = "RANGE", value_parser = range)]
    forwarded_for: Vec<Addresses>,
    /// GET, POST, …
    #[arg(short = 'X', long, value_name = "METHOD", default_value = "GET")]
    method: String,
    /// A header, "NAME: VALUE"; may be repeated
    #[arg(short = 'H', long, value_name = "HEADER", value_parser = header)]
    header: Vec<(String, String)>,
    /// What is sent behind the head
    #[arg(long, value_name = "TEXT")]
    body: Option<String>,
    /// A file that is sent behind the head
    #[arg(long, value_name = "FILE", conflicts_with = "body")]
    body_file: Option<PathBuf>,
    /// One of several requests, "WEIGHT METHOD PATH", in place of the URL's path; may be repeated
    #[arg(long, value_name = "REQUEST", conflicts_with = "requests_file")]
    request: Vec<String>,
    /// Such requests, one a line
    #[arg(long, value_name = "FILE")]
    requests_file: Option<PathBuf>,
    /// An answer that takes longer is a failure
    #[arg(long, value_name = "DURATION", default_value = "10s")]
    #[arg(value_parser = subak_config::duration)]
    timeout: Duration,
}

/// One range of addresses.
#[derive(Clone, Debug)]
struct Addresses(Vec<IpAddr>);

impl Target {
    /// A plan with everything but its shape.
    pub(crate) fn plan(&self) -> Result<LoadPlan, String> {
        let urls: Vec<Url> = self.url.iter().map(|url| Url::read(url)).collect::<Result<_, _>>()?;
        let url = self.alike(&urls)?;
        let addresses = urls.iter().map(|url| self.address(url)).collect::<Result<Vec<_>, _>>()?;
        let mut plan = LoadPlan::get(addresses[0], "/");
        plan.targets = addresses;
        plan.host = url.authority.clone();
        plan.warm_up = Duration::ZERO;
        plan.answer_within = self.timeout;
        plan.new_connections = self.no_keep_alive;
        plan.sources.bind = self.source.iter().flat_map(|range| range.0.clone()).collect();
        for address in &plan.targets {
            let is_other = |ip: &&IpAddr| ip.is_ipv4() != address.is_ipv4();
            if let Some(other) = plan.sources.bind.iter().find(is_other) {
                return Err(format!("--source {other} cannot reach {address}: not of one kind"));
            }
        }
        plan.sources.forwarded =
            self.forwarded_for.iter().flat_map(|range| range.0.clone()).collect();
        plan.tls = self.tls(url)?;
        if self.http2 {
            plan.protocol = Protocol::Http2 { connections: 1 };
        }
        plan.requests = self.requests(&url.path)?;
        Ok(plan)
    }

    /// The first of all, whose path and name are asked for; the others may not say anything else.
    fn alike<'a>(&self, urls: &'a [Url]) -> Result<&'a Url, String> {
        let first = urls.first().ok_or("there is no URL")?;
        for (other, said) in urls.iter().zip(&self.url).skip(1) {
            if other.secure != first.secure {
                return Err(format!("{said:?}: all are http, or all are https"));
            }
            if other.path != "/" && other.path != first.path {
                return Err(format!("{said:?}: all are asked for the first one's path"));
            }
        }
        if urls.len() > 1 && self.connect.is_some() {
            return Err(
                "--connect is in place of one URL's address, and there are several".to_owned()
            );
        }
        Ok(first)
    }

    fn address(&self, url: &Url) -> Result<SocketAddr, String> {
        if let Some(address) = self.connect {
            return Ok(address);
        }
        let found = (&*url.host, url.port).to_socket_addrs();
        let mut found = found.map_err(|error| format!("{}: {error}", url.host))?;
        let wanted = |address: &SocketAddr| {
            !(self.ipv4 && address.is_ipv6() || self.ipv6 && address.is_ipv4())
        };
        found.find(wanted).ok_or_else(|| format!("{} has no such address", url.host))
    }

    fn tls(&self, url: &Url) -> Result<Option<Tls>, String> {
        if !url.secure {
            return match &self.ca {
                None if !self.insecure => Ok(None),
                _ => Err("--ca and --insecure are for https".to_owned()),
            };
        }
        let trusted = match &self.ca {
            _ if self.insecure => trust::Trust::Anybody,
            None => trust::Trust::System,
            Some(path) => {
                let read = fs::read(path);
                trust::Trust::Authorities(
                    read.map_err(|error| format!("{}: {error}", path.display()))?,
                )
            }
        };
        let name = self.server_name.as_deref().unwrap_or(&url.host);
        trust::client(&trusted, name).map(Some)
    }

    fn requests(&self, path: &str) -> Result<Vec<Request>, String> {
        let body = match (&self.body, &self.body_file) {
            (Some(text), _) => text.clone().into_bytes(),
            (None, Some(file)) => {
                let said = |error| format!("{}: {error}", file.display());
                let length = fs::metadata(file).map_err(said)?.len();
                if length > MAX_BODY {
                    return Err(format!("{}: more than {MAX_BODY} bytes", file.display()));
                }
                fs::read(file).map_err(said)?
            }
            (None, None) => Vec::new(),
        };
        let one = |weight, method: &str, path: &str| Request {
            weight,
            method: method.to_owned(),
            path: path.to_owned(),
            headers: self.header.clone(),
            body: body.clone(),
        };
        let mut lines = self.request.clone();
        if let Some(file) = &self.requests_file {
            let text = fs::read_to_string(file);
            let text = text.map_err(|error| format!("{}: {error}", file.display()))?;
            let kept = text.lines().map(str::trim);
            let kept = kept.filter(|line| !line.is_empty() && !line.starts_with('#'));
            lines.extend(kept.map(str::to_owned));
        }
        if lines.is_empty() {
            return Ok(vec![one(1, &self.method, path)]);
        }
        if lines.len() > MAX_REQUESTS {
            return Err(format!("more than {MAX_REQUESTS} requests"));
        }
        let read = |line: &String| {
            let mut words = line.split_whitespace();
            match (words.next().map(str::parse), words.next(), words.next(), words.next()) {
                (Some(Ok(weight)), Some(method), Some(path), None) => Ok(one(weight, method, path)),
                _ => Err(format!("{line:?} is no request: \"WEIGHT METHOD PATH\", as 3 GET /a")),
            }
        };
        lines.iter().map(read).collect()
    }
}

fn range(text: &str) -> Result<Addresses, String> {
    addresses(text).map(Addresses)
}

fn header(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once(':').ok_or("a header is \"NAME: VALUE\"")?;
    Ok((name.trim().to_owned(), value.trim().to_owned()))
}

/// As much of a URL as a request needs.
#[derive(Debug, PartialEq, Eq)]
struct Url {
    secure: bool,
    /// Host and port as written.
    authority: String,
    /// Without the brackets of an IPv6 address.
    host: String,
    port: u16,
    path: String,
}

impl Url {
    fn read(text: &str) -> Result<Url, String> {
        let (secure, rest) = match (text.strip_prefix("http://"), text.strip_prefix("https://")) {
            (Some(rest), _) => (false, rest),
            (_, Some(rest)) => (true, rest),
            _ => return Err(format!("{text:?} is no URL: it begins with http:// or https://")),
        };
        let rest = rest.split('#').next().unwrap_or_default();
        let (authority, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
        let path = if path.starts_with('/') { path.to_owned() } else { format!("/{path}") };
        let after_address = authority.rfind(']').map_or(0, |at| at + 1);
        let (host, port) = match authority[after_address..].rfind(':') {
            None => (authority, if secure { 443 } else { 80 }),
            Some(at) => {
                let (host, port) = authority.split_at(after_address + at);
                let port = port[1..].parse();
                (host, port.map_err(|_| format!("{text:?}: a port is a number up to 65535"))?)
            }
        };
        let host = host.trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() || host.contains('@') {
            return Err(format!("{text:?} has no host"));
        }
        Ok(Url { secure, authority: authority.to_owned(), host, port, path })
    }
}

#[cfg(test)]
mod tests {
    use super::Url;

    #[test]
    fn urls() {
        let read = |text: &str| {
            let url = Url::read(text).expect(text);
            (url.secure, url.authority, url.host, url.port, url.path)
        };
        let of = |secure, authority: &str, host: &str, port, path: &str| {
            (secure, authority.to_owned(), host.to_owned(), port, path.to_owned())
        };
        assert_eq!(read("http://a"), of(false, "a", "a", 80, "/"));
        assert_eq!(read("https://a:1/b?c#d"), of(true, "a:1", "a", 1, "/b?c"));
        assert_eq!(read("http://[::1]:8080/x"), of(false, "[::1]:8080", "::1", 8080, "/x"));
        assert_eq!(read("http://[::1]"), of(false, "[::1]", "::1", 80, "/"));
        assert_eq!(read("http://a?x"), of(false, "a", "a", 80, "/?x"));
        for wrong in ["", "a", "ftp://a", "http://", "http:///x", "http://a:x", "http://u@a"] {
            Url::read(wrong).expect_err(wrong);
        }
    }
}
