//! `subak lab papers`: the experiments of five papers, run again; see docs/PAPERS.md.

use std::fs::{self, TryLockError};
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

use clap::Args;
use serde_json::json;
use subak_lab::process;
use subak_papers::book;
use subak_papers::cell::{Cell, Need, Paper, Scale};
use subak_papers::results::{Outcome, Results};
use subak_papers::run::{self, Progress};
use subak_papers::world::{Network, World, find};

use super::cells::{Cells, length};
use super::keep;
use crate::cli::{FAILED, WRONG};
use crate::files;

pub(crate) const EXAMPLES: &str = "\
Every result is kept at once: Ctrl-C stops, and the same command goes on where
it was. What a machine lacks is said and not run; nothing that was not run is a
result.

Examples:
  subak lab papers --dry-run                   the cells, and their times
  subak lab papers --scale 0.02                all five, shorter and fewer times
  subak lab papers P5 --only single            30 requests by weights, exactly
  subak lab papers P3 --only P3/visits_computed --output /tmp/p3";

/// Set where the process is in the network that it made for itself.
const INSIDE: &str = "SUBAK_PAPERS_NETWORK";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// Which papers: P1 to P5 [default: all]
    #[arg(value_name = "PAPER")]
    papers: Vec<Paper>,
    /// What durations and repetitions are multiplied by: above 0, at most 1
    #[arg(long, value_name = "F", default_value = "1", value_parser = scale)]
    scale: Scale,
    /// Only cells that have this in their name
    #[arg(long, value_name = "CELL")]
    only: Option<String>,
    /// Print the cells and their times, and run nothing
    #[arg(long)]
    dry_run: bool,
    /// Leave out what has been measured at this scale and is valid; this is the default
    #[arg(long, conflicts_with = "fresh")]
    resume: bool,
    /// Forget what has been measured
    #[arg(long)]
    fresh: bool,
    /// Where results go
    #[arg(long, value_name = "DIR", default_value = "lab-results/papers")]
    output: PathBuf,
    /// The report, or with --dry-run the cells, as JSON
    #[arg(long)]
    json: bool,
}

fn scale(text: &str) -> Result<Scale, String> {
    let found = text.parse().ok().and_then(Scale::new);
    found.ok_or_else(|| format!("{text:?} is no scale: above 0, at most 1"))
}

/// Runs the cells that are left and writes the report; answers with the exit status.
pub(crate) fn run(arguments: Arguments) -> u8 {
    let papers = match arguments.papers.as_slice() {
        [] => Paper::ALL.to_vec(),
        some => some.to_vec(),
    };
    let mut cells: Vec<Cell> =
        papers.iter().flat_map(|paper| run::cells(*paper, arguments.scale)).collect();
    if let Some(only) = &arguments.only {
        cells.retain(|cell| cell.id.contains(only.as_str()));
        if cells.is_empty() {
            files::tell(&format!(
                "error: no cell has {only:?} in its name; --dry-run lists them\n"
            ));
            return WRONG;
        }
    }
    if arguments.dry_run {
        let text = if arguments.json { as_json(&cells) } else { as_text(&papers, &cells) };
        return files::told(files::print(&text));
    }
    let needs_network = cells.iter().any(|cell| cell.needs.contains(&Need::Network));
    let is_inside = std::env::var_os(INSIDE).is_some();
    if needs_network
        && !is_inside
        && let Some(network) = Network::possible()
    {
        return inside(&network).unwrap_or_else(|error| {
            files::tell(&format!("error: {error}\n"));
            FAILED
        });
    }
    measure(&arguments, &papers, &cells, is_inside).unwrap_or_else(|error| {
        files::tell(&format!("error: {error}\n"));
        FAILED
    })
}

/// Starts this command again in a network of its own, and answers with its exit status.
fn inside(network: &Network) -> Result<u8, String> {
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let mut command = network.enter(&this);
    command.args(std::env::args_os().skip(1)).env(INSIDE, "yes");
    process::end_with_parent(&mut command);
    let status = command.status().map_err(|error| format!("unshare: {error}"))?;
    Ok(status.code().and_then(|code| u8::try_from(code).ok()).unwrap_or(FAILED))
}

