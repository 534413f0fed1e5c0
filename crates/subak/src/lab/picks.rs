//! `subak lab picks`: makes the picks of a log once more, from what was written down and the
//! configuration alone, and says whether they are the same.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use subak_explain::{NamedPick, Picks, Repeated};

use crate::cli::{FAILED, OK, WRONG};
use crate::control::Loaded;
use crate::files;

pub(crate) const EXAMPLES: &str = "\
Examples:
  subak explain --recent 1000 --json > picks.json     the log of what runs
  subak lab picks picks.json --config subak.toml      the same picks again?
  subak explain --recent 1000 --json | subak lab picks - --config subak.toml

A pick that is not the same: exit status 1. A log or a configuration that cannot
be used: 2.";

/// The options of the command.
#[derive(Args, Debug)]
pub(crate) struct Arguments {
    /// A log as `subak explain --recent N --json` writes it; - is standard input
    #[arg(value_name = "FILE")]
    log: PathBuf,
    /// The configuration that was in force
    #[arg(short, long, value_name = "FILE")]
    config: PathBuf,
    /// What came of it as JSON
    #[arg(long)]
    json: bool,
}

/// What came of one pool's picks.
struct Replayed<'a> {
    pool: &'a str,
    picks: usize,
    same: usize,
    first_other: Option<Other<'a>>,
}

/// A pick that is not the same again.
struct Other<'a> {
    number: u64,
    /// Who was picked; none: nobody.
    was: Option<&'a str>,
    /// What is else now.
    how: String,
}

/// Replays; answers with the exit status.
pub(crate) fn run(arguments: &Arguments) -> u8 {
    let told = match read(arguments) {
        Ok(told) => told,
        Err(error) => {
            files::tell(&format!("error: {}: {error}\n", arguments.log.display()));
            return WRONG;
        }
    };
    let config = match Loaded::load(&arguments.config) {
        Ok(loaded) => loaded.config,
        Err(not) => {
            // What is wrong in a file is shown with its places, as an error each.
            let said = not.to_string();
            let said = said.strip_prefix("error: ").unwrap_or(&said);
            files::tell(&format!("error: {said}\n"));
            return WRONG;
        }
    };
    let pools: BTreeSet<&str> = told.picks.iter().map(|pick| pick.pool.as_str()).collect();
    let mut replayed = Vec::new();
    for pool in pools {
        let known = config.pool(pool).ok_or(format!("the configuration has no pool {pool}"));
        let repeated = known.and_then(|known| {
            told.repeat(pool, &known.algorithm).map_err(|not| format!("pool {pool}: {not}"))
        });
        match repeated {
            Ok(repeated) => replayed.push(judge(pool, &told, &repeated)),
            Err(error) => {
                files::tell(&format!("error: {}: {error}\n", arguments.log.display()));
                return WRONG;
            }
        }
    }
    let text = match arguments.json {
        true => as_json(&replayed),
        false => replayed.iter().map(line).collect(),
    };
    match files::told(files::print(&text)) {
        OK if replayed.iter().any(|pool| pool.first_other.is_some()) => FAILED,
        status => status,
    }
}

fn read(arguments: &Arguments) -> Result<Picks, String> {
    let text = match arguments.log.as_os_str() == "-" {
        true => std::io::read_to_string(std::io::stdin()),
        false => std::fs::read_to_string(&arguments.log),
    };
    let text = text.map_err(|error| error.to_string())?;
    let told: Picks = serde_json::from_str(&text).map_err(|error| {
        format!(
            "it is no log of picks ({error}); write one with `subak explain --recent 1000 --json`"
        )
    })?;
    match told.picks.is_empty() {
        true => Err("no pick is in it".to_owned()),
        false => Ok(told),
    }
}

fn judge<'a>(
    pool: &'a str,
    told: &'a Picks,
    repeated: &[(&'a NamedPick, Repeated)],
) -> Replayed<'a> {
    let by_balancer = repeated.iter().filter(|(_, how)| *how != Repeated::NotABalancers);
    let same = repeated.iter().filter(|(_, how)| *how == Repeated::Same).count();
    let other = repeated.iter().find_map(|(pick, how)| {
        let recorded = pick.recorded.as_ref();
        let balancer = recorded.and_then(|pick| told.balancers.get(pick.balancer));
        let name = |place: Option<usize>| {
            let (_, name, _) = balancer?.endpoints.get(place?)?;
            Some(name.as_str())
        };
        let how = match how {
            Repeated::Same | Repeated::NotABalancers => return None,
            Repeated::LooksElsewhere => {
                "it looks at something else now: another algorithm, or other options?".to_owned()
            }
            Repeated::Other(picked) => format!("now it is {}", name(*picked).unwrap_or("nobody")),
        };
        let was = name(recorded.and_then(|pick| pick.picked));
        Some(Other { number: pick.number, was, how })
    });
    Replayed { pool, picks: by_balancer.count(), same, first_other: other }
}

fn line(replayed: &Replayed<'_>) -> String {
    let Replayed { pool, picks, same, first_other } = replayed;
    match first_other {
        None => format!("pool {pool}: {picks} picks of the algorithm, all the same again\n"),
        Some(Other { number, was, how }) => {
            let was = was.unwrap_or("nobody");
            format!(
                "pool {pool}: {picks} picks of the algorithm, {same} the same again; the first that is \
                 not is number {number}: it was {was}, {how}\n"
            )
        }
    }
}

fn as_json(replayed: &[Replayed<'_>]) -> String {
    let one = |Replayed { pool, picks, same, first_other }: &Replayed<'_>| {
        let first_other = first_other
            .as_ref()
            .map(|Other { number, was, how }| json!({"number": number, "was": was, "how": how}));
        json!({"pool": pool, "picks": picks, "same": same, "first_other": first_other})
    };
    let pools: Vec<Value> = replayed.iter().map(one).collect();
    format!("{:#}\n", json!({ "pools": pools }))
}
