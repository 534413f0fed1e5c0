//! subak.toml(5): every table and key of the vocabulary.

use clap_mangen::roff::{Roff, bold, italic, roman};
use subak_config::keys::{Key, Table, Without};
use subak_config::{reference, vocabulary};

const EXAMPLE: &str = "\
[listener.web]
bind = [\"0.0.0.0:80\", \"[::]:80\"]
pool = \"app\"

[pool.app]
balance = \"least_connections\"
endpoints = [\"10.0.0.2:8080\", \"10.0.0.3:8080 weight=2\"]";

/// The page.
pub(super) fn page(source: &str, manual: &str) -> String {
    let mut roff = Roff::new();
    roff.control("TH", ["subak.toml", "5", "", source, manual]);
    roff.control("SH", ["NAME"]);
    roff.text([roman("subak.toml - the configuration of subak")]);
    roff.control("SH", ["DESCRIPTION"]);
    roff.text([roman(
        "A file in TOML: listeners, where clients arrive, and pools, whose endpoints share their \
         requests. Durations are written as \"250ms\" or \"1m30s\", sizes as \"16KiB\". Paths are \
         relative to the directory of the file. ",
    ), bold("subak check"), roman(" shows every error with its place; "), bold("subak schema"),
        roman(" is for editors."),
    ]);
    roff.control("SH", ["EXAMPLE"]);
    lines(&mut roff, EXAMPLE);
    for table in vocabulary::TABLES {
        section(&mut roff, table);
    }
    roff.control("SH", ["FILES"]);
    roff.control("TP", []);
    roff.text([italic("/etc/subak/subak.toml")]);
    roff.text([roman("The configuration that subak serve reads unless it is told another.")]);
    roff.control("SH", ["SEE ALSO"]);
    roff.text([
        bold("subak"),
        roman("(1), "),
        bold("subak-serve"),
        roman("(1), "),
        bold("subak-check"),
        roman("(1)"),
    ]);
    roff.to_roff()
}

fn section(roff: &mut Roff, table: &Table) {
    let title = if table.path.is_empty() { "TOP LEVEL" } else { table.path };
    roff.control("SH", [title]);
    roff.text([roman(table.doc)]);
    for key in table.keys {
        roff.control("TP", []);
        let takes = plain(&reference::takes(&key.kind));
        roff.text([bold(key.name), roman(format!(" = {takes}{}", without(key)))]);
        roff.text([roman(plain(key.doc))]);
        roff.control("IP", []);
        roff.text([roman("For example: "), roman(key.example)]);
    }
}

fn without(key: &Key) -> String {
    match key.without {
        Without::Required => " (required)".to_owned(),
        Without::Default(value) => format!(" (default: {})", plain(value)),
        Without::Absent(words) => format!(" (without it: {})", plain(words)),
    }
}

fn lines(roff: &mut Roff, text: &str) {
    roff.control("nf", []);
    for line in text.lines() {
        roff.text([roman(line)]);
    }
    roff.control("fi", []);
}

/// Without the marks of Markdown: `[table](#anchor)` is a table, code is written as it is.
fn plain(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    // The bracket that opens a link is the last one before its middle.
    while let Some(middle) = rest.find("](") {
        let (Some(begin), Some(length)) = (rest[..middle].rfind('['), rest[middle..].find(')'))
        else {
            break;
        };
        out += &rest[..begin];
        out += &rest[begin + 1..middle];
        rest = &rest[middle + length + 1..];
    }
    out += rest;
    out.replace('`', "")
}

#[cfg(test)]
mod tests {
    use super::{page, plain};
    use subak_config::vocabulary;

    #[test]
    fn marks_of_markdown_are_taken_out() {
        assert_eq!(
            plain("`true` or [table](#admin), see [x.md](x.md)."),
            "true or table, see x.md."
        );
        assert_eq!(
            plain("a [list] of `[[listener.web.route]]`"),
            "a [list] of [[listener.web.route]]"
        );
    }

    #[test]
    fn every_key_of_every_table_is_there() {
        let page = page("subak", "Subak");
        for table in vocabulary::TABLES {
            for key in table.keys {
                let bold = format!("\\fB{}\\fR", key.name.replace('-', "\\-"));
                assert!(page.contains(&bold), "{} {}", table.path, key.name);
            }
        }
    }
}
