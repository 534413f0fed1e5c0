//! What a service is to the machine it runs on: the account it runs as ([`Account`], [`become_account`]),
//! the file that says which process it is ([`PidFile`]), and the service manager that is told how it
//! is ([`Notifier`]).
//!
//! All of it belongs to the control side. Nothing here waits for another process.

#![forbid(unsafe_code)]

mod account;
mod directory;
mod journal;
mod memory;
mod memory_limit;
mod notify;
mod pid_file;
mod privileges;

pub use account::{Account, NoAccount};
pub use directory::hand_over;
pub use journal::leads_to_journal;
pub use memory::use_small_pages;
pub use memory_limit::memory_limit;
pub use notify::{Notifier, Told};
pub use pid_file::{NoPidFile, PidFile};
pub use privileges::{NotBecome, become_account};
