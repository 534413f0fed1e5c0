//! Links between documents: the file is there, and so is the heading.

use std::fs;
use std::path::Path;

/// Links of a document that lead nowhere, as `name:line: link`.
pub(crate) fn broken(name: &str, path: &Path, text: &str) -> Vec<String> {
    let directory = path.parent().expect("a directory");
    let mut broken = Vec::new();
    for (line, link) in links(text) {
        if link.contains("://") || link.starts_with("mailto:") {
            continue;
        }
        let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
        let leads = match file {
            "" => anchors(text).iter().any(|known| known == anchor),
            file => {
                let target = directory.join(file);
                let is_there = target.exists();
                let text = || fs::read_to_string(&target).unwrap_or_default();
                is_there && (anchor.is_empty() || anchors(&text()).iter().any(|a| a == anchor))
            }
        };
        if !leads {
            broken.push(format!("{name}:{line}: {link} leads nowhere"));
        }
    }
    broken
}

/// Every target of `[…](target)` outside of code, with its line.
fn links(text: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Every second part between backquotes is code; a link's own text may hold some.
        for (at, _) in line.match_indices("](") {
            let is_code = line[..at].matches('`').count() % 2 == 1;
            let target = line[at + 2..].split(')').next().unwrap_or_default();
            if !is_code {
                found.push((index + 1, target));
            }
        }
    }
    found
}

/// Names of the headings, as GitHub makes them.
fn anchors(text: &str) -> Vec<String> {
    let headings = text.lines().filter(|line| line.starts_with('#'));
    let anchor = |heading: &str| {
        let title = heading.trim_start_matches('#').trim().to_lowercase();
        let kept = |c: &char| c.is_alphanumeric() || "-_ ".contains(*c);
        title.chars().filter(kept).collect::<String>().replace(' ', "-")
    };
    headings.map(anchor).collect()
}
