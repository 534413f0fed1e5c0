//! What is asked for: one request, or several with weights, encoded once.

use std::net::IpAddr;

use subak_base::Rng;

/// One request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Among several, how often it is asked.
    pub weight: u32,
    /// GET, POST, …
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Fields beside Host and Content-Length, which are made; a Host here takes its place.
    pub headers: Vec<(String, String)>,
    /// What is sent behind the head.
    pub body: Vec<u8>,
}

impl Request {
    /// GET `path`.
    pub fn get(path: &str) -> Request {
        Request {
            weight: 1,
            method: "GET".to_owned(),
            path: path.to_owned(),
            headers: Vec::new(),
            body: Vec::new(),
        }
    }

    /// What is wrong with it, if anything: a line end in a field would make two requests of one.
    pub(crate) fn fault(&self) -> Option<&'static str> {
        let token = |text: &str| {
            !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_graphic() && byte != b':')
        };
        let value = |text: &str| !text.bytes().any(|byte| matches!(byte, b'\r' | b'\n' | 0));
        match self {
            _ if !token(&self.method) => Some("a method is a word"),
            _ if !self.path.starts_with('/') && self.path != "*" => Some("a path starts with /"),
            _ if self.path.bytes().any(|byte| !byte.is_ascii_graphic()) => Some(
                "a path has no blanks and nothing beyond ASCII: encode them as %20 and the like",
            ),
            _ if !self.headers.iter().all(|(name, text)| token(name) && value(text)) => {
                Some("a header is a word, a colon and a line")
            }
            _ => None,
        }
    }

    /// As HTTP/1.1 sends it.
    fn encode(&self, host: &str, close: bool) -> Encoded {
        let mut head = format!("{} {} HTTP/1.1\r\n", self.method, self.path).into_bytes();
        let named =
            |name: &str| self.headers.iter().any(|(other, _)| other.eq_ignore_ascii_case(name));
        let mut field = |name: &str, value: &str| {
            head.extend_from_slice(name.as_bytes());
            head.extend_from_slice(b": ");
            head.extend_from_slice(value.as_bytes());
            head.extend_from_slice(b"\r\n");
        };
        if !named("host") {
            field("Host", host);
        }
        for (name, value) in &self.headers {
            field(name, value);
        }
        let has_body = !self.body.is_empty() || matches!(&*self.method, "POST" | "PUT" | "PATCH");
        if has_body && !named("content-length") && !named("transfer-encoding") {
            field("Content-Length", &self.body.len().to_string());
        }
        if close && !named("connection") {
            field("Connection", "close");
        }
        let fields = head.len();
        head.extend_from_slice(b"\r\n");
        head.extend_from_slice(&self.body);
        Encoded { bytes: head, fields, bodiless: self.method == "HEAD" }
    }
}

/// One request as bytes.
#[derive(Clone, Debug)]
pub(super) struct Encoded {
    /// All of it.
    pub(super) bytes: Vec<u8>,
    /// Where one more field could stand.
    pub(super) fields: usize,
    /// Its answer has no body, whatever its head says.
    pub(super) bodiless: bool,
}

/// What one asks, request by request: which, and in whose name.
#[derive(Debug)]
pub(super) struct Questions {
    encoded: Vec<Encoded>,
    /// Sums of weights; empty for one request.
    sums: Vec<u64>,
    rng: Rng,
}

impl Questions {
    pub(super) fn new(requests: &[Request], host: &str, close: bool, seed: u64) -> Questions {
        let mut sum = 0;
        let mut add = |request: &Request| {
            sum += u64::from(request.weight);
            sum
        };
        let sums: Vec<u64> = requests.iter().map(&mut add).collect();
        Questions {
            encoded: requests.iter().map(|request| request.encode(host, close)).collect(),
            sums: if requests.len() > 1 { sums } else { Vec::new() },
            // Not the stream that arrivals are drawn from.
            rng: Rng::new(seed ^ 0x5153_5153),
        }
    }

    /// Which request is next, by weight.
    pub(super) fn next(&mut self) -> usize {
        let Some(total) = self.sums.last() else { return 0 };
        let drawn = self.rng.below(*total);
        self.sums.partition_point(|sum| *sum <= drawn)
    }

    pub(super) fn of(&self, index: usize) -> &Encoded {
        &self.encoded[index]
    }
}

/// Where clients come from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sources {
    /// Addresses to connect from, connection by connection in turn; none: the kernel's choice.
    pub bind: Vec<IpAddr>,
    /// Addresses that X-Forwarded-For names: in an open loop request by request in turn, in a
    /// closed one each user's own.
    pub forwarded: Vec<IpAddr>,
}

