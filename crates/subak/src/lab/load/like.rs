//! What an access log says, asked again: the part of the command line that says so.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use subak_lab::load::{Due, LoadPlan, NOBODY, Request, Shape};

use super::asked;
use crate::lab::reading;

/// The window ends so long after its last request is due.
const BEHIND: Duration = Duration::from_millis(1);

#[derive(Args, Debug)]
pub(crate) struct Like {
    /// Open loop: what this access log says, at its times, in its clients' names (X-Forwarded-For);
    /// only GET; plain or packed by gzip or zstd; - is standard input
    #[arg(long, value_name = "LOG")]
    #[arg(conflicts_with_all = ["rate", "users", "stages", "requests", "concurrency", "think", "poisson"])]
    #[arg(conflicts_with_all = ["forwarded_for", "method", "body", "body_file", "request"])]
    #[arg(conflicts_with = "requests_file")]
    like: Option<PathBuf>,
    /// So many times as fast as the log
    #[arg(long, value_name = "N", value_parser = factor, default_value = "1", requires = "like")]
    faster: f64,
    #[command(flatten)]
    how: reading::How,
}

impl Like {
    /// Lays the log upon a plan whose target and connections are known.
    pub(crate) fn apply(&self, plan: &mut LoadPlan, shape: &asked::Shape) -> Result<(), String> {
        let Some(path) = &self.like else {
            return match self.how.is_said() {
                true => {
                    Err("--format, --stamp and --pool say how the log of --like is read".into())
                }
                false => Ok(()),
            };
        };
        let model = plan.requests.first().cloned().unwrap_or_else(|| Request::get("/"));
        if model.path != "/" {
            return Err(format!(
                "--like asks for the log's paths: {:?} is none of them",
                model.path
            ));
        }
        let read = self.how.read(path, |path, how, seen| subak_trace::asked(path, how, seen));
        let log = read.map_err(|error| error.to_string())?;
        reading::note(&log.left_out);
        let due = log.requests.iter().map(|one| Due {
            at: one.at.div_f64(self.faster),
            request: one.path,
            client: one.client.unwrap_or(NOBODY),
        });
        let due: Vec<Due> = due.collect();
        let ends = due.last().map_or(Duration::ZERO, |last| last.at + BEHIND);
        let lasts = ends.saturating_sub(plan.warm_up);
        if lasts.is_zero() {
            return Err(format!("the warm-up is longer than the log, which takes {ends:.0?}"));
        }
        let (connections, most) = shape.connections(plan);
        plan.requests =
            log.paths.into_iter().map(|path| Request { path, ..model.clone() }).collect();
        plan.sources.forwarded = log.clients;
        plan.shape = Shape::Timetable {
            due: due.into(),
            lasts: shape.time().map_or(lasts, |time| time.min(lasts)),
            connections,
            most,
        };
        Ok(())
    }
}

fn factor(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(factor) if (1e-3..=1e6).contains(&factor) => Ok(factor),
        _ => Err(format!("{text:?}: how many times as fast, 0.001 to 1000000")),
    }
}
