//! Words of other programs, and of other places of this one: the error names the command that does it.

use std::process::{Command, Stdio};

use crate::support::{Client, Endpoint, Setup, fresh_address, fresh_directory, wait_until};

/// What it says on standard error; it ends by status 2.
#[track_caller]
fn refused(arguments: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(arguments)
        .stdin(Stdio::null())
        .output()
        .expect("subak");
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
    assert_eq!(output.stdout, b"", "{arguments:?}");
    said
}

#[test]
fn words_of_other_programs_lead_to_the_command_that_does_it() {
    for (asked, expected) in [
        ("-t", "    subak check /etc/subak/subak.toml\n"),
        ("-t -c /tmp/x.toml", "    subak check /tmp/x.toml\n"),
        ("-c /tmp/x.toml -t", "    subak check /tmp/x.toml\n"),
        ("configtest x.toml", "    subak check x.toml\n"),
        ("-c /tmp/x.toml", "    subak serve /tmp/x.toml\n"),
        ("-f x.toml", "    subak serve x.toml\n"),
        ("start", "    subak serve /etc/subak/subak.toml\n"),
        ("-s reload", "    subak ctl reload\n"),
        ("-s quit", "    systemctl stop subak\n"),
        ("reload", "    subak ctl reload\n"),
        ("reload --socket /tmp/s", "    subak ctl reload --socket /tmp/s\n"),
        ("status", "    subak ctl status\n"),
        ("status --json", "    subak ctl status --json\n"),
        ("stop", "    kill -TERM $(pidof subak)"),
        ("restart", "    systemctl restart subak\n"),
        ("reopen", "    kill -USR1 $(pidof subak)\n"),
        ("drain app 10.0.0.4:8080 --wait", "    subak ctl drain app 10.0.0.4:8080 --wait\n"),
        ("undrain app e", "    subak ctl ready app e\n"),
        ("ctl undrain app e", "    subak ctl ready app e\n"),
        ("ctl --socket /s enable app e", "    subak ctl --socket /s ready app e\n"),
        ("ctl disable e", "    subak ctl maintenance e\n"),
        ("ctl rollback", "    subak ctl config rollback\n"),
        ("ctl stop", "    systemctl stop subak\n"),
        ("ctl delete app e", "    subak ctl remove app e\n"),
    ] {
        let said = refused(&asked.split(' ').collect::<Vec<_>>());
        assert!(said.contains(expected), "{asked}: {expected:?} is not in\n{said}");
        assert!(said.contains(&format!("there is no `subak {asked}`")), "{said}");
    }
    let said = refused(&["drain", "app", "a b"]);
    assert!(said.contains("    subak ctl drain app 'a b'\n"), "{said}");
}

#[test]
fn a_suggestion_is_never_the_opposite_nor_another_word() {
    for asked in ["undrian", "undrains", "stopp", "nonready"] {
        for words in [vec![asked], vec!["ctl", asked]] {
            let said = refused(&words);
            assert!(!said.contains("similar"), "{words:?}: {said}");
        }
    }
    // A slip is still told.
    for (words, near) in [(vec!["serv"], "'serve'"), (vec!["ctl", "drian"], "'drain'")] {
        let said = refused(&words);
        assert!(said.contains("similar") && said.contains(near), "{words:?}: {said}");
    }
    let said = refused(&["ctl", "drain", "app", "e", "--no-wait"]);
    assert!(!said.contains("similar"), "{said}");
}

#[test]
fn serve_takes_its_configuration_as_check_does() {
    let endpoint = Endpoint::named("x");
    let (directory, address) = (fresh_directory(), fresh_address());
    let file = directory.join("subak.toml");
    std::fs::write(&file, Setup::before(&[&endpoint]).bind(&address).text()).expect("write");
    let mut serving = Command::new(env!("CARGO_BIN_EXE_subak"))
        .arg("serve")
        .arg(&file)
        .stderr(Stdio::null())
        .spawn()
        .expect("subak");
    wait_until("it serves", || std::net::TcpStream::connect(&address).is_ok());
    assert_eq!(Client::connect(&address).get("/").text(), "x");
    serving.kill().expect("kill");
    serving.wait().expect("wait");
    let path = file.to_str().expect("a path");
    let said = refused(&["serve", path, "--config", path]);
    assert!(said.contains("cannot be used with"), "{said}");
    let _ = std::fs::remove_dir_all(directory);
}
