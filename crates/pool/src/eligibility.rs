//! Who may take a request, at which weight? Decided off the hot path from what is known of every
//! endpoint; [`compiled`](crate::compiled) makes a balancer of it.
//!
//! | set | who | used for |
//! |---|---|---|
//! | eligible | what [`select`] says: primaries, else backups, else [`OnAllDown`] | every pick |
//! | stays | ready, draining, or (when nobody is ready) eligible; whatever its weight | clients that belong to an endpoint |
//! | reserve | ready and of some weight, in either tier, also in back-off | a request that finds no other |
//!
//! An endpoint in back-off is down for this purpose. Weights are the product of their layers; slow
//! start is a layer too, or, for an algorithm that thins keys, the ramp of the load view. Ramps of
//! keys are relative to the largest of those that are eligible: shares only divide what there is, so
//! one that is alone takes everything.
//!
//! O(n).

use subak_balance::FULL;
use subak_balance::catalogue::Traits;
use subak_balance::weights::{Factor, Layers, in_force};
use subak_base::{BitSet, Weight};
use subak_health::{Because, Candidate, OnAllDown, State, Tier, select};

/// What is known of one endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Facts {
    pub(crate) tier: Tier,
    pub(crate) state: State,
    pub(crate) is_backing_off: bool,
    /// Slow start left out.
    pub(crate) weights: Layers,
    /// How far it has come back, in 1/1024.
    pub(crate) ramp: u32,
}

/// What follows for the pool.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Outlook {
    pub(crate) because: Because,
    pub(crate) eligible: BitSet,
    pub(crate) stays: BitSet,
    pub(crate) reserve: BitSet,
    /// In force.
    pub(crate) weights: Box<[Weight]>,
    /// In 1/1024; empty for an algorithm that does not thin keys.
    pub(crate) ramps: Box<[u16]>,
}

impl Outlook {
    /// Decides over a pool.
    pub(crate) fn of(facts: &[Facts], on_all_down: OnAllDown, traits: &Traits) -> Outlook {
        let ramps_weights = traits.takes_changing_weights && !traits.thins_keys;
        let layers = facts.iter().map(|one| match ramps_weights && one.state == State::Ready {
            true => Layers { ramp: Factor::from_1024ths(u64::from(one.ramp)), ..one.weights },
            false => one.weights,
        });
        let weights = in_force(&layers.collect::<Vec<_>>());
        let has_weight = |index: usize| weights[index] > Weight::ZERO;
        let candidate = |(index, one): (usize, &Facts)| Candidate {
            tier: one.tier,
            state: match (one.state, one.is_backing_off) {
                (State::Ready, true) => State::Down,
                (state, _) => state,
            },
            has_weight: has_weight(index),
        };
        let candidates: Vec<Candidate> = facts.iter().enumerate().map(candidate).collect();
        let selection = select(&candidates, on_all_down);
        let set = |wanted: &dyn Fn(usize, &Facts) -> bool| {
            let mut set = BitSet::with_capacity(facts.len());
            let chosen = facts.iter().enumerate().filter(|(index, one)| wanted(*index, one));
            chosen.for_each(|(index, _)| set.insert(index));
            set
        };
        let eligible = selection.eligible;
        let is_desperate = selection.because.is_desperate();
        let stays = set(&|index, one| {
            one.state.serves_sticky() || (is_desperate && eligible.contains(index))
        });
        let reserve = set(&|index, one| {
            has_weight(index) && (one.state == State::Ready || eligible.contains(index))
        });
        let ramps = match traits.thins_keys {
            true => ramps(facts, &eligible),
            false => Box::default(),
        };
        let weights = weights.into();
        Outlook { because: selection.because, eligible, stays, reserve, weights, ramps }
    }
}

