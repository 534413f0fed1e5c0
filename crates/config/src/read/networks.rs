//! Networks of clients: of `trusted_proxies` and of a route's `client`.

use ipnet::IpNet;

use super::Reader;
use crate::problem::Problem;
use crate::tree::{Node, Value};

/// The networks, and whether `"unix"` is among them.
pub(super) fn networks(reader: &mut Reader<'_>, items: &[Node]) -> (Vec<IpNet>, bool) {
    let mut networks = Vec::new();
    let mut unix = false;
    for item in items {
        if matches!(&item.value, Value::String(text) if text == "unix") {
            unix = true;
        } else {
            networks.extend(reader.text(item, network));
        }
    }
    (networks, unix)
}

/// A network, or one address. Bits below the prefix have to be zero: what they mean is a guess.
pub(super) fn network(text: &str) -> Result<IpNet, Problem> {
    if let Ok(address) = text.parse::<std::net::IpAddr>() {
        return Ok(IpNet::from(address.to_canonical()));
    }
    let network: IpNet = text.parse().map_err(|_| {
        Problem::expected(
            "this is no network",
            "expected one such as \"10.0.0.0/8\" or \"fd00::/8\", or \"unix\"",
        )
    })?;
    if network.trunc() != network {
        return Err(Problem::expected("bits are set below the prefix", "expected a network")
            .help(format!("the network is \"{}\"", network.trunc())));
    }
    Ok(network)
}

#[cfg(test)]
mod tests {
    use super::network;

    #[test]
    fn networks_have_no_bits_below_their_prefix() {
        for text in ["10.0.0.0/8", "10.1.2.3", "fd00::/8", "::1", "0.0.0.0/0", "10.1.2.3/32"] {
            assert!(network(text).is_ok(), "{text}");
        }
        assert_eq!(network("::ffff:10.0.0.1").unwrap().to_string(), "10.0.0.1/32");
        for text in ["", "10.0.0.1/8", "10.0.0.0/33", "10.0.0/8", "fd00::1/8", "/8", "all"] {
            assert!(network(text).is_err(), "{text}");
        }
    }
}
