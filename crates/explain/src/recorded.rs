//! A pick log that leaves the process: everything that picks were decided by, as JSON, and the picks
//! made once more from that and the configuration alone.
//!
//! A balancer is not written down. What it was compiled from is: the list with the weights in force, who
//! was eligible, and where its round robin began; the algorithm is the configuration's.

use std::fmt;

use serde::{Deserialize, Serialize};
use subak_balance::{Algorithm, Balancer, Beginning, Endpoints, Entry, Owed, Recipe};
use subak_base::{BitSet, Tick, Weight};
use subak_pool::{Evidence, PickRecord, Read, ReadKind, RecordedKey};

use crate::picks::{NamedPick, Picks};

/// What a balancer was compiled from, beside the algorithm.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedBalancer {
    /// Of this pool.
    pub pool: String,
    /// Of the pool.
    pub generation: u64,
    /// In that generation.
    pub version: u64,
    /// The list: identity, name, and the weight in force.
    pub endpoints: Vec<(String, String, u16)>,
    /// Places of those who were eligible.
    pub eligible: Vec<usize>,
    /// The first ticket it counts from.
    pub ticket: u64,
    /// What each endpoint was owed then, in 2⁻³² of a pick; for a round robin in bursts `run`.
    pub debts: Option<Vec<i64>>,
    /// Whose run it was in, and how many picks of it were left.
    pub run: Option<(usize, u32)>,
}

/// What one pick was decided by.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecordedPick {
    /// Whose balancer: the place in [`Picks::balancers`].
    pub balancer: usize,
    /// Places of those who could not be picked any more.
    pub tried: Vec<usize>,
    /// The moment, on the process's own clock.
    pub now_ns: u64,
    /// The client's address, where that was the key.
    pub address: Option<std::net::IpAddr>,
    /// The key, where it was anything else: its octets in hexadecimal.
    pub key: Option<String>,
    /// Every look at the load, in order: the endpoint's place, at what, and what was seen.
    pub reads: Vec<(usize, Looked, u64)>,
    /// The place of the endpoint that was picked.
    pub picked: Option<usize>,
}

/// What was looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Looked {
    /// Requests in flight.
    InFlight,
    /// The algorithm's own cell.
    Cell,
    /// Packets.
    Packets,
    /// Bytes.
    Bytes,
    /// Slow start.
    Ramp,
    /// The pool's summary.
    Summary,
}

const LOOKS: [(Looked, ReadKind); 6] = [
    (Looked::InFlight, ReadKind::InFlight),
    (Looked::Cell, ReadKind::Cell),
    (Looked::Packets, ReadKind::Packets),
    (Looked::Bytes, ReadKind::Bytes),
    (Looked::Ramp, ReadKind::Ramp),
    (Looked::Summary, ReadKind::Summary),
];

/// What came of repeating one pick.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Repeated {
    /// The same endpoint, by the same looks at the load.
    Same,
    /// Another endpoint, by the same looks: this one's place; none for nobody.
    Other(Option<usize>),
    /// The balancer looks at something else than it did then: another algorithm, or other options.
    LooksElsewhere,
    /// No balancer made this pick, or it was not recorded whole.
    NotABalancers,
}

/// Why a log cannot be replayed.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum NotReplayable {
    /// It was written without what picks were decided by.
    NotWhole,
    /// It says something that no log says.
    Malformed(&'static str),
}

impl fmt::Display for NotReplayable {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotReplayable::NotWhole => out.write_str(
                "it has no picks with all that they were decided by; write it with \
                 `subak explain --recent 1000 --json`",
            ),
            NotReplayable::Malformed(what) => write!(out, "its {what}"),
        }
    }
}

impl RecordedBalancer {
    pub(crate) fn of(pool: &str, record: &PickRecord) -> RecordedBalancer {
        let Beginning { ticket, owed } = record.beginning();
        let (debts, run) = match owed {
            Owed::Debts(debts) => (Some(debts.into()), None),
            Owed::Run { endpoint, picks } => (None, Some((endpoint, picks))),
        };
        let written = |entry: &Entry| (entry.identity.clone(), entry.name.clone(), entry.weight.0);
        RecordedBalancer {
            pool: pool.to_owned(),
            generation: record.generation,
            version: record.version,
            endpoints: record.list().iter().map(written).collect(),
            eligible: record.eligible().iter().collect(),
            ticket,
            debts,
            run,
        }
    }

