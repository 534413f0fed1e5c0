//! The weigher `resource`: an example worked out by hand, a slow oracle in floating point, and what
//! must hold for any reports.

mod oracle;

use std::time::Duration;

use oracle::Oracle;
use proptest::option::weighted;
use proptest::prelude::*;

use subak_balance::weigher::{
    Class, Coefficients, Options, PerResource, Ppm, Report, Standing, Weighed, Weigher,
};
use subak_balance::weights::Factor;
use subak_base::Tick;

/// Capacities and uses (in percent) of CPU, memory, disk and network.
fn report(at_ms: u64, capacity: [u64; 4], percent: [u64; 4]) -> Option<Report> {
    let used = percent.map(|percent| Some(Ppm::saturating(percent * 10_000)));
    Some(Report {
        at: Tick::from_millis(at_ms),
        capacity: each(capacity.map(Some)),
        used: each(used),
    })
}

fn each<T>([cpu, memory, disk, network]: [T; 4]) -> PerResource<T> {
    PerResource { cpu, memory, disk, network }
}

fn factors(weighed: &[Weighed]) -> Vec<u32> {
    weighed.iter().map(|weighed| weighed.factor.get()).collect()
}

/// No hysteresis: the load in force is the reported one.
fn at_once() -> Options {
    Options { band: Ppm::ZERO, max_jitter: Ppm::ONE, ..Options::default() }
}

const EQUAL: [u64; 4] = [1, 1, 1, 1];

/// With K = λ = 0.15, 0.4, 0.3, 0.15:
///
/// | | C | L | C·(1 − L) | ÷ mean | in 1/1024 | U |
/// |---|---|---|---|---|---|---|
/// | a | 1 | 0.5 | 0.5 | 1.113896 | 1140.63 | 0.5 |
/// | b | .075 + .2 + .3 + .15 = 0.725 | .135 + .12 + .03 + .03 = 0.315 | 0.496625 | 1.106377 | 1132.93 | 0.434483 |
/// | c | .0375 + .1 + .15 + .15 = 0.4375 | 0.2 | 0.35 | 0.779727 | 798.44 | 0.457143 |
///
/// mean 1.346625 ÷ 3 = 0.448875; mean of U 0.463875, σ = √(0.00221424 ÷ 3) = 0.0271676, rounded down
#[test]
fn an_example_worked_out_by_hand() {
    let options = Options {
        capacity: Coefficients::MA_AND_CHI,
        load: Coefficients::MA_AND_CHI,
        ..Options::default()
    };
    let mut weigher = Weigher::new(options, 3);
    let reports = [
        report(0, [4000, 16 << 30, 500, 1000], [50, 50, 50, 50]),
        report(0, [2000, 8 << 30, 500, 1000], [90, 30, 10, 20]),
        report(0, [1000, 4 << 30, 250, 1000], [20, 20, 20, 20]),
    ];
    let weighed = weigher.update(&reports, Tick(0)).to_vec();
    assert_eq!(factors(&weighed), [1141, 1133, 798]);
    let measured: Vec<_> = weighed.iter().map(|weighed| weighed.measured.unwrap()).collect();
    let capacities: Vec<_> = measured.iter().map(|measured| measured.capacity.get()).collect();
    assert_eq!(capacities, [1_000_000, 725_000, 437_500]);
    let loads: Vec<_> = measured.iter().map(|measured| measured.load.get()).collect();
    assert_eq!(loads, [500_000, 315_000, 200_000]);
    let utilisations: Vec<_> = measured.iter().map(|measured| measured.utilisation_ppm).collect();
    assert_eq!(utilisations, [500_000, 434_483, 457_143]);
    let classes: Vec<_> = measured.iter().map(|measured| measured.class).collect();
    assert_eq!(classes, [Class::Free, Class::Overload, Class::Free]);
    assert_eq!(measured[1].classes.cpu, Some(Class::Overload));
    assert_eq!(measured[1].classes.memory, Some(Class::Free));
    assert_eq!(weigher.imbalance_ppm(), Some(27_167));
}

