//! How busy others keep the machine while the cells are measured.
//!
//! A look just before each cell, over [`LOOK`], at what all processes use of the CPUs: then nothing of
//! the experiment runs. It is kept with the cell; the report tells the median and the largest.

use std::time::Duration;

use subak_lab::machine;

use crate::cell::Paper;
use crate::results::Results;
use crate::statistics::median;

/// How long it takes. The kernel counts in steps of 10 ms.
pub(crate) const LOOK: Duration = Duration::from_millis(200);

/// A cell before which others used more than this share had a machine that was not its own.
const MOST: f64 = 0.25;

/// The share of this process's CPUs that is in use, 0 to 1; none where the kernel does not tell.
pub(crate) fn look() -> Option<f64> {
    let cpus = machine::allowed_cpus().ok()?;
    machine::busy_share(&cpus, LOOK).ok()
}

/// What a report says of the cells of these papers.
pub(crate) fn told(results: &Results, papers: &[Paper]) -> String {
    let of_papers = papers.iter().map(|paper| format!("{paper}/"));
    let prefixes: Vec<String> = of_papers.collect();
    let looks: Vec<(f64, &str)> = prefixes
        .iter()
        .flat_map(|prefix| results.lines(prefix))
        .filter_map(|line| Some((line.busy_before?, line.id.as_str())))
        .collect();
    let Some((most, whose)) = looks.iter().copied().max_by(|one, other| one.0.total_cmp(&other.0))
    else {
        return "not looked at while these cells were measured".to_owned();
    };
    let shares: Vec<f64> = looks.iter().map(|(share, _)| *share).collect();
    let middle = median(&shares).unwrap_or(0.0);
    let mut text = format!(
        "other processes used {:.0} % of the CPUs just before a cell (median of {}), {:.0} % at most \
         ({whose})",
        middle * 100.0,
        looks.len(),
        most * 100.0
    );
    let many = shares.iter().filter(|share| **share > MOST).count();
    if many > 0 {
        text += &format!(
            "; more than {:.0} % before {many}, whose times are not to be trusted; counts are",
            MOST * 100.0
        );
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{look, told};
    use crate::cell::{Measured, Paper};
    use crate::results::{Line, Outcome, Results};

    fn results(shares: &[(&str, Option<f64>)]) -> Results {
        let mut results = Results::default();
        for (id, busy_before) in shares {
            let outcome = Outcome::Measured(Measured::default());
            let (id, busy_before) = ((*id).to_owned(), *busy_before);
            results.add(Line { id, scale: 1.0, took_s: 1.0, busy_before, outcome });
        }
        results
    }

    #[test]
    fn the_median_and_the_largest_of_the_papers_shown_are_told() {
        let seen = [("P1/a#1", Some(0.04)), ("P1/a#2", Some(0.02)), ("P1/b#1", Some(0.06))];
        let quiet = told(&results(&seen), &[Paper::P1, Paper::P2]);
        assert_eq!(
            quiet,
            "other processes used 4 % of the CPUs just before a cell (median of 3), 6 % at most (P1/b#1)"
        );
        let busy = results(&[("P1/a#1", Some(0.0)), ("P2/a#1", Some(0.9)), ("P2/b#1", None)]);
        assert!(told(&busy, &[Paper::P1]).contains("0 % at most"));
        let text = told(&busy, &Paper::ALL);
        assert!(
            text.contains("(median of 2), 90 % at most (P2/a#1); more than 25 % before 1"),
            "{text}"
        );
    }

    #[test]
    fn cells_of_before_there_were_looks_say_nothing() {
        let old = results(&[("P1/a#1", None)]);
        assert_eq!(told(&old, &[Paper::P1]), "not looked at while these cells were measured");
    }

    #[test]
    fn a_look_is_a_share() {
        assert!(look().is_some_and(|share| (0.0..=1.0).contains(&share)));
    }
}
