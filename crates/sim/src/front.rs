//! A balancer in front of the endpoints: its pool, its line, and what it knows of the load.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use subak_balance::{Key, KeySource, LoadView};
use subak_base::{BitSet, Rng, Tick};
use subak_pool::{Acquire, Lease, Pool, Refusal, ShadowKeys};

use crate::arrivals::Trace;
use crate::histogram::nanos;
use crate::scenario::{Balancers, Sees};

/// One balancer.
#[derive(Debug)]
pub(crate) struct Front<'p> {
    pub(crate) pool: &'p Pool,
    picks: Rng,
    /// Flights, with their marks at the time; those that have another by now have left.
    pub(crate) line: VecDeque<(u32, u32)>,
    /// How many of the line are still there.
    pub(crate) waiting: usize,
    /// Something has come free.
    pub(crate) has_news: bool,
    board: Board,
}

/// What all balancers have in common.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner<'p> {
    pools: &'p [Pool],
    sees: Sees,
    every: u64,
    key: KeyForm,
    has_table: bool,
}

/// What a pick of the pool's algorithm is keyed by.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum KeyForm {
    Nothing,
    Client,
    Object,
}

/// What stands before an object's number in the key that it is.
const OBJECT_PREFIX: &[u8] = b"/o/";
/// Octets of the longest key: the prefix, and the digits of a u32.
const NAME: usize = OBJECT_PREFIX.len() + 10;

/// The address of a client by its number, unless a trace says another: all over the address space.
pub fn client_address(client: u32) -> Ipv4Addr {
    Ipv4Addr::from(Rng::new(u64::from(client)).next_u64() as u32)
}

/// Who asks for what.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asker<'a> {
    pub(crate) client: u32,
    pub(crate) object: u32,
    pub(crate) trace: Option<&'a Trace>,
}

impl<'p> Manner<'p> {
    pub(crate) fn new(balancers: Balancers, pools: &'p [Pool]) -> Manner<'p> {
        let first = pools.first();
        let is_keyed = first.is_some_and(|pool| pool.wants().key);
        let key = match first.and_then(|pool| pool.algorithm().key()) {
            _ if !is_keyed => KeyForm::Nothing,
            None | Some(KeySource::Source) => KeyForm::Client,
            Some(_) => KeyForm::Object,
        };
        // One that sees all of one balancer's requests sees its own.
        let sees = if pools.len() > 1 { balancers.sees } else { Sees::Own };
        let has_table = first.is_some_and(|pool| pool.spec().stick_table.is_some());
        Manner { pools, sees, every: nanos(balancers.every), key, has_table }
    }
}

impl<'p> Front<'p> {
    pub(crate) fn new(pool: &'p Pool, seed: u64) -> Front<'p> {
        let board = Board::default();
        let line = VecDeque::new();
        Front { pool, picks: Rng::new(seed), line, waiting: 0, has_news: false, board }
    }

    /// Asks the pool.
    #[inline]
    pub(crate) fn acquire(
        &mut self,
        manner: &Manner<'p>,
        asker: Asker<'_>,
        tried: &BitSet,
        in_turn: bool,
        now: u64,
    ) -> Result<Lease<'p>, Refusal> {
        if self.waiting > 0 && !in_turn {
            return Err(Refusal::Saturated);
        }
        let mut named = [0; NAME];
        let key = match manner.key {
            KeyForm::Nothing => Key::None,
            KeyForm::Client => Key::Address(asker.address()),
            KeyForm::Object => Key::Bytes(asker.object(&mut named)),
        };
        let client = manner.has_table.then(|| Rng::new(u64::from(asker.client)).next_u64());
        let request = Acquire {
            key,
            shadow_keys: ShadowKeys::OWN,
            random: self.picks.next_u64(),
            now: Tick(now),
            in_turn,
            stick: None,
            client,
            from: None,
            decision: None,
        };
        match (manner.sees, manner.every) {
            (Sees::Own, 0) => self.pool.acquire(&request, tried),
            (Sees::All, 0) => {
                let together = Together { own: self.pool.load(), pools: manner.pools };
                self.pool.acquire_by(&together, &request, tried)
            }
            (_, every) => {
                if self.board.next <= now {
                    self.board.look(self.pool, manner);
                    self.board.next = now.saturating_add(every);
                }
                self.pool.acquire_by(&self.board, &request, tried)
            }
        }
    }
}

impl<'a> Asker<'a> {
    fn address(&self) -> IpAddr {
        match self.trace.and_then(|trace| trace.clients.get(self.client as usize)) {
            Some(address) => *address,
            None => client_address(self.client).into(),
        }
    }

