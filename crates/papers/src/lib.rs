//! Five papers on load balancing, run again on real processes: what they measured, what they claim,
//! and what their set-ups hide.
//!
//! A [`cell::Cell`] is one measurement: a balancer, an algorithm, a load. [`run::run`] makes cells one
//! after the other and keeps each result in a file at once, so that a run of hours can be interrupted
//! and goes on where it was. [`book::report`] turns whatever has been measured into tables, plots and
//! a verdict on each claim; what was not measured is said to be not run.
//!
//! | module | what it is |
//! |---|---|
//! | [`run`] | the cells of every paper, and how they are run |
//! | [`world`] | a network of this run's own, servers and balancers as processes, how busy they are |
//! | [`tools`] | ab, h2load, k6 and our own generator: called, and their words read |
//! | [`hashing`] | what needs no process: where hashes send clients, what a pick costs |
//! | [`results`], [`statistics`] | what was measured, and what can be said of it |
//! | [`book`] | the report |

#![forbid(unsafe_code)]

pub mod book;
pub mod cell;
mod figures;
pub mod hashing;
mod others;
mod p1;
mod p2;
mod p3;
mod p4;
mod p5;
pub mod results;
pub mod run;
pub mod statistics;
pub mod tools;
pub mod world;
