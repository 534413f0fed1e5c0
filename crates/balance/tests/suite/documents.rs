//! docs/algorithms: its index is made from the catalogue, and every entry has a page that says what
//! a page has to say. With `UPDATE=1` in the environment the index is written anew.

use std::fs;
use std::path::PathBuf;

use subak_balance::catalogue::{self, Cost, Listing, OptionKind};

const BEGIN: &str = "<!-- catalogue -->\n";
const END: &str = "<!-- end -->";

fn document(name: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_MANIFEST_DIR"));
    root.join("../../docs/algorithms").join(format!("{name}.md"))
}

fn index() -> String {
    let mut table = String::from(
        "| name | aliases | in one line | choose it when | cost | table |\n|---|---|---|---|---|---|\n",
    );
    for listing in catalogue::all() {
        let name = listing.name;
        let aliases: Vec<String> =
            listing.aliases.iter().map(|alias| format!("`{alias}`")).collect();
        let default = if name == catalogue::DEFAULT { " (default)" } else { "" };
        let traits = listing.algorithm().traits();
        let cost = match traits.cost {
            Cost::Constant => "O(1)",
            Cost::Logarithmic => "O(log n)",
            Cost::Linear => "O(n)",
        };
        let table_of = if traits.has_table { "yes" } else { "" };
        table.push_str(&format!(
            "| [`{name}`]({name}.md){default} | {} | {} | {} | {cost} | {table_of} |\n",
            aliases.join(", "),
            listing.summary,
            listing.when,
        ));
    }
    table
}

#[test]
fn the_index_is_the_catalogue() {
    let path = document("README");
    let text = fs::read_to_string(&path).expect("the index");
    let (before, rest) = text.split_once(BEGIN).expect("a generated part begins");
    let (_, after) = rest.split_once(END).expect("and ends");
    let fresh = format!("{before}{BEGIN}{}{END}{after}", index());
    if std::env::var_os("UPDATE").is_some() {
        fs::write(&path, fresh).expect("a writable index");
    } else {
        assert!(fresh == text, "out of date: run this test with UPDATE=1 in the environment");
    }
}

#[test]
fn every_entry_has_a_page_that_says_everything() {
    for listing in catalogue::all() {
        let path = document(listing.name);
        let text =
            fs::read_to_string(&path).unwrap_or_else(|_| panic!("{} is missing", path.display()));
        for section in ["Formula", "When", "When not", "Cost", "Source"] {
            let heading = format!("\n## {section}\n");
            assert!(text.contains(&heading), "{} lacks \"## {section}\"", path.display());
        }
        for word in words(listing) {
            assert!(text.contains(&word), "{} does not mention {word}", path.display());
        }
    }
}

/// What a page has to mention: aliases, options and what words those take.
fn words(listing: &Listing) -> Vec<String> {
    let aliases = listing.aliases.iter().map(|alias| format!("`{alias}`"));
    let options = listing.options.iter().map(|option| format!("`{}", option.name));
    let values = listing.options.iter().flat_map(|option| match option.kind {
        OptionKind::Words(words) => words.iter().map(|word| (*word).to_owned()).collect(),
        OptionKind::Integer { .. } | OptionKind::Decimal { .. } | OptionKind::Text { .. } => vec![],
    });
    aliases.chain(options).chain(values).collect()
}

#[test]
fn there_is_no_page_about_what_is_not_in_the_catalogue() {
    let directory = document("README").parent().expect("a directory").to_path_buf();
    for entry in fs::read_dir(directory).expect("the pages") {
        let path = entry.expect("an entry").path();
        let name = path.file_stem().and_then(|name| name.to_str()).expect("a name").to_owned();
        let is_known = ["README", "weights"].contains(&&*name)
            || catalogue::all().iter().any(|listing| listing.name == name);
        assert!(is_known, "{} is about nothing in the catalogue", path.display());
    }
}
