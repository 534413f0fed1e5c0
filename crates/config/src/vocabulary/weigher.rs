//! Weights that follow what endpoints report of themselves: `weigher` of a pool.

use super::{FILE, PORT, key};
use super::health::INTERVAL;
use crate::defaults::{MAX_COEFFICIENT, MAX_HOLD};
use crate::keys::{Kind, Table};

use crate::keys::Kind::{Boolean, Duration, DurationWithin, Integer, Ratio};
use crate::keys::Without::{Default, Required};

const COEFFICIENT: Kind = Integer { min: 0, max: MAX_COEFFICIENT as i64 };

/// `weigher` of a pool.
pub static WEIGHER: Table = Table {
    path: "pool.NAME.weigher",
    what: "a weigher",
    doc: "`subak agent` runs on every endpoint and reports its resources; weights follow the reports. Not with `ip_hash`, `new_hash` and hashing by modulo.",
    keys: &[
        key("resource", Boolean, Required, "true",
            "The weigher `resource`: by CPU, memory, disk and network."),
        key("token_file", Kind::Text(&FILE), Required, "\"agent.token\"",
            "The file with the token that the agents ask for."),
        key("port", PORT, Default("9180"), "9280",
            "Where the agents listen, at the endpoints' addresses."),
        key("interval", INTERVAL, Default("\"1s\""), "\"5s\"",
            "From one report to the next."),
        key("timeout", Duration, Default("\"1s\""), "\"500ms\"",
            "For one report. At most `interval`."),
        key("hold", DurationWithin { min_ms: 1000, max_ms: MAX_HOLD.as_millis() as u64 }, Default("\"30s\""), "\"1m\"",
            "How long the last factor of an endpoint stays that reports no more; then it returns to 1."),
        key("band", Ratio, Default("0.02"), "0.05",
            "How far the reported load has to move before the weight follows."),
        key("max_jitter", Ratio, Default("0.25"), "0.1",
            "How far the load that counts moves in a second, at most."),
        key("capacity", Kind::Table(&WEIGHER_CAPACITY), Default("{}"), "{ memory = 40, disk = 30 }",
            "What each resource counts for in the capacity of an endpoint."),
        key("load", Kind::Table(&WEIGHER_LOAD), Default("{}"), "{ cpu = 100, memory = 0 }",
            "What each resource counts for in its load."),
    ],
    rules: &[],
};

/// `capacity` of a weigher.
pub static WEIGHER_CAPACITY: Table = Table {
    path: "pool.NAME.weigher.capacity",
    what: "capacities of a weigher",
    doc: "K of the formula. Only the ratio counts; 0 leaves a resource out.",
    keys: COEFFICIENTS,
    rules: &[],
};

/// `load` of a weigher.
pub static WEIGHER_LOAD: Table = Table {
    path: "pool.NAME.weigher.load",
    what: "loads of a weigher",
    doc: "λ of the formula. Only the ratio counts; 0 leaves a resource out.",
    keys: COEFFICIENTS,
    rules: &[],
};

const COEFFICIENTS: &[crate::keys::Key] = &[
    key("cpu", COEFFICIENT, Default("60"), "100", "Processor time."),
    key("memory", COEFFICIENT, Default("10"), "0", "Main memory."),
    key("disk", COEFFICIENT, Default("10"), "30", "Disk input and output."),
    key("network", COEFFICIENT, Default("20"), "15", "Network traffic."),
];
