//! What is tried on a log: an algorithm with its options, over the log's endpoints.

use std::net::{Ipv4Addr, SocketAddr};

use subak_balance::catalogue::{self, OptionKind, OptionValue};
use subak_base::{Address, Weight};
use subak_pool::{EndpointSpec, PoolSpec};
use subak_sim::{Patience, Retry};

use crate::log::Log;
use crate::maker::maker;

/// A pool that is tried.
#[derive(Clone, Debug)]
pub struct Candidate {
    /// As reports name it.
    pub name: String,
    /// The pool, with all its settings.
    pub pool: PoolSpec,
    /// Its time limits.
    pub patience: Patience,
    /// What it tries again.
    pub retry: Retry,
}

impl Candidate {
    /// A pool with nothing else set.
    pub fn new(name: impl Into<String>, pool: PoolSpec) -> Candidate {
        let (patience, retry) = (Patience::default(), Retry::default());
        Candidate { name: name.into(), pool, patience, retry }
    }
}

impl Log {
    /// Every algorithm of the catalogue over this log's endpoints. The one that hashes takes the URI,
    /// where the log has any: the others that keep clients look at addresses.
    pub fn catalogue(&self, weights: &[u16]) -> Vec<Candidate> {
        let all = catalogue::all().iter().map(|listing| match listing.name {
            "hash" if self.uris.len() > 1 => "hash/key=uri",
            name => name,
        });
        all.filter_map(|name| self.candidate(name, weights).ok()).collect()
    }

    /// The algorithm that is written so, over this log's endpoints: a name, and options after it, as in
    /// `hash/key=uri/balance_factor=1.25`. Endpoints without a weight have weight 1.
    ///
    /// # Errors
    /// What is wrong with it, and what there is.
    pub fn candidate(&self, text: &str, weights: &[u16]) -> Result<Candidate, String> {
        let mut parts = text.split('/');
        let name = parts.next().unwrap_or_default();
        let listing = catalogue::find(name).ok_or_else(|| {
            let names: Vec<_> = catalogue::all().iter().map(|listing| listing.name).collect();
            format!("there is no algorithm \"{name}\"; there are: {}", names.join(", "))
        })?;
        let mut options = Vec::new();
        for part in parts {
            let (option, value) = part
                .split_once('=')
                .ok_or_else(|| format!("{text}: an option is NAME=VALUE, not \"{part}\""))?;
            let kind = listing.options.iter().find(|spec| spec.name == option);
            options.push((option, value_of(kind.map(|spec| spec.kind), value)));
        }
        let algorithm =
            listing.configure(name, &options).map_err(|why| format!("{text}: {why}"))?;
        let pool = PoolSpec::new("replayed", algorithm, self.specs(weights));
        Ok(Candidate::new(text, pool))
    }

    /// The same with so many endpoints: the first of this log's, in the order of their names, and where
    /// that are not enough others, of which a replay takes the log's median endpoint.
    #[must_use]
    pub fn with_endpoints(&self, candidate: &Candidate, count: usize) -> Candidate {
        let mut wanted = candidate.clone();
        let own = wanted.pool.endpoints.len();
        wanted.pool.endpoints.truncate(count);
        for number in own..count {
            let name = format!("added-{}", number - own + 1);
            let address = self.address_of(number, &name);
            wanted.pool.endpoints.push(EndpointSpec::new(name, address));
        }
        let plural = if count == 1 { "" } else { "s" };
        wanted.name = format!("{} over {count} endpoint{plural}", candidate.name);
        wanted
    }

    /// The candidate that this log's picks show to have made it, if they do.
    pub fn made_by(&self) -> Option<Candidate> {
        let mut candidates = self.catalogue(&[]);
        let made_by = maker(self, &candidates.iter().collect::<Vec<_>>());
        made_by.map(|index| candidates.swap_remove(index))
    }

    /// The log's endpoints as a pool has them.
    fn specs(&self, weights: &[u16]) -> Vec<EndpointSpec> {
        let spec = |(index, name): (usize, &String)| EndpointSpec {
            weight: Weight(weights.get(index).copied().unwrap_or(1)),
            ..EndpointSpec::new(name.clone(), self.address_of(index, name))
        };
        self.endpoints.iter().enumerate().map(spec).collect()
    }

    /// Where it is, as far as a name tells; else an address that no machine has.
    fn address_of(&self, index: usize, name: &str) -> Address {
        let made_up = || SocketAddr::from((Ipv4Addr::from(0xF000_0000 | index as u32), 80));
        Address::inet(name.parse().unwrap_or_else(|_| made_up()))
    }

    /// The log's endpoints, as it names them.
    pub fn endpoints(&self) -> &[String] {
        &self.endpoints
    }
}

fn value_of(kind: Option<OptionKind>, text: &str) -> OptionValue<'_> {
    let number = || match kind? {
        OptionKind::Integer { .. } => text.parse().ok().map(OptionValue::Integer),
        OptionKind::Decimal { .. } => {
            let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
            let digits: u32 = format!("{fraction:0<3}").get(..3)?.parse().ok()?;
            let whole: u32 = whole.parse().ok()?;
            Some(OptionValue::Thousandths(whole.checked_mul(1000)?.checked_add(digits)?))
        }
        OptionKind::Words(_) | OptionKind::Text { .. } => None,
    };
    number().unwrap_or(OptionValue::Text(text))
}

#[cfg(test)]
mod tests {
    use crate::log::tests::log_of;

    #[test]
    fn fewer_endpoints_are_the_first_and_more_have_names_of_their_own() {
        let log = log_of(&["10.0.0.1:80", "b"], &[(0, 1, 0)]);
        let all = log.candidate("round_robin", &[]).unwrap();
        let names = |count| {
            let wanted = log.with_endpoints(&all, count);
            let names = wanted.pool.endpoints.iter().map(|one| one.name.clone());
            (wanted.name, names.collect::<Vec<_>>().join(" "))
        };
        assert_eq!(names(1), ("round_robin over 1 endpoint".into(), "10.0.0.1:80".into()));
        let four = "10.0.0.1:80 b added-1 added-2";
        assert_eq!(names(4), ("round_robin over 4 endpoints".into(), four.into()));
        let addresses = log.with_endpoints(&all, 4).pool.endpoints;
        let addresses: std::collections::HashSet<_> =
            addresses.iter().map(|one| one.address.to_string()).collect();
        assert_eq!(addresses.len(), 4);
    }

    #[test]
    fn all_of_the_catalogue_or_some_with_options() {
        let log = log_of(&["10.0.0.1:80", "b"], &[(0, 1, 0)]);
        assert_eq!(log.catalogue(&[]).len(), subak_balance::catalogue::all().len());
        let found = log.candidate("hash/key=path/method=maglev/balance_factor=1.25", &[3]).unwrap();
        assert_eq!(found.pool.endpoints.iter().map(|one| one.weight.0).collect::<Vec<_>>(), [3, 1]);
        assert_eq!(found.pool.endpoints[0].address.to_string(), "10.0.0.1:80");
        for (text, part) in [
            ("rounde_robin", "there are: "),
            ("hash/uri", "NAME=VALUE"),
            ("hash/key=nothing", "hash/key=nothing: key cannot be"),
            ("power_of_two/choices=0", "choices"),
        ] {
            let why = log.candidate(text, &[]).unwrap_err();
            assert!(why.contains(part), "{text}: {why}");
        }
    }
}
