//! By a key, with a choice of methods.
//!
//! | method | hash | when an endpoint goes | order of the list | cost |
//! |---|---|---|---|---|
//! | [`modulo`](Modulo) | 64-bit | its keys are spread; another number of endpoints moves most keys | matters | O(1) |
//! | [`nginx_modulo`](NginxModulo) | CRC-32 | as nginx's `hash` | matters | O(log n) |
//! | [`ring`](Ring) | CRC-32 | as nginx's `hash … consistent`: its keys go to the next points | does not | O(log n) |
//! | [`maglev`](MaglevTable) | 64-bit | its keys are spread, at most 1 % of the others move | does not | O(1) |
//! | [`rendezvous`](Rendezvous) | 64-bit | its keys are spread, no other moves | does not | O(n) |
//!
//! The 64-bit hash is [frozen](crate::hash64). A request without a key is served in turn.
//! `balance_factor` bounds the load with the last three: see [`consistent`](crate::consistent).
//!
//! Weights: proportional. `modulo` and `maglev` compile to flat tables, unless there is a bound.

use crate::balancer::Recipe;
use crate::catalogue::{Cost, Share, Traits, Unfit, Wants};
use crate::chain;
use crate::consistent::{
    Admission, BalanceFactor, Gate, MaglevTable, Modulo, NginxKey, NginxModulo, POINTS_MAX,
    Rendezvous, Ring, hash_of, points, steps_before,
};
use crate::endpoints::Endpoints;
use crate::key::KeySource;
use crate::options::{OptionError, OptionKind, OptionValue, Setting, TextProblem};
use crate::request::LoadView;
use crate::rotation::Rotation;
use crate::rules::{Algorithm, Compiled, Pick, Rule};
use crate::score::Score;
use crate::table::Table;

/// How a key becomes an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum Method {
    /// The hash modulo the sum of weights.
    #[default]
    Modulo,
    /// nginx's `hash`.
    NginxModulo,
    /// nginx's `hash … consistent`.
    Ring,
    /// A Maglev table.
    Maglev,
    /// Highest random weight.
    Rendezvous,
}

impl Method {
    /// Whether keys stay where they are when others go.
    fn is_consistent(self) -> bool {
        matches!(self, Method::Ring | Method::Maglev | Method::Rendezvous)
    }
}

impl Setting for Method {
    const SUMMARY: &'static str = "how a key becomes an endpoint";
    const KIND: OptionKind =
        OptionKind::Words(&["modulo", "nginx_modulo", "ring", "maglev", "rendezvous"]);
    const DEFAULT: Option<OptionValue<'static>> = Some(OptionValue::Text("modulo"));

    fn from_text(text: &str) -> Result<Method, Option<TextProblem>> {
        match text {
            "modulo" => Ok(Method::Modulo),
            "nginx_modulo" => Ok(Method::NginxModulo),
            "ring" => Ok(Method::Ring),
            "maglev" => Ok(Method::Maglev),
            "rendezvous" => Ok(Method::Rendezvous),
            _ => Err(None),
        }
    }
}

#[derive(Debug)]
pub(crate) struct Hash {
    way: Way,
    admission: Admission,
    is_flat: bool,
}

#[derive(Debug)]
enum Way {
    Modulo(Modulo),
    NginxModulo(NginxModulo),
    Ring(Ring),
    Maglev(MaglevTable),
    Rendezvous(Rendezvous),
}

