//! Attackers beside the load: each a thread that paces itself, from an address of its own.
//!
//! What must be refused is counted as refused when the answer's status says so or the connection is
//! closed without one. What only holds connections is counted by how long the balancer lets it, and is
//! watched after the attack until the balancer has ended it or the load is over.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, Scope, ScopedJoinHandle};
use std::time::{Duration, Instant};

use socket2::{Domain, Socket, Type};
use subak_lab::machine;
use subak_message::ambiguous::REQUESTS;

use crate::measured::Attacked;
use crate::model::{Assault, Attack};

/// Connections that one attacker holds, at most.
const MOST_HELD: usize = 5_000;
/// An answer is waited for so long; later it is none.
const ANSWERS_WITHIN: Duration = Duration::from_secs(5);
/// A connection is made within this time.
const CONNECTS_WITHIN: Duration = Duration::from_secs(1);
/// A slow client sends one byte in this time.
const DRIP: Duration = Duration::from_millis(500);
/// Who holds connections looks after them so often.
const LOOKS: Duration = Duration::from_millis(20);
/// Bytes of a head that is too large.
const LARGE_HEAD: usize = 1 << 20;
/// What a slow client sends, again and again.
const SLOW_HEAD: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\nX-Slow: ";

type Attacker<'scope> = ScopedJoinHandle<'scope, io::Result<Attacked>>;

/// Starts them; they end with their time, or when the load is over.
pub(super) fn start<'scope>(
    scope: &'scope Scope<'scope, '_>,
    attacks: &'scope [Attack],
    target: SocketAddr,
    core: usize,
    began: Instant,
    over: &'scope AtomicBool,
) -> Vec<Attacker<'scope>> {
    let one = |attack: &'scope Attack| {
        scope.spawn(move || {
            machine::pin_to(core)?;
            let clock = Clock { began, over };
            let mut attacked = Attacked::of(attack.what);
            if !clock.wait_until(attack.from) {
                return Ok(attacked);
            }
            match attack.what {
                Assault::Ambiguous => ask(attack, target, &clock, &mut attacked, ambiguous),
                Assault::LargeHeads => ask(attack, target, &clock, &mut attacked, large),
                Assault::SlowHeads => hold(attack, target, &clock, &mut attacked, SLOW_HEAD),
                Assault::Connections => hold(attack, target, &clock, &mut attacked, b""),
            }
            Ok(attacked)
        })
    };
    attacks.iter().map(one).collect()
}

/// What came of them.
pub(super) fn finish(attackers: Vec<Attacker<'_>>) -> io::Result<Vec<Attacked>> {
    let failed = |_| Err(io::Error::other("an attacker failed"));
    attackers.into_iter().map(|one| one.join().unwrap_or_else(failed)).collect()
}

struct Clock<'a> {
    began: Instant,
    over: &'a AtomicBool,
}

impl Clock<'_> {
    /// False when the load is over before.
    fn wait_until(&self, at: Duration) -> bool {
        loop {
            if self.over.load(Ordering::Relaxed) {
                return false;
            }
            match at.checked_sub(self.began.elapsed()) {
                Some(left) if !left.is_zero() => thread::sleep(left.min(LOOKS)),
                _ => return true,
            }
        }
    }
}

fn connect(target: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(target), Type::STREAM, None)?;
    // Not the load's address: limits by client are to tell them apart.
    socket.bind(&SocketAddr::new(target.ip(), 0).into())?;
    socket.connect_timeout(&target.into(), CONNECTS_WITHIN)?;
    Ok(socket.into())
}

/// One request after the other, in time with the attack's rate as far as answers allow.
fn ask(
    attack: &Attack,
    target: SocketAddr,
    clock: &Clock<'_>,
    attacked: &mut Attacked,
    request: fn(u64) -> Vec<u8>,
) {
    let mut number = 0;
    loop {
        let at = attack.from + Duration::from_secs_f64(number as f64 / attack.rate);
        if at >= attack.until || !clock.wait_until(at) {
            return;
        }
        attacked.tried += 1;
        attacked.refused += u64::from(is_refused(target, &request(number)));
        number += 1;
    }
}

