//! How an access log is read: the part of the command line that says so, for all that read one.

use std::path::Path;

use clap::{Args, ValueEnum};
use subak_trace::{Format, LeftOut, LogError, Reading, Stamp};

use super::line::Line;
use crate::files;

#[derive(Args, Debug)]
pub(crate) struct How {
    /// The log's format: json, combined, common, haproxy, or as nginx's log_format or HAProxy's
    /// log-format has it [default: found out]
    #[arg(long, value_name = "FORMAT", value_parser = Format::read)]
    format: Option<Format>,
    /// Whether the time of a line is when its request began or ended [default: ended for nginx's
    /// words, else began]
    #[arg(long, value_name = "WHEN", value_enum)]
    stamp: Option<When>,
    /// The pool whose requests are taken, where the log names pools [default: the busiest; for a load
    /// all]
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
}

/// What a line's time says.
#[derive(Clone, Copy, ValueEnum, Debug)]
enum When {
    Began,
    Ended,
}

impl How {
    /// Whether the command line says anything of it.
    pub(crate) fn is_said(&self) -> bool {
        self.format.is_some() || self.stamp.is_some() || self.pool.is_some()
    }

    /// Reads a log by `read`, and shows how far that is.
    pub(crate) fn read<T>(
        &self,
        path: &Path,
        read: impl FnOnce(&Path, &Reading, &mut dyn FnMut(u64)) -> Result<T, LogError>,
    ) -> Result<T, LogError> {
        let reading = Reading {
            format: self.format.clone(),
            stamp: self.stamp.map(|when| match when {
                When::Began => Stamp::Began,
                When::Ended => Stamp::Ended,
            }),
            pool: self.pool.clone(),
        };
        let line = Line::new(false);
        let log = read(path, &reading, &mut |lines| line.show(|| format!("{lines} lines read")));
        line.clear();
        log
    }
}

/// Says which lines of a log are not asked again, if any.
pub(crate) fn note(left_out: &LeftOut) {
    if left_out.total() > 0 {
        let count = left_out.total();
        files::tell(&format!("note: {count} lines are not asked again: {left_out}\n"));
    }
}