    fn object(&self, named: &'a mut [u8; NAME]) -> &'a [u8] {
        if let Some(name) = self.trace.and_then(|trace| trace.objects.get(self.object as usize)) {
            return name;
        }
        let (mut left, mut at) = (self.object, named.len());
        loop {
            at -= 1;
            named[at] = b'0' + (left % 10) as u8;
            left /= 10;
            if left == 0 {
                break;
            }
        }
        at -= OBJECT_PREFIX.len();
        named[at..at + OBJECT_PREFIX.len()].copy_from_slice(OBJECT_PREFIX);
        &named[at..]
    }
}

/// The load of all pools before the same endpoints, as it is.
struct Together<'p, L> {
    own: L,
    pools: &'p [Pool],
}

impl<L: LoadView> LoadView for Together<'_, L> {
    fn in_flight(&self, index: usize) -> u32 {
        in_flight(self.pools, index)
    }

    fn cell(&self, index: usize) -> u64 {
        self.own.cell(index)
    }

    fn packets(&self, index: usize) -> u64 {
        self.own.packets(index)
    }

    fn bytes(&self, index: usize) -> u64 {
        self.own.bytes(index)
    }

    fn ramp(&self, index: usize) -> u16 {
        self.own.ramp(index)
    }

    fn summary(&self) -> u64 {
        self.own.summary()
    }
}

/// Requests in flight to one endpoint, of all balancers.
pub(crate) fn in_flight(pools: &[Pool], index: usize) -> u32 {
    pools.iter().filter_map(|pool| pool.endpoint(index)).map(|endpoint| endpoint.in_flight()).sum()
}

/// The load as it was at the last look.
#[derive(Debug, Default)]
struct Board {
    seen: Vec<Seen>,
    summary: u64,
    /// When to look again.
    next: u64,
}

#[derive(Clone, Copy, Debug)]
struct Seen {
    in_flight: u32,
    ramp: u16,
    cell: u64,
    packets: u64,
    bytes: u64,
}

impl Board {
    fn look(&mut self, pool: &Pool, manner: &Manner<'_>) {
        let load = pool.load();
        let seen = |index| Seen {
            in_flight: match manner.sees {
                Sees::Own => load.in_flight(index),
                Sees::All => in_flight(manner.pools, index),
            },
            ramp: load.ramp(index),
            cell: load.cell(index),
            packets: load.packets(index),
            bytes: load.bytes(index),
        };
        self.seen.clear();
        self.seen.extend((0..pool.endpoints().len()).map(seen));
        self.summary = load.summary();
    }
}

impl LoadView for Board {
    fn in_flight(&self, index: usize) -> u32 {
        self.seen[index].in_flight
    }

    fn cell(&self, index: usize) -> u64 {
        self.seen[index].cell
    }

    fn packets(&self, index: usize) -> u64 {
        self.seen[index].packets
    }

    fn bytes(&self, index: usize) -> u64 {
        self.seen[index].bytes
    }

    fn ramp(&self, index: usize) -> u16 {
        self.seen[index].ramp
    }

    fn summary(&self) -> u64 {
        self.summary
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_are_called_by_their_numbers() {
        for number in [0, 7, 10, 4_294_967_295_u32] {
            let asker = Asker { client: 0, object: number, trace: None };
            let named = format!("/o/{number}");
            assert_eq!(asker.object(&mut [0; NAME]), named.as_bytes());
        }
    }
}
