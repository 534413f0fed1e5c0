//! A shadow that fails does no harm.

use std::net::{Ipv4Addr, SocketAddr};

use subak_balance::catalogue;
use subak_base::{Address, BitSet};

use super::*;
use crate::{Acquire, EndpointIds, EndpointSpec, Outcome};

const NOW: Tick = Tick::from_millis(1000);

fn spec(shadows: &[&str]) -> PoolSpec {
    let algorithm = |name: &str| catalogue::find(name).expect("is one").algorithm();
    let endpoint = |port: u16| {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        EndpointSpec::new(port.to_string(), Address::Inet(address))
    };
    let shadow = |name: &&str| ShadowSpec { name: (*name).into(), algorithm: algorithm(name) };
    let shadows = shadows.iter().map(shadow).collect();
    let endpoints = (1..4).map(endpoint).collect();
    PoolSpec { shadows, ..PoolSpec::new("app", algorithm("round_robin"), endpoints) }
}

fn send(pool: &Pool) -> Option<usize> {
    let request = Acquire {
        key: subak_balance::Key::None,
        shadow_keys: ShadowKeys::OWN,
        random: 3,
        now: NOW,
        in_turn: false,
        stick: None,
        client: None,
        from: None,
        decision: None,
    };
    let lease = pool.acquire(&request, &BitSet::EMPTY).ok()?;
    let index = lease.index();
    lease.settle(Outcome::Failed, NOW);
    Some(index)
}

/// One breaks down when it looks at the load, the other when its decision is counted.
#[test]
fn one_that_panics_is_asked_no_more_and_requests_go_on() {
    for (breaks_at, names) in [("a count", ["random", "first"]), ("a look", ["peak_ewma", "first"])]
    {
        let mut pool = Pool::build(&spec(&names), &mut EndpointIds::new(), None, NOW);
        pool.tick(NOW, 0);
        assert_eq!([send(&pool), send(&pool)], [Some(0), Some(1)]);
        let shadows = pool.shadows.as_mut().expect("it has some");
        shadows.all[0].places = Box::default();
        let sent: Vec<_> = (0..4).map(|_| send(&pool)).collect();
        assert_eq!(sent, [Some(2), Some(0), Some(1), Some(2)], "{breaks_at}");
        let status = pool.status(NOW).shadows;
        let told = |place: usize| (status[place].is_stopped, status[place].decisions);
        assert_eq!(told(1), (false, 6));
        let decided = if breaks_at == "a look" { 2 } else { 3 };
        assert_eq!(told(0), (true, decided), "{breaks_at}");
        pool.tick(NOW.after(std::time::Duration::from_secs(1)), 0);
        pool.set_weight("1", Some(subak_base::Weight(3)), NOW).expect("it is there");
        let again = Pool::build(&spec(&names), &mut EndpointIds::new(), Some(&pool), NOW);
        assert!(!again.status(NOW).shadows[0].is_stopped, "a reload tries it again");
    }
}

#[test]
fn what_panics_while_it_learns_is_stopped_too() {
    let pool = Pool::build(&spec(&["peak_ewma"]), &mut EndpointIds::new(), None, NOW);
    pool.tick(NOW, 0);
    let shadow = &pool.shadows.as_ref().expect("it has one").all[0];
    assert_eq!(shadow.guarded(7, || 8), 8);
    assert!(!shadow.is_stopped.load(Ordering::Relaxed));
    assert_eq!(shadow.guarded(7, || panic!("as a test")), 7);
    assert!(pool.status(NOW).shadows[0].is_stopped);
    assert_eq!(send(&pool), Some(0));
    assert_eq!(pool.status(NOW).shadows[0].decisions, 0);
}
