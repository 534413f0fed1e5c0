//! What goes wrong, with whom, and when.

use std::time::Duration;

/// Trouble with some endpoints for some time. Where two overlap, the later in the list counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fault {
    /// By their places in the pool.
    pub endpoints: Vec<usize>,
    /// When it begins.
    pub from: Duration,
    /// When it is over.
    pub until: Duration,
    /// What it is.
    pub trouble: Trouble,
}

/// What can be wrong with an endpoint.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Trouble {
    /// What it begins takes so many thousandths of the time; probes too.
    Slow {
        /// 1,000 for just as long.
        per_mille: u32,
    },
    /// It is dead: what it had is reset, new connections are refused.
    Dead,
    /// It takes everything and answers nothing.
    Silent,
    /// It is dead and alive by turns, dead first.
    Flapping {
        /// Dead for so long.
        down: Duration,
        /// Alive for so long.
        up: Duration,
    },
    /// So many thousandths of its answers, probes too, break off.
    Lossy {
        /// At most 1,000.
        per_mille: u32,
    },
    /// It answers so many thousandths of its requests 500 at once, without any work.
    Failing {
        /// At most 1,000.
        per_mille: u32,
    },
    /// The endpoints are replaced one after the other: each gets no new work while it drains, is dead
    /// while it is away, and takes work again; then it is the next one's turn. The fault's end cuts it
    /// off.
    Deploy {
        /// Zero: nobody is told beforehand.
        drain: Duration,
        /// Dead for so long.
        away: Duration,
    },
}
