//! The documents are true: every command they show is run, every configuration is checked, every
//! link leads somewhere. How a document says what is run: CONTRIBUTING.md, "Documents".
//!
//! Each document has a directory, a network and processes of its own ([`sandbox`]), so all of them
//! may use the same ports. `DOCUMENT=tutorial` runs those with this in their path alone; `UPDATE=1`
//! writes what the commands print into the documents.

mod blocks;
mod configuration;
mod inline;
mod links;
mod output;
mod run;
mod sandbox;
mod steps;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use blocks::Block;
use subak_telemetry::{Cause, ProblemKind};

/// Documents that are run at a time. Most of their time they wait.
const AT_A_TIME: usize = 4;

/// A document: its path below the root of the repository, and its text.
struct Document {
    name: String,
    path: PathBuf,
    text: String,
}

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// README.md and everything in docs.
fn documents() -> Vec<Document> {
    let mut paths = vec![root().join("README.md")];
    let mut directories = vec![root().join("docs")];
    while let Some(directory) = directories.pop() {
        for entry in fs::read_dir(directory).expect("documents") {
            let path = entry.expect("an entry").path();
            match path.extension().is_some_and(|extension| extension == "md") {
                true => paths.push(path),
                false if path.is_dir() => directories.push(path),
                false => {}
            }
        }
    }
    paths.sort();
    let read = |path: PathBuf| {
        let text = fs::read_to_string(&path).expect("a document");
        let name = path.strip_prefix(root()).expect("below the root").display().to_string();
        Document { name, path, text }
    };
    paths.into_iter().map(read).collect()
}

/// What is wrong with the blocks of this text: each must be run, checked, or say why not.
fn neglected(text: &str) -> Vec<String> {
    let indented = blocks::indented(text).into_iter().map(|line| {
        format!("{line}: an indented block of code: fence it, so that it is run or says why not")
    });
    let blocks = blocks::of(text);
    let wrong = blocks.iter().filter_map(|block| {
        let line = block.line;
        block.fault().map(|fault| format!("{line}: {fault}"))
    });
    indented.chain(wrong).collect()
}

