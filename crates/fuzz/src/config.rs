//! Configurations: no text panics, every finding can be shown, a text in canonical layout means the
//! same and is its own layout.

use std::path::Path;

use subak_config::{InMemory, Severity, format, parse_with};

/// Checks one input. Text that is not UTF-8 never reaches the parser.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let origin = Path::new("subak.toml");
    let files = secrets();
    let outcome = parse_with(text, origin, &files);
    let failed = outcome.diagnostics.iter().any(|one| one.severity == Severity::Error);
    assert_eq!(outcome.config.is_none(), failed, "a configuration exists exactly without errors");
    for one in &outcome.diagnostics {
        assert!(!one.message.is_empty());
        // Within the file that it is about, which may be an included one.
        let (path, place) = outcome.sources.place(one.span);
        let texts = outcome.sources.files().find(|(file, _)| *file == path);
        let length = texts.map_or(0, |(_, text)| text.len());
        assert!(place.start <= place.end && place.end <= length, "{one:?}");
    }
    let shown = outcome.render(false);
    assert_eq!(shown.is_empty(), outcome.diagnostics.is_empty());
    assert!(!outcome.sources.to_json(&outcome.diagnostics).is_empty());

    let Ok(formatted) = format(text) else {
        assert!(failed, "what is no TOML is no configuration");
        return;
    };
    assert_eq!(format(&formatted).as_ref(), Ok(&formatted), "not its own layout");
    let again = parse_with(&formatted, origin, &files);
    assert_eq!(again.config, outcome.config, "the layout changed the meaning");
}

/// Files that a text can name, so that what is read from them is reached too.
fn secrets() -> InMemory {
    let files = [("t", "a-token-of-many-characters"), ("k", "an old key of words\n")];
    InMemory {
        files: files.map(|(name, text)| (name.into(), text.into())).into(),
        variables: [("V".into(), "1".into())].into(),
    }
}
