//! What has been measured so far, kept in a file that grows by one line with each cell, so that an
//! interrupted run goes on where it was.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::cell::Measured;
use crate::statistics::Mean;

/// How a cell ended.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Outcome {
    /// With numbers.
    Measured(Measured),
    /// Not begun: something is not there.
    NotRun(String),
    /// Begun, and it broke.
    Failed(String),
}

/// One line of the file.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
pub struct Line {
    /// The cell.
    pub id: String,
    /// The scale it was run at.
    pub scale: f64,
    /// How long it took.
    pub took_s: f64,
    /// The share of the machine, 0 to 1, that others used just before; none where nobody looked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub busy_before: Option<f64>,
    /// What came of it.
    pub outcome: Outcome,
}

/// All lines by cell and scale; the last of several counts.
#[derive(Clone, Debug, Default)]
pub struct Results {
    /// Behind the cell's name the bits of its scale.
    lines: BTreeMap<(String, u64), Line>,
}

impl Results {
    /// Of a file; empty where there is none. A last line that was cut off is left out.
    ///
    /// # Errors
    /// The file cannot be read, or another line of it is not one of ours.
    pub fn read(path: &Path) -> io::Result<Results> {
        let file = match File::open(path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Results::default()),
            file => file?,
        };
        let texts = BufReader::new(file).lines().collect::<io::Result<Vec<String>>>()?;
        let mut results = Results::default();
        for (index, text) in texts.iter().enumerate() {
            match serde_json::from_str(text) {
                Ok(line) => results.add(line),
                Err(_) if index + 1 == texts.len() => {}
                Err(error) => {
                    let what = format!("{}:{}: {error}", path.display(), index + 1);
                    return Err(io::Error::new(io::ErrorKind::InvalidData, what));
                }
            }
        }
        Ok(results)
    }

    /// Takes a line in, and appends it to the file at once.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn keep(&mut self, path: &Path, line: Line) -> io::Result<()> {
        let mut file = OpenOptions::new().create(true).read(true).append(true).open(path)?;
        cut_torn_line(&mut file)?;
        let mut text = serde_json::to_string(&line).map_err(io::Error::other)?;
        text.push('\n');
        file.write_all(text.as_bytes())?;
        self.add(line);
        Ok(())
    }

    /// Takes a line in.
    pub fn add(&mut self, line: Line) {
        self.lines.insert((line.id.clone(), line.scale.to_bits()), line);
    }

    /// Whether the cell has been measured at this scale; what is invalid is to be measured again.
    pub fn has(&self, id: &str, scale: f64) -> bool {
        self.lines
            .get(&(id.to_owned(), scale.to_bits()))
            .is_some_and(|line| matches!(&line.outcome, Outcome::Measured(measured) if measured.invalid.is_none()))
    }

    /// Those of one scale: what is compared must be of one.
    #[must_use]
    pub fn at(&self, scale: f64) -> Results {
        let mut those = self.clone();
        those.lines.retain(|_, line| line.scale == scale);
        those
    }

    /// Those of every other scale.
    pub fn apart_from(&self, scale: f64) -> impl Iterator<Item = &Line> {
        self.lines.values().filter(move |line| line.scale != scale)
    }

    /// Every line whose cell's name begins so.
    pub fn lines<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Line> {
        let from = self.lines.range((prefix.to_owned(), 0)..);
        from.map(|(_, line)| line).take_while(move |line| line.id.starts_with(prefix))
    }

    /// What was measured in the repetitions of a cell, those left out that are invalid.
    pub fn of(&self, cell: &str) -> Vec<&Measured> {
        let repetitions = self.lines.values().filter(|line| {
            line.id.strip_prefix(cell).is_some_and(|rest| rest.is_empty() || rest.starts_with('#'))
        });
        repetitions
            .filter_map(|line| match &line.outcome {
                Outcome::Measured(measured) if measured.invalid.is_none() => Some(measured),
                _ => None,
            })
            .collect()
    }

    /// The values of a number in all repetitions of a cell.
    pub fn values(&self, cell: &str, number: &str) -> Vec<f64> {
        self.of(cell).iter().filter_map(|each| each.numbers.get(number).copied()).collect()
    }

    /// Their mean.
    pub fn mean(&self, cell: &str, number: &str) -> Option<Mean> {
        Mean::of(&self.values(cell, number))
    }

    /// The counts of every repetition of a cell.
    pub fn counts(&self, cell: &str, name: &str) -> Vec<&[u64]> {
        self.of(cell).iter().filter_map(|each| each.counts.get(name).map(Vec::as_slice)).collect()
    }

    /// Why there are no numbers of a cell.
    pub fn why_not(&self, cell: &str) -> String {
        let why = self.lines(cell).find_map(|line| match &line.outcome {
            Outcome::NotRun(needs) => Some(format!("needs {needs}")),
            Outcome::Failed(error) => Some(format!("it broke: {error}")),
            Outcome::Measured(measured) => measured.invalid.clone(),
        });
        why.unwrap_or_else(|| "not asked for in this run".to_owned())
    }
}

