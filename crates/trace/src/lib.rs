//! What would another algorithm have done with this traffic? An access log is read, a model of the
//! endpoints is fitted to it, and every algorithm runs on the log's own arrivals.

#![forbid(unsafe_code)]

mod address;
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
mod recency;
mod recommend;
mod replay;
mod report;
mod sample;
mod source;
mod spread;
mod traced;
mod trial;

pub use candidate::Candidate;
pub use example::Example;
pub use format::Format;
pub use log::{Counts, Log, LogError, MOST_REQUESTS, Reading, read};
pub use pattern::{NoFormat, Stamp};
pub use replay::{Finding, Question, SEEDS, replay};
