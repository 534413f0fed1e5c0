//! docs/configuration.md: its tables are the generated ones, all of them, and what it shows is valid.
//! With `UPDATE=1` in the environment the tables are written anew.

use std::fs;
use std::path::{Path, PathBuf};

use crate::support::read;
use subak_config::reference::{self, MARKER_BEGIN, MARKER_END, MARKER_STOP};
use subak_config::vocabulary::TABLES;
use subak_config::{format, parse, render};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/configuration.md")
}

fn generated(name: &str) -> String {
    if name == "algorithms" {
        return reference::algorithms();
    }
    let table = TABLES.iter().find(|table| table.path == name);
    reference::table(table.unwrap_or_else(|| panic!("there is no table {name:?}")))
}

/// The text with every marked part generated, and the names of those parts.
fn regenerated(text: &str) -> (String, Vec<&str>) {
    let mut out = String::new();
    let mut names = Vec::new();
    let mut parts = text.split(MARKER_BEGIN);
    out.push_str(parts.next().unwrap_or_default());
    for part in parts {
        let (name, rest) = part.split_once(MARKER_END).expect("a marker ends");
        let (_, rest) = rest.split_once(MARKER_STOP).expect("a generated part ends");
        names.push(name);
        out.push_str(&format!(
            "{MARKER_BEGIN}{name}{MARKER_END}\n{}{MARKER_STOP}{rest}",
            generated(name)
        ));
    }
    (out, names)
}

#[test]
fn the_reference_is_the_generated_one_and_complete() {
    let text = fs::read_to_string(path()).expect("the reference");
    let (fresh, names) = regenerated(&text);
    if std::env::var_os("UPDATE").is_some() {
        fs::write(path(), &fresh).expect("a writable reference");
    } else {
        assert!(fresh == text, "out of date: run this test with UPDATE=1 in the environment");
    }
    for name in TABLES.iter().map(|table| table.path).chain(["algorithms"]) {
        assert!(names.contains(&name), "docs/configuration.md lacks {name:?}");
    }
}

#[test]
fn every_example_is_valid_and_those_without_files_as_they_stand() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut alone = Vec::new();
    for entry in fs::read_dir(directory).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_none_or(|extension| extension != "toml") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("a readable example");
        let outcome = read(&text);
        let shown = render(&outcome.diagnostics, &text, &path, false);
        // The certificate of the test is for other names.
        let is_expected = |message: &str| message.starts_with("no certificate is for ");
        let mut messages = outcome.diagnostics.iter().map(|diagnostic| &diagnostic.message);
        assert!(messages.all(|message| is_expected(message)), "{shown}");
        if parse(&text, &path).diagnostics.is_empty() {
            alone.push(path.file_name().expect("a name").to_owned());
        }
    }
    alone.sort();
    assert_eq!(alone, ["health.toml", "minimal.toml"]);
}

#[test]
fn links_between_tables_lead_somewhere() {
    let text = fs::read_to_string(path()).expect("the reference");
    let anchors: Vec<String> = text
        .lines()
        .filter(|line| line.starts_with('#'))
        .map(|line| {
            let kept =
                |character: &char| character.is_ascii_alphanumeric() || "-_ ".contains(*character);
            let title = line.trim_start_matches('#').trim().to_lowercase();
            title.chars().filter(kept).collect::<String>().replace(' ', "-")
        })
        .collect();
    let mut count = 0;
    for link in text.split("](#").skip(1) {
        let anchor = link.split(')').next().unwrap_or_default();
        count += 1;
        assert!(anchors.iter().any(|known| known == anchor), "{anchor} is no heading");
    }
    assert!(count > 10, "{count}");
}

#[test]
fn what_it_shows_is_valid_and_formatted() {
    let text = fs::read_to_string(path()).expect("the reference");
    let mut count = 0;
    for block in text.split("```toml\n").skip(1) {
        let block = block.split("```").next().unwrap_or_default();
        count += 1;
        assert_eq!(format(block).as_deref(), Ok(block));
        let mut whole = block.to_string();
        if !whole.contains("[listener.web]") {
            let pool = if block.contains("route") { "" } else { "pool = \"app\"\n" };
            let listener = format!("[listener.web]\nbind = \"0.0.0.0:80\"\n{pool}");
            // What belongs at the top level comes first.
            let top = whole.find('[').filter(|_| !whole.starts_with('['));
            let at = top.map_or(0, |_| whole.find("\n[").map_or(whole.len(), |at| at + 1));
            whole.insert_str(at, &listener);
        }
        if !whole.contains("[pool.app]") {
            whole.push_str("[pool.app]\nendpoints = [\"10.0.0.2:8080\"]\n");
        }
        let outcome = read(&whole);
        let shown = render(&outcome.diagnostics, &whole, Path::new("docs"), false);
        assert!(outcome.diagnostics.is_empty(), "{shown}");
    }
    assert!(count >= 3, "{count}");
}