    /// Compiles it again.
    ///
    /// # Errors
    /// [`NotReplayable::Malformed`].
    pub fn compile(&self, algorithm: &Algorithm) -> Result<(Balancer, BitSet), NotReplayable> {
        let malformed = NotReplayable::Malformed;
        let entry = |(identity, name, weight): &(String, String, u16)| {
            Entry::new(identity.clone(), name.clone(), Weight(*weight))
        };
        let endpoints = Endpoints::new(self.endpoints.iter().map(entry).collect())
            .map_err(|_| malformed("balancers have an endpoint twice"))?;
        algorithm
            .check(&endpoints)
            .map_err(|_| malformed("weights do not fit the configuration's algorithm"))?;
        if self.eligible.iter().any(|index| *index >= endpoints.len()) {
            return Err(malformed("balancers have eligible endpoints that are not in their lists"));
        }
        let eligible: BitSet = self.eligible.iter().copied().collect();
        let owed = match (&self.debts, self.run) {
            (Some(debts), None) => Owed::Debts(debts.as_slice().into()),
            (None, Some((endpoint, picks))) => Owed::Run { endpoint, picks },
            _ => return Err(malformed("balancers have neither debts nor a run, or both")),
        };
        let beginning = Beginning { ticket: self.ticket, owed };
        let recipe =
            Recipe { algorithm, endpoints: &endpoints, eligible: &eligible, previous: None };
        let balancer = Balancer::resume(recipe, &beginning).ok_or(malformed(
            "balancers were compiled for a round robin of another order than the configuration's",
        ))?;
        Ok((balancer, eligible))
    }
}

impl RecordedPick {
    pub(crate) fn of(record: &PickRecord, balancer: usize) -> RecordedPick {
        let looked = |read: &Read| {
            let kind = LOOKS.iter().find(|(_, kind)| *kind == read.kind);
            (read.index, kind.map_or(Looked::Summary, |(looked, _)| *looked), read.value)
        };
        let (address, key) = match &record.key {
            RecordedKey::None => (None, None),
            RecordedKey::Address(address) => (Some(*address), None),
            RecordedKey::Bytes(bytes) => {
                (None, Some(bytes.iter().map(|byte| format!("{byte:02x}")).collect()))
            }
        };
        RecordedPick {
            balancer,
            tried: record.tried.iter().collect(),
            now_ns: record.now.0,
            address,
            key,
            reads: record.reads.iter().map(looked).collect(),
            picked: record.picked,
        }
    }

    fn key(&self) -> Result<RecordedKey, NotReplayable> {
        let malformed = NotReplayable::Malformed("keys are not hexadecimal");
        match (&self.key, self.address) {
            (None, None) => Ok(RecordedKey::None),
            (None, Some(address)) => Ok(RecordedKey::Address(address)),
            (Some(text), _) => {
                let digits = text.as_bytes().chunks(2);
                let byte = |pair: &[u8]| {
                    let pair = std::str::from_utf8(pair).ok().filter(|pair| pair.len() == 2)?;
                    u8::from_str_radix(pair, 16).ok()
                };
                let bytes: Option<Box<[u8]>> = digits.map(byte).collect();
                Ok(RecordedKey::Bytes(bytes.ok_or(malformed)?))
            }
        }
    }
}

impl Picks {
    /// Makes every pick of this pool once more, oldest first, from what was recorded and this algorithm
    /// alone.
    ///
    /// # Errors
    /// [`NotReplayable`].
    pub fn repeat(
        &self,
        pool: &str,
        algorithm: &Algorithm,
    ) -> Result<Vec<(&NamedPick, Repeated)>, NotReplayable> {
        let mut compiled = Vec::new();
        for balancer in &self.balancers {
            let is_meant = balancer.pool == pool;
            compiled.push(is_meant.then(|| balancer.compile(algorithm)).transpose()?);
        }
        let picks = self.picks.iter().rev().filter(|pick| pick.pool == pool);
        let repeated: Vec<_> = picks
            .map(|pick| Ok((pick, repeat(pick, &self.balancers, &compiled)?)))
            .collect::<Result<_, NotReplayable>>()?;
        match repeated.iter().any(|(pick, _)| pick.recorded.is_some()) {
            true => Ok(repeated),
            false => Err(NotReplayable::NotWhole),
        }
    }
}

