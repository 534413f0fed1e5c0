//! How far a load is: what happened in the last interval, and how much is left.

use std::time::Duration;

use subak_lab::load::{Event, LoadPlan, Shape};

use crate::lab::line::{Line, bar};

pub(super) struct Progress {
    line: Line,
    /// `None` where only the number of requests ends it.
    length: Option<Duration>,
    requests: Option<u64>,
    unit: &'static str,
    ended: u64,
}

impl Progress {
    pub(super) fn new(plan: &LoadPlan, quiet: bool) -> Progress {
        Progress {
            line: Line::new(quiet),
            length: plan.requests_in_all.is_none().then(|| plan.length()),
            requests: plan.requests_in_all,
            unit: match plan.shape {
                Shape::Rate { .. } | Shape::Timetable { .. } => "/s asked for",
                Shape::Users { .. } => " users",
            },
            ended: 0,
        }
    }

    pub(super) fn show(&mut self, event: Event<'_>) {
        let Event::Moment(moment) = event else { return };
        self.ended += moment.answered + moment.failed;
        let share = match (self.requests, self.length) {
            (Some(requests), _) => self.ended as f64 / requests.max(1) as f64,
            (None, Some(length)) => moment.at.as_secs_f64() / length.as_secs_f64().max(1e-3),
            (None, None) => 0.0,
        };
        let per_second = moment.answered as f64 / moment.took.as_secs_f64().max(1e-3);
        self.line.show(|| {
            format!(
                "{} {:.0} s  {:.0}{}  {per_second:.0}/s answered  {} failed  p95 {:.2} ms",
                bar(share),
                moment.at.as_secs_f64(),
                moment.load,
                self.unit,
                moment.failed,
                moment.p95.as_secs_f64() * 1e3,
            )
        });
    }

    pub(super) fn clear(&self) {
        self.line.clear();
    }
}
