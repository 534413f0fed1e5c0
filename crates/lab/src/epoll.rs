//! Readiness from the kernel, without a runtime in between.
//!
//! A test endpoint or a load generator spends its time in five system calls;
//! a runtime would add tasks, wakers and timers to each. Level-triggered, so a
//! reader may stop before `EAGAIN` and save that call.
#![allow(unsafe_code)]

use std::io;
use std::os::fd::{AsFd, AsRawFd, FromRawFd, OwnedFd};
use std::time::Duration;

use tokio::io::unix::AsyncFd;

/// Readiness that one call of [`Epoll::wait`] can return.
const BATCH: usize = 256;

/// What a registered descriptor waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Interest {
    /// Something to read, or the other side closed.
    Read,
    /// Room to write.
    Write,
}

impl Interest {
    fn bits(self) -> u32 {
        match self {
            Interest::Read => libc::EPOLLIN as u32,
            Interest::Write => libc::EPOLLOUT as u32,
        }
    }
}

/// One epoll instance and the list its answers are written to.
pub(crate) struct Epoll {
    instance: OwnedFd,
    ready: Vec<libc::epoll_event>,
}

impl Epoll {
    /// A new, empty instance.
    pub(crate) fn new() -> io::Result<Epoll> {
        // SAFETY: takes no pointers; a descriptor ≥ 0 is new and owned by nobody else.
        let instance = unsafe {
            let fd = libc::epoll_create1(libc::EPOLL_CLOEXEC);
            if fd < 0 {
                return Err(io::Error::last_os_error());
            }
            OwnedFd::from_raw_fd(fd)
        };
        Ok(Epoll { instance, ready: Vec::with_capacity(BATCH) })
    }

    /// Reports `fd` under `token` from now on. Closing the descriptor ends it.
    pub(crate) fn add(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_ADD, fd, token, interest)
    }

    /// Changes what a registered descriptor waits for.
    pub(crate) fn modify(&self, fd: impl AsFd, token: u64, interest: Interest) -> io::Result<()> {
        self.control(libc::EPOLL_CTL_MOD, fd, token, interest)
    }

    fn control(
        &self,
        operation: libc::c_int,
        fd: impl AsFd,
        token: u64,
        interest: Interest,
    ) -> io::Result<()> {
        let mut event = libc::epoll_event { events: interest.bits(), u64: token };
        let fd = fd.as_fd().as_raw_fd();
        // SAFETY: both descriptors are open (owned and borrowed for this call) and
        // `event` outlives the call, which copies it.
        let code = unsafe { libc::epoll_ctl(self.instance.as_raw_fd(), operation, fd, &mut event) };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }

    /// Waits until something is ready or `limit` has passed (`None`: for ever) and
    /// returns how many tokens [`Epoll::token`] can give. A signal counts as zero.
    ///
    /// The limit has nanoseconds (`epoll_pwait2`, Linux 5.11): a fixed-rate load at
    /// 15,000 requests/s has 66 µs between starts, which `epoll_wait` cannot wait for.
    pub(crate) fn wait(&mut self, limit: Option<Duration>) -> io::Result<usize> {
        let limit = limit.map(|limit| libc::timespec {
            tv_sec: limit.as_secs() as libc::time_t,
            tv_nsec: libc::c_long::from(limit.subsec_nanos()),
        });
        let limit = limit.as_ref().map_or(std::ptr::null(), std::ptr::from_ref);
        // SAFETY: `ready` has room for BATCH events, `limit` is null or points to a live
        // timespec, the signal mask is null (its size is then ignored). The kernel fills
        // the first `count` events, so that length is initialised.
        unsafe {
            let count = libc::syscall(
                libc::SYS_epoll_pwait2,
                self.instance.as_raw_fd(),
                self.ready.as_mut_ptr(),
                BATCH,
                limit,
                std::ptr::null::<libc::sigset_t>(),
                0_usize,
            );
            if count < 0 {
                self.ready.set_len(0);
                let error = io::Error::last_os_error();
                return if error.kind() == io::ErrorKind::Interrupted { Ok(0) } else { Err(error) };
            }
            self.ready.set_len(count as usize);
        }
        Ok(self.ready.len())
    }

    /// The token of the `index`-th ready descriptor of the last [`Epoll::wait`].
    pub(crate) fn token(&self, index: usize) -> u64 {
        self.ready[index].u64
    }
}

/// A timer that can be waited for like a socket, exact to the nanosecond where the thread's timers are.
pub(crate) struct Timer(OwnedFd);

impl Timer {
    /// One that is not set.
    pub(crate) fn new() -> io::Result<Timer> {
        // SAFETY: takes no pointers; a descriptor ≥ 0 is new and owned by nobody else.
        unsafe {
            let flags = libc::TFD_CLOEXEC | libc::TFD_NONBLOCK;
            let fd = libc::timerfd_create(libc::CLOCK_MONOTONIC, flags);
            if fd < 0 {
                Err(io::Error::last_os_error())
            } else {
                Ok(Timer(OwnedFd::from_raw_fd(fd)))
            }
        }
    }

    /// As tokio waits for it.
    pub(crate) fn registered(self) -> io::Result<AsyncFd<Timer>> {
        // SAFETY: the descriptor is the same, and open, as long as the timer lives; nothing hands out
        // a way to exchange it.
        unsafe { AsyncFd::register(self) }.map_err(io::Error::from)
    }

    /// Becomes readable once, after so long; whatever was set before is forgotten.
    pub(crate) fn set(&self, after: Duration) -> io::Result<()> {
        let after = after.max(Duration::from_nanos(1));
        let none = libc::timespec { tv_sec: 0, tv_nsec: 0 };
        let value = libc::itimerspec {
            it_interval: none,
            it_value: libc::timespec {
                tv_sec: after.as_secs() as libc::time_t,
                tv_nsec: libc::c_long::from(after.subsec_nanos()),
            },
        };
        // SAFETY: the descriptor is open, `value` outlives the call, the old value is not asked for.
        let code =
            unsafe { libc::timerfd_settime(self.0.as_raw_fd(), 0, &value, std::ptr::null_mut()) };
        if code < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
    }
}

impl AsRawFd for Timer {
    fn as_raw_fd(&self) -> std::os::fd::RawFd {
        self.0.as_raw_fd()
    }
}