fn measure(
    arguments: &Arguments,
    papers: &[Paper],
    cells: &[Cell],
    has_network: bool,
) -> Result<u8, String> {
    if has_network {
        Network::set_up()?;
    }
    let at = |path: &Path, error: std::io::Error| format!("{}: {error}", path.display());
    let output = &keep::directory(Some(&arguments.output), "")?;
    // Held until the end: two at once would take each other's processes and results for their own.
    let alone = fs::File::open(output).map_err(|error| at(output, error))?;
    if let Err(TryLockError::WouldBlock) = alone.try_lock() {
        let output = output.display();
        return Err(format!(
            "another `subak lab papers` is at work in {output}: give another --output"
        ));
    }
    let file = output.join("cells.jsonl");
    if arguments.fresh && file.exists() {
        fs::remove_file(&file).map_err(|error| at(&file, error))?;
    }
    let mut results = Results::read(&file).map_err(|error| at(&file, error))?;
    // A thousand users and their sockets; where the limit stays low, cells say what failed.
    let _ = subak_lab::machine::raise_descriptor_limit(65_536);
    let this = std::env::current_exe().map_err(|error| error.to_string())?;
    let setup = setup();
    let directory = output.join("run");
    let world = World::new(&directory, this, has_network).map_err(|error| at(&directory, error))?;
    let is_left = |cell: &&Cell| !results.has(&cell.id, arguments.scale.factor());
    let shown = Cells::new(cells.iter().filter(is_left).map(|cell| cell.takes).sum());
    let mut all_well = true;
    let told = |progress: Progress<'_>| match progress {
        Progress::Begins(number, count, cell) => shown.begins(number, count, &cell.id, cell.takes),
        Progress::Ended(line) => match &line.outcome {
            Outcome::Measured(_) => shown.ended(""),
            Outcome::NotRun(why) => {
                shown.ended(&format!("not run: {}: needs {why}\n", line.id));
            }
            Outcome::Failed(why) => {
                all_well = false;
                shown.ended(&format!("failed: {}: {why}\n", line.id));
            }
        },
    };
    thread::scope(|scope| {
        let (stop, stopped) = mpsc::channel();
        scope.spawn(|| shown.keep_drawing(&{ stopped }));
        let ran = run::run(&world, cells, arguments.scale, &mut results, &file, told);
        drop(stop);
        ran
    })
    .map_err(|error| at(&file, error))?;
    // Nothing in it is of use once its cells are done.
    let _ = fs::remove_dir_all(&directory);
    let made = httpdate::fmt_http_date(SystemTime::now());
    let report = book::report(papers, arguments.scale, &results, made, setup);
    keep::write(output, &keep::forms(&report))?;
    let text = match arguments.json {
        true => report.json() + "\n",
        false => {
            let mut text = String::new();
            for verdict in &report.verdicts {
                text += &format!(
                    "{}: {}\n  {}\n",
                    verdict.word.as_str(),
                    verdict.claim,
                    verdict.because
                );
            }
            text + &format!("\nreport: {}\n", output.join("report.html").display())
        }
    };
    let status = files::told(files::print(&text));
    Ok(if all_well { status } else { FAILED })
}

/// What the numbers were measured on.
fn setup() -> Vec<(String, String)> {
    let line = |path: &str| fs::read_to_string(path).unwrap_or_default().trim().to_owned();
    let cpus = subak_lab::machine::allowed_cpus().map_or(1, |cpus| cpus.len());
    let tools = [Need::Nginx, Need::Haproxy, Need::Ab, Need::H2load, Need::K6];
    let found = tools.into_iter().filter_map(Need::command).map(|command| {
        format!("{command}{}", if find(command).is_some() { "" } else { " (not there)" })
    });
    vec![
        ("Subak".to_owned(), crate::version::long().lines().next().unwrap_or_default().to_owned()),
        ("kernel".to_owned(), line("/proc/sys/kernel/osrelease")),
        ("machine".to_owned(), format!("{cpus} CPUs")),
        ("tools".to_owned(), found.collect::<Vec<_>>().join(", ")),
    ]
}

fn as_text(papers: &[Paper], cells: &[Cell]) -> String {
    let mut text = String::new();
    for cell in cells {
        text += &format!("{:>10}  {}\n", length(cell.takes), cell.id);
    }
    for paper in papers {
        let of: Vec<&Cell> = cells.iter().filter(|cell| cell.paper() == Some(*paper)).collect();
        let takes = of.iter().map(|cell| cell.takes).sum();
        text += &format!("{paper}: {} cells, about {}\n", of.len(), length(takes));
    }
    let takes = cells.iter().map(|cell| cell.takes).sum();
    text + &format!("together: {} cells, about {}\n", cells.len(), length(takes))
}

fn as_json(cells: &[Cell]) -> String {
    let cell = |cell: &Cell| json!({ "cell": cell.id, "seconds": cell.takes.as_secs_f64() });
    format!("{:#}\n", json!(cells.iter().map(cell).collect::<Vec<_>>()))
}
