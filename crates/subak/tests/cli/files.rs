//! `subak check`, `fmt` and `schema` as a shell sees them: output, exit status, and what becomes of
//! files.

use std::io::Write;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};

const GOOD: &str = "[listener.web]\nbind = \"127.0.0.1:8080\"\npool = \"app\"\n\n[pool.app]\n\
                    endpoints = [\"127.0.0.1:9001\"]\n";
/// Three mistakes on three lines.
const BAD: &str = "wrokers = 2\n[listener.web]\nbind = \"127.0.0.1\"\npool = \"apq\"\n\n[pool.app]\n\
                   endpoints = [\"127.0.0.1:9001\"]\n";
const UGLY: &str = "[listener.web] # in front\nbind=\"127.0.0.1:8080\"\n   pool   = 'app'\n[pool.app]\n\
                    endpoints=[\"127.0.0.1:9001\",]\n";

/// What a run of the program left.
struct Ran {
    code: Option<i32>,
    out: String,
    err: String,
}

fn subak(arguments: &[&str], input: &str) -> Ran {
    let mut child = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(arguments)
        .env_remove("NO_COLOR")
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("subak");
    // Who reads nothing may have ended already.
    let _ = child.stdin.take().expect("stdin").write_all(input.as_bytes());
    let output = child.wait_with_output().expect("subak");
    Ran {
        code: output.status.code(),
        out: String::from_utf8(output.stdout).expect("text"),
        err: String::from_utf8(output.stderr).expect("text"),
    }
}

/// A directory that is removed with its files.
struct Directory(PathBuf);

