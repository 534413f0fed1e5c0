//! What people read when a configuration is wrong: every file `tests/diagnostics/NAME.toml` has to
//! give exactly `NAME.txt`. With `UPDATE=1` in the environment the texts are written instead; look
//! at the difference before it is committed.

use std::ffi::OsString;
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use subak_config::{Disk, Files, Severity, parse, parse_with, render, summary, to_json};

/// The disk, on which the mode of a file depends on its name and not on who checked it out.
struct Modes;

impl Files for Modes {
    fn read(&self, path: &Path, limit: usize) -> std::io::Result<Vec<u8>> {
        Disk.read(path, limit)
    }

    fn open_to_all(&self, path: &Path) -> bool {
        path.file_stem().is_some_and(|name| name == "open")
    }

    fn matching(&self, pattern: &Path, limit: usize) -> Result<Vec<PathBuf>, String> {
        Disk.matching(pattern, limit)
    }

    fn variable(&self, name: &str) -> Option<Result<String, OsString>> {
        let known = [("PORT", "8080"), ("WEIGHT", "two"), ("EMPTY", "")];
        known.iter().find(|(known, _)| *known == name).map(|(_, value)| Ok(value.to_string()))
    }

    fn now(&self) -> SystemTime {
        subak_config::InMemory::default().now()
    }
}

/// The files, and each outcome as text.
fn cases() -> Vec<(PathBuf, String)> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/diagnostics");
    let mut paths: Vec<PathBuf> = fs::read_dir(&directory)
        .expect("the directory of the cases")
        .map(|entry| entry.expect("an entry").path())
        .filter(|path| path.extension().is_some_and(|extension| extension == "toml"))
        .collect();
    paths.sort();
    assert!(paths.len() >= 10, "the cases are gone");
    paths.into_iter().map(|path| (path.clone(), outcome(&path))).collect()
}

fn outcome(path: &Path) -> String {
    let text = fs::read_to_string(path).expect("a readable case");
    let outcome = parse_with(&text, path, &Modes);
    let failed = outcome.diagnostics.iter().any(|one| one.severity == Severity::Error);
    assert_eq!(failed, outcome.config.is_none(), "{}", path.display());
    let directory = format!("{}/", path.parent().expect("a directory").display());
    let mut out = outcome.render(false).replace(&directory, "");
    let counts = summary(&outcome.diagnostics).unwrap_or_else(|| "nothing to say".to_string());
    writeln!(out, "{counts}").expect("a String takes everything");
    out
}

#[test]
fn every_case_reads_as_recorded() {
    let update = std::env::var_os("UPDATE").is_some();
    let mut differences = String::new();
    for (path, found) in cases() {
        let recorded = path.with_extension("txt");
        if update {
            fs::write(&recorded, &found).expect("a writable record");
        } else if fs::read_to_string(&recorded).unwrap_or_default() != found {
            writeln!(differences, "== {}\n{found}", recorded.display()).expect("a String");
        }
    }
    assert!(differences.is_empty(), "recorded otherwise (UPDATE=1 records anew):\n{differences}");
}

#[test]
fn the_json_form_says_the_same() {
    let text = "[listener.web]\nbnd = \"ü\" # é\nbind = [\"0.0.0.0:80\", \"0.0.0.0:80\"]\npool = \"app\"\n\
                [pool.app]\nendpoints = []\n";
    let path = Path::new("dir/subak.toml");
    let found: serde_json::Value =
        serde_json::from_str(&to_json(&parse(text, path).diagnostics, text, path)).expect("JSON");
    let expected = serde_json::json!([
        {
            "severity": "error", "file": "dir/subak.toml", "message": "unknown key `bnd`",
            "line": 2, "column": 1, "end_line": 2, "end_column": 4,
            "expected": "expected a key of a listener", "help": "did you mean `bind`?",
        },
        {
            "severity": "error", "file": "dir/subak.toml", "message": "0.0.0.0:80 is listed twice",
            "line": 3, "column": 23, "end_line": 3, "end_column": 35,
            "expected": "the same address again",
            "related": [
                { "line": 3, "column": 9, "end_line": 3, "end_column": 21, "message": "first here" },
            ],
        },
        {
            "severity": "warning", "file": "dir/subak.toml", "message": "this pool has no endpoint",
            "line": 6, "column": 13, "end_line": 6, "end_column": 15,
            "expected": "every request is answered 503",
        },
    ]);
    assert_eq!(found, expected);
}

#[test]
fn colour_is_only_added() {
    let text = "workers = \"4\"\nmax_connections = 0\n";
    let path = Path::new("subak.toml");
    let diagnostics = parse(text, path).diagnostics;
    let plain = render(&diagnostics, text, path, false);
    let mut colourful = render(&diagnostics, text, path, true);
    assert!(colourful.contains("\x1b[1;31m"));
    for code in ["\x1b[0m", "\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m"] {
        colourful = colourful.replace(code, "");
    }
    assert_eq!(plain, colourful);
    assert!(!plain.contains('\x1b'));
}

#[test]
fn a_text_cannot_speak_to_the_terminal() {
    let text = "wor\u{202e}kers = \"\x1b[2J\"\n\"a\\u001b\" = 1\n";
    let path = Path::new("sub\x1bak.toml");
    let shown = render(&parse(text, path).diagnostics, text, path, false);
    assert!(!shown.contains(['\x1b', '\u{202e}']), "{shown:?}");
}

#[test]
fn no_more_than_a_screenful_of_screens_is_shown() {
    let text: String = (0..10_000).map(|index| format!("key_{index} = 1\n")).collect();
    let outcome = parse(&text, Path::new("subak.toml"));
    assert_eq!(outcome.diagnostics.len(), subak_config::MAX_DIAGNOSTICS + 1);
    assert!(outcome.config.is_none());
    let long = format!("x = \"{}\"\n", "ab".repeat(100_000));
    let shown = render(&parse(&long, Path::new("x")).diagnostics, &long, Path::new("x"), false);
    assert!(shown.lines().all(|line| line.chars().count() < 200), "{}", shown.len());
}
