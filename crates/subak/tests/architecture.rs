//! The rules that hold the workspace together: who may depend on whom, who may use `unsafe`, and what
//! the code that reads from the network does not do. DESIGN and ARCHITECTURE.md say why. And every test
//! that SPECIFICATION.md names exists.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

/// Who may use which other crate of the workspace, tests and benches left out.
const MAY_USE: [(&str, &[&str]); 28] = [
    ("acme", &["certificate", "config", "telemetry"]),
    ("base", &[]),
    ("certificate", &[]),
    ("balance", &["base"]),
    ("agent", &["base", "balance"]),
    ("health", &["base"]),
    ("limits", &["base"]),
    ("message", &[]),
    ("access-log", &["base", "telemetry"]),
    ("config", &["access-log", "base", "balance", "certificate", "health", "limits", "message"]),
    ("pool", &["base", "balance", "health", "limits"]),
    ("explain", &["base", "balance", "pool"]),
    ("names", &["base", "config"]),
    ("net", &["base", "certificate"]),
    ("probe", &["base", "health", "message", "net"]),
    ("report", &[]),
    ("scenario", &["balance", "base", "config", "lab", "message", "pool", "report", "sim"]),
    ("papers", &["base", "balance", "lab", "message", "report"]),
    ("service", &[]),
    ("telemetry", &[]),
    ("console", &["admin", "config"]),
    (
        "admin",
        &[
            "access-log",
            "base",
            "balance",
            "config",
            "explain",
            "health",
            "limits",
            "names",
            "pool",
            "telemetry",
        ],
    ),
    (
        "http",
        &[
            "access-log",
            "base",
            "balance",
            "certificate",
            "config",
            "explain",
            "limits",
            "message",
            "net",
            "pool",
            "telemetry",
        ],
    ),
    ("sim", &["base", "balance", "health", "pool"]),
    ("lab", &["base", "balance", "certificate", "message", "pool", "sim"]),
    ("trace", &["base", "balance", "pool", "report", "sim"]),
    (
        "subak",
        &[
            "access-log",
            "acme",
            "admin",
            "agent",
            "base",
            "balance",
            "certificate",
            "config",
            "console",
            "explain",
            "health",
            "http",
            "lab",
            "limits",
            "message",
            "names",
            "net",
            "papers",
            "pool",
            "probe",
            "report",
            "scenario",
            "service",
            "sim",
            "telemetry",
            "trace",
        ],
    ),
    ("fuzz", &["certificate", "config", "health", "message", "net", "scenario", "trace"]),
];

/// What must not be found among the dependencies of a crate that is pure, however deep.
const IMPURE: [&str; 9] =
    ["tokio", "socket2", "libc", "mio", "rustls", "h2", "tracing", "rand", "getrandom"];

/// Crates without sockets, clocks and system calls.
const PURE: [&str; 7] = ["base", "balance", "health", "limits", "message", "pool", "sim"];

/// Modules that need `unsafe`, with the crates they belong to: sockets, threads, system calls.
const UNSAFE: [&str; 14] = [
    "balance/tests/allocation.rs",
    "lab/src/connect.rs",
    "lab/src/epoll.rs",
    "lab/src/machine.rs",
    "lab/src/process.rs",
    "message/tests/allocation.rs",
    "net/src/accept.rs",
    "net/src/chunk.rs",
    "net/src/counters.rs",
    "net/src/cpus.rs",
    "net/src/descriptors.rs",
    "net/src/place.rs",
    "net/src/stream.rs",
    "net/src/worker.rs",
];

/// Past this, a file is asked what two things it is.
const LONG: usize = 600;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().expect("the workspace")
}

/// What `cargo metadata` says; `--locked --offline`, so that a test changes nothing.
fn metadata(more: &[&str]) -> serde_json::Value {
    let output = Command::new(env!("CARGO"))
        .args(["metadata", "--format-version", "1", "--locked", "--offline"])
        .args(more)
        .current_dir(root())
        .output()
        .expect("cargo");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    serde_json::from_slice(&output.stdout).expect("JSON")
}

fn list<'a>(value: &'a serde_json::Value, key: &str) -> &'a [serde_json::Value] {
    value[key].as_array().map_or(&[], Vec::as_slice)
}

fn word<'a>(value: &'a serde_json::Value, key: &str) -> &'a str {
    value[key].as_str().unwrap_or_default()
}

/// The crates of the workspace without their prefix, and what each depends on outside of tests.
fn dependencies() -> BTreeMap<String, BTreeSet<String>> {
    let metadata = metadata(&["--no-deps"]);
    let package = |package: &serde_json::Value| {
        let used = list(package, "dependencies").iter();
        let used = used.filter(|used| word(used, "kind") != "dev");
        (short(word(package, "name")), used.map(|used| word(used, "name").to_owned()).collect())
    };
    list(&metadata, "packages").iter().map(package).collect()
}