impl Rule for Hash {
    const NAME: &'static str = "hash";
    const ALIASES: &'static [&'static str] = &["uri_hash", "source_hash", "five_tuple_hash"];
    const PRESETS: &'static [(&'static str, &'static str, OptionValue<'static>)] = &[
        ("uri_hash", "key", OptionValue::Text("uri")),
        ("source_hash", "key", OptionValue::Text("source")),
        ("five_tuple_hash", "key", OptionValue::Text("five_tuple")),
    ];
    const SUMMARY: &'static str = "by a key, with a choice of methods";
    const WHEN: &'static str = "requests that are alike belong together: by path, header, cookie";

    fn traits(algorithm: &Algorithm) -> Traits {
        let (method, factor) = options(algorithm);
        let is_bounded = factor.thousandths().is_some();
        let cost = match method {
            _ if is_bounded => Cost::Linear,
            Method::Modulo | Method::Maglev => Cost::Constant,
            Method::NginxModulo | Method::Ring => Cost::Logarithmic,
            Method::Rendezvous => Cost::Linear,
        };
        Traits {
            has_table: !is_bounded && matches!(method, Method::Modulo | Method::Maglev),
            takes_changing_weights: method.is_consistent(),
            thins_keys: method.is_consistent(),
            ignores_order: method.is_consistent(),
            keeps_pace: true,
            wants: Wants { key: true, ..Wants::NOTHING },
            ..Traits::of(Share::ByKey, cost)
        }
    }

    fn key(algorithm: &Algorithm) -> Option<&KeySource> {
        match algorithm {
            Algorithm::Hash { key, .. } => Some(key),
            _ => None,
        }
    }

    fn check_options(algorithm: &Algorithm) -> Result<(), OptionError> {
        let (method, factor) = options(algorithm);
        match factor.thousandths().is_some() && !method.is_consistent() {
            false => Ok(()),
            true => Err(OptionError::Conflict {
                name: "balance_factor",
                because: "only with method = \"ring\", \"maglev\" or \"rendezvous\"",
            }),
        }
    }

    fn check(algorithm: &Algorithm, endpoints: &Endpoints) -> Result<(), Unfit> {
        match (options(algorithm).0, points(endpoints)) {
            (Method::Ring, points) if points > POINTS_MAX as u64 => {
                Err(Unfit::RingTooLong { points })
            }
            _ => Ok(()),
        }
    }

    fn places(algorithm: &Algorithm, weights: &[u64]) -> Option<Vec<u64>> {
        match options(algorithm).0 {
            Method::Modulo => Some(Modulo::places(weights)),
            Method::NginxModulo => Some(NginxModulo::places(weights)),
            Method::Ring => Some(Ring::places(weights)),
            Method::Maglev => Some(MaglevTable::places(weights)),
            Method::Rendezvous => None,
        }
    }

    fn build(recipe: &Recipe<'_>) -> Hash {
        let (method, factor) = options(recipe.algorithm);
        let way = match method {
            Method::Modulo => Way::Modulo(Modulo::build(recipe)),
            Method::NginxModulo => Way::NginxModulo(NginxModulo::build(recipe)),
            Method::Ring => Way::Ring(Ring::build(recipe, previous_ring(recipe))),
            Method::Maglev => Way::Maglev(MaglevTable::build(recipe)),
            Method::Rendezvous => Way::Rendezvous(Rendezvous::build(recipe)),
        };
        let admission = match method.is_consistent() {
            true => Admission::build(recipe, factor),
            false => Admission::default(),
        };
        Hash { way, admission, is_flat: factor.thousandths().is_none() }
    }

    #[inline]
    fn pick<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>) -> Option<usize> {
        let key = pick.request.key;
        let found = match &self.way {
            Way::Modulo(modulo) => hash_of(key).and_then(|hash| modulo.pick(pick, hash)),
            Way::Maglev(table) => self.choose(pick, |hash, gate| table.lead(hash, gate)),
            Way::Rendezvous(way) => self.choose(pick, |hash, gate| way.lead(hash, gate)),
            Way::Ring(ring) => NginxKey::of(key)
                .and_then(|key| self.choose(pick, |_, gate| ring.lead(key.bytes(), gate))),
            Way::NginxModulo(modulo) if modulo.is_empty() => None,
            Way::NginxModulo(modulo) => {
                NginxKey::of(key).and_then(|key| chain::follow(pick, modulo.endpoints(&key)))
            }
        };
        // Without a key, and after too many misses.
        found.or_else(|| pick.next_in_rotation())
    }

    fn score<L: LoadView + ?Sized>(&self, pick: &Pick<'_, L>, index: usize) -> Option<Score> {
        let key = pick.request.key;
        let (Some(hash), Some(nginx_key)) = (hash_of(key), NginxKey::of(key)) else {
            return pick.turn(index);
        };
        let steps = match &self.way {
            Way::Modulo(modulo) => steps_before(modulo.endpoints(hash), index),
            Way::Maglev(table) => steps_before(table.endpoints(hash), index),
            Way::Ring(ring) => steps_before(ring.endpoints(nginx_key.bytes()), index),
            Way::NginxModulo(modulo) if modulo.is_empty() => return pick.turn(index),
            Way::NginxModulo(modulo) => chain::misses_before(modulo.endpoints(&nginx_key), index),
            Way::Rendezvous(rendezvous) => {
                return Some(rendezvous.score(hash, index, pick.weight(index)));
            }
        };
        steps.map(|steps| Score::whole(steps, "steps from the key's place, fewest first"))
    }

    fn table<'a>(&'a self, rotation: &'a Rotation) -> Option<Table<'a>> {
        let slots = match &self.way {
            Way::Modulo(modulo) => modulo.slots(),
            Way::Maglev(table) => table.slots(),
            _ => return None,
        };
        self.is_flat.then_some(Table::Slots { slots, cycle: rotation.cycle() })
    }
}

fn options(algorithm: &Algorithm) -> (Method, BalanceFactor) {
    match algorithm {
        Algorithm::Hash { method, balance_factor, .. } => (*method, *balance_factor),
        _ => (Method::default(), BalanceFactor::default()),
    }
}

impl Hash {
    /// The endpoint that a consistent method leads to; none without a key.
    #[inline]
    fn choose<L: LoadView + ?Sized>(
        &self,
        pick: &Pick<'_, L>,
        lead: impl Fn(u64, &Gate<'_, L>) -> Option<usize>,
    ) -> Option<usize> {
        let hash = hash_of(pick.request.key)?;
        self.admission.choose(pick, hash, |gate| lead(hash, gate))
    }
}

/// The ring of the balancer before, if it had one.
fn previous_ring<'a>(recipe: &Recipe<'a>) -> Option<&'a Ring> {
    match recipe.previous?.balancer.rule() {
        Compiled::Hash(Hash { way: Way::Ring(ring), .. }) => Some(ring),
        _ => None,
    }
}
