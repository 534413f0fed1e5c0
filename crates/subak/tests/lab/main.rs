//! The laboratory's commands, as a person calls them.

#[path = "../support/mod.rs"]
mod support;

mod experiments;
mod like;
mod load;
mod logs;
mod real;

use std::process::{Command, Output, Stdio};

/// Runs `subak lab` with these arguments to its end.
fn lab(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_subak"))
        .arg("lab")
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::null())
        .output()
        .expect("subak lab")
}

/// The exit status of `subak lab` and what it says on standard error.
fn failing(arguments: &[&str]) -> (i32, String) {
    let output = lab(arguments);
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    (output.status.code().expect("a status"), said)
}
