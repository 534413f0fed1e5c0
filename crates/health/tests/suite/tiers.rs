//! Who takes new work: every pool of up to three endpoints, against a reading of the rules in words.

use subak_base::BitSet;
use subak_health::{Because, Candidate, OnAllDown, State, Tier, select};

const ALL: [OnAllDown; 3] = [OnAllDown::FailOpen, OnAllDown::FailClosed, OnAllDown::BackupOnly];

/// Every possible endpoint.
fn kinds() -> Vec<Candidate> {
    let mut kinds = Vec::new();
    for tier in [Tier::Primary, Tier::Backup] {
        for state in State::ALL {
            for has_weight in [true, false] {
                kinds.push(Candidate { tier, state, has_weight });
            }
        }
    }
    kinds
}

fn pools() -> Vec<Vec<Candidate>> {
    let kinds = kinds();
    let mut pools = vec![vec![]];
    for size in 0..3 {
        let longer = pools.iter().filter(|pool: &&Vec<_>| pool.len() == size);
        let longer: Vec<Vec<Candidate>> = longer
            .flat_map(|pool| kinds.iter().map(move |kind| [&pool[..], &[*kind]].concat()))
            .collect();
        pools.extend(longer);
    }
    assert_eq!(pools.len(), 1 + 20 + 400 + 8000);
    pools
}

#[test]
fn every_small_pool_is_decided_as_the_rules_say() {
    for pool in pools() {
        for on_all_down in ALL {
            let selection = select(&pool, on_all_down);
            let taken: Vec<_> = selection.eligible.iter().collect();
            let working = |tier| {
                pool.iter().any(|c| c.has_weight && c.state == State::Ready && c.tier == tier)
            };
            for (index, candidate) in pool.iter().enumerate() {
                let wanted = match candidate.state {
                    State::Drain | State::Maintenance | State::BackOff => false,
                    State::Ready => candidate.tier == Tier::Primary || !working(Tier::Primary),
                    State::Down if working(Tier::Primary) || working(Tier::Backup) => false,
                    State::Down => match on_all_down {
                        OnAllDown::FailOpen => true,
                        OnAllDown::FailClosed => false,
                        OnAllDown::BackupOnly => candidate.tier == Tier::Backup,
                    },
                };
                let wanted = wanted && candidate.has_weight;
                assert_eq!(taken.contains(&index), wanted, "{pool:?} {on_all_down:?}");
            }
            assert_eq!(selection.because.is_desperate(), {
                taken.iter().any(|index| pool[*index].state == State::Down)
            });
            let refuses = matches!(selection.because, Because::FailedClosed | Because::NobodyLeft);
            assert_eq!(taken.is_empty(), refuses, "{pool:?} {on_all_down:?}");
        }
    }
}

#[test]
fn each_rule_says_which_it_is() {
    let endpoint = |tier, state| Candidate { tier, state, has_weight: true };
    let [ready, down, drain] = [State::Ready, State::Down, State::Drain]
        .map(|state| [Tier::Primary, Tier::Backup].map(|tier| endpoint(tier, state)));
    let because = |pool: &[Candidate], on_all_down| select(pool, on_all_down).because;
    assert_eq!(because(&[ready[0], down[1]], OnAllDown::FailClosed), Because::PrimariesReady);
    assert_eq!(because(&[down[0], ready[1]], OnAllDown::FailOpen), Because::BackupsReady);
    assert_eq!(because(&[down[0], down[1]], OnAllDown::FailOpen), Because::FailedOpen);
    assert_eq!(because(&down, OnAllDown::BackupOnly), Because::FailedOpenToBackups);
    assert_eq!(because(&down, OnAllDown::FailClosed), Because::FailedClosed);
    assert_eq!(because(&[down[0], drain[1]], OnAllDown::BackupOnly), Because::FailedClosed);
    let weightless = Candidate { has_weight: false, ..ready[0] };
    let nobody = because(&[weightless, drain[0]], OnAllDown::FailOpen);
    assert_eq!(nobody.to_string(), "none may take new work (drain, maintenance or weight 0)");
    assert_eq!(because(&drain, OnAllDown::FailOpen), Because::NobodyLeft);
    assert_eq!(because(&[], OnAllDown::FailClosed), Because::NobodyLeft);
}

#[test]
fn a_large_pool_is_one_set_equal_to_any_other_with_the_same_members() {
    let kinds = kinds();
    let pool: Vec<_> = (0..1000).map(|index| kinds[index % kinds.len()]).collect();
    let mut expected = BitSet::with_capacity(pool.len());
    (0..1000).step_by(kinds.len()).for_each(|index| expected.insert(index));
    assert_eq!(select(&pool, OnAllDown::FailOpen).eligible, expected);
}
