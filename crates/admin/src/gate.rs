//! Who may ask? Through the unix socket, whoever may open it. By TCP, whoever has the token.
//!
//! A browser is the danger on TCP: it sends what a foreign page tells it to, from inside the network.
//! Three things keep it out, each of them enough for the attack it is named after:
//!
//! - **the token** in `Authorization`, which a foreign page does not know and a browser does not add by
//!   itself (request forgery);
//! - **Host** must be an IP address, `localhost` or a name from the configuration. A page that makes
//!   its own name point at this address (DNS rebinding) sends its own name;
//! - **Origin**, where one is sent, must be the Host's own.
//!
//! The token is compared in a time that does not depend on where it differs.

use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use http::header::{AUTHORIZATION, HOST, ORIGIN};
use http::uri::Authority;
use http::{HeaderMap, StatusCode, Uri};
use subtle::ConstantTimeEq;

use crate::answer::Refusal;

/// A secret that opens the gate. The configuration sees to it that it cannot be guessed.
#[derive(Clone, PartialEq, Eq)]
pub struct Token(Box<[u8]>);

impl Token {
    /// This one.
    pub fn new(secret: &str) -> Token {
        Token(secret.as_bytes().into())
    }
}

/// Without the secret.
impl fmt::Debug for Token {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("Token(…)")
    }
}

/// Who may ask.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Gate {
    /// Whoever gets here: the socket's permissions decide.
    Open,
    /// Who has the token.
    Locked {
        /// The secret.
        token: Token,
        /// Names that clients may know this server by, in lower case, beside its IP addresses and
        /// `localhost`.
        hosts: Vec<String>,
        /// Whether it may add endpoints on unix sockets.
        unix_endpoints: bool,
    },
}

impl Gate {
    /// Checks an endpoint that is to be added, as it would stand in a file. A pool that faces the public
    /// would give it a unix socket of this machine, whose owner counts on file permissions.
    ///
    /// # Errors
    /// [`Refusal`], where endpoints on unix sockets are not allowed.
    pub(crate) fn check_endpoint(&self, endpoint: &str) -> Result<(), Refusal> {
        match self {
            Gate::Locked { unix_endpoints: false, .. } if is_unix(endpoint) => {
                let error = "the Admin API does not add endpoints on unix sockets by TCP";
                let hint = "put the endpoint into the file and reload, or set \
                            admin.unix_endpoints = true";
                Err(Refusal::new(StatusCode::FORBIDDEN, error, hint))
            }
            Gate::Open | Gate::Locked { .. } => Ok(()),
        }
    }

    /// # Errors
    /// Why this request is not to be answered.
    pub(crate) fn check(&self, target: &Uri, fields: &HeaderMap) -> Result<(), Refusal> {
        let Gate::Locked { token, hosts, .. } = self else { return Ok(()) };
        let host = host(fields)?;
        let targets = target.authority().into_iter().chain([&host]);
        for authority in targets {
            if !is_known(authority.host(), hosts) {
                let error = format!("{} is not known here", authority.host());
                let hint = "ask by IP address, by localhost, or by a name listed in admin.hosts";
                return Err(Refusal::new(StatusCode::FORBIDDEN, error, hint).closing());
            }
        }
        for origin in fields.get_all(ORIGIN) {
            let origin = origin.to_str().ok().and_then(|origin| origin.split_once("://"));
            if origin.is_none_or(|(_, authority)| !authority.eq_ignore_ascii_case(host.as_str())) {
                let error = "this request was made by a page of another origin";
                let hint = "ask from a page of this server, or without a browser";
                return Err(Refusal::new(StatusCode::FORBIDDEN, error, hint).closing());
            }
        }
        let mut given = fields.get_all(AUTHORIZATION).iter();
        match (given.next().map(|value| value.as_bytes()), given.next()) {
            (Some(value), None) if is_bearer_of(value, token) => Ok(()),
            (None, _) => Err(Refusal::unauthorized("a token is needed")),
            _ => Err(Refusal::unauthorized("this is not the token")),
        }
    }
}

fn is_unix(endpoint: &str) -> bool {
    let address = endpoint.trim_start();
    address.get(..5).is_some_and(|start| start.eq_ignore_ascii_case("unix:"))
}