#[test]
fn a_weighers_factors_are_neutral_until_somebody_reports() {
    let mut weigher = Weigher::new(Options::default(), 3);
    let silent = |weighed: &Weighed| {
        (weighed.standing, weighed.factor, weighed.measured)
            == (Standing::Silent, Factor::NEUTRAL, None)
    };
    assert!(weigher.update(&[], Tick(7)).iter().all(silent));
    assert_eq!(weigher.imbalance_ppm(), None);
    let weighed = weigher.update(&[None, report(0, EQUAL, [90; 4])], Tick(7));
    assert_eq!(factors(weighed), [1024; 3], "one that reports is its own mean");
    assert!(silent(&weighed[0]) && !silent(&weighed[1]) && silent(&weighed[2]));
    assert_eq!(weigher.imbalance_ppm(), Some(0));
}

#[test]
fn an_endpoint_that_stops_reporting_keeps_its_factor_for_the_stated_time() {
    let options =
        Options { fresh: Duration::from_secs(3), hold: Duration::from_secs(30), ..at_once() };
    let mut weigher = Weigher::new(options, 2);
    let silent = report(0, EQUAL, [75; 4]);
    let mut at = |second: u64, load: u64| {
        let now = Tick::from_millis(second * 1000);
        let weighed = weigher.update(&[silent, report(second * 1000, EQUAL, [load; 4])], now);
        (weighed[0].standing, weighed[0].factor.get(), weighed[1].factor.get())
    };
    // 0.25 and 0.75 of room: half and one and a half of the mean.
    assert_eq!(at(0, 25), (Standing::Current, 512, 1536));
    assert_eq!(at(3, 25), (Standing::Current, 512, 1536));
    // The other one's load changes; the factor of the silent one stays.
    assert_eq!(at(4, 75), (Standing::Held, 512, 1024));
    assert_eq!(at(30, 75), (Standing::Held, 512, 1024));
    assert_eq!(at(31, 75), (Standing::Silent, 1024, 1024));
    assert_eq!(at(90, 25), (Standing::Silent, 1024, 1024));
}

#[test]
fn an_endpoint_that_reports_again_is_taken_as_it_is() {
    let mut weigher = Weigher::new(Options::default(), 2);
    weigher.update(&[report(0, EQUAL, [0; 4]), report(0, EQUAL, [0; 4])], Tick(0));
    let now = Tick::from_millis(60_000);
    weigher.update(&[None, report(60_000, EQUAL, [0; 4])], now);
    let weighed = weigher.update(&[report(60_000, EQUAL, [100; 4])], now);
    assert_eq!(factors(weighed), [Factor::MIN.get(), 2048]);
}

#[test]
fn the_same_or_an_older_report_is_no_news() {
    let mut weigher = Weigher::new(at_once(), 2);
    let other = report(5000, EQUAL, [50; 4]);
    let now = Tick::from_millis(5000);
    let before = weigher.update(&[report(5000, EQUAL, [50; 4]), other], now).to_vec();
    for stale in [report(5000, EQUAL, [100; 4]), report(4000, EQUAL, [0; 4]), None] {
        assert_eq!(weigher.update(&[stale, other], now), before);
    }
    let nothing = Report { used: PerResource::default(), ..report(9000, EQUAL, [0; 4]).unwrap() };
    assert_eq!(weigher.update(&[Some(nothing), other], now), before, "it names no load");
}

#[test]
fn a_full_pool_is_weighed_by_capacity_and_extremes_are_clamped() {
    let mut weigher = Weigher::new(at_once(), 2);
    let reports = [report(0, [3; 4], [100; 4]), report(0, [1; 4], [100; 4])];
    assert_eq!(factors(weigher.update(&reports, Tick(0))), [1536, 512]);
    let mut weigher = Weigher::new(at_once(), 2);
    let reports = [report(0, [1; 4], [100; 4]), report(0, [1; 4], [0; 4])];
    assert_eq!(factors(weigher.update(&reports, Tick(0))), [Factor::MIN.get(), 2048]);
    // One of a thousand has all the room.
    let mut weigher = Weigher::new(at_once(), 1000);
    let mut reports = vec![report(0, [1; 4], [100; 4]); 1000];
    reports[7] = report(0, [1; 4], [99; 4]);
    let factors = factors(weigher.update(&reports, Tick(0)));
    assert_eq!((factors[6], factors[7]), (Factor::MIN.get(), Factor::MAX.get()));
}

