use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use subak_base::{Rng, Tick};
use subak_config::Origin;
use subak_config::names::Found;

use super::Book;
use crate::MAX_ASKING;
use crate::watch::{Bounds, Reply};

const BOUNDS: Bounds = Bounds {
    min_ttl: Duration::from_secs(1),
    max_ttl: Duration::from_secs(60),
    negative_ttl: Duration::from_secs(5),
};

fn origin(number: usize) -> Origin {
    Origin::Host { host: format!("n{number}.internal").into(), port: 80 }
}

fn origins(numbers: std::ops::Range<usize>) -> BTreeSet<Origin> {
    numbers.map(origin).collect()
}

fn reply(last: u8) -> Result<Reply, String> {
    let address = ([10, 0, 0, last], 80).into();
    let found = vec![Found { backup: false, address, weight: None, target: None }];
    Ok(Reply { found, ttl: Duration::from_secs(10), lacks: None, odd: None })
}

#[test]
fn so_many_are_asked_at_a_time_and_all_get_their_turn() {
    let mut book = Book::new(BOUNDS);
    let count = MAX_ASKING * 5 / 2;
    book.keep(BOUNDS, origins(0..count));
    let mut random = Rng::new(1);
    let mut asked: BTreeMap<Origin, usize> = BTreeMap::new();
    // A server that fails at once: those who failed are due again before the others have been asked.
    for round in 0..100 {
        let now = Tick::from_millis(round * 2000);
        let waiting = book.due(now);
        assert!(waiting.len() <= MAX_ASKING);
        assert!(book.due(now).is_empty() || waiting.len() < MAX_ASKING);
        for one in waiting {
            *asked.entry(one.origin.clone()).or_default() += 1;
            book.answered(&one, Err("SERVFAIL".into()), now, &mut random);
        }
    }
    assert_eq!(asked.len(), count);
    let (least, most) = (asked.values().min(), asked.values().max());
    assert!(least.copied().unwrap_or(0) * 2 >= most.copied().unwrap_or(0), "{least:?} {most:?}");
    assert!(book.is_decided());
}

#[test]
fn names_that_stay_keep_what_is_known_and_others_are_forgotten() {
    let mut book = Book::new(BOUNDS);
    book.keep(BOUNDS, origins(0..2));
    let mut random = Rng::new(1);
    let waiting = book.due(Tick(0));
    assert!(book.answered(&waiting[0], reply(1), Tick(0), &mut random).is_some());
    assert!(!book.is_decided());
    book.keep(BOUNDS, origins(0..1));
    assert!(book.is_decided());
    // The other's answer comes when nobody wants it any more, and makes room all the same.
    assert_eq!(book.answered(&waiting[1], reply(2), Tick(0), &mut random), None);
    assert_eq!(book.answers().0.keys().cloned().collect::<Vec<_>>(), [origin(0)]);
    book.keep(BOUNDS, origins(0..MAX_ASKING + 1));
    assert_eq!(book.due(Tick(0)).len(), MAX_ASKING);
}

#[test]
fn who_failed_is_asked_at_once_when_others_are_asked() {
    let mut book = Book::new(BOUNDS);
    book.keep(BOUNDS, origins(0..2));
    let mut random = Rng::new(1);
    let waiting = book.due(Tick(0));
    book.answered(&waiting[0], reply(1), Tick(0), &mut random);
    book.answered(&waiting[1], Err("no answer".into()), Tick(0), &mut random);
    assert_eq!(book.failures(Tick(0)).map(|(_, why, _)| why).collect::<Vec<_>>(), ["no answer"]);
    assert!(book.due(Tick(0)).is_empty());
    book.hurry(Tick(0));
    let due: Vec<_> = book.due(Tick(0)).into_iter().map(|one| one.origin).collect();
    assert_eq!(due, [origin(1)]);
    let told = book.told(Tick(0));
    assert_eq!((told[1].asked, told[1].failed, told[1].asks_in), (2, 1, None));
    assert_eq!(told[0].addresses, ["10.0.0.1:80"]);
}