/// Takes away what stands behind the last end of a line: the line of a run that was killed, or for
/// which there was no room. What is appended to it would be lost with it.
fn cut_torn_line(file: &mut File) -> io::Result<()> {
    let mut text = Vec::new();
    file.rewind()?;
    file.read_to_end(&mut text)?;
    let whole = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
    match whole < text.len() {
        true => file.set_len(whole as u64),
        false => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::{Line, Outcome, Results};
    use crate::cell::Measured;
    use std::fs;

    fn line(id: &str, ms: f64) -> Line {
        let measured = Measured::default().number("ms", ms).counts("hits", vec![1, 2]);
        let (id, outcome) = (id.to_owned(), Outcome::Measured(measured));
        Line { id, scale: 0.5, took_s: 1.0, busy_before: Some(0.25), outcome }
    }

    #[test]
    fn what_is_kept_is_there_again_and_a_torn_last_line_is_not() {
        let path = std::env::temp_dir().join(format!("subak-papers-{}.jsonl", std::process::id()));
        let _ = fs::remove_file(&path);
        let mut results = Results::read(&path).unwrap();
        results.keep(&path, line("P2/a/12#1", 1.5)).unwrap();
        results.keep(&path, line("P2/a/12#2", 2.5)).unwrap();
        results.keep(&path, line("P2/a/120#1", 9.0)).unwrap();
        let whole = fs::read_to_string(&path).unwrap();
        fs::write(&path, whole.clone() + "{\"id\":\"P2/a/12#3\",").unwrap();
        let again = Results::read(&path).unwrap();
        assert_eq!(again.values("P2/a/12", "ms"), [1.5, 2.5]);
        assert_eq!(again.counts("P2/a/120", "hits"), [&[1, 2]]);
        assert!(again.has("P2/a/12#1", 0.5) && !again.has("P2/a/12#1", 1.0));
        assert!(!again.has("P2/a/12#3", 0.5));
        let mut again = again;
        again.keep(&path, line("P2/a/12#3", 7.5)).unwrap();
        let gone_on = Results::read(&path).unwrap();
        assert_eq!(gone_on.values("P2/a/12", "ms"), [1.5, 2.5, 7.5]);
        let mut late = line("P2/a/12#1", 1.5);
        if let Outcome::Measured(measured) = &mut late.outcome {
            measured.invalid = Some("the generator was late".to_owned());
        }
        results.add(late);
        assert!(!results.has("P2/a/12#1", 0.5));
        results.add(line("P2/a/12#1", 1.5));
        results.add(Line { scale: 1.0, ..line("P2/a/12#1", 3.5) });
        assert_eq!(results.at(0.5).values("P2/a/12", "ms"), [1.5, 2.5]);
        let apart: Vec<&str> = results.apart_from(0.5).map(|line| &*line.id).collect();
        assert_eq!(apart, ["P2/a/12#1"]);
        let old = whole.replace(",\"busy_before\":0.25", "");
        assert_ne!(old, whole);
        fs::write(&path, old).unwrap();
        let old = Results::read(&path).unwrap();
        assert_eq!(old.values("P2/a/12", "ms"), [1.5, 2.5]);
        assert!(old.lines("P2").all(|line| line.busy_before.is_none()));
        fs::write(&path, "nonsense\n".to_owned() + &whole).unwrap();
        assert!(Results::read(&path).is_err());
        fs::remove_file(&path).unwrap();
    }
}