impl Directory {
    fn new() -> Directory {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("subak-cli-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).expect("a directory");
        Directory(path)
    }

    fn file(&self, name: &str, text: &str) -> String {
        let path = self.0.join(name);
        std::fs::write(&path, text).expect("write");
        path.to_str().expect("a path in UTF-8").to_owned()
    }

    fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.0).expect("a directory");
        let name = |entry: std::io::Result<std::fs::DirEntry>| entry.expect("entry").file_name();
        let mut names: Vec<_> =
            entries.map(|entry| name(entry).to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

fn read(path: &str) -> String {
    std::fs::read_to_string(path).expect("a file")
}

// check ------------------------------------------------------------------------

#[test]
fn check_says_ok_and_ends_with_0() {
    let directory = Directory::new();
    let good = directory.file("good.toml", GOOD);
    let ran = subak(&["check", &good], "");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    assert_eq!(ran.out, format!("{good}: ok (1 listeners, 1 pools)\n"));
}

#[test]
fn check_shows_every_error_of_every_file_at_once_and_ends_with_2() {
    let directory = Directory::new();
    let (good, bad) = (directory.file("good.toml", GOOD), directory.file("bad.toml", BAD));
    let ran = subak(&["check", &bad, &good], "");
    assert_eq!(ran.code, Some(2));
    for place in [":1:1", ":3:8", ":4:8"] {
        assert!(ran.err.contains(&format!("{bad}{place}")), "{place} is not in\n{}", ran.err);
    }
    assert!(ran.err.matches("did you mean").count() >= 2, "{}", ran.err);
    assert!(ran.out.contains(": ok"), "the other file is checked too: {}", ran.out);
    assert!(!ran.err.contains('\x1b'), "no colours without a terminal");
    assert!(subak(&["check", "--color", "always", &bad], "").err.contains('\x1b'));
}

#[test]
fn check_reads_standard_input() {
    assert_eq!(subak(&["check", "-"], GOOD).code, Some(0));
    assert_eq!(subak(&["check", "-"], BAD).code, Some(2));
}

#[test]
fn check_prints_json_with_places_that_tools_can_use() {
    let directory = Directory::new();
    let (good, bad) = (directory.file("good.toml", GOOD), directory.file("bad.toml", BAD));
    let ran = subak(&["check", "--json", &good], "");
    assert_eq!((ran.code, ran.out.trim()), (Some(0), "[]"));
    let ran = subak(&["check", "--json", &bad], "");
    assert_eq!(ran.code, Some(2));
    let found: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    let found = found.as_array().expect("an array");
    assert!(found.len() >= 3, "{found:?}");
    let text = ran.out.replace(char::is_whitespace, "");
    assert!(text.contains("\"line\":1") && text.contains("\"severity\":\"error\""), "{}", ran.out);
}

#[test]
fn a_file_that_is_not_there_is_named_and_ends_with_1() {
    for command in ["check", "fmt"] {
        let ran = subak(&[command, "/nonexistent/x.toml"], "");
        assert_eq!(ran.code, Some(1), "{command}: {}", ran.err);
        assert!(ran.err.contains("cannot read /nonexistent/x.toml"), "{}", ran.err);
    }
}

// fmt --------------------------------------------------------------------------

#[test]
fn fmt_formats_in_place_and_a_second_time_changes_nothing() {
    let directory = Directory::new();
    let file = directory.file("a.toml", UGLY);
    let ran = subak(&["fmt", &file], "");
    assert_eq!((ran.code, ran.out.as_str(), ran.err.as_str()), (Some(0), "", ""));
    let once = read(&file);
    assert_ne!(once, UGLY);
    assert!(once.contains("# in front"), "{once}");
    let written = std::fs::metadata(&file).expect("it").ino();
    assert_eq!(subak(&["fmt", &file], "").code, Some(0));
    assert_eq!(read(&file), once);
    assert_eq!(std::fs::metadata(&file).expect("it").ino(), written, "it is not even written");
    assert_eq!(subak(&["check", &file], "").code, Some(0));
    assert_eq!(directory.names(), ["a.toml"]);
}

#[test]
fn fmt_check_names_what_would_change_and_changes_nothing() {
    let directory = Directory::new();
    let (ugly, other) = (directory.file("ugly.toml", UGLY), directory.file("other.toml", UGLY));
    assert_eq!(subak(&["fmt", &other], "").code, Some(0));
    let ran = subak(&["fmt", "--check", &ugly, &other], "");
    assert_eq!((ran.code, ran.out), (Some(1), format!("{ugly}\n")));
    assert_eq!(read(&ugly), UGLY);
    assert_eq!(subak(&["fmt", "--check", "-"], UGLY).code, Some(1));
}

#[test]
fn fmt_reads_standard_input_and_writes_standard_output() {
    let directory = Directory::new();
    let file = directory.file("a.toml", UGLY);
    subak(&["fmt", &file], "");
    let ran = subak(&["fmt", "-"], UGLY);
    assert_eq!((ran.code, ran.out), (Some(0), read(&file)));
}

#[test]
fn fmt_leaves_what_is_not_toml_alone_and_ends_with_2() {
    let directory = Directory::new();
    let text = "[listener\nbind=1\n";
    let file = directory.file("a.toml", text);
    let ran = subak(&["fmt", &file], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("nothing was changed") && ran.err.contains(":1:"), "{}", ran.err);
    assert_eq!(read(&file), text);
}

#[test]
fn fmt_keeps_permissions_owner_and_symbolic_links() {
    let directory = Directory::new();
    let file = directory.file("real.toml", UGLY);
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o640)).expect("chmod");
    let is_root = std::fs::metadata("/proc/self").expect("proc").uid() == 0;
    if is_root {
        std::os::unix::fs::chown(&file, Some(65534), Some(65533)).expect("chown");
    } else {
        eprintln!("SKIPPED: whether fmt keeps a file's owner (needs root)");
    }
    let before = std::fs::metadata(&file).expect("it");
    let link = directory.0.join("link.toml");
    std::os::unix::fs::symlink(&file, &link).expect("symlink");
    assert_eq!(subak(&["fmt", link.to_str().expect("UTF-8")], "").code, Some(0));
    assert_ne!(read(&file), UGLY);
    assert!(link.symlink_metadata().expect("it").is_symlink());
    let after = std::fs::metadata(&file).expect("it");
    let marks = |data: &std::fs::Metadata| (data.mode(), data.uid(), data.gid());
    assert_eq!(marks(&after), marks(&before));
    assert_eq!(directory.names(), ["link.toml", "real.toml"]);
}

