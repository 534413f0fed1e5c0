//! A future in a place that is used again: what a request needs while it is under way.
//!
//! That is some KiB, of which nothing may stay with an idle connection, so each request begins with
//! memory and gives it back. A plain box costs 900 instructions: the allocator is quick only up to
//! 1 KiB, and the future is made on the stack and moved. Places are kept by the worker's thread
//! ([`Spares`]: at most [`MOST`] of a size, fewer when they are not needed), and a future is made in
//! its own. There are two sizes, because a tunnel keeps its request's place for hours.
#![allow(unsafe_code)]

use std::cell::RefCell;
use std::marker::PhantomData;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::ptr::NonNull;
use std::task::{Context, Poll};
use std::thread::LocalKey;

use crate::spares::Spares;

/// Places kept of each size: 10 MiB at most in all. As many as one worker has requests under way with
/// sixteen clients of a hundred streams.
const MOST: usize = 2048;

/// An exchange with a client of HTTP/1 needs 1.9 KiB,
const SMALL: usize = 2 * 1024;
/// and one with a client of HTTP/2 2.5 KiB. A future that is larger has a box of its own.
const LARGE: usize = 3 * 1024;

/// Room for a future.
#[repr(align(16))]
struct Room<const SIZE: usize>([u8; SIZE]);

type Place<const SIZE: usize> = Box<MaybeUninit<Room<SIZE>>>;
type Free<const SIZE: usize> = RefCell<Spares<Place<SIZE>>>;

thread_local! {
    static FREE_SMALL: Free<SMALL> = const { RefCell::new(Spares::new(MOST)) };
    static FREE_LARGE: Free<LARGE> = const { RefCell::new(Spares::new(MOST)) };
}

/// A future in its place, pinned.
#[derive(Debug)]
pub struct Placed<F> {
    future: NonNull<F>,
    owns: PhantomData<F>,
}

/// Puts the future that `make` makes in a place. Made there, not moved: let it call an `async fn`.
#[inline(always)]
pub fn place<F: Future>(make: impl FnOnce() -> F) -> Placed<F> {
    let room: *mut F = if fits::<F, SMALL>() {
        Box::into_raw(free_place(&FREE_SMALL)).cast()
    } else if fits::<F, LARGE>() {
        Box::into_raw(free_place(&FREE_LARGE)).cast()
    } else {
        Box::into_raw(Box::<F>::new_uninit()).cast()
    };
    // SAFETY: the room is ours alone, and large and aligned enough for an `F`: `fits` has looked, or
    // it was made for one. If `make` panics, the room is lost, and nothing looks at it.
    unsafe { room.write(make()) };
    // SAFETY: it comes from a box, which is never null.
    Placed { future: unsafe { NonNull::new_unchecked(room) }, owns: PhantomData }
}

/// Lets places go that have not been needed for a while. To be called once in a while.
pub fn sweep_places() {
    FREE_SMALL.with_borrow_mut(Spares::sweep);
    FREE_LARGE.with_borrow_mut(Spares::sweep);
}

#[inline]
const fn fits<F, const SIZE: usize>() -> bool {
    size_of::<F>() <= size_of::<Room<SIZE>>() && align_of::<F>() <= align_of::<Room<SIZE>>()
}

#[inline]
fn free_place<const SIZE: usize>(free: &'static LocalKey<Free<SIZE>>) -> Place<SIZE> {
    free.with_borrow_mut(Spares::take).unwrap_or_else(Box::new_uninit)
}

/// Without its thread's places (at thread end) it is simply freed, as where there are enough.
#[inline]
fn give_back<const SIZE: usize>(free: &'static LocalKey<Free<SIZE>>, place: Place<SIZE>) {
    let _ = free.try_with(|free| free.borrow_mut().put(place));
}

impl<F: Future> Future for Placed<F> {
    type Output = F::Output;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<F::Output> {
        // SAFETY: it holds a future from `place` to its own drop, is the only way to it, and does not
        // move it: it is pinned.
        unsafe { Pin::new_unchecked(self.future.as_mut()) }.poll(context)
    }
}

