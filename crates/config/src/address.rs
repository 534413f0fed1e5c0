//! Socket addresses as configurations write them.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::PathBuf;

pub use subak_base::Address;

use crate::model::Origin;
use crate::origin;
use crate::problem::Problem;

const DNS_PORT: u16 = 53;
/// The longest path of a unix socket: `sun_path` less its terminating zero.
const MAX_UNIX_PATH_BYTES: usize = 107;

/// Addresses to listen on: one, or two for `*:80`.
pub(crate) fn bind(text: &str) -> Result<Vec<Address>, Problem> {
    if let Some(port) = text.strip_prefix("*:") {
        let port = parse_port(port, text)?;
        return Ok(vec![
            Address::Inet((Ipv4Addr::UNSPECIFIED, port).into()),
            Address::Inet((Ipv6Addr::UNSPECIFIED, port).into()),
        ]);
    }
    let every = |port: &str| format!("to listen on every address: \"*:{port}\"");
    if let Some(port) = text.strip_prefix(':').filter(|port| is_number(port)) {
        return Err(missing_address().help(every(port)));
    }
    if is_number(text) {
        return Err(missing_address().help(every(text)));
    }
    address(text).map(|address| vec![address])
}

/// Where an endpoint is, or the name that says so.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub(crate) enum Place {
    Address(Address),
    Name(Origin),
}

/// Equal exactly for equal places.
impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Address(address) => address.fmt(out),
            Place::Name(origin) => origin.fmt(out),
        }
    }
}

/// Where an endpoint is, or the name of several.
pub(crate) fn endpoint(text: &str) -> Result<Place, Problem> {
    if let Some(name) = text.strip_prefix("srv:") {
        let length = name.len();
        let origin = origin::service(name).map_err(|problem| problem.shifted(4, length))?;
        return Ok(Place::Name(origin));
    }
    if let Some((scheme @ ("http" | "https"), rest)) = text.split_once("://") {
        return Err(url(scheme, rest));
    }
    if let Some((host, port)) = text.rsplit_once(':')
        && is_name(host)
        && host != "unix"
        && !text.contains('/')
    {
        let port = parse_port(port, text)?;
        let origin = origin::host(host, port).map_err(|problem| problem.at(0..host.len()))?;
        return Ok(Place::Name(origin));
    }
    let address = address(text)?;
    match &address {
        Address::Inet(inet) if inet.ip().is_unspecified() => Err(Problem::expected(
            "this is no endpoint's address",
            "expected the address of one machine",
        )
        .help(format!("for this machine: \"127.0.0.1:{}\"", inet.port()))),
        Address::Inet(inet) if inet.ip().is_multicast() => Err(Problem::expected(
            "this is a multicast address",
            "expected the address of one machine",
        )),
        _ => Ok(Place::Address(address)),
    }
}

/// An endpoint that is written as a URL.
fn url(scheme: &str, rest: &str) -> Problem {
    let host = rest.split('/').next().unwrap_or(rest);
    let has_port = host.rsplit_once(':').is_some_and(|(_, port)| is_number(port));
    let default = if scheme == "https" { ":443" } else { ":80" };
    let place = if has_port { host.to_owned() } else { format!("{host}{default}") };
    let tls = if scheme == "https" { "; `tls = true` in the pool speaks TLS to it" } else { "" };
    Problem::expected("this is a URL", "expected an address and a port")
        .help(format!("write \"{place}\"{tls}"))
}

/// A DNS server: an address, with a port where it is another than 53.
pub(crate) fn dns_server(text: &str) -> Result<SocketAddr, Problem> {
    let expected = "expected an address such as \"10.0.0.53\" or \"10.0.0.53:5353\"";
    let refused = |message| Problem::expected(message, expected);
    if is_name(text) && !text.contains(['/', ' ']) {
        return Err(refused("this is a name").help("write the address of the server"));
    }
    let server = match text.parse::<IpAddr>() {
        Ok(ip) => SocketAddr::new(ip, DNS_PORT),
        Err(_) => match address(text)? {
            Address::Inet(server) => server,
            Address::Unix(_) => return Err(refused("a DNS server is asked over the network")),
        },
    };
    if server.ip().is_unspecified() || server.ip().is_multicast() {
        return Err(refused("this is no server's address"));
    }
    Ok(server)
}

