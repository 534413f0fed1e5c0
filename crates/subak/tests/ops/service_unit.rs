//! The unit that systemd starts Subak by: systemd itself has nothing to say against it, its hardening
//! is as good as documented, and what it starts works as it is started.

use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::fresh_directory;

/// "Exposure level" of systemd-analyze in tenths: below is better.
const MOST_EXPOSURE: &str = "20";

fn packaging() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../packaging").canonicalize().expect("packaging")
}

fn unit() -> String {
    std::fs::read_to_string(packaging().join("systemd/subak.service")).expect("the unit")
}

fn has_systemd_analyze() -> bool {
    let has = Command::new("systemd-analyze").arg("--version").output().is_ok();
    if !has {
        eprintln!("SKIPPED: systemd-analyze is not installed (Debian's package systemd)");
    }
    has
}

#[test]
fn systemd_has_nothing_to_say_against_the_unit() {
    if !has_systemd_analyze() {
        return;
    }
    let directory = fresh_directory();
    let path = directory.join("subak.service");
    // What is not installed here is no fault of the unit's.
    let here = unit().replace("/usr/bin/subak", env!("CARGO_BIN_EXE_subak"));
    let here = here.lines().filter(|line| !line.starts_with("Documentation="));
    std::fs::write(&path, here.collect::<Vec<_>>().join("\n")).expect("write");
    let verify =
        Command::new("systemd-analyze").arg("verify").arg(&path).output().expect("it runs");
    let said = String::from_utf8_lossy(&verify.stderr);
    let of_ours: Vec<_> = said.lines().filter(|line| line.contains("subak.service")).collect();
    assert!(of_ours.is_empty(), "{said}");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn the_unit_leaves_little_to_take() {
    if !has_systemd_analyze() {
        return;
    }
    let output = Command::new("systemd-analyze")
        .args(["security", "--offline=true", "--no-pager", "--threshold", MOST_EXPOSURE])
        .arg(packaging().join("systemd/subak.service"))
        .output()
        .expect("it runs");
    let said = String::from_utf8_lossy(&output.stdout);
    if !said.contains("Overall exposure level") {
        eprintln!("SKIPPED: this systemd-analyze judges no unit offline");
        return;
    }
    assert!(output.status.success(), "{said}");
}

#[test]
fn the_commands_of_the_unit_are_commands_of_subak() {
    let unit = unit();
    let lines = unit.lines().filter_map(|line| line.split_once("=/usr/bin/subak "));
    let commands: Vec<_> = lines.collect();
    assert_eq!(commands.len(), 2, "{commands:?}");
    for (_, line) in commands {
        let words: Vec<_> =
            line.split(' ').filter(|word| *word != "/etc/subak/subak.toml").collect();
        let example = packaging().join("deb/subak.toml");
        match words.as_slice() {
            // Its last option takes the file.
            ["serve", "--config"] => {}
            ["check"] => {
                let run =
                    Command::new(env!("CARGO_BIN_EXE_subak")).args(&words).arg(&example).output();
                let run = run.expect("subak");
                assert!(run.status.success(), "{run:?}");
            }
            other => panic!("{other:?}"),
        }
    }
    // The status that a wrong configuration ends with.
    assert!(unit.contains("\nRestartPreventExitStatus=2\n"));
}
