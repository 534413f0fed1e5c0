//! Commands within a sentence: `subak ctl drain --wait` has to be there, with its options.

use std::process::Command;

/// Commands of Subak that stand in the text of a document, outside of its blocks, with their lines.
pub(crate) fn commands(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut in_block = false;
    for (index, line) in text.lines().enumerate() {
        if line.trim_start().starts_with("```") {
            in_block = !in_block;
        }
        if in_block {
            continue;
        }
        // Every second part between backquotes is code.
        for code in line.split('`').skip(1).step_by(2) {
            if code.starts_with("subak ") {
                found.push((index + 1, code.to_owned()));
            }
        }
    }
    found
}

/// What the command line says against it.
pub(crate) fn refused(command: &str) -> Option<String> {
    // What stands for more, or is a matter of the shell, ends it.
    let words = command.split_whitespace().skip(1);
    let words = words.take_while(|word| !word.contains(['…', '|', '>', '<', '$', '&', ';']));
    // So do placeholders: COMMAND, FILE.
    let words = words.take_while(|word| !word.chars().all(|letter| letter.is_ascii_uppercase()));
    let words = words.map(|word| word.trim_matches(['[', ']', '"', '\'']));
    let asked = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(words)
        // Whatever is missing or would be done: with this nothing is done.
        .arg("--help")
        .output()
        .expect("subak");
    let said = String::from_utf8_lossy(&asked.stderr).into_owned();
    // That the option is there is what counts, not its value.
    let has_option = said.contains("invalid value") || said.contains("a value is required");
    let is_known = asked.status.success() || has_option;
    (!is_known).then_some(said)
}
