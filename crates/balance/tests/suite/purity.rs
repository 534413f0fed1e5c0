//! The crate needs nothing from its surroundings: no clock, no randomness, no input or output.
//!
//! Proof: it builds for `wasm32-unknown-unknown`, where everything of that kind has to be imported
//! from the host, and a module that exports every algorithm imports nothing. Only `rustc` is asked,
//! with this crate and `subak-base`: any further dependency would be missing.

use std::path::{Path, PathBuf};
use std::process::Command;

#[test]
fn builds_for_wasm_without_imports() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
    let out = Path::new(env!("CARGO_TARGET_TMPDIR")).join("purity");
    std::fs::create_dir_all(&out).unwrap();
    let (base, balance) = (out.join("libsubak_base.rlib"), out.join("libsubak_balance.rlib"));
    let module = out.join("probe.wasm");

    compile("subak_base", &["--crate-type=rlib"], &crates.join("base/src/lib.rs"), &base);
    let found = format!("-Ldependency={}", out.display());
    let with_base = format!("--extern=subak_base={}", base.display());
    let flags = ["--crate-type=rlib", &found, &with_base];
    compile("subak_balance", &flags, &crates.join("balance/src/lib.rs"), &balance);
    let with_balance = format!("--extern=subak_balance={}", balance.display());
    let flags = ["--crate-type=cdylib", &found, &with_base, &with_balance];
    compile("probe", &flags, &crates.join("balance/tests/purity/probe.rs"), &module);

    let sections = sections(&std::fs::read(&module).unwrap());
    assert!(sections.iter().any(|(id, _)| *id == CODE), "there is code in it: {sections:?}");
    let imports = sections.iter().find(|(id, _)| *id == IMPORT).map_or(0, |(_, entries)| *entries);
    assert_eq!(imports, 0, "the algorithms import something");
}

/// The parser has to see imports where there are some: a module that imports one function.
#[test]
fn imports_would_be_seen() {
    let mut module = b"\0asm\x01\0\0\0".to_vec();
    module.extend([1, 4, 1, 0x60, 0, 0]);
    module.extend([IMPORT, 7, 1, 1, b'm', 1, b'f', 0, 0]);
    assert_eq!(sections(&module), [(1, 1), (IMPORT, 1)]);
}

const IMPORT: u8 = 2;
const CODE: u8 = 10;

/// Id and number of entries of each section: a module is an 8-byte head and then, for each section,
/// its id, its length and its content, which begins with the number of entries.
fn sections(module: &[u8]) -> Vec<(u8, u64)> {
    let (head, mut rest) = module.split_at(8);
    assert_eq!(head, b"\0asm\x01\0\0\0");
    let mut sections = Vec::new();
    while let [id, after @ ..] = rest {
        let (length, content) = leb128(after);
        let (content, next) = content.split_at(length as usize);
        sections.push((*id, leb128(content).0));
        rest = next;
    }
    sections
}

/// An unsigned number of 7 bits a byte, the lowest first, and what follows it.
fn leb128(bytes: &[u8]) -> (u64, &[u8]) {
    let length = bytes.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
    let (number, rest) = bytes.split_at(length);
    let digits = number.iter().rev().map(|byte| u64::from(byte & 0x7F));
    (digits.fold(0, |value, digit| value << 7 | digit), rest)
}

fn compile(name: &str, flags: &[&str], source: &Path, out: &Path) {
    let output = Command::new(rustc())
        .args(["--edition=2024", "--target=wasm32-unknown-unknown", "-Copt-level=1"])
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
