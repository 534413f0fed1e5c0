//! What Ma & Chi 2022 compute and do not measure: where hashes send clients, and what finding a
//! node costs. No process is needed for any of it.

pub mod clients;
pub mod cost;
pub mod printed;
pub mod visits;
