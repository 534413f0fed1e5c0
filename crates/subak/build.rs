//! Tells the binary what it was built for and by: what only the build knows.

use std::process::Command;

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let target = std::env::var("TARGET").unwrap_or_else(|_| "unknown".to_owned());
    println!("cargo::rustc-env=SUBAK_TARGET={target}");
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let said = Command::new(rustc).arg("--version").output().ok();
    let said = said.and_then(|output| String::from_utf8(output.stdout).ok()).unwrap_or_default();
    // "rustc 1.95.0 (0123456 2026-04-16)": the number will do.
    let version = said.split_whitespace().nth(1).unwrap_or("unknown");
    println!("cargo::rustc-env=SUBAK_RUSTC={version}");
}
