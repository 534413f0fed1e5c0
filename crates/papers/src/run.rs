//! The cells of papers, one after the other; each result is kept as soon as it is there.

use std::io;
use std::path::Path;
use std::time::Instant;

use crate::cell::{Cell, Paper, Scale};
use crate::results::{Line, Outcome, Results};
use crate::world::World;
use crate::{others, p1, p2, p3, p4, p5};

/// Every cell of a paper at a scale, in the order they are run.
pub fn cells(paper: Paper, scale: Scale) -> Vec<Cell> {
    let mut cells = match paper {
        Paper::P1 => p1::cells(scale),
        Paper::P2 => p2::cells(scale),
        Paper::P3 => p3::cells(scale),
        Paper::P4 => p4::cells(scale),
        Paper::P5 => p5::cells(scale),
    };
    cells.iter_mut().for_each(|cell| cell.takes += others::LOOK);
    cells
}

/// How far a run is.
#[derive(Clone, Copy, Debug)]
pub enum Progress<'a> {
    /// This cell begins, the first being 1, of so many.
    Begins(usize, usize, &'a Cell),
    /// It has ended so.
    Ended(&'a Line),
}

/// Runs these cells; what is in `results` at this scale already is left out.
///
/// # Errors
/// The file of results cannot be written. What goes wrong in a cell is its result.
pub fn run(
    world: &World,
    cells: &[Cell],
    scale: Scale,
    results: &mut Results,
    file: &Path,
    mut told: impl FnMut(Progress<'_>),
) -> io::Result<()> {
    let left: Vec<&Cell> =
        cells.iter().filter(|cell| !results.has(&cell.id, scale.factor())).collect();
    for (index, cell) in left.iter().enumerate() {
        told(Progress::Begins(index + 1, left.len(), cell));
        let missing = world.missing(&cell.needs);
        // The look is before the cell, so that it sees what is not the cell's own work.
        let busy_before = if missing.is_none() { others::look() } else { None };
        let start = Instant::now();
        let outcome = match missing {
            Some(need) => Outcome::NotRun(need.remedy().to_owned()),
            None => match (cell.work)(world) {
                Ok(measured) => Outcome::Measured(measured),
                Err(error) => Outcome::Failed(error),
            },
        };
        let took_s = start.elapsed().as_secs_f64();
        let (id, scale) = (cell.id.clone(), scale.factor());
        let line = Line { id, scale, took_s, busy_before, outcome };
        told(Progress::Ended(&line));
        results.keep(file, line)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::cells;
    use crate::cell::{Paper, Scale};
    use std::collections::BTreeSet;

    #[test]
    fn every_cell_has_a_name_of_its_own_in_its_paper() {
        for scale in [Scale::FULL, Scale::new(0.01).unwrap()] {
            let mut names = BTreeSet::new();
            for paper in Paper::ALL {
                for cell in cells(paper, scale) {
                    assert_eq!(cell.paper(), Some(paper), "{}", cell.id);
                    assert!(cell.id.contains('#') && names.insert(cell.id.clone()), "{}", cell.id);
                }
            }
        }
    }
}
