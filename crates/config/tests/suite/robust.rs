//! No text makes the parser panic, whatever its bytes; and its word holds: a configuration exactly
//! when there is no error, places inside of the text, the same answer for the same text.

use std::path::Path;

use crate::support::read;
use proptest::prelude::*;
use subak_config::{Severity, format, render, to_json};

const FULL: &str = include_str!("../../../../examples/full.toml");

fn holds(text: &str) {
    let outcome = read(text);
    let failed = outcome.diagnostics.iter().any(|one| one.severity == Severity::Error);
    assert_eq!(failed, outcome.config.is_none());
    for diagnostic in &outcome.diagnostics {
        let places = diagnostic.related.iter().map(|(span, _)| span).chain([&diagnostic.span]);
        for span in places {
            assert!(text.get(span.start..span.end).is_some(), "{span:?} is no part of the text");
        }
        assert!(!diagnostic.message.is_empty());
    }
    let again = read(text);
    assert_eq!(outcome.diagnostics, again.diagnostics);
    assert_eq!(outcome.config, again.config);
    let origin = Path::new("subak.toml");
    render(&outcome.diagnostics, text, origin, true);
    to_json(&outcome.diagnostics, text, origin);
    let _ = format(text);
}

/// A text with some of its pieces replaced, doubled or taken out.
fn mutated() -> impl Strategy<Value = String> {
    let piece = prop::sample::select(
        &[
            "",
            "[",
            "]",
            "{",
            "}",
            "\"",
            "'",
            "\"\"\"",
            "=",
            ",",
            "\n",
            "\r",
            "#",
            ".",
            "-1",
            "0x",
            "1e9999",
            "ü",
            "\u{feff}",
            "\0",
            "nan",
            "99999999999999999999",
            "[pool.app]\n",
            "[[pool.app]]\n",
            "1979-05-27",
            "\\u0000",
            "true",
            "\"unlimited\"",
            " ",
            "\t",
            "*",
            "{host",
            "(",
            "%",
            "/..",
            "unix:",
        ][..],
    );
    let edit = (0..FULL.len(), 0usize..12, piece);
    prop::collection::vec(edit, 1..6).prop_map(|edits| {
        let mut text = FULL.to_string();
        for (at, length, piece) in edits {
            let boundary = |at: usize, text: &str| {
                (0..=at.min(text.len())).rev().find(|at| text.is_char_boundary(*at))
            };
            let start = boundary(at, &text).unwrap_or(0);
            let end = boundary(start + length, &text).unwrap_or(start).max(start);
            text.replace_range(start..end, piece);
        }
        text
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn any_text_is_survived(text in any::<String>()) {
        holds(&text);
    }

    #[test]
    fn any_text_of_toml_characters_is_survived(text in "[a-c\\[\\]{}=,.\"'#\\\\ \n0-9_-]{0,80}") {
        holds(&text);
    }

    #[test]
    fn a_damaged_configuration_is_survived(text in mutated()) {
        holds(&text);
    }
}

#[test]
fn the_full_example_is_valid() {
    let outcome = read(FULL);
    // The certificate of the test is for other names.
    let is_expected = |message: &str| message.starts_with("no certificate is for ");
    let mut messages = outcome.diagnostics.iter().map(|diagnostic| &diagnostic.message);
    assert!(messages.all(|message| is_expected(message)), "{:?}", outcome.diagnostics);
}

#[test]
fn nesting_beyond_measure_is_an_error() {
    for text in [
        format!("a = {}", "[".repeat(100_000)),
        format!("a = {}1{}", "[".repeat(5_000), "]".repeat(5_000)),
        format!("a = {}", "{ a = ".repeat(20_000)),
        format!("{} = 1", ["a"; 20_000].join(".")),
        format!("[{}]", ["a"; 20_000].join(".")),
    ] {
        holds(&text);
        assert!(read(&text).config.is_none());
    }
}

#[test]
fn large_texts_take_time_in_proportion() {
    // 100,000 endpoints, the most a pool may have; a quadratic step would take minutes.
    let endpoints: Vec<String> = (0..100_000u32)
        .map(|index| format!("\"10.{}.{}.{}:80\"", index >> 16, index >> 8 & 255, index & 255))
        .collect();
    let text = format!(
        "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n[pool.app]\nendpoints = [{}]\n",
        endpoints.join(", ")
    );
    let started = std::time::Instant::now();
    let config = read(&text).config.expect("a valid configuration");
    assert_eq!(config.pools[0].endpoints.len(), 100_000);
    assert!(started.elapsed() < std::time::Duration::from_secs(30), "{:?}", started.elapsed());
}
