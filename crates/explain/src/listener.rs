//! At which listener does a request arrive? By scheme and port of its URL, and by the address where
//! its host is one.

use std::net::IpAddr;

use subak_base::Address;

use crate::question::Url;

/// A listener, as far as clients see it from outside.
#[derive(Clone, Debug)]
pub struct Door<'a> {
    /// As configured.
    pub name: &'a str,
    /// Whether it speaks TLS.
    pub is_tls: bool,
    /// Where it listens.
    pub bind: &'a [Address],
}

/// The listener that was found.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    /// Its place among those given.
    pub index: usize,
    /// Why it.
    pub why: &'static str,
}

/// No listener fits; what to do.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct NoListener {
    /// What is wrong.
    pub error: String,
    /// What there is.
    pub hint: String,
}

/// The listener that is named, else the one at which a request with this URL arrives.
///
/// # Errors
/// [`NoListener`], with the listeners there are.
pub fn choose(doors: &[Door<'_>], named: Option<&str>, url: &Url) -> Result<Choice, NoListener> {
    let refuse = |error: String| {
        let door = |door: &Door<'_>| {
            let scheme = if door.is_tls { "https" } else { "http" };
            let places: Vec<String> = door.bind.iter().map(ToString::to_string).collect();
            format!("{} ({scheme} at {})", door.name, places.join(", "))
        };
        let listed: Vec<String> = doors.iter().take(10).map(door).collect();
        let hint = format!("name one by --listener; there are {}", listed.join(", "));
        NoListener { error, hint }
    };
    if let Some(name) = named {
        let index = doors.iter().position(|door| door.name == name);
        let missing = || refuse(format!("there is no listener {name:?}"));
        return Ok(Choice { index: index.ok_or_else(missing)?, why: "as asked" });
    }
    let port = url.port.unwrap_or(if url.is_tls { 443 } else { 80 });
    let ip: Option<IpAddr> = url.host.parse().ok();
    let by_scheme = || doors.iter().enumerate().filter(|(_, door)| door.is_tls == url.is_tls);
    let at_port = |door: &Door<'_>, wanted: &dyn Fn(IpAddr) -> bool| {
        door.bind.iter().any(|address| {
            matches!(address, Address::Inet(bound) if bound.port() == port && wanted(bound.ip()))
        })
    };
    let find = |wanted: &dyn Fn(IpAddr) -> bool| {
        by_scheme().find(|(_, door)| at_port(door, wanted)).map(|(index, _)| index)
    };
    if let Some(ip) = ip {
        if let Some(index) = find(&|bound| bound == ip) {
            return Ok(Choice { index, why: "it listens there" });
        }
        let is_same_family =
            |bound: IpAddr| bound.is_unspecified() && bound.is_ipv4() == ip.is_ipv4();
        if let Some(index) = find(&is_same_family) {
            return Ok(Choice { index, why: "it listens at this port on all addresses" });
        }
    } else if let Some(index) = find(&|_| true) {
        return Ok(Choice { index, why: "it listens at this port" });
    }
    let (mut rest, scheme) = (by_scheme(), if url.is_tls { "https" } else { "http" });
    match (url.port, rest.next(), rest.next()) {
        (None, Some((index, _)), None) if ip.is_none() => {
            Ok(Choice { index, why: "no other has this scheme, though it is at another port" })
        }
        _ => Err(refuse(format!("no listener takes {scheme} at {}, port {port}", url.host))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::question::Question;

    fn found(named: Option<&str>, url: &str) -> Result<usize, String> {
        let address = |text: &str| Address::Inet(text.parse().unwrap());
        let web = [address("0.0.0.0:80"), address("[::]:80")];
        let (inner, safe) = ([address("10.0.0.1:80")], [address("0.0.0.0:8443")]);
        let door = |name, is_tls, bind| Door { name, is_tls, bind };
        let doors =
            [door("web", false, &web[..]), door("inner", false, &inner), door("safe", true, &safe)];
        let url = Question::get(url).url().unwrap();
        choose(&doors, named, &url).map(|choice| choice.index).map_err(|no| no.error)
    }

    #[test]
    fn a_listener_is_found_by_what_clients_see_of_it() {
        assert_eq!(found(None, "http://shop.example"), Ok(0));
        assert_eq!(found(None, "http://10.0.0.1/"), Ok(1));
        assert_eq!(found(None, "http://10.0.0.2/"), Ok(0));
        assert_eq!(found(None, "http://[2001:db8::1]/"), Ok(0));
        assert_eq!(found(None, "https://shop.example"), Ok(2), "the only one with TLS");
        assert_eq!(found(None, "https://shop.example:8443"), Ok(2));
        assert_eq!(found(Some("inner"), "http://shop.example"), Ok(1));
        assert!(found(None, "http://shop.example:81").is_err());
        assert!(found(None, "https://shop.example:443").is_err());
        assert!(found(Some("none"), "http://shop.example").is_err());
    }
}