/// The most addresses a range may have.
pub const MAX_ADDRESSES: usize = 65_536;

/// Reads addresses: one, `FIRST-LAST`, or a network `10.0.0.0/24`.
///
/// # Errors
/// It is none of these, or more than [`MAX_ADDRESSES`].
pub fn addresses(text: &str) -> Result<Vec<IpAddr>, String> {
    let number = |ip: IpAddr| match ip {
        IpAddr::V4(ip) => u128::from(ip.to_bits()),
        IpAddr::V6(ip) => ip.to_bits(),
    };
    let parse = |text: &str| -> Result<IpAddr, String> {
        text.trim().parse().map_err(|_| format!("{text:?} is no address"))
    };
    let (first, last) = match (text.split_once('-'), text.split_once('/')) {
        (Some((first, last)), _) => {
            let (first, last) = (parse(first)?, parse(last)?);
            if first.is_ipv4() != last.is_ipv4() {
                return Err(format!("{text:?}: both ends are of one kind, IPv4 or IPv6"));
            }
            (first, number(last))
        }
        (None, Some((base, bits))) => {
            let base = parse(base)?;
            let all: u32 = if base.is_ipv4() { 32 } else { 128 };
            let bits: u32 = bits.parse().ok().filter(|bits| *bits <= all).ok_or_else(|| {
                format!("{text:?}: a network ends with the number of its bits, as in 10.0.0.0/24")
            })?;
            let hosts = 1_u128.checked_shl(all - bits).map_or(u128::MAX, |size| size - 1);
            (base, number(base) | hosts)
        }
        (None, None) => {
            let one = parse(text)?;
            (one, number(one))
        }
    };
    let from = number(first);
    let count =
        last.checked_sub(from).ok_or_else(|| format!("{text:?}: its end is before its start"))?;
    if count >= MAX_ADDRESSES as u128 {
        return Err(format!("{text:?} has more than {MAX_ADDRESSES} addresses"));
    }
    let made = |bits: u128| match first {
        IpAddr::V4(_) => IpAddr::V4((bits as u32).into()),
        IpAddr::V6(_) => IpAddr::V6(bits.into()),
    };
    Ok((from..=last).map(made).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_has_host_length_and_what_was_said() {
        let mut request = Request::get("/a?b=c");
        let text = |encoded: &Encoded| String::from_utf8(encoded.bytes.clone()).expect("text");
        let plain = request.encode("h:1", false);
        assert_eq!(text(&plain), "GET /a?b=c HTTP/1.1\r\nHost: h:1\r\n\r\n");
        assert_eq!(plain.fields, plain.bytes.len() - 2);
        request.method = "POST".to_owned();
        request.body = b"xyz".to_vec();
        request.headers = vec![("host".to_owned(), "other".to_owned())];
        let posted = text(&request.encode("h:1", true));
        let wanted = "POST /a?b=c HTTP/1.1\r\nhost: other\r\nContent-Length: 3\r\n\
                      Connection: close\r\n\r\nxyz";
        assert_eq!(posted, wanted);
    }

    #[test]
    fn what_would_be_two_requests_is_refused() {
        assert_eq!(Request::get("/").fault(), None);
        assert!(Request::get("/a b").fault().is_some());
        assert!(Request::get("a").fault().is_some());
        let mut odd = Request::get("/");
        odd.headers = vec![("X".to_owned(), "a\r\nEvil: b".to_owned())];
        assert!(odd.fault().is_some());
    }

    #[test]
    fn weights_are_kept() {
        let weighted = |weight| Request { weight, ..Request::get("/") };
        let requests = [weighted(1), weighted(0), weighted(3)];
        let mut questions = Questions::new(&requests, "h", false, 1);
        let mut hits = [0_u32; 3];
        (0..4000).for_each(|_| hits[questions.next()] += 1);
        assert_eq!(hits[1], 0);
        assert!(hits[0].abs_diff(1000) < 150, "{hits:?}");
    }

    #[test]
    fn ranges_of_addresses() {
        let all = |text| addresses(text).expect("addresses");
        assert_eq!(all("127.0.1.1-127.0.1.200").len(), 200);
        assert_eq!(all("10.0.0.0/30").last().expect("one").to_string(), "10.0.0.3");
        assert_eq!(all("2001:db8::/126").len(), 4);
        assert_eq!(all("::1"), ["::1".parse::<IpAddr>().expect("one")]);
        for wrong in ["", "10.0.0.9-10.0.0.1", "10.0.0.0/33", "::/0", "1.2.3.4-::1", "0.0.0.0/0"] {
            addresses(wrong).expect_err(wrong);
        }
    }
}