fn ambiguous(number: u64) -> Vec<u8> {
    let bad: Vec<_> = REQUESTS.iter().filter(|request| request.status != 200).collect();
    let index = usize::try_from(number).unwrap_or(0) % bad.len().max(1);
    bad.get(index).map_or_else(Vec::new, |request| request.bytes.to_vec())
}

fn large(_: u64) -> Vec<u8> {
    let mut head = b"GET / HTTP/1.1\r\nHost: a\r\nX-Large: ".to_vec();
    head.resize(LARGE_HEAD, b'a');
    head.extend_from_slice(b"\r\n\r\n");
    head
}

fn is_refused(target: SocketAddr, request: &[u8]) -> bool {
    // Who is not even connected got nothing.
    let Ok(mut stream) = connect(target) else { return true };
    let _ = stream.set_read_timeout(Some(ANSWERS_WITHIN));
    let _ = stream.set_write_timeout(Some(ANSWERS_WITHIN));
    // It may be refused before it is all sent.
    let _ = stream.write_all(request);
    let mut start = [0; 12];
    let mut length = 0;
    while length < start.len() {
        match stream.read(&mut start[length..]) {
            Ok(0) => break,
            Ok(count) => length += count,
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Nothing said in time: it was neither answered nor refused.
            Err(error) => return error.kind() == ErrorKind::ConnectionReset,
        }
    }
    !matches!(start.get(9), Some(b'1'..=b'3')) || length == 0
}

struct Held {
    stream: TcpStream,
    since: Instant,
    said: Instant,
    place: usize,
}

/// Opens connections at the attack's rate and holds them as long as the balancer lets it, saying no more
/// than a byte now and then; those that are left when the load is over were not ended.
fn hold(
    attack: &Attack,
    target: SocketAddr,
    clock: &Clock<'_>,
    attacked: &mut Attacked,
    says: &[u8],
) {
    let mut all: Vec<Held> = Vec::new();
    let mut opened = 0_u64;
    let mut longest = Duration::ZERO;
    loop {
        let now = clock.began.elapsed().min(attack.until);
        let opens = now < attack.until;
        let is_over = clock.over.load(Ordering::Relaxed);
        let due = now.saturating_sub(attack.from).as_secs_f64() * attack.rate;
        while opens && !is_over && (opened as f64) < due && all.len() < MOST_HELD {
            opened += 1;
            attacked.tried += 1;
            let stream = connect(target).and_then(|stream| {
                stream.set_nonblocking(true)?;
                Ok(stream)
            });
            let (since, place) = (Instant::now(), 0);
            match stream {
                Ok(stream) => all.push(Held { stream, since, said: since - DRIP, place }),
                Err(_) => attacked.refused += 1,
            }
        }
        let mut ended = 0;
        all.retain_mut(|held| {
            let stays = held.goes_on(says);
            if !stays || is_over {
                longest = longest.max(held.since.elapsed());
            }
            ended += u64::from(!stays);
            stays
        });
        attacked.refused += ended;
        attacked.held_s = longest.as_secs_f64();
        if is_over || !opens && all.is_empty() {
            return;
        }
        thread::sleep(LOOKS);
    }
}

impl Held {
    /// False when the balancer has ended it.
    fn goes_on(&mut self, says: &[u8]) -> bool {
        if !says.is_empty() && self.said.elapsed() >= DRIP {
            self.said = Instant::now();
            let next = says.get(self.place).copied().unwrap_or(b'a');
            self.place += 1;
            match self.stream.write(&[next]) {
                Err(error) if error.kind() != ErrorKind::WouldBlock => return false,
                _ => {}
            }
        }
        // Whatever comes is the end, or a refusal before it.
        let heard = self.stream.read(&mut [0; 512]).map(|_| ());
        heard.is_err_and(|error| {
            matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::Interrupted)
        })
    }
}
