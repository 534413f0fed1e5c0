//! Results on disk: a directory for each, whose files are written as a whole or not at all.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use subak_report::Report;

use crate::files;

/// Where results go that nobody said a place for, in the current directory.
pub(crate) const RESULTS: &str = "lab-results";

/// The directory of a result: as given, or by its name. It is made, so that whoever may not write there
/// hears it before anything is measured.
///
/// # Errors
/// What could not be made, and why.
pub(crate) fn directory(given: Option<&Path>, name: &str) -> Result<PathBuf, String> {
    let directory = given.map_or_else(|| Path::new(RESULTS).join(name), Path::to_owned);
    let failed = |error| format!("cannot make {}: {error}", directory.display());
    fs::create_dir_all(&directory).map_err(failed)?;
    Ok(directory)
}

/// Takes a directory away again in which nothing was written, because nothing was measured.
pub(crate) fn leave(directory: &Path) {
    // One that holds anything stays.
    let _ = fs::remove_dir(directory);
}

/// Writes these files; what was there under a name stays until the new one is complete.
///
/// # Errors
/// What could not be written, and why.
pub(crate) fn write(directory: &Path, list: &[(&str, String)]) -> Result<(), String> {
    list.iter().try_for_each(|(name, text)| {
        let path = directory.join(name);
        let failed = |error| format!("cannot write {}: {error}", path.display());
        files::replace(&path, text).map_err(failed)
    })
}

/// The three forms of a report whose JSON is the result.
pub(crate) fn forms(report: &Report) -> [(&'static str, String); 3] {
    [
        ("result.json", report.json()),
        ("report.html", report.html()),
        ("report.md", report.markdown()),
    ]
}

/// Now, as reports say it.
pub(crate) fn made() -> String {
    httpdate::fmt_http_date(SystemTime::now())
}

/// What ran where.
pub(crate) fn setup() -> Vec<(String, String)> {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    vec![
        ("Subak".to_owned(), env!("CARGO_PKG_VERSION").to_owned()),
        ("Machine".to_owned(), format!("{} CPUs", cores)),
    ]
}
