//! Help, manual pages and completions come from one declaration; exit statuses are what they say.

use std::io::Write;
use std::process::{Command, Output, Stdio};

use crate::support::{Subak, fresh_address, fresh_directory};

fn subak(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("subak")
}

#[track_caller]
fn printed(arguments: &[&str]) -> String {
    let output = subak(arguments);
    assert!(output.status.success(), "{arguments:?}: {output:?}");
    String::from_utf8(output.stdout).expect("text")
}

/// What `subak --help` lists.
fn commands() -> Vec<String> {
    let help = printed(&["--help"]);
    let listed = help.split("Commands:\n").nth(1).expect("commands");
    let listed = listed.split("\n\n").next().expect("lines").lines();
    // Lines that go on are indented further.
    let names = listed.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.map(|line| line.split_whitespace().next().expect("a name").to_owned());
    let names: Vec<_> = names.filter(|name| name != "help").collect();
    assert!(names.len() > 8, "{names:?}");
    names
}

#[test]
fn every_command_has_examples_and_says_what_its_exit_status_means() {
    for name in commands() {
        let help = printed(&[&name, "--help"]);
        for status in ["\nExit status:\n  0  ", "\n  1  ", "\n  2  "] {
            assert!(help.contains(status), "{name}: {status:?} is not in\n{help}");
        }
    }
}

/// Runs it with what it reads; `None` where it is not installed.
fn fed(command: &[&str], input: &str) -> Option<Output> {
    let mut child = Command::new(command[0])
        .args(&command[1..])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .inspect_err(|_| eprintln!("SKIPPED: {} is not installed", command[0]))
        .ok()?;
    let mut stdin = child.stdin.take().expect("stdin");
    stdin.write_all(input.as_bytes()).expect("write to it");
    drop(stdin);
    Some(child.wait_with_output().expect("wait"))
}

#[test]
fn every_command_and_the_configuration_have_a_manual_page_without_a_fault() {
    let directory = fresh_directory();
    printed(&["man", "--directory", directory.to_str().expect("a path")]);
    let mut pages = vec!["subak.1".to_owned(), "subak.toml.5".to_owned()];
    pages.extend(commands().iter().map(|name| format!("subak-{name}.1")));
    for page in pages {
        let text = std::fs::read_to_string(directory.join(&page)).expect("a page");
        let name = page.rsplit_once('.').expect("a section").0;
        let asked = match name.strip_prefix("subak-") {
            Some(command) => printed(&["man", command]),
            None if name == "subak" => printed(&["man"]),
            None => printed(&["man", name]),
        };
        assert_eq!(asked, text, "{page}");
        assert!(text.contains(".SH NAME\n"), "{page}");
        if let Some(checked) = fed(&["groff", "-k", "-man", "-ww", "-z", "-Tutf8"], &text) {
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success() && said.is_empty(), "{page}: {said}");
        }
    }
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn what_help_says_is_in_the_manual_page() {
    let page = printed(&["man", "serve"]);
    for section in ["SIGNALS", "EXAMPLES", "\"EXIT STATUS\""] {
        assert!(page.contains(&format!(".SH {section}\n")), "{section}\n{page}");
    }
    assert!(page.contains("shutdown_timeout"), "{page}");
}

#[test]
fn shells_take_their_completions() {
    for (shell, check) in [("bash", "bash -n"), ("zsh", "zsh -n"), ("fish", "fish --no-execute")] {
        let text = printed(&["completions", shell]);
        for command in commands() {
            assert!(text.contains(&command), "{shell} {command}");
        }
        let check: Vec<_> = check.split(' ').collect();
        if let Some(checked) = fed(&check, &text) {
            let said = String::from_utf8_lossy(&checked.stderr);
            assert!(checked.status.success(), "{shell}: {said}");
        }
    }
    // Asked as the shell asks it.
    let ask = "source /dev/stdin <<< \"$(cat)\"; COMP_WORDS=(subak ser); COMP_CWORD=1; \
               _subak subak ser subak; echo \"${COMPREPLY[*]}\"";
    let answer = fed(&["bash", "-c", ask], &printed(&["completions", "bash"])).expect("bash");
    assert_eq!(String::from_utf8_lossy(&answer.stdout).trim(), "serve", "{answer:?}");
}