fn short(name: &str) -> String {
    name.strip_prefix("subak-").unwrap_or(name).to_owned()
}

#[test]
fn crates_depend_on_each_other_in_one_direction_only() {
    let rules: BTreeMap<_, _> = MAY_USE.into_iter().collect();
    for (name, used) in dependencies() {
        let allowed = rules.get(&*name).unwrap_or_else(|| {
            panic!(
                "crate {name} has no rule: say in MAY_USE which crates it may use, and why there"
            )
        });
        for used in used.iter().filter_map(|used| used.strip_prefix("subak-")) {
            assert!(
                allowed.contains(&used),
                "{name} uses {used}. It may use {allowed:?}: is what it needs in the wrong place?"
            );
        }
    }
}

#[test]
fn the_rules_themselves_have_no_circle() {
    let rules: BTreeMap<_, _> = MAY_USE.into_iter().collect();
    let mut settled: BTreeSet<&str> = BTreeSet::new();
    while settled.len() < rules.len() {
        let next = rules
            .iter()
            .find(|(name, used)| {
                !settled.contains(*name) && used.iter().all(|used| settled.contains(used))
            })
            .map(|(name, _)| *name);
        settled.insert(next.expect("a crate that uses settled ones alone"));
    }
}

#[test]
fn algorithms_use_nothing_but_their_base() {
    let all = dependencies();
    assert_eq!(all["base"], BTreeSet::new());
    assert_eq!(all["balance"], BTreeSet::from(["subak-base".to_owned()]));
}

#[test]
fn pure_crates_see_no_socket_no_clock_and_no_system_however_deep() {
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let metadata = metadata(&["--filter-platform", &platform]);
    let names: BTreeMap<_, _> = list(&metadata, "packages")
        .iter()
        .map(|package| (word(package, "id"), word(package, "name")))
        .collect();
    let edges: BTreeMap<_, Vec<_>> = list(&metadata["resolve"], "nodes")
        .iter()
        .map(|node| {
            let used = list(node, "deps").iter().filter(|used| {
                // A dependency of tests alone has no other kind.
                list(used, "dep_kinds").iter().any(|kind| kind["kind"].is_null())
            });
            (word(node, "id"), used.map(|used| word(used, "pkg")).collect())
        })
        .collect();
    for pure in PURE {
        let full = format!("subak-{pure}");
        let start = names.iter().find(|(_, name)| **name == full).expect("a crate").0;
        let (mut found, mut next) = (BTreeSet::new(), vec![*start]);
        while let Some(id) = next.pop() {
            if found.insert(id) {
                next.extend(&edges[id]);
            }
        }
        let impure: Vec<_> =
            found.into_iter().map(|id| names[id]).filter(|name| IMPURE.contains(name)).collect();
        assert!(
            impure.is_empty(),
            "{pure} depends on {impure:?}, directly or not; what needs that belongs to net or lab"
        );
    }
}

/// All Rust files of the workspace's crates, by their path below `crates/`.
fn sources() -> BTreeMap<String, String> {
    let crates = root().join("crates");
    let (mut files, mut next) = (BTreeMap::new(), vec![crates.clone()]);
    while let Some(directory) = next.pop() {
        for entry in std::fs::read_dir(directory).expect("a directory") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                next.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(&crates).expect("below").display().to_string();
                files.insert(name, std::fs::read_to_string(&path).expect("a file"));
            }
        }
    }
    assert!(files.len() > 50, "{}", files.len());
    files
}

/// The lines of a file that are code: comments, and the tests at its end, left out.
fn code(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let lines = text.lines().enumerate().map(|(index, line)| (index + 1, line.trim()));
    lines
        .take_while(|(_, line)| *line != "#[cfg(test)]")
        .filter(|(_, line)| !line.starts_with("//"))
}

#[test]
fn unsafe_is_used_where_it_is_needed_and_nowhere_else() {
    for (name, text) in sources().iter().filter(|(name, _)| !name.ends_with("architecture.rs")) {
        let allows = text.contains("allow(unsafe_code");
        let listed = UNSAFE.contains(&name.as_str());
        assert!(!allows || listed, "{name} allows unsafe: does it belong to net or lab?");
        assert!(allows || !listed, "{name} is listed in UNSAFE and does not need it any more");
        for (number, _) in text.lines().enumerate().filter(|(_, line)| is_unsafe_block(line)) {
            let before: Vec<_> = text.lines().take(number + 1).collect();
            let near = &before[before.len().saturating_sub(6)..];
            let says_why = near.iter().any(|line| line.contains("// SAFETY:"));
            assert!(says_why, "{name}:{}: an unsafe block without // SAFETY:", number + 1);
        }
    }
}