fn host(fields: &HeaderMap) -> Result<Authority, Refusal> {
    let mut hosts = fields.get_all(HOST).iter();
    let one = match (hosts.next(), hosts.next()) {
        (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
        _ => None,
    };
    one.ok_or_else(|| {
        let error = "there is no Host, more than one, or one that cannot be read";
        Refusal::new(StatusCode::BAD_REQUEST, error, "send one Host field").closing()
    })
}

/// No name but those of the configuration: any other may be somebody's who makes it point here.
fn is_known(host: &str, hosts: &[String]) -> bool {
    let bracketed = host.strip_prefix('[').and_then(|rest| rest.strip_suffix(']'));
    let is_address = match bracketed {
        Some(inside) => inside.parse::<Ipv6Addr>().is_ok(),
        None => host.parse::<IpAddr>().is_ok_and(|address| address.is_ipv4()),
    };
    is_address
        || host.eq_ignore_ascii_case("localhost")
        || hosts.iter().any(|known| known.eq_ignore_ascii_case(host))
}

fn is_bearer_of(value: &[u8], token: &Token) -> bool {
    let Some((scheme, given)) = value.split_at_checked("Bearer ".len()) else { return false };
    scheme.eq_ignore_ascii_case(b"Bearer ") && bool::from(given.trim_ascii().ct_eq(&token.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECRET: &str = "0123456789abcdef";

    fn ask(target: &str, fields: &[(&'static str, &'static str)]) -> Result<(), u16> {
        let (token, hosts) = (Token::new(SECRET), vec!["lb1.internal".into()]);
        let gate = Gate::Locked { token, hosts, unix_endpoints: false };
        let mut map = HeaderMap::new();
        for (name, value) in fields {
            map.append(*name, http::HeaderValue::from_static(value));
        }
        gate.check(&target.parse().unwrap(), &map).map_err(|refusal| refusal.status.as_u16())
    }

    const TOKEN: (&str, &str) = ("authorization", "Bearer 0123456789abcdef");

    #[test]
    fn the_token_opens_under_names_that_nobody_else_can_own() {
        for host in ["127.0.0.1:9000", "[::1]:9000", "10.1.2.3", "localhost:9000", "LB1.internal"] {
            assert_eq!(ask("/v1/status", &[("host", host), TOKEN]), Ok(()), "{host}");
        }
        let fields = [("host", "127.0.0.1:9000"), ("origin", "http://127.0.0.1:9000"), TOKEN];
        assert_eq!(ask("/", &fields), Ok(()));
        let lower = ("authorization", "bearer 0123456789abcdef");
        assert_eq!(ask("/", &[("host", "127.0.0.1"), lower]), Ok(()));
    }

    #[test]
    fn without_the_token_nothing_opens() {
        let host = ("host", "127.0.0.1:9000");
        assert_eq!(ask("/", &[host]), Err(401));
        for wrong in [
            "Bearer 0123456789abcdee",
            "Bearer 0123456789abcde",
            "Bearer 0123456789abcdef0",
            "Bearer ",
            "Bearer",
            "",
            "Basic 0123456789abcdef",
            "0123456789abcdef",
        ] {
            assert_eq!(ask("/", &[host, ("authorization", wrong)]), Err(401), "{wrong}");
        }
        assert_eq!(ask("/", &[host, TOKEN, TOKEN]), Err(401), "twice is ambiguous");
    }

    #[test]
    fn a_name_that_was_made_to_point_here_is_refused_token_or_not() {
        for host in ["evil.example", "evil.example:9000", "localhost.evil.example", "1.2.3", "::1"]
        {
            let refused = ask("/v1/status", &[("host", host), TOKEN]);
            assert!(matches!(refused, Err(400 | 403)), "{host}: {refused:?}");
        }
        let host = ("host", "127.0.0.1:9000");
        assert_eq!(ask("http://evil.example/v1/status", &[host, TOKEN]), Err(403));
        assert_eq!(ask("/", &[TOKEN]), Err(400));
        assert_eq!(ask("/", &[host, host, TOKEN]), Err(400));
    }

    #[test]
    fn a_foreign_page_is_refused() {
        let host = ("host", "127.0.0.1:9000");
        for origin in ["https://evil.example", "null", "http://127.0.0.1:9001", ""] {
            assert_eq!(ask("/", &[host, ("origin", origin), TOKEN]), Err(403), "{origin}");
        }
    }

    #[test]
    fn unix_sockets_are_for_those_who_may_open_them() {
        let locked = |unix_endpoints| {
            let token = Token::new(SECRET);
            Gate::Locked { token, hosts: Vec::new(), unix_endpoints }
        };
        for unix in ["unix:/run/a.sock", " unix:/run/a.sock weight=2", "UNIX:/run/a.sock"] {
            let refused = locked(false).check_endpoint(unix).map_err(|refusal| refusal.status);
            assert_eq!(refused, Err(StatusCode::FORBIDDEN), "{unix}");
            assert_eq!(locked(true).check_endpoint(unix), Ok(()), "{unix}");
            assert_eq!(Gate::Open.check_endpoint(unix), Ok(()), "{unix}");
        }
        for other in ["10.0.0.5:8080 weight=2", "unixes.internal:80", ""] {
            assert_eq!(locked(false).check_endpoint(other), Ok(()), "{other}");
        }
    }

    #[test]
    fn the_token_stays_secret() {
        assert_eq!(format!("{:?}", Token::new(SECRET)), "Token(…)");
    }
}
