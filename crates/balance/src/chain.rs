//! Hashing again until an endpoint can take the request, the way nginx does.
//!
//! A chain is the endless sequence of endpoints that one client hashes to. An endpoint of it that
//! cannot take the request is a miss; the 21st miss leaves the request to round robin, and so does a
//! list of fewer than two endpoints. A retry goes on from where the endpoint tried last was chosen:
//! it walks the chain again from its start, where passing a tried endpoint for the first time is the
//! pick that tried it, and passing it again is a miss.

use crate::request::LoadView;
use crate::rules::Pick;

/// Misses that leave a request to round robin.
pub(crate) const MISSES_MAX: usize = 21;

/// Tried endpoints that are told apart; one that is tried after so many others counts as a miss.
const PASSED_MAX: usize = 32;

/// The first endpoint of the chain that can take the request, if it is found in time; else the next
/// in turn.
#[inline]
pub(crate) fn follow<L: LoadView + ?Sized>(
    pick: &Pick<'_, L>,
    mut chain: impl Iterator<Item = usize>,
) -> Option<usize> {
    match chain.next() {
        Some(first) if pick.is_candidate(first) => Some(first),
        Some(first) => go_on(pick, std::iter::once(first).chain(chain)),
        None => pick.next_in_rotation(),
    }
}

#[cold]
fn go_on<L: LoadView + ?Sized>(
    pick: &Pick<'_, L>,
    chain: impl Iterator<Item = usize>,
) -> Option<usize> {
    let (mut passed, mut count) = ([0; PASSED_MAX], 0);
    let mut misses = 0;
    for index in chain {
        if pick.is_candidate(index) {
            return Some(index);
        }
        let is_first_pass = pick.request.tried.contains(index) && !passed[..count].contains(&index);
        if is_first_pass && count < PASSED_MAX {
            passed[count] = index;
            count += 1;
        } else {
            misses += 1;
        }
        if misses == MISSES_MAX {
            break;
        }
    }
    pick.next_in_rotation()
}

/// How far along the chain an endpoint comes, if it comes in time.
pub(crate) fn misses_before(chain: impl Iterator<Item = usize>, index: usize) -> Option<u64> {
    let place = chain.take(MISSES_MAX).position(|passed| passed == index);
    place.map(|place| place as u64)
}
