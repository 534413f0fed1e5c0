//! From records to addresses. Pure; what a server sent is only believed where it answers the question.
//!
//! A chain of aliases (CNAME) is followed from the name that was asked; records of other names are left
//! aside. Addresses that no endpoint can have are refused: unspecified (0.0.0.0, ::), multicast,
//! broadcast, and IPv6 link-local ones, which mean nothing without an interface. Loopback addresses
//! are taken: a name may stand for this machine.

use std::net::{IpAddr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use subak_base::Weight;
use subak_config::names::Found;

/// Aliases that are followed from one name.
const MAX_ALIASES: usize = 16;

/// A record, as far as it matters here.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// In lower case, without a dot at its end.
    pub name: String,
    /// How long it may be kept.
    pub ttl: Duration,
    /// What it says.
    pub data: Data,
}

/// What a record says. Names as in [`Record::name`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Data {
    /// A or AAAA.
    Address(IpAddr),
    /// CNAME.
    Alias(String),
    /// SRV.
    Service(Target),
}

/// What an SRV record says.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Target {
    /// The least go first.
    pub priority: u16,
    /// The share among those of one priority.
    pub weight: u16,
    /// 0: there is no service.
    pub port: u16,
    /// Empty: there is no service.
    pub host: String,
}

/// The records that belong to a name, and for how long the way to them holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Answer<'a> {
    /// Those of the name at the end of the chain that are no aliases.
    pub records: Vec<&'a Record>,
    /// The shortest time to live of them and of every alias; nothing without records.
    pub ttl: Option<Duration>,
}

/// Follows the aliases from `name`.
///
/// # Errors
/// In words, when they do not end.
pub fn follow<'a>(name: &str, records: &'a [Record]) -> Result<Answer<'a>, String> {
    let mut name = name;
    let mut ttl = Duration::MAX;
    for _ in 0..=MAX_ALIASES {
        let of_name = || records.iter().filter(|record| record.name == name);
        let alias = of_name().find_map(|record| match &record.data {
            Data::Alias(target) => Some((target, record.ttl)),
            _ => None,
        });
        if let Some((target, alias_ttl)) = alias {
            ttl = ttl.min(alias_ttl);
            name = target;
            continue;
        }
        let records: Vec<_> = of_name().collect();
        let ttl = records.iter().map(|record| record.ttl).min().map(|least| least.min(ttl));
        return Ok(Answer { records, ttl });
    }
    Err(format!(
        "its aliases (CNAME) do not end: more than {MAX_ALIASES} lead from one to the next"
    ))
}

/// Why no endpoint can have this address, if that is so.
pub fn refusal(ip: IpAddr) -> Option<&'static str> {
    match ip.to_canonical() {
        ip if ip.is_unspecified() => Some("unspecified"),
        ip if ip.is_multicast() => Some("multicast"),
        IpAddr::V4(ip) if ip.is_broadcast() => Some("broadcast"),
        // "This network": what a filter of names answers, and no machine's address.
        IpAddr::V4(ip) if ip.octets()[0] == 0 => Some("of no machine"),
        IpAddr::V6(ip) if ip.is_unicast_link_local() => Some("link-local"),
        _ => None,
    }
}

/// Whoever among a service's targets exists, the first in order first, with whether it is a backup:
/// those of the lowest priority are the primaries, all others backups.
pub fn tiers(mut targets: Vec<Target>) -> Vec<(Target, bool)> {
    targets.retain(|target| target.port != 0 && !target.host.is_empty());
    targets.sort_unstable();
    targets.dedup();
    let first = targets.first().map(|target| target.priority);
    let with_tier = |target: Target| {
        let is_backup = Some(target.priority) != first;
        (target, is_backup)
    };
    targets.into_iter().map(with_tier).collect()
}

/// The endpoint of a service's target at one of its addresses. Weight 0, which asks for very little, is
/// 1: weight 0 takes nothing here.
pub fn endpoint(target: &Target, backup: bool, ip: IpAddr) -> Found {
    Found {
        backup,
        address: SocketAddr::new(ip.to_canonical(), target.port),
        weight: Some(Weight(target.weight.max(1))),
        target: Some(Arc::from(&*target.host)),
    }
}

#[cfg(test)]
mod tests;
