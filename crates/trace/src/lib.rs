//! What would another algorithm have done with this traffic? An access log is read, a model of the
//! endpoints is fitted to it, and every algorithm runs on the log's own arrivals.

#![forbid(unsafe_code)]

mod address;
mod asked;
mod cache;
mod candidate;
mod describe;
mod example;
mod fit;
mod format;
mod in_flight;
mod json;
mod line;
mod log;
mod maker;
mod moment;
mod names;
mod objects;
mod pattern;
mod places;
mod queue;
mod reading;
mod recency;
mod recommend;
mod replay;
mod report;
mod sample;
mod source;
mod spread;
mod traced;
mod trial;

pub use asked::{Asked, AskedOnce, LeftOut, asked, asked_bytes};
pub use candidate::Candidate;
pub use example::Example;
pub use format::Format;
pub use log::{Counts, Log, MOST_REQUESTS, read, read_bytes};
pub use pattern::{NoFormat, Stamp};
pub use reading::{LogError, Reading};
pub use replay::{Finding, Question, SEEDS, replay};