#[test]
fn every_block_is_run_or_says_why_not() {
    let mut wrong = Vec::new();
    for Document { name, text, .. } in documents() {
        wrong.extend(neglected(&text).into_iter().map(|what| format!("{name}:{what}")));
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_configuration_is_valid() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for Document { name, text, .. } in documents() {
        for block in blocks::of(&text).iter().filter(|block| block.is_checked_alone()) {
            count += 1;
            if let Err(what) = configuration::check(block) {
                wrong.push(format!("{name}:{}: {what}", block.line));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 10, "{count}");
}

#[test]
fn every_link_leads_somewhere() {
    let wrong: Vec<_> = documents()
        .iter()
        .flat_map(|document| links::broken(&document.name, &document.path, &document.text))
        .collect();
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

#[test]
fn every_command_in_a_sentence_is_there() {
    let mut wrong = Vec::new();
    let mut count = 0;
    for Document { name, text, .. } in documents() {
        for (line, command) in inline::commands(&text) {
            count += 1;
            wrong.extend(inline::refused(&command).map(|why| format!("{name}:{line}: {why}")));
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(count > 20, "{count}");
    assert!(inline::refused("subak dance").is_some());
    assert!(inline::refused("subak serve --dance").is_some());
}

#[test]
fn troubleshooting_knows_every_cause_and_every_kind_of_problem() {
    let text = fs::read_to_string(root().join("docs/troubleshooting.md")).expect("the document");
    let causes = Cause::ALL.map(Cause::name);
    let kinds = ProblemKind::ALL.map(ProblemKind::name);
    for name in causes.iter().chain(&kinds) {
        let row = format!("\n| `{name}` |");
        assert!(text.contains(&row), "docs/troubleshooting.md has no row for {name}");
    }
}

#[test]
fn every_command_does_what_the_document_shows() {
    if !sandbox::can_be_made() {
        eprintln!(
            "SKIPPED: documents are not run: namespaces cannot be made here \
             (`unshare --user --net --mount --pid` and `ip` are needed)"
        );
        return;
    }
    let only = std::env::var("DOCUMENT").unwrap_or_default();
    let all = documents().into_iter().filter(|document| document.name.contains(&only));
    let todo = Mutex::new(all.collect::<Vec<_>>());
    let wrong = Mutex::new(Vec::new());
    std::thread::scope(|scope| {
        for _ in 0..AT_A_TIME {
            scope.spawn(|| {
                while let Some(document) = { todo.lock().expect("unharmed").pop() } {
                    let found = run::document(&document.text);
                    if std::env::var_os("UPDATE").is_some() {
                        let fresh = run::updated(&document.text, &found);
                        fs::write(&document.path, fresh).expect("write the document");
                    }
                    let named = found.iter().map(|fault| format!("{}:{fault}", document.name));
                    wrong.lock().expect("unharmed").extend(named);
                }
            });
        }
    });
    let wrong = wrong.into_inner().expect("unharmed");
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
}

/// A step that its reader does not see is a step that fails on the reader's machine.
#[test]
fn no_step_is_hidden_in_a_comment() {
    let mut hidden = Vec::new();
    for Document { name, text, .. } in documents() {
        // What only the test wants to know, such as whether a share is about right, may be hidden.
        let steps =
            blocks::hidden(&text).into_iter().filter(|block| block.option("check").is_none());
        hidden.extend(steps.map(|block| format!("{name}:{}", block.line)));
    }
    assert!(
        hidden.is_empty(),
        "show these blocks, or say `check` where they only check:\n{}",
        hidden.join("\n")
    );
    let text = "<!--\n```console\n$ true\n```\n-->\n```console\n$ true\n```\n";
    assert_eq!(blocks::hidden(text).len(), 1);
}

/// The test of documents notices what is wrong, and nothing else.
#[test]
fn a_bad_document_is_noticed() {
    let text = include_str!("bad.txt");
    assert_eq!(
        neglected(text),
        [
            "56: an indented block of code: fence it, so that it is run or says why not",
            "42: it says neither `console` nor `toml`: run it, or say not-run=\"why\"",
            "46: not-run says no reason",
            "50: begins with no command: lines of commands begin with \"$ \"",
        ]
    );
    let checked: Vec<_> = blocks::of(text)
        .iter()
        .filter(|block| block.is_checked_alone())
        .map(|block| (block.line, configuration::check(block).is_ok()))
        .collect();
    assert_eq!(checked, [(33, true), (37, false)]);
    if !sandbox::can_be_made() {
        eprintln!("SKIPPED: a bad document is not run");
        return;
    }
    let found: Vec<_> = run::document(text).iter().map(ToString::to_string).collect();
    let lines: Vec<_> = found.iter().map(|fault| fault.split(':').next().unwrap_or("")).collect();
    assert_eq!(lines, ["10", "14", "17", "20", "24", "29"], "{found:#?}");
    assert!(found[0].contains("\n  one\n- two\n+ 2\n  three\n"), "{}", found[0]);
    assert!(found[1].contains("exit status 3, 0 was expected"), "{}", found[1]);
    assert!(found[2].contains("exit status 0, 1 was expected"), "{}", found[2]);
    assert!(found[4].contains("balanse"), "{}", found[4]);
}

#[test]
fn links_that_lead_nowhere_are_noticed() {
    let text = "# A title\n[good](#a-title) [bad](#no-title) [gone](gone.md) [out](https://x.example)\n\
                [there](main.rs)\n```\n[not a link](nowhere)\n```\n`[neither](nowhere)`\n";
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/documents/bad.txt");
    let broken = links::broken("x.md", &path, text);
    assert_eq!(broken, ["x.md:2: #no-title leads nowhere", "x.md:2: gone.md leads nowhere"]);
}

#[test]
fn blocks_in_comments_are_run_too() {
    let blocks: Vec<Block> = blocks::of("<!--\n```console\n$ true\n```\n-->\n");
    assert!(matches!(&blocks[..], [block] if block.line == 2 && block.fault().is_none()));
}
