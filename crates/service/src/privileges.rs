//! From root to an ordinary user, for good.
//!
//! What stays is one capability, CAP_NET_BIND_SERVICE, so that a reload may bind new ports below 1024.
//! The bounding set loses all others, and `no_new_privs` keeps programs with the setuid bit from giving
//! any back: what takes this process over can neither become root nor read what root may.
//!
//! User and groups are the process's: the C library changes them in all threads. Capabilities belong to
//! a thread and are inherited by those it starts, so this runs before workers do, on the thread that
//! starts them. A thread that was there before loses all of its capabilities with its user.

use std::fmt;
use std::io;

use nix::unistd::{Gid, Uid, getresgid, getresuid, setgroups, setresgid, setresuid};
use rustix::thread::{
    CapabilitySet, CapabilitySets, capabilities, remove_capability_from_bounding_set,
    set_capabilities, set_keep_capabilities, set_no_new_privs,
};

use crate::account::Account;

/// What a reload needs beyond the rights of an ordinary user.
const KEPT: CapabilitySet = CapabilitySet::NET_BIND_SERVICE;

/// Why this process does not run as another user.
#[derive(Debug)]
pub enum NotBecome {
    /// Only root can: who wanted to become whom.
    NotRoot {
        /// As whom it was started.
        own: Account,
        /// As whom it was to run.
        wanted: Account,
    },
    /// A step was refused.
    Refused {
        /// What was to be done.
        step: &'static str,
        /// What the system said.
        error: io::Error,
    },
}

impl fmt::Display for NotBecome {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotBecome::NotRoot { own, wanted } => write!(
                out,
                "cannot run as {wanted}: this process is {own}, and only root can become another \
                 user\n  start it as root, or leave user = … out; under systemd User= in the unit \
                 does it, and needs neither"
            ),
            NotBecome::Refused { step, error } => write!(
                out,
                "cannot give up the rights of root: {step}: {error}\n  a container has to leave \
                 CAP_SETUID and CAP_SETGID; or start it as the ordinary user in the first place"
            ),
        }
    }
}

impl std::error::Error for NotBecome {}

/// Makes this process run as an account, with no right beyond that but to bind low ports. Nothing
/// changes but the rights where it is that account already; who is to be root stays as it is.
///
/// # Errors
/// [`NotBecome`]. The process may then be neither the one nor the other: it has to end.
pub fn become_account(account: &Account) -> Result<(), NotBecome> {
    if account.uid.is_root() && account.is_own() {
        return Ok(());
    }
    if !account.is_own() {
        change_ids(account)?;
    }
    keep_one_right()
}

fn change_ids(account: &Account) -> Result<(), NotBecome> {
    if !Uid::effective().is_root() {
        let own = Account::own();
        return Err(NotBecome::NotRoot { own, wanted: account.clone() });
    }
    drop_bounding_set();
    step("keeping rights over the change of user", set_keep_capabilities(true))?;
    step("setgroups", setgroups(&account.groups))?;
    step("setresgid", setresgid(account.gid, account.gid, account.gid))?;
    step("setresuid", setresuid(account.uid, account.uid, account.uid))?;
    step("setting that back", set_keep_capabilities(false))?;
    let (uids, gids) = (step("getresuid", getresuid())?, step("getresgid", getresgid())?);
    let has_become = |uid: Uid, gid: Gid| uid == account.uid && gid == account.gid;
    let all = has_become(uids.real, gids.real)
        && has_become(uids.effective, gids.effective)
        && has_become(uids.saved, gids.saved);
    match all {
        true => Ok(()),
        false => Err(NotBecome::Refused {
            step: "checking the change of user",
            error: io::ErrorKind::PermissionDenied.into(),
        }),
    }
}

/// Where even this right is missing (CAP_SETPCAP) the set stays as wide as somebody made it: without
/// programs to start, and under `no_new_privs`, nothing can be taken from it.
fn drop_bounding_set() {
    for capability in CapabilitySet::all().difference(KEPT).iter() {
        let _ = remove_capability_from_bounding_set(capability);
    }
}

fn keep_one_right() -> Result<(), NotBecome> {
    let had = step("reading capabilities", capabilities(None))?;
    let kept = had.permitted.intersection(KEPT);
    let sets =
        CapabilitySets { permitted: kept, effective: kept, inheritable: CapabilitySet::empty() };
    step("dropping capabilities", set_capabilities(None, sets))?;
    step("setting no_new_privs", set_no_new_privs(true))
}

fn step<T, E: Into<io::Error>>(step: &'static str, done: Result<T, E>) -> Result<T, NotBecome> {
    done.map_err(|error| NotBecome::Refused { step, error: error.into() })
}