#[test]
fn the_version_says_what_this_build_can_do() {
    let number = env!("CARGO_PKG_VERSION");
    assert_eq!(printed(&["-V"]), format!("subak {number}\n"));
    let long = printed(&["--version"]);
    assert_eq!(printed(&["version"]), long);
    for line in [
        "commit: ",
        "build: ",
        "clients: HTTP/1.1, HTTP/2, TLS 1.2 and 1.3, client certificates, gRPC, WebSocket, PROXY",
        "endpoints: HTTP/1.1, HTTP/2, TLS",
        "TLS: rustls, aws-lc, ACME",
        "service: ",
        "algorithms: round_robin, ",
    ] {
        assert!(long.contains(&format!("\n{line}")), "{long}");
    }
    let json: serde_json::Value =
        serde_json::from_str(&printed(&["version", "--json"])).expect("JSON");
    assert_eq!(json["version"], number);
    assert!(
        json["features"]["clients"]
            .as_array()
            .is_some_and(|all| all.iter().any(|one| one == "HTTP/2"))
    );
    assert!(json["target"].as_str().is_some_and(|target| target.contains("linux")), "{json}");
}

/// A command line, and how it ends.
type Case<'a> = (&'a [&'a str], i32);

#[test]
fn exit_statuses_are_those_that_are_documented() {
    let directory = fresh_directory();
    let write = |name: &str, text: &str| {
        let path = directory.join(name);
        std::fs::write(&path, text).expect("write");
        path.to_str().expect("a path").to_owned()
    };
    let right = "[listener.web]\nbind = \"127.0.0.1:1\"\nroute = [{ respond = 200 }]\n";
    let good = write("good.toml", right);
    let unformatted = write("unformatted.toml", &right.replace(" = ", "="));
    let wrong = write("wrong.toml", "wrokers = 1\n");
    let no_toml = write("no.toml", "= = =\n");
    let holder = std::net::TcpListener::bind(fresh_address()).expect("a port");
    let at = holder.local_addr().expect("its address");
    let taken = write("taken.toml", &right.replace("127.0.0.1:1", &at.to_string()));
    let token = write("token", "0123456789abcdef0123456789abcdef\n");
    let (at, none) = (at.to_string(), "/nonexistent/file");
    let cases: &[Case<'_>] = &[
        (&["--help"], 0),
        (&[], 2),
        (&["nonsense"], 2),
        (&["serve", "--config", none], 1),
        (&["serve", "--config", &taken], 1),
        (&["serve", "--config", &wrong], 2),
        (&["serve", "--log", "a=b=c", "--config", &good], 2),
        (&["check", &good], 0),
        (&["check", none], 1),
        (&["check", &wrong], 2),
        (&["fmt", "--check", &good], 0),
        (&["fmt", "--check", &unformatted], 1),
        (&["fmt", none], 1),
        (&["fmt", &no_toml], 2),
        (&["demo", "--seconds", "1", "--port", "0"], 0),
        (&["demo", "--algorithm", "nonsense"], 2),
        (&["agent", "--once", "--interval", "100ms"], 0),
        (&["agent", "--listen", &at, "--token-file", &token], 1),
        (&["agent", "--once", "--interval", "1ms"], 2),
        (&["schema"], 0),
        (&["completions", "bash"], 0),
        (&["completions", "nonsense"], 2),
        (&["man"], 0),
        (&["man", "nonsense"], 2),
        (&["man", "--directory", none], 1),
        (&["version", "--json"], 0),
        (&["version", "nonsense"], 2),
    ];
    for (arguments, code) in cases {
        let output = subak(arguments);
        assert_eq!(output.status.code(), Some(*code), "{arguments:?}: {output:?}");
        let said = output.stdout.len() + output.stderr.len();
        assert!(said > 0 || arguments.first() == Some(&"fmt"), "{arguments:?} says nothing");
    }
    // Those that stop by a signal.
    let at = fresh_address();
    let mut serving = Subak::start_at(&right.replace("127.0.0.1:1", &at), &at);
    serving.signal("TERM");
    assert_eq!(serving.wait_for_exit().code(), Some(0));
    let _ = std::fs::remove_dir_all(directory);
}
