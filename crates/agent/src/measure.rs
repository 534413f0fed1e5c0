//! What does the kernel count that says how loaded a machine is?
//!
//! | resource | capacity | use | from |
//! |---|---|---|---|
//! | CPU | processors, in thousandths of one | share of the time not idle and not waiting for a disk | `/proc/stat` |
//! | memory | bytes | share that is not available without swapping | `/proc/meminfo` |
//! | disk | stated (`disk_speed`) | share of the time with a request under way, of the busiest disk | `/proc/diskstats` |
//! | network | bits a second of the interfaces, or stated (`network_speed`) | the busier direction of the busiest interface | `/proc/net/dev`, `/sys/class/net` |
//!
//! In a control group with a limit, that limit is the capacity, and the group's own use counts
//! instead of the machine's: CPU by `cpu.max`, memory by `memory.max` without the pages of files
//! that were not used lately, which are given back first. Both versions of control groups are read.
//! Disk and network are the machine's in any case.
//!
//! Parsers are functions of a text; what they do not understand is not known, never zero. A
//! [`Sampler`] keeps the last readings: shares of time and rates are those since the newest reading
//! that is [`Options::window`] old, memory is as it is now. Cost: some ten small files a reading,
//! less than 0.5 ms of CPU.

mod cgroup;
mod cpu;
mod disk;
mod files;
mod memory;
mod network;
mod reading;
mod sampler;
mod speed;

use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

pub use files::Roots;
pub use sampler::{Sample, Sampler};
pub use speed::{Speed, SpeedError};

/// What is measured, and how often.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Options {
    /// The time from one reading to the next.
    pub interval: Duration,
    /// The time that shares and rates are taken over; at least one interval.
    pub window: Duration,
    /// The control group whose limits and use count, below the root of its hierarchy. The root
    /// itself has limits where a container sees only its own group; else it is the machine.
    pub cgroup: PathBuf,
    /// The disks that count; when empty all that are a device of their own.
    pub disks: Vec<String>,
    /// The network interfaces that count; when empty those with a default route.
    pub interfaces: Vec<String>,
    /// What a disk can transfer. The kernel does not know it.
    pub disk_speed: Option<Speed>,
    /// What an interface can transfer in one direction, instead of what its driver says.
    pub network_speed: Option<Speed>,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            interval: Duration::from_secs(1),
            window: Duration::from_secs(3),
            cgroup: PathBuf::from("/"),
            disks: Vec::new(),
            interfaces: Vec::new(),
            disk_speed: None,
            network_speed: None,
        }
    }
}

/// Why nothing can be measured as asked.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MeasureError {
    /// Neither `/proc/stat` nor the control group says what the CPU does.
    NoCpu {
        /// The file that was looked at.
        stat: PathBuf,
    },
    /// There is no control group of this name.
    NoCgroup {
        /// As it was asked for.
        name: PathBuf,
        /// Where it was looked for.
        path: PathBuf,
    },
    /// There is no disk of this name.
    NoDisk {
        /// As it was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
    /// There is no network interface of this name.
    NoInterface {
        /// As it was asked for.
        name: String,
        /// What there is.
        known: Vec<String>,
    },
}

impl fmt::Display for MeasureError {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            MeasureError::NoCpu { stat } => {
                write!(out, "cannot read {}\n  is /proc mounted here?", stat.display())
            }
            MeasureError::NoCgroup { name, path } => write!(
                out,
                "there is no control group {} ({} is not there)\n  its name begins below the root \
                 of the hierarchy, as in /proc/PID/cgroup",
                name.display(),
                path.display()
            ),
            MeasureError::NoDisk { name, known } => {
                write!(out, "there is no disk {name}\n  there is {}", known.join(", "))
            }
            MeasureError::NoInterface { name, known } => {
                write!(out, "there is no network interface {name}\n  there is {}", known.join(", "))
            }
        }
    }
}

impl std::error::Error for MeasureError {}