fn is_unsafe_block(line: &str) -> bool {
    let code = line.split("//").next().unwrap_or_default();
    code.contains("unsafe {") || code.contains("unsafe impl")
}

#[test]
fn crates_without_unsafe_forbid_it_as_a_whole() {
    let files = sources();
    for (name, _) in MAY_USE {
        let uses = UNSAFE.iter().any(|file| file.starts_with(&format!("{name}/src/")));
        let roots = ["lib.rs", "main.rs"].map(|file| format!("{name}/src/{file}"));
        for root in roots.iter().filter_map(|root| files.get(root)) {
            let forbids = root.contains("#![forbid(unsafe_code)]");
            assert_eq!(forbids, !uses, "{name}: #![forbid(unsafe_code)] exactly without unsafe");
        }
    }
}

#[test]
fn code_that_reads_from_the_network_does_not_panic_by_convenience() {
    let convenient = [".unwrap()", ".expect(", "panic!(", "unreachable!()"];
    for (name, text) in sources() {
        let reads =
            ["admin/src/", "agent/src/", "console/src/", "http/src/", "message/src/", "probe/src/"]
                .iter()
                .any(|prefix| name.starts_with(prefix));
        // Tests in a file of their own, and lists of examples for tests.
        if !reads || name.ends_with("/tests.rs") || name == "message/src/ambiguous.rs" {
            continue;
        }
        for (number, line) in code(&text) {
            // Without a message it is a method of another type.
            let line = line.replace(".expect()", "");
            let found = convenient.iter().find(|word| line.contains(**word));
            assert_eq!(found, None, "{name}:{number}: {line}\nsay what happens instead");
        }
    }
}

/// Whether a line begins a block of documentation that is a test.
fn begins_an_example(line: &str) -> bool {
    let shown = ["text", "json", "toml", "console"];
    let documented = line.trim().strip_prefix("//!").or(line.trim().strip_prefix("///"));
    let kind = documented.and_then(|text| text.trim().strip_prefix("```"));
    kind.is_some_and(|kind| !shown.contains(&kind))
}

#[test]
fn examples_in_the_documentation_of_code_are_run() {
    let files = sources();
    for (name, _) in MAY_USE {
        let folder = name.replace('-', "_");
        let manifest = root().join("crates").join(&folder).join("Cargo.toml");
        let manifest = std::fs::read_to_string(manifest).expect("a manifest");
        // Looking for examples takes as long as compiling, so it is done where there are some.
        if !manifest.contains("doctest = false") {
            continue;
        }
        let sources = format!("{folder}/src/");
        for (file, text) in files.iter().filter(|(file, _)| file.starts_with(&sources)) {
            let mut is_inside = false;
            for line in text.lines().filter(|line| line.contains("```")) {
                let found = !is_inside && begins_an_example(line);
                assert!(!found, "{file} has an example: take doctest = false out of {folder}");
                is_inside = !is_inside;
            }
        }
    }
}

#[test]
fn nothing_is_left_for_later_in_the_code() {
    // Put together, so that this line is none of them.
    let marks =
        [["TO", "DO"], ["FIX", "ME"], ["XX", "X:"], ["todo", "!("], ["unimplemented", "!("]];
    for (name, text) in sources().iter().filter(|(name, _)| !name.ends_with("architecture.rs")) {
        for mark in marks.map(|halves| halves.concat()) {
            assert!(!text.contains(&mark), "{name} contains {mark}: do it, or open an issue");
        }
    }
}

#[test]
fn files_can_be_read_in_one_sitting() {
    for (name, text) in sources() {
        let lines = text.lines().count();
        assert!(lines <= LONG, "{name} has {lines} lines: what two things is it?");
    }
}

#[test]
fn every_test_that_the_specification_names_exists() {
    let root = root();
    let text = std::fs::read_to_string(root.join("SPECIFICATION.md")).expect("the specification");
    let mut count = 0;
    for named in text.split('`').filter(|part| part.starts_with("crates/") && part.contains("::")) {
        let (file, test) = named.split_once("::").expect("a file and a test");
        let source = std::fs::read_to_string(root.join(file)).unwrap_or_default();
        let found = source.contains(&format!("fn {test}("));
        assert!(found, "SPECIFICATION.md names {named}, which is not there");
        count += 1;
    }
    assert!(count >= 30, "only {count} tests are named");
}