/// The ramps of keys, relative to the largest.
fn ramps(facts: &[Facts], eligible: &BitSet) -> Box<[u16]> {
    let most = eligible.iter().map(|index| facts[index].ramp).max().unwrap_or(0).max(1);
    let full = u32::from(FULL);
    let ramp = |(index, one): (usize, &Facts)| match eligible.contains(index) {
        true => (one.ramp * full / most).clamp(1, full) as u16,
        false => FULL,
    };
    facts.iter().enumerate().map(ramp).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use subak_balance::catalogue;

    fn facts(state: State, ramp: u32) -> Facts {
        let weights = Layers { configured: Weight::ONE, ..Layers::default() };
        Facts { tier: Tier::Primary, state, is_backing_off: false, weights, ramp }
    }

    fn traits(name: &str) -> Traits {
        catalogue::find(name).unwrap().algorithm().traits()
    }

    fn outlook(facts: &[Facts]) -> Outlook {
        Outlook::of(facts, OnAllDown::FailOpen, &traits("round_robin"))
    }

    fn members(set: &BitSet) -> Vec<usize> {
        set.iter().collect()
    }

    #[test]
    fn backups_stand_in_for_primaries_that_back_off() {
        let backup = Facts { tier: Tier::Backup, ..facts(State::Ready, 1024) };
        let away = Facts { is_backing_off: true, ..facts(State::Ready, 1024) };
        let found = outlook(&[away, backup]);
        assert_eq!(found.because, Because::BackupsReady);
        assert_eq!((members(&found.eligible), members(&found.reserve)), (vec![1], vec![0, 1]));
        let found = outlook(&[facts(State::Ready, 1024), backup]);
        assert_eq!((members(&found.eligible), members(&found.reserve)), (vec![0], vec![0, 1]));
    }

    #[test]
    fn clients_stay_where_it_drains_and_where_the_weight_is_0_but_not_where_it_is_down() {
        let idle = Facts { weights: Layers::default(), ..facts(State::Ready, 1024) };
        let weightless =
            Facts { weights: Layers { configured: Weight::ZERO, ..idle.weights }, ..idle };
        let states = [State::Ready, State::Drain, State::Down, State::Maintenance];
        let mut all: Vec<Facts> = states.iter().map(|state| facts(*state, 1024)).collect();
        all.push(weightless);
        let found = outlook(&all);
        assert_eq!(members(&found.eligible), [0]);
        assert_eq!(members(&found.stays), [0, 1, 4]);
        // When everything looks down, nobody is sent away from the endpoint it belongs to.
        let found = outlook(&[facts(State::Down, 1024), facts(State::Maintenance, 1024)]);
        assert_eq!(found.because, Because::FailedOpen);
        assert_eq!((members(&found.eligible), members(&found.stays)), (vec![0], vec![0]));
    }

    #[test]
    fn slow_start_divides_the_weight_and_one_that_is_alone_takes_all() {
        let found = outlook(&[facts(State::Ready, 1024), facts(State::Ready, 256)]);
        assert_eq!(*found.weights, [Weight(4), Weight(1)]);
        let found = outlook(&[facts(State::Down, 1024), facts(State::Ready, 96)]);
        assert_eq!(members(&found.eligible), [1]);
        let fixed = Outlook::of(
            &[facts(State::Ready, 1024), facts(State::Ready, 256)],
            OnAllDown::FailOpen,
            &traits("ip_hash"),
        );
        assert_eq!(*fixed.weights, [Weight(1), Weight(1)]);
    }

    #[test]
    fn keys_are_thinned_relative_to_who_has_come_back_furthest() {
        let thinning = Traits { thins_keys: true, ..traits("round_robin") };
        let ramps = |facts: &[Facts]| {
            let found = Outlook::of(facts, OnAllDown::FailOpen, &thinning);
            assert!(found.weights.iter().all(|weight| *weight == Weight::ONE));
            found.ramps.to_vec()
        };
        let ready = |ramp| facts(State::Ready, ramp);
        assert_eq!(ramps(&[ready(1024), ready(96)]), [1024, 96]);
        assert_eq!(ramps(&[ready(512), ready(128)]), [1024, 256]);
        assert_eq!(ramps(&[facts(State::Down, 1024), ready(96)]), [1024, 1024]);
    }

    fn any_facts() -> impl Strategy<Value = Facts> {
        let (states, weights) = (prop::sample::select(&State::ALL[..]), 0_u16..4);
        let rest = (any::<bool>(), any::<bool>(), 1_u32..=1024);
        (states, weights, rest).prop_map(|(state, weight, (backup, is_backing_off, ramp))| Facts {
            tier: if backup { Tier::Backup } else { Tier::Primary },
            state,
            is_backing_off,
            weights: Layers { configured: Weight(weight), ..Layers::default() },
            ramp,
        })
    }

    proptest! {
        #[test]
        fn nobody_is_eligible_who_must_not_be(
            facts in prop::collection::vec(any_facts(), 0..8),
            policy in prop::sample::select(
                &[OnAllDown::FailOpen, OnAllDown::FailClosed, OnAllDown::BackupOnly][..],
            ),
            thins in any::<bool>(),
        ) {
            let traits = Traits { thins_keys: thins, ..traits("round_robin") };
            let found = Outlook::of(&facts, policy, &traits);
            let ready = |one: &Facts| {
                one.state == State::Ready && !one.is_backing_off
                    && one.weights.configured > Weight::ZERO
            };
            let primaries = facts.iter().any(|one| one.tier == Tier::Primary && ready(one));
            for (index, one) in facts.iter().enumerate() {
                let is_in = found.eligible.contains(index);
                let has_weight = one.weights.configured > Weight::ZERO;
                prop_assert!(!is_in || has_weight);
                prop_assert!(!is_in || matches!(one.state, State::Ready | State::Down));
                prop_assert_eq!(found.weights[index] > Weight::ZERO, has_weight);
                if primaries {
                    prop_assert_eq!(is_in, one.tier == Tier::Primary && ready(one));
                }
                prop_assert!(!is_in || found.reserve.contains(index));
                prop_assert!(one.state != State::Maintenance || !found.stays.contains(index));
            }
            if thins && !found.eligible.is_empty() {
                let most = found.eligible.iter().map(|index| found.ramps[index]).max();
                prop_assert_eq!(most, Some(FULL));
            }
        }
    }
}