fn address(text: &str) -> Result<Address, Problem> {
    if let Some(path) = text.strip_prefix("unix:") {
        return unix(path);
    }
    if text.starts_with('/') {
        return Err(malformed().help(format!("for a unix socket: \"unix:{text}\"")));
    }
    if let Some((scheme @ ("http" | "https"), rest)) = text.split_once("://") {
        let rest = rest.split('/').next().unwrap_or(rest);
        return Err(Problem::expected("this is a URL", "expected an address and a port")
            .help(format!("without \"{scheme}://\" and path: \"{rest}\"")));
    }
    if let Ok(address) = text.parse::<SocketAddr>() {
        if address.port() == 0 {
            return Err(port_problem("0", text));
        }
        return Ok(Address::inet(address));
    }
    if let Ok(ip) = text.parse::<IpAddr>() {
        let help = match (ip, text.rsplit_once(':')) {
            (IpAddr::V4(ip), _) => format!("for example \"{ip}:8080\""),
            (_, Some((ip, port))) if ip.parse::<Ipv6Addr>().is_ok() && is_number(port) => {
                format!("an IPv6 address with a port is written \"[{ip}]:{port}\"")
            }
            (IpAddr::V6(ip), _) => format!("for example \"[{ip}]:8080\""),
        };
        return Err(
            Problem::expected("the port is missing", "expected an address and a port").help(help)
        );
    }
    if let Some(inside) = text.strip_prefix('[') {
        if let Some((ip, port)) = inside.split_once(']') {
            if ip.parse::<Ipv6Addr>().is_err() {
                let problem = Problem::expected(
                    "this is no IPv6 address",
                    "expected one such as [2001:db8::1]",
                );
                return Err(problem.at(1..1 + ip.len()));
            }
            let port = port.strip_prefix(':').ok_or_else(|| {
                Problem::expected("the port is missing", "expected an address and a port")
                    .help(format!("for example \"[{ip}]:8080\""))
            })?;
            return Err(port_problem(port, text));
        }
        return Err(malformed());
    }
    let Some((host, port)) = text.rsplit_once(':') else {
        let help = if text.is_empty() { "10.0.0.2" } else { text };
        return Err(malformed().help(format!("an address and a port, such as \"{help}:8080\"")));
    };
    if host.contains(':') {
        return Err(malformed().help("write an IPv6 address in brackets: \"[2001:db8::1]:8080\""));
    }
    let port = parse_port(port, text)?;
    if host.eq_ignore_ascii_case("localhost") {
        return Ok(Address::Inet((Ipv4Addr::LOCALHOST, port).into()));
    }
    if let Ok(ip) = host.parse::<Ipv4Addr>() {
        return Ok(Address::Inet((ip, port).into()));
    }
    let problem = if host.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        Problem::expected("this is no IPv4 address", "expected four numbers from 0 to 255")
    } else {
        Problem::expected("this is a name", "expected an IP address")
            .help("names are resolved for the endpoints of a pool only")
    };
    Err(problem.at(0..host.len()))
}

/// A unix socket by its path alone.
pub(crate) fn socket(path: &str) -> Result<Address, Problem> {
    if let Some(path) = path.strip_prefix("unix:") {
        let problem = Problem::expected("this is no path", "expected an absolute path");
        return Err(problem.help(format!("without \"unix:\": \"{path}\"")));
    }
    if !path.starts_with('/') {
        let problem = Problem::expected("this path is not absolute", "expected a path from `/`");
        return Err(problem.help("for example \"/run/subak/admin.sock\""));
    }
    unix(path)
}

fn unix(path: &str) -> Result<Address, Problem> {
    if !path.starts_with('/') {
        let problem =
            Problem::expected("this path is not absolute", "expected `unix:` and a path from `/`");
        return Err(problem.help("for example \"unix:/run/subak/app.sock\""));
    }
    if path.len() > MAX_UNIX_PATH_BYTES || path.contains('\0') || path.ends_with('/') {
        return Err(Problem::expected(
            "this cannot be the path of a socket",
            format!("expected at most {MAX_UNIX_PATH_BYTES} bytes, the last no slash"),
        ));
    }
    // Addresses are shown in log lines and status pages as they are.
    if path.contains(char::is_control) {
        return Err(Problem::expected(
            "the path of this socket holds a control character",
            "expected a path that can be shown in one line",
        ));
    }
    Ok(Address::Unix(PathBuf::from(path)))
}

/// The port at the end of `text`.
fn parse_port(port: &str, text: &str) -> Result<u16, Problem> {
    let number = if is_number(port) { port.parse::<u16>().ok() } else { None };
    number.filter(|number| *number != 0).ok_or_else(|| port_problem(port, text))
}