fn repeat(
    pick: &NamedPick,
    balancers: &[RecordedBalancer],
    compiled: &[Option<(Balancer, BitSet)>],
) -> Result<Repeated, NotReplayable> {
    let malformed = NotReplayable::Malformed;
    let Some(recorded) = pick.recorded.as_ref().filter(|_| pick.by == "algorithm") else {
        return Ok(Repeated::NotABalancers);
    };
    let place = recorded.balancer;
    let found = compiled.get(place).and_then(Option::as_ref).zip(balancers.get(place));
    let ((balancer, eligible), told) =
        found.ok_or(malformed("picks name a balancer that is not there"))?;
    let count = told.endpoints.len();
    let places = recorded.tried.iter().chain(recorded.reads.iter().map(|(index, ..)| index));
    if places.chain(&recorded.picked).any(|index| *index >= count.max(1)) {
        return Err(malformed("picks name endpoints that are not in their balancers' lists"));
    }
    let random = u64::from_str_radix(&pick.random, 16)
        .map_err(|_| malformed("random words are not hexadecimal"))?;
    let reads: Vec<Read> = recorded
        .reads
        .iter()
        .filter_map(|(index, looked, value)| {
            let (_, kind) = LOOKS.iter().find(|(one, _)| one == looked)?;
            Some(Read { index: *index, kind: *kind, value: *value })
        })
        .collect();
    let (key, tried) = (recorded.key()?, recorded.tried.iter().copied().collect());
    let evidence = Evidence {
        eligible,
        tried: &tried,
        now: Tick(recorded.now_ns),
        key: key.key(),
        ticket: pick.ticket,
        random,
        reads: &reads,
    };
    Ok(match evidence.decide(balancer) {
        None => Repeated::LooksElsewhere,
        Some(picked) if picked == recorded.picked => Repeated::Same,
        Some(other) => Repeated::Other(other),
    })
}

#[cfg(test)]
mod tests {
    use std::num::NonZeroUsize;
    use std::time::Duration;

    use subak_balance::Key;
    use subak_balance::catalogue::{self, OptionValue};
    use subak_base::{Address, Rng};
    use subak_pool::{
        Acquire, Answered, EndpointIds, EndpointSpec, Outcome, Pool, PoolSpec, ShadowKeys,
    };

    use super::*;
    use crate::picks::Search;

    /// The log of a pool that was busy, whose weights were changed, as it leaves the process.
    fn log(algorithm: &Algorithm) -> Picks {
        let endpoint = |(port, weight): (u16, u16)| EndpointSpec {
            weight: Weight(weight),
            ..EndpointSpec::new(format!("e{port}"), Address::inet(([127, 0, 0, 1], port).into()))
        };
        let endpoints = (1..).zip([3, 1, 2, 5]).map(endpoint).collect();
        let mut spec = PoolSpec::new("app", algorithm.clone(), endpoints);
        spec.pick_log = NonZeroUsize::new(1000);
        let pool = Pool::build(&spec, &mut EndpointIds::new(), None, Tick(0));
        let mut random = Rng::new(5);
        let mut now = Tick::from_millis(1000);
        let mut held = Vec::new();
        for request in 0..400_u32 {
            now = now.after(Duration::from_micros(random.below(20_000)));
            if request % 40 == 0 {
                pool.tick(now, random.next_u64());
                let weight = Weight(random.below(5) as u16);
                pool.set_weight("e2", Some(weight), now).expect("it is there");
            }
            let (client, bytes) =
                ([192, 0, 2, random.below(250) as u8], random.next_u64().to_be_bytes());
            let is_address = algorithm.key().is_none_or(|key| key.to_string() == "source");
            let key = if is_address { Key::Address(client.into()) } else { Key::Bytes(&bytes) };
            let asked = Acquire {
                key,
                shadow_keys: ShadowKeys::OWN,
                random: random.next_u64(),
                now,
                in_turn: false,
                stick: None,
                client: None,
                from: None,
                decision: None,
            };
            let tried = (0..4).filter(|_| random.below(6) == 0).collect();
            held.extend(pool.acquire(&asked, &tried));
            if held.len() > 5 {
                let first_byte = Some(Duration::from_micros(random.below(9_000)));
                let answered = Answered { first_byte, status_failed: false };
                held.swap_remove(random.below(5) as usize)
                    .settle(Outcome::Completed(answered), now);
            }
        }
        let search = Search { count: 1000, whole: true, ..Search::default() };
        let picks = Picks::find([&pool].into_iter(), &search, now);
        serde_json::from_str(&serde_json::to_string(&picks).expect("JSON")).expect("the same")
    }

