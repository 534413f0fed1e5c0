//! Session tickets: what a client brings back to go on without a full handshake.
//!
//! A ticket is the session, encrypted with AES-256-GCM under a key that all workers share and nobody
//! else has. The key changes every `period`; the one before still opens tickets, so that a ticket
//! lives between one and two periods, and what is stolen later opens none that is older (RFC 5077,
//! 5.5). Who finds the time to have come makes the next key: no thread waits, none is needed.
//!
//! Ticket: 8 bytes naming the key, 12 of nonce, the session, 16 of authentication.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use aws_lc_rs::aead::{AES_256_GCM, Aad, NONCE_LEN, Nonce, RandomizedNonceKey};
use aws_lc_rs::rand;
use rustls::server::ProducesTickets;

use super::server::TlsSetupError;

const NAME: usize = 8;
const KEY: usize = 32;
/// The largest ticket that is looked at: a session with a chain of a client's certificates.
const MAX_TICKET: usize = 64 * 1024;
/// The longest time TLS 1.3 lets a ticket live (RFC 8446, 4.6.1).
const MAX_LIFETIME_S: u64 = 7 * 24 * 3600;

/// The keys of one listener's tickets; go on over reloads.
pub struct TicketKeys {
    keys: ArcSwap<Keys>,
    period: Duration,
}

struct Keys {
    current: Arc<Key>,
    previous: Option<Arc<Key>>,
    /// When the next key is due.
    until: Instant,
}

struct Key {
    name: [u8; NAME],
    aead: RandomizedNonceKey,
}

impl TicketKeys {
    /// Begins with a random key.
    ///
    /// # Errors
    /// The system gives no random bytes.
    pub fn new(period: Duration) -> Result<TicketKeys, TlsSetupError> {
        let current = Key::random().ok_or_else(no_randomness)?;
        let until = Instant::now() + period;
        let keys = Keys { current: Arc::new(current), previous: None, until };
        Ok(TicketKeys { keys: ArcSwap::from_pointee(keys), period })
    }

    /// How often the key changes.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// The keys that count now.
    fn at(&self, now: Instant) -> Arc<Keys> {
        let keys = self.keys.load_full();
        if now < keys.until {
            return keys;
        }
        let Some(next) = Key::random() else { return keys };
        // After a long silence the current key is too old to open anything.
        let previous = (now < keys.until + self.period).then(|| keys.current.clone());
        let next = Keys { current: Arc::new(next), previous, until: now + self.period };
        // Of two threads that find the time to have come, one makes the key of both.
        self.keys.compare_and_swap(&keys, Arc::new(next));
        self.keys.load_full()
    }

    fn seal(&self, session: &[u8], now: Instant) -> Option<Vec<u8>> {
        let keys = self.at(now);
        let key = &keys.current;
        let mut sealed = session.to_vec();
        let nonce = key.aead.seal_in_place_append_tag(Aad::from(&key.name), &mut sealed).ok()?;
        let mut ticket = Vec::with_capacity(NAME + NONCE_LEN + sealed.len());
        ticket.extend_from_slice(&key.name);
        ticket.extend_from_slice(nonce.as_ref());
        ticket.append(&mut sealed);
        Some(ticket)
    }

    fn open(&self, ticket: &[u8], now: Instant) -> Option<Vec<u8>> {
        if ticket.len() > MAX_TICKET {
            return None;
        }
        let (name, rest) = ticket.split_first_chunk::<NAME>()?;
        let (nonce, sealed) = rest.split_first_chunk::<NONCE_LEN>()?;
        let keys = self.at(now);
        let known = std::iter::once(&keys.current).chain(&keys.previous);
        let key = known.into_iter().find(|key| key.name == *name)?;
        let mut session = sealed.to_vec();
        let nonce = Nonce::assume_unique_for_key(*nonce);
        let len = key.aead.open_in_place(nonce, Aad::from(name), &mut session).ok()?.len();
        session.truncate(len);
        Some(session)
    }
}

impl Key {
    fn random() -> Option<Key> {
        let (mut name, mut key) = ([0; NAME], [0; KEY]);
        rand::fill(&mut name).ok()?;
        rand::fill(&mut key).ok()?;
        let aead = RandomizedNonceKey::new(&AES_256_GCM, &key).ok()?;
        Some(Key { name, aead })
    }
}

fn no_randomness() -> TlsSetupError {
    TlsSetupError("the system gives no random bytes for the key of session tickets".into())
}

impl ProducesTickets for TicketKeys {
    fn enabled(&self) -> bool {
        true
    }

    fn lifetime(&self) -> u32 {
        let lifetime_s = (self.period.as_secs() * 2).min(MAX_LIFETIME_S);
        u32::try_from(lifetime_s).unwrap_or(u32::MAX)
    }

    fn encrypt(&self, session: &[u8]) -> Option<Vec<u8>> {
        self.seal(session, Instant::now())
    }

    fn decrypt(&self, ticket: &[u8]) -> Option<Vec<u8>> {
        self.open(ticket, Instant::now())
    }
}

/// Keys are not shown.
impl fmt::Debug for TicketKeys {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.debug_struct("TicketKeys").field("period", &self.period).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    #[test]
    fn a_ticket_lives_between_one_and_two_periods() {
        let keys = TicketKeys::new(HOUR).expect("keys");
        let start = Instant::now();
        let ticket = keys.seal(b"session", start).expect("sealed");
        let opened = |at| keys.open(&ticket, at);
        assert_eq!(opened(start).as_deref(), Some(&b"session"[..]));
        assert_eq!(opened(start + HOUR / 2).as_deref(), Some(&b"session"[..]));
        // The next key is made; the one before still opens.
        assert_eq!(opened(start + HOUR + HOUR / 4).as_deref(), Some(&b"session"[..]));
        let later = keys.seal(b"later", start + HOUR + HOUR / 4).expect("sealed");
        assert_ne!(ticket[..NAME], later[..NAME], "sealed by another key");
        assert!(opened(start + 3 * HOUR).is_none());
        assert_eq!(keys.open(&later, start + 3 * HOUR).as_deref(), Some(&b"later"[..]));
    }

    #[test]
    fn a_key_that_slept_through_its_time_opens_nothing() {
        let keys = TicketKeys::new(HOUR).expect("keys");
        let start = Instant::now();
        let ticket = keys.seal(b"session", start).expect("sealed");
        assert!(keys.open(&ticket, start + 5 * HOUR).is_none());
    }

    #[test]
    fn nothing_that_was_changed_opens() {
        let keys = TicketKeys::new(HOUR).expect("keys");
        let now = Instant::now();
        let ticket = keys.seal(b"session", now).expect("sealed");
        for place in 0..ticket.len() {
            let mut forged = ticket.clone();
            forged[place] ^= 1;
            assert!(keys.open(&forged, now).is_none(), "byte {place}");
            assert!(keys.open(&ticket[..place], now).is_none(), "{place} bytes of it");
        }
        let others = TicketKeys::new(HOUR).expect("keys");
        assert!(others.open(&ticket, now).is_none());
        assert!(!format!("{keys:?}").contains("current"));
    }
}