// The future stays where it is when its handle moves.
impl<F> Unpin for Placed<F> {}

impl<F> Drop for Placed<F> {
    #[inline]
    fn drop(&mut self) {
        let room = self.future.as_ptr();
        // SAFETY: it was written by `place` and is dropped only here. If that panics, the room is lost.
        unsafe { room.drop_in_place() };
        // SAFETY: the same questions as in `place`: each such room comes from a box of that very type,
        // and nothing is in it any more.
        unsafe {
            if fits::<F, SMALL>() {
                give_back(&FREE_SMALL, Box::from_raw(room.cast()));
            } else if fits::<F, LARGE>() {
                give_back(&FREE_LARGE, Box::from_raw(room.cast()));
            } else {
                drop(Box::from_raw(room.cast::<MaybeUninit<F>>()));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;
    use std::rc::Rc;
    use std::task::Waker;

    use super::*;

    /// Counts how often it is dropped.
    struct Dropped(Rc<Cell<u32>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            self.0.update(|count| count + 1);
        }
    }

    /// Answers what it was given the second time it is asked, by way of a reference into itself.
    async fn second<const SIZE: usize>(value: u8, dropped: Dropped) -> usize {
        let bytes = [value; SIZE];
        let inside = &bytes[..];
        let mut turns = 0;
        std::future::poll_fn(|_| {
            turns += 1;
            if turns == 2 { Poll::Ready(()) } else { Poll::Pending }
        })
        .await;
        let sum = inside.iter().map(|byte| usize::from(*byte)).sum();
        drop(dropped);
        sum
    }

    fn poll<F: Future>(placed: &mut Placed<F>) -> Poll<F::Output> {
        Pin::new(placed).poll(&mut Context::from_waker(Waker::noop()))
    }

    fn runs_and_is_dropped_once<const SIZE: usize>() {
        let count = Rc::new(Cell::new(0));
        let mut finished = place(|| second::<SIZE>(3, Dropped(count.clone())));
        assert!(poll(&mut finished).is_pending());
        // The handle moves, the future does not.
        let mut moved = Box::new(finished);
        assert_eq!((poll(&mut moved), count.get()), (Poll::Ready(3 * SIZE), 1));
        drop(moved);
        let mut cut_off = place(|| second::<SIZE>(3, Dropped(count.clone())));
        assert!(poll(&mut cut_off).is_pending());
        drop(cut_off);
        drop(place(|| second::<SIZE>(3, Dropped(count.clone()))));
        assert_eq!((count.get(), Rc::strong_count(&count)), (3, 1));
    }

    #[test]
    fn futures_of_any_size_run_and_are_dropped_once() {
        runs_and_is_dropped_once::<1>();
        runs_and_is_dropped_once::<{ SMALL - 512 }>();
        runs_and_is_dropped_once::<{ LARGE - 512 }>();
        runs_and_is_dropped_once::<{ 3 * LARGE }>();
    }

    #[test]
    fn a_place_is_used_again_and_two_at_once_are_two() {
        let first = place(|| std::future::ready([1u64; 9]));
        let address = first.future.as_ptr().addr();
        let second = place(|| std::future::ready([2u64; 9]));
        assert_ne!(second.future.as_ptr().addr(), address);
        drop(first);
        let third = place(|| std::future::ready(7u8));
        assert_eq!(third.future.as_ptr().addr(), address);
    }

    /// Something that is aligned more than a place has a box.
    #[repr(align(64))]
    struct Aligned(u8);

    #[test]
    fn alignment_is_kept() {
        let mut placed = place(|| std::future::ready(Aligned(1)));
        assert_eq!(placed.future.as_ptr().addr() % 64, 0);
        let Poll::Ready(Aligned(value)) = poll(&mut placed) else { unreachable!("it is ready") };
        assert_eq!(value, 1);
    }
}