    fn configured(name: &str, options: &[(&str, OptionValue<'_>)]) -> Algorithm {
        catalogue::find(name).expect("it is there").configure(name, options).expect("it is right")
    }

    #[test]
    fn every_algorithm_s_log_is_repeated_from_its_json() {
        let plain = catalogue::all().iter().map(catalogue::Listing::algorithm);
        let forms = [
            configured("round_robin", &[("order", "burst".into())]),
            configured("hash", &[("key", "uri".into()), ("method", "ring".into())]),
            configured("hash", &[("key", "source".into()), ("method", "maglev".into())]),
        ];
        for algorithm in plain.chain(forms) {
            let log = log(&algorithm);
            assert!(log.balancers.len() > 3 && log.picks.len() >= 350, "{algorithm:?}");
            for (pick, how) in log.repeat("app", &algorithm).expect("it can be") {
                let expected = match pick.by == "algorithm" {
                    true => Repeated::Same,
                    false => Repeated::NotABalancers,
                };
                assert_eq!(how, expected, "{algorithm:?}: {pick:?}");
            }
        }
    }

    #[test]
    fn what_was_not_so_is_found_out() {
        let algorithm = configured("least_connections", &[]);
        let log = log(&algorithm);
        let place = log.picks.iter().position(|pick| pick.by == "algorithm").expect("one");
        let judged = |log: &Picks, algorithm: &Algorithm| {
            let repeated = log.repeat("app", algorithm);
            repeated.map(|all| all.into_iter().filter(|(_, how)| *how != Repeated::Same).count())
        };
        let with = |change: &dyn Fn(&mut Picks)| {
            let mut changed = log.clone();
            change(&mut changed);
            changed
        };
        let others = judged(&log, &algorithm).expect("whole");
        let other_end = with(&|log| {
            let picked = &mut log.picks[place].recorded.as_mut().expect("whole").picked;
            *picked = picked.map(|index| (index + 1) % 4);
        });
        assert_eq!(judged(&other_end, &algorithm), Ok(others + 1));
        let other_algorithm = configured("random", &[]);
        assert!(judged(&log, &other_algorithm).expect("whole") > 100);
        let burst = configured("round_robin", &[("order", "burst".into())]);
        assert!(matches!(judged(&log, &burst), Err(NotReplayable::Malformed(_))));
        for malformed in [
            with(&|log| log.balancers[0].eligible.push(4)),
            with(&|log| log.balancers[0].debts = None),
            with(&|log| log.balancers[0].debts = Some(vec![i64::MIN; 4])),
            with(&|log| log.picks[place].recorded.as_mut().expect("whole").balancer = 1000),
            with(&|log| log.picks[place].recorded.as_mut().expect("whole").picked = Some(4)),
            with(&|log| log.picks[place].random = "x".into()),
        ] {
            assert!(matches!(judged(&malformed, &algorithm), Err(NotReplayable::Malformed(_))));
        }
        let not_whole = with(&|log| log.picks.iter_mut().for_each(|pick| pick.recorded = None));
        assert_eq!(judged(&not_whole, &algorithm), Err(NotReplayable::NotWhole));
    }
}