fn port_problem(port: &str, text: &str) -> Problem {
    let start = text.len() - port.len();
    // An empty port has no bytes to point at: point at the colon before it.
    let start = if port.is_empty() { start.saturating_sub(1) } else { start };
    Problem::expected("this is no port", "expected a number from 1 to 65535").at(start..text.len())
}

/// Whether this is meant as a name and not as an address or a part of one.
fn is_name(host: &str) -> bool {
    !host.contains([':', '[', ']'])
        && !host.eq_ignore_ascii_case("localhost")
        && !host.bytes().all(|byte| byte.is_ascii_digit() || matches!(byte, b'.' | b'*'))
}

fn is_number(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit())
}

fn malformed() -> Problem {
    Problem::expected(
        "this is no address",
        "expected one such as \"10.0.0.2:8080\" or \"[::1]:8080\"",
    )
}

fn missing_address() -> Problem {
    Problem::expected("the address is missing", "expected one such as \"0.0.0.0:80\"")
}

#[cfg(test)]
mod tests {
    use super::{Address, bind, endpoint};

    fn shown(text: &str) -> String {
        endpoint(text).map_or_else(|problem| format!("{problem:?}"), |address| address.to_string())
    }

    #[test]
    fn reads_every_form() {
        for (text, canonical) in [
            ("10.0.0.2:8080", "10.0.0.2:8080"),
            ("[2345::4]:80", "[2345::4]:80"),
            ("[2345:0:0::4]:80", "[2345::4]:80"),
            ("[::ffff:10.0.0.2]:80", "10.0.0.2:80"),
            ("localhost:80", "127.0.0.1:80"),
            ("unix:/run/app.sock", "unix:/run/app.sock"),
            ("Example.com:80", "example.com:80"),
            ("srv:_http._tcp.example.com.", "srv:_http._tcp.example.com"),
        ] {
            assert_eq!(shown(text), canonical);
        }
        let both = bind("*:80").unwrap();
        assert_eq!(
            both.iter().map(Address::to_string).collect::<Vec<_>>(),
            ["0.0.0.0:80", "[::]:80"]
        );
    }

    #[test]
    fn a_url_is_told_what_to_write() {
        for (text, help) in [
            ("https://app.internal", "write \"app.internal:443\"; `tls = true` in the pool"),
            ("https://10.0.0.2:8443/x", "write \"10.0.0.2:8443\"; `tls = true` in the pool"),
            ("http://app.internal/", "write \"app.internal:80\""),
            ("http://[::1]:8080", "write \"[::1]:8080\""),
        ] {
            let found = endpoint(text).expect_err(text).help;
            assert!(
                found.as_ref().is_some_and(|found| found.starts_with(help)),
                "{text}: {found:?}"
            );
        }
    }

    #[test]
    fn refuses_what_is_no_address() {
        for text in [
            "",
            ":",
            ":80",
            "80",
            "10.0.0.2",
            "10.0.0.2:",
            "10.0.0.2:0",
            "10.0.0.2:65536",
            "10.0.0.2:+80",
            "10.0.0.256:80",
            "1.2.3:80",
            "::1",
            "::1:80",
            "[::1]",
            "[::1]:",
            "[::1]:0",
            "[::1",
            "[zz]:80",
            "example.com",
            "example.com:",
            "example.com:0",
            "exa mple.com:80",
            "srv:",
            "srv:a..b",
            "srv:app:80",
            "http://10.0.0.2:80/x",
            "/run/x.sock",
            "unix:run/x.sock",
            "unix:",
            "unix:/",
            "0.0.0.0:80",
            "[::]:80",
            "224.0.0.1:80",
            "*:80",
            " 10.0.0.2:80",
            "10.0.0.2:80 ",
            "é:80",
            "[é]:80",
            "unix:/é\0",
            "unix:/run/a\nb.sock",
            "unix:/run/\u{1b}[31m.sock",
            "unix:/run/\u{7f}\u{85}.sock",
        ] {
            let problem = endpoint(text).expect_err(text);
            if let Some(at) = problem.at {
                assert!(text.get(at.clone()).is_some(), "{text} {at:?}");
            }
        }
        for text in ["80", ":80", "*:0", "*:", "*", "example.com:80", "srv:example.com"] {
            assert!(bind(text).is_err(), "{text}");
        }
    }
}