#[test]
fn fmt_on_a_full_disk_leaves_the_file_as_it_was() {
    // A file system of a few pages, in a mount namespace of its own.
    let script = "set -e; mount -t tmpfs -o size=16k none \"$1\"; printf '%s' \"$2\" > \"$1/a.toml\"; \
                  head -c 100000 /dev/zero > \"$1/fill\" 2>/dev/null || true; \
                  set +e; \"$0\" fmt \"$1/a.toml\"; echo \"status $?\"; cat \"$1/a.toml\"; ls \"$1\"";
    let directory = Directory::new();
    let run = Command::new("unshare")
        .args(["--mount", "sh", "-c", script, env!("CARGO_BIN_EXE_subak")])
        .arg(&directory.0)
        .arg(UGLY)
        .output()
        .expect("unshare");
    let (out, err) = (String::from_utf8_lossy(&run.stdout), String::from_utf8_lossy(&run.stderr));
    if !out.contains("status") {
        eprintln!("SKIPPED: a full disk needs `unshare --mount` (root): {err}");
        return;
    }
    assert!(err.contains("cannot write") && err.contains("No space left"), "{err}");
    assert_eq!(out, format!("status 1\n{UGLY}a.toml\nfill\n"));
}

// Output -----------------------------------------------------------------------

#[test]
fn the_schema_is_json_and_says_what_it_is() {
    let ran = subak(&["schema"], "");
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    let schema: serde_json::Value = serde_json::from_str(&ran.out).expect("JSON");
    assert!(schema["$schema"].as_str().expect("a dialect").contains("json-schema.org"));
    assert!(schema["properties"]["listener"].is_object());
}

#[test]
fn output_that_cannot_be_written_is_an_error_and_one_nobody_reads_is_none() {
    let to = |path: &Path, arguments: &[&str]| {
        let file = std::fs::OpenOptions::new().write(true).open(path).expect("open");
        let mut child = Command::new(env!("CARGO_BIN_EXE_subak"))
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(file)
            .stderr(Stdio::piped())
            .spawn()
            .expect("subak");
        let _ = child.stdin.take().expect("stdin").write_all(UGLY.as_bytes());
        let output = child.wait_with_output().expect("subak");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned())
    };
    for arguments in [&["schema"][..], &["fmt", "-"], &["check", "-"], &["fmt", "--check", "-"]] {
        let (code, said) = to(Path::new("/dev/full"), arguments);
        assert_eq!(code, Some(1), "{arguments:?}: {said}");
        assert!(said.contains("No space left"), "{arguments:?}: {said}");
        assert!(!said.contains("panicked"), "{arguments:?}: {said}");
    }
    let piped = Command::new("sh")
        .args(["-c", "\"$0\" schema | head -c 1", env!("CARGO_BIN_EXE_subak")])
        .output()
        .expect("sh");
    assert_eq!((&*piped.stdout, &*piped.stderr), (&b"{"[..], &b""[..]));
}

#[test]
fn help_has_examples_and_a_wrong_command_line_ends_with_2() {
    for command in [
        &["--help"][..],
        &["serve", "--help"],
        &["check", "--help"],
        &["fmt", "--help"],
        &["demo", "--help"],
    ] {
        let ran = subak(command, "");
        assert_eq!(ran.code, Some(0));
        assert!(ran.out.contains("Examples:\n"), "{command:?}: {}", ran.out);
    }
    assert_eq!(subak(&["-V"], "").out, format!("subak {}\n", env!("CARGO_PKG_VERSION")));
    let ran = subak(&["chekc"], "");
    assert_eq!(ran.code, Some(2));
    assert!(ran.err.contains("check"), "{}", ran.err);
    assert_eq!(
        subak(&["serve", "--log", "no=such=thing", "--config", "/dev/null"], "").code,
        Some(2)
    );
}
