//! Network traffic, as `/proc/net/dev` counts it, and which interfaces it is about.
//!
//! What serves clients is, as a rule, what has a default route: bridges, tunnels and the far ends of
//! containers would count the same bytes again. Source: proc_net(5), and the kernel's
//! `net/ipv6/route.c` for the columns of `ipv6_route`.

/// An interface's counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Traffic {
    pub(super) name: String,
    pub(super) received_bytes: u64,
    pub(super) sent_bytes: u64,
}

/// The interfaces of `/proc/net/dev`, those left out whose line is not understood.
pub(super) fn parse_dev(text: &str) -> impl Iterator<Item = Traffic> {
    text.lines().filter_map(|line| {
        // The name of an alias has a colon of its own.
        let (name, counts) = line.rsplit_once(':')?;
        let mut counts = counts.split_ascii_whitespace();
        let received_bytes = counts.next()?.parse().ok()?;
        let sent_bytes = counts.nth(7)?.parse().ok()?;
        Some(Traffic { name: name.trim().to_owned(), received_bytes, sent_bytes })
    })
}

/// The interfaces of the default routes in `/proc/net/route`.
pub(super) fn default_routes_v4(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        match words.as_slice() {
            [name, "00000000", _, _, _, _, _, "00000000", ..] => Some(*name),
            _ => None,
        }
    })
}

/// The interfaces of the default routes in `/proc/net/ipv6_route`. Where there is none the kernel
/// has one on the loopback, which answers that nothing can be reached.
pub(super) fn default_routes_v6(text: &str) -> impl Iterator<Item = &str> {
    text.lines().filter_map(|line| {
        let words: Vec<&str> = line.split_ascii_whitespace().collect();
        let [destination, "00", .., name] = words.as_slice() else { return None };
        let everywhere = destination.len() == 32 && destination.bytes().all(|byte| byte == b'0');
        (everywhere && words.len() == 10 && *name != "lo").then_some(*name)
    })
}

#[cfg(test)]
mod tests {
    use super::{Traffic, default_routes_v4, default_routes_v6, parse_dev};

    const DEV: &str = "\
Inter-|   Receive                                                |  Transmit
 face |bytes    packets errs drop fifo frame compressed multicast|bytes    packets errs drop fifo colls carrier compressed
    lo: 256613064664 64283438    0    0    0     0          0         0 256613064664 64283438    0    0    0     0       0          0
  eth0: 252089054   12602    0    0    0     0          0         0   821120   10069    0    0    0     0       0          0
eth0:1:7 0 0 0 0 0 0 0 9 0 0 0 0 0 0 0
  eth1: 1 2 3
  eth2: many 0 0 0 0 0 0 0 1 0 0 0 0 0 0 0
";

    const ROUTE: &str = "\
Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT
eth0\t00000000\t010200C0\t0003\t0\t0\t0\t00000000\t0\t0\t0
eth0\t000200C0\t00000000\t0001\t0\t0\t0\t00FFFFFF\t0\t0\t0
tun0\t00000000\t00000000\t0001\t0\t0\t0\t00000080\t0\t0\t0
wlan0\t00000000
";

    const IPV6_ROUTE: &str = "\
fd000000000000000000000000000000 40 00000000000000000000000000000000 00 00000000000000000000000000000000 00000100 00000001 00000000 00000001     eth0
00000000000000000000000000000000 00 00000000000000000000000000000000 00 fd000000000000000000000000000001 00000400 00000002 00000000 00000003     eth1
00000000000000000000000000000001 80 00000000000000000000000000000000 00 00000000000000000000000000000000 00000000 00000002 00000000 80200001       lo
00000000000000000000000000000000 00 00000000000000000000000000000000 00 00000000000000000000000000000000 ffffffff 00000001 00000000 00200200       lo
00000000000000000000000000000000 00 eth2
";

    #[test]
    fn both_directions_of_each_interface() {
        let traffic = |name: &str, received_bytes, sent_bytes| Traffic {
            name: name.to_owned(),
            received_bytes,
            sent_bytes,
        };
        let found: Vec<_> = parse_dev(DEV).collect();
        let expected = [
            traffic("lo", 256_613_064_664, 256_613_064_664),
            traffic("eth0", 252_089_054, 821_120),
            traffic("eth0:1", 7, 9),
        ];
        assert_eq!(found, expected);
    }

    #[test]
    fn default_routes_of_both_families() {
        assert_eq!(default_routes_v4(ROUTE).collect::<Vec<_>>(), ["eth0"]);
        assert_eq!(default_routes_v6(IPV6_ROUTE).collect::<Vec<_>>(), ["eth1"]);
        assert_eq!(default_routes_v4("").count() + default_routes_v6("\n\n").count(), 0);
    }
}
