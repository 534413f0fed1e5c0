//! Formatting: canonical, stable, and without effect on what is said.

use std::fs;
use std::path::Path;

use crate::support::{read, to_json};
use proptest::prelude::*;
use proptest::strategy::ValueTree;
use subak_config::{MAX_COLUMNS, format};

#[test]
fn the_canonical_form_is_as_recorded() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/format");
    let untidy = fs::read_to_string(directory.join("untidy.toml")).expect("a case");
    let tidy = directory.join("tidy.toml");
    let formatted = format(&untidy).expect("valid TOML");
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&tidy, &formatted).expect("a writable record");
    }
    assert_eq!(formatted, fs::read_to_string(&tidy).expect("a record"));
    assert_eq!(to_json(&untidy), to_json(&formatted));
    assert_eq!(format(&formatted).as_ref(), Ok(&formatted));
}

#[test]
fn what_is_no_toml_is_not_touched() {
    for text in ["a = ", "a = [1", "a = 1\na = 2\n", "[a", "= 1", "a = 1979-99-99"] {
        assert!(!format(text).expect_err(text).is_empty());
    }
}

#[test]
fn examples_are_formatted() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    for entry in fs::read_dir(directory).expect("examples") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let text = fs::read_to_string(&path).expect("a readable example");
            assert_eq!(format(&text), Ok(text.clone()), "{}", path.display());
        }
    }
}

#[test]
fn lines_that_can_be_broken_are() {
    let items: Vec<String> = (0..30).map(|index| format!("\"10.0.0.{index}:8080\"")).collect();
    let text = format!("a = {{ b = [{0}], c = [[{0}]] }}\n", items.join(","));
    let formatted = format(&text).expect("valid TOML");
    assert!(formatted.lines().all(|line| line.chars().count() <= MAX_COLUMNS), "{formatted}");
    assert_eq!(to_json(&text), to_json(&formatted));
}

/// Spaces, perhaps none.
fn space() -> impl Strategy<Value = String> {
    "[ \t]{0,3}"
}

fn comment() -> impl Strategy<Value = String> {
    prop_oneof![3 => Just(String::new()), 1 => "#[ a-z=\\[\"']{0,12}"]
}

fn key() -> impl Strategy<Value = String> {
    prop_oneof!["[a-z]{1,4}", "[0-9]{1,3}", "\"[a-zA-Z0-9 .é]{0,5}\"", "'[a-z\\\\\"]{1,4}'"]
}

fn scalar() -> impl Strategy<Value = String> {
    prop_oneof![
        (-1000i64..1000).prop_map(|number| number.to_string()),
        prop::sample::select(
            &["true", "false", "1.5", "0xff", "1_000", "1979-05-27", "nan", "-inf"][..]
        )
        .prop_map(String::from),
        "\"[a-z0-9 :/#é]{0,30}\"",
        "'[a-z0-9\\\\\" #]{0,30}'",
        "\"\"\"[a-z\n\" ]{0,9}x\"\"\"",
        "'''[a-z\n\\\\ ]{0,9}'''",
    ]
}

/// A line break where one may be, after an optional comment.
fn gap() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => space(),
        1 => (space(), comment(), "(\n|\r\n){1,3}", space()).prop_map(|(a, b, c, d)| format!("{a}{b}{c}{d}")),
    ]
}

fn value() -> impl Strategy<Value = String> {
    scalar().prop_recursive(3, 24, 5, |inner| {
        let items = prop::collection::vec((gap(), inner.clone(), gap()), 0..5);
        let array = (items, gap(), any::<bool>()).prop_map(|(items, last, comma)| {
            let mut out: Vec<String> = items
                .iter()
                .map(|(before, value, after)| format!("{before}{value}{after}"))
                .collect();
            if comma && !out.is_empty() {
                out.push(last);
            }
            format!("[{}]", out.join(","))
        });
        let pairs = prop::collection::vec((gap(), space(), inner, gap()), 0..4);
        let table = pairs.prop_map(|pairs| {
            let pairs: Vec<String> = pairs
                .iter()
                .enumerate()
                .map(|(index, (before, middle, value, after))| {
                    format!("{before}k{index}{middle}={middle}{value}{after}")
                })
                .collect();
            format!("{{{}}}", pairs.join(","))
        });
        prop_oneof![array, table]
    })
}

fn line() -> impl Strategy<Value = String> {
    let end = || (space(), comment()).prop_map(|(space, comment)| format!("{space}{comment}"));
    prop_oneof![
        4 => (space(), key(), space(), value(), end()).prop_map(|(a, key, b, value, end)| format!("{a}{key}{b}={b}{value}{end}")),
        1 => (space(), key(), space(), key(), end()).prop_map(|(a, one, b, other, end)| format!("{a}[{b}{one}{b}.{b}{other}{b}]{end}")),
        1 => (space(), key(), end()).prop_map(|(a, key, end)| format!("{a}[[{a}{key}]]{end}")),
        2 => end(),
    ]
}

fn document() -> impl Strategy<Value = String> {
    prop::collection::vec((line(), "(\n|\r\n)"), 0..12)
        .prop_map(|lines| lines.into_iter().map(|(line, end)| line + &end).collect::<String>())
}

/// The comments of a text, in order, without spaces at their ends.
fn comments(text: &str) -> Vec<String> {
    let tokens = toml_parser::Source::new(text).lex().into_vec();
    tokens
        .iter()
        .filter(|token| token.kind() == toml_parser::lexer::TokenKind::Comment)
        .map(|token| text[token.span().start()..token.span().end()].trim_end().to_string())
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(3000))]
    #[test]
    fn formatting_keeps_what_is_said_and_is_stable(text in document()) {
        if let Ok(formatted) = format(&text) {
            prop_assert_eq!(to_json(&text), to_json(&formatted), "{}\n=>\n{}", text, formatted);
            prop_assert_eq!(comments(&text), comments(&formatted), "{}\n=>\n{}", text, formatted);
            let again = format(&formatted);
            prop_assert_eq!(again.as_ref(), Ok(&formatted), "{}\n=>\n{}", text, formatted);
            let blank = |line: &str| line.trim().is_empty();
            let lines: Vec<&str> = formatted.lines().collect();
            if !formatted.contains("\"\"\"") && !formatted.contains("'''") {
                prop_assert!(lines.iter().all(|line| line.trim_end() == *line), "{:?}", formatted);
                prop_assert!(lines.windows(2).all(|two| !(blank(two[0]) && blank(two[1]))), "{:?}", formatted);
            }
            prop_assert_eq!(read(&text).config, read(&formatted).config);
        }
    }
}

#[test]
fn the_random_documents_are_valid_often_enough_to_mean_something() {
    let mut runner = proptest::test_runner::TestRunner::deterministic();
    let valid = (0..300)
        .filter(|_| {
            format(&document().new_tree(&mut runner).expect("a document").current()).is_ok()
        })
        .count();
    assert!(valid >= 100, "{valid} of 300");
}