#[test]
fn a_capacity_that_one_endpoint_does_not_state_counts_for_nobody() {
    let mut reports = [report(0, [2, 1, 9, 1], [0; 4]), report(0, [1, 1, 1, 1], [0; 4])];
    for unstated in [None, Some(0)] {
        let mut weigher = Weigher::new(at_once(), 2);
        reports[1].as_mut().unwrap().capacity.disk = unstated;
        let weighed = weigher.update(&reports, Tick(0));
        let capacities = [0, 1].map(|index| weighed[index].measured.unwrap().capacity.get());
        // CPU 60, memory 10, network 20: 60/90 of a half are missing.
        assert_eq!(capacities, [1_000_000, 666_667]);
    }
}

#[test]
fn what_is_known_goes_along_to_another_list() {
    let options = Options::default();
    let mut weigher = Weigher::new(options.clone(), 3);
    let reports =
        [report(0, [1; 4], [10; 4]), report(0, [2; 4], [50; 4]), report(0, [3; 4], [90; 4])];
    let before = weigher.update(&reports, Tick(0)).to_vec();
    let mut after = weigher.reshaped(options, &[Some(2), None, Some(0), Some(1), Some(8)]);
    assert_eq!(after.imbalance_ppm(), weigher.imbalance_ppm());
    assert_eq!(after.weighed()[0], before[2]);
    let weighed = after.update(&[], Tick::from_millis(1000));
    assert_eq!([weighed[0], weighed[2], weighed[3]], [before[2], before[0], before[1]]);
    for index in [1, 4] {
        assert_eq!(weighed[index].standing, Standing::Silent);
    }
}

/// Milliseconds since the round before, and what each endpoint reports.
type History = Vec<(u64, Vec<Option<Report>>)>;

fn histories() -> impl Strategy<Value = (Options, History)> {
    let coefficients = || {
        prop::array::uniform4(0_u32..100)
            .prop_filter_map("all zero", |numbers| Coefficients::new(each(numbers)))
    };
    let options = (coefficients(), coefficients(), 0_u64..100_000, 1_u64..1_000_000, 1_u64..6)
        .prop_map(|(capacity, load, band, max_jitter, fresh)| Options {
            capacity,
            load,
            band: Ppm::saturating(band),
            max_jitter: Ppm::saturating(max_jitter),
            fresh: Duration::from_secs(fresh),
            hold: Duration::from_secs(3 * fresh),
        });
    let one = (
        prop::array::uniform4(weighted(
            0.95,
            (0_u64..50).prop_map(|power| (1 << power) + power - 1),
        )),
        prop::array::uniform4(weighted(0.9, (0_u64..=1_000_000).prop_map(Ppm::saturating))),
    )
        .prop_map(|(capacity, used)| Report {
            at: Tick(0),
            capacity: each(capacity),
            used: each(used),
        });
    let rounds = (1_usize..8).prop_flat_map(move |endpoints| {
        let reports = prop::collection::vec(weighted(0.8, one.clone()), endpoints);
        prop::collection::vec((1_u64..3000, reports), 1..20)
    });
    (options, rounds)
}

