//! Reports on disk: `result.json`, `report.html` and `report.md` in one directory.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use subak_report::Report;

/// Where results go that nobody said a place for.
const RESULTS: &str = "lab-results";

/// The directory for the result of that name.
pub(crate) fn directory(output: Option<PathBuf>, name: &str) -> PathBuf {
    output.unwrap_or_else(|| Path::new(RESULTS).join(name))
}

/// Writes the report in its three forms.
///
/// # Errors
/// What could not be written, and why.
pub(crate) fn keep(report: &Report, directory: &Path) -> Result<(), String> {
    let failed = |path: &Path, error| format!("cannot write {}: {error}", path.display());
    fs::create_dir_all(directory).map_err(|error| failed(directory, error))?;
    for (name, text) in [
        ("result.json", report.json()),
        ("report.html", report.html()),
        ("report.md", report.markdown()),
    ] {
        let path = directory.join(name);
        fs::write(&path, text).map_err(|error| failed(&path, error))?;
    }
    Ok(())
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
