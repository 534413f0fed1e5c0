//! The crate needs nothing from its surroundings: it builds for a target that has none, and its code
//! names nothing of the standard library that reads a clock, holds a lock or does input and output.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn builds_for_wasm() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("purity");
    std::fs::create_dir_all(&out).unwrap();
    let base = out.join("libsubak_base.rlib");
    compile("subak_base", &[], &crates.join("base/src/lib.rs"), &base);
    let with_base = format!("--extern=subak_base={}", base.display());
    let health = out.join("libsubak_health.rlib");
    compile("subak_health", &[&with_base], &crates.join("health/src/lib.rs"), &health);
    assert!(std::fs::metadata(&health).unwrap().len() > 10_000, "there is code in it");
}

#[test]
fn no_code_names_a_clock_a_lock_or_a_file() {
    let impure =
        ["Instant", "SystemTime", "Atomic", "Mutex", "std::net", "std::fs", "std::io", "thread"];
    let mut files = 0;
    for entry in std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("src")).unwrap() {
        let path = entry.unwrap().path();
        let text = std::fs::read_to_string(&path).unwrap();
        for line in text.lines().filter(|line| !line.trim_start().starts_with("//")) {
            let found = impure.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "{}: {line}", path.display());
        }
        files += 1;
    }
    assert!(files > 10, "{files} files");
}

fn compile(name: &str, flags: &[&str], source: &Path, out: &Path) {
    let output = Command::new(rustc())
        .args(["--edition=2024", "--target=wasm32-unknown-unknown", "--crate-type=rlib"])
        .args(["--crate-name", name, "-o"])
        .arg(out)
        .args(flags)
        .arg(source)
        .output()
        .expect("rustc starts");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.success(),
        "{} does not build for wasm32-unknown-unknown (is the target missing? \
         rustup target add wasm32-unknown-unknown):\n{said}",
        source.display(),
    );
}

/// The compiler that goes with the cargo that runs this test.
fn rustc() -> PathBuf {
    let beside =
        std::env::var_os("CARGO").map(|cargo| PathBuf::from(cargo).with_file_name("rustc"));
    beside.filter(|path| path.exists()).unwrap_or_else(|| "rustc".into())
}