/// Runs a history; `look` sees every round.
fn run(
    options: &Options,
    rounds: &History,
    mut look: impl FnMut(&Weigher, &[Option<Report>], Tick) -> Result<(), TestCaseError>,
) -> Result<(), TestCaseError> {
    let mut weigher = Weigher::new(options.clone(), rounds[0].1.len());
    let mut now = Tick(0);
    for (pause, reports) in rounds {
        now = now.after(Duration::from_millis(*pause));
        let at = |report: Report| Report { at: now, ..report };
        let reports: Vec<_> = reports.iter().map(|report| report.map(at)).collect();
        weigher.update(&reports, now);
        look(&weigher, &reports, now)?;
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn equals_the_formulas_in_floating_point((options, rounds) in histories()) {
        let mut oracle = Oracle::new(options.clone(), rounds[0].1.len());
        run(&options, &rounds, |weigher, reports, now| {
            oracle.update(reports, now);
            oracle.compare(weigher).map_err(TestCaseError::fail)
        })?;
    }

    #[test]
    fn factors_are_in_bounds_and_their_mean_is_one_where_none_is_clamped_or_held(
        (options, rounds) in histories(),
    ) {
        run(&options, &rounds, |weigher, _, _| {
            let known: Vec<_> =
                weigher.weighed().iter().filter(|weighed| weighed.measured.is_some()).collect();
            let unclamped = |weighed: &&Weighed| {
                weighed.factor > Factor::MIN
                    && weighed.factor < Factor::MAX
                    && weighed.standing == Standing::Current
            };
            for weighed in weigher.weighed() {
                prop_assert!((Factor::MIN..=Factor::MAX).contains(&weighed.factor));
            }
            if known.iter().all(unclamped) {
                let sum: i64 = known.iter().map(|weighed| i64::from(weighed.factor.get())).sum();
                let count = known.len() as i64;
                prop_assert!((sum - 1024 * count).abs() <= count, "{sum} of {count}");
            }
            Ok(())
        })?;
    }

    #[test]
    fn the_order_of_endpoints_does_not_matter((options, rounds) in histories(), by in 0_usize..8) {
        let turn = |reports: &[Option<Report>]| {
            let mut reports = reports.to_vec();
            let by = by % reports.len();
            reports.rotate_left(by);
            reports
        };
        let turned: Vec<_> =
            rounds.iter().map(|(pause, reports)| (*pause, turn(reports))).collect();
        let mut expected = Vec::new();
        run(&options, &rounds, |weigher, _, _| {
            let mut weighed = weigher.weighed().to_vec();
            let by = by % weighed.len();
            weighed.rotate_left(by);
            expected.push((weighed, weigher.imbalance_ppm()));
            Ok(())
        })?;
        let mut expected = expected.into_iter();
        run(&options, &turned, |weigher, _, _| {
            prop_assert_eq!(Some((weigher.weighed().to_vec(), weigher.imbalance_ppm())), expected.next());
            Ok(())
        })?;
    }

    #[test]
    fn units_of_capacity_cancel((options, rounds) in histories(), unit in 1_u64..1000) {
        let scaled: Vec<_> = rounds
            .iter()
            .map(|(pause, reports)| {
                let scale = |report: Report| {
                    let mut capacity = report.capacity;
                    capacity.cpu = capacity.cpu.map(|capacity| capacity * unit);
                    Report { capacity, ..report }
                };
                (*pause, reports.iter().map(|report| report.map(scale)).collect())
            })
            .collect();
        let mut expected = Vec::new();
        run(&options, &rounds, |weigher, _, _| {
            expected.push(weigher.weighed().to_vec());
            Ok(())
        })?;
        let mut expected = expected.into_iter();
        run(&options, &scaled, |weigher, _, _| {
            prop_assert_eq!(Some(weigher.weighed().to_vec()), expected.next());
            Ok(())
        })?;
    }

    #[test]
    fn who_has_less_to_do_never_gets_a_smaller_factor(
        loads in prop::collection::vec(0_u64..=100, 2..8),
        less in 0_u64..100,
    ) {
        let weigh = |loads: &[u64]| {
            let reports: Vec<_> = loads.iter().map(|load| report(0, EQUAL, [*load; 4])).collect();
            factors(Weigher::new(at_once(), loads.len()).update(&reports, Tick(0)))
        };
        let before = weigh(&loads);
        let mut relieved = loads.clone();
        relieved[0] = loads[0].saturating_sub(less);
        let after = weigh(&relieved);
        prop_assert!(after[0] >= before[0], "{:?} {:?}", before, after);
        for pair in loads.iter().zip(&before).collect::<Vec<_>>().windows(2) {
            let [(load, factor), (other_load, other_factor)] = pair else { unreachable!() };
            prop_assert_eq!(load.cmp(other_load), other_factor.cmp(factor), "{:?}", before);
        }
    }
}
