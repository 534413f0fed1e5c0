//! Loads by users: tables 1 and 2 of the paper, and a spike and a soak, which k6's own guide has beside
//! them and the paper has not.

use std::net::IpAddr;
use std::time::Duration;

use super::{ALGORITHMS, ALL_AT_ONCE, LIMITED, MINUTE, clients, length, listed, many, stage, url};
use crate::cell::{Cell, Need, Scale};
use crate::tools::k6::{self, Call};
use crate::tools::{Stages, generator};
use crate::world::{Kind, Stage, World};

/// How long k6 may take to begin and to end.
pub(super) const SLACK: Duration = Duration::from_secs(120);
/// What a cell takes beside its load.
const AROUND: Duration = Duration::from_secs(3);

/// The loads of tables 1 and 2: minutes, and users at their end.
pub(super) const LOADS: [(&str, [(u32, u32); 3]); 2] =
    [("average", [(5, 100), (10, 100), (5, 0)]), ("stress", [(10, 200), (10, 200), (5, 0)])];
/// Five times the usual users at once, and back.
const SPIKE: [(u32, u32); 5] = [(1, 40), (0, 200), (1, 200), (0, 40), (2, 40)];
/// The average load for long: does anything drift?
const SOAK: [(u32, u32); 3] = [(1, 100), (30, 100), (1, 0)];

pub(super) fn cells(scale: Scale) -> Vec<Cell> {
    let mut cells = Vec::new();
    for (load, stages) in LOADS {
        let stages = scaled(&stages, scale);
        for kind in [Kind::Subak, Kind::Nginx] {
            for algorithm in ALGORITHMS {
                let name = format!("P1/{load}/{}/{algorithm}/one", kind.key());
                cells.extend(both(&name, &stage(kind, algorithm, ALL_AT_ONCE), &stages, &[]));
            }
        }
        let name = format!("P1/{load}/subak/ip_hash/many");
        cells.extend(both(&name, &stage(Kind::Subak, "ip_hash", ALL_AT_ONCE), &stages, &many()));
        for algorithm in ALGORITHMS {
            let name = format!("P1/{load}/subak/{algorithm}/limited");
            cells.push(by_us(&name, stage(Kind::Subak, algorithm, LIMITED), &stages, &[]));
        }
    }
    let spike = scaled(&SPIKE, scale);
    for algorithm in ALGORITHMS {
        let name = format!("P1/spike/subak/{algorithm}/one");
        cells.extend(both(&name, &stage(Kind::Subak, algorithm, ALL_AT_ONCE), &spike, &[]));
    }
    let soak = stage(Kind::Subak, "round_robin", ALL_AT_ONCE);
    cells.extend(both("P1/soak/subak/round_robin/one", &soak, &scaled(&SOAK, scale), &[]));
    cells
}

fn scaled(stages: &[(u32, u32)], scale: Scale) -> Stages {
    let stage = |(minutes, target): &(u32, u32)| (scale.time(*minutes * MINUTE), *target);
    stages.iter().map(stage).collect()
}

/// The same load by k6 and by us.
fn both(name: &str, stage: &Stage, stages: &Stages, sources: &[IpAddr]) -> [Cell; 2] {
    let call = Call {
        options: format!("stages: {}", k6::stages(stages)),
        url: url(stage),
        sources: listed(sources),
        at_most: length(stages) + SLACK,
    };
    let by_k6 = asked(format!("{name}#1"), stage.clone(), call);
    [by_k6, by_us(name, stage.clone(), stages, sources)]
}

fn by_us(name: &str, stage: Stage, stages: &Stages, sources: &[IpAddr]) -> Cell {
    let clients = clients(&stage, sources.to_vec());
    let stages = stages.clone();
    Cell {
        id: format!("{name}/ours#1"),
        takes: length(&stages) + AROUND,
        needs: stage.needs(None),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            running.measure(|| generator::users(&clients, &stages))
        }),
    }
}

/// A cell in which k6 does something.
pub(super) fn asked(id: String, stage: Stage, call: Call) -> Cell {
    Cell {
        id,
        takes: call.at_most.saturating_sub(SLACK) + AROUND,
        needs: stage.needs(Some(Need::K6)),
        work: Box::new(move |world: &World| {
            let running = stage.start(world)?;
            running.measure(|| call.run(world))
        }),
    }
}
