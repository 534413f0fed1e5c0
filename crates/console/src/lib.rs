//! What operators type and look at: `subak ctl` and `subak top`.
//!
//! Both are clients of the Admin API of a process that runs, as anybody's `curl` is: [`reach`] finds
//! it, [`ask`] asks it, [`status`] is what it answers. Fields that an older Subak does not tell are
//! shown as `–`; fields that a newer one tells beyond these are ignored.

#![forbid(unsafe_code)]

pub mod ask;
pub mod ctl;
mod paint;
pub mod reach;
pub mod status;
mod table;
pub mod top;
mod written;

pub use ask::{Answer, AskError, Client};
pub use reach::Reach;
