//! A configuration in several files with values from outside, as the running product reads it.

use std::fs;
use std::process::Command;

use crate::support::{Endpoint, Subak, fresh_address, fresh_directory};

#[test]
fn a_file_that_is_added_adds_its_routes_with_the_next_reload() {
    let (app, other) = (Endpoint::named("app"), Endpoint::named("other"));
    let address = fresh_address();
    let secrets = fresh_directory();
    let token = secrets.join("token");
    fs::write(&token, "first\n").expect("a token");
    let config = format!(
        "workers = 1\ninclude = [\"conf.d/*.toml\"]\n[listener.web]\nbind = \"{address}\"\npool = \"app\"\n\
         [pool.app]\nendpoints = [\"{}\"]\nrequest_headers = {{ set = {{ X-Token = \"${{file:{}}}\" }} }}\n",
        app.address(),
        token.display()
    );
    let subak = Subak::start_at(&config, &address);
    assert_eq!(subak.get("/other"), (200, "app".to_string()));
    assert_eq!(app.request().field("x-token"), Some("first"));

    let directory = subak.directory().join("conf.d");
    fs::create_dir(&directory).expect("a directory");
    let more = format!(
        "[[listener.web.route]]\npath = \"/other\"\npool = \"other\"\n[pool.other]\nendpoints = [\"{}\"]\n",
        other.address()
    );
    fs::write(directory.join("other.toml"), more).expect("a file");
    fs::write(&token, "second\n").expect("a token");
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded");
    assert_eq!(subak.get("/other"), (200, "other".to_string()));
    assert_eq!(subak.get("/"), (200, "app".to_string()));
    assert_eq!(app.requests().last().and_then(|one| one.field("x-token")), Some("second"));

    // What is wrong is shown with its file, and nothing changes.
    fs::write(directory.join("wrong.toml"), "\n[pool.app]\nendpoints = []\n").expect("a file");
    subak.signal("HUP");
    subak.wait_for_log("conf.d/wrong.toml:2:7");
    assert_eq!(subak.get("/other"), (200, "other".to_string()));
    fs::remove_dir_all(secrets).expect("a directory of its own");
}

#[test]
fn check_names_the_file_of_each_finding() {
    let directory = fresh_directory();
    let main = directory.join("subak.toml");
    fs::write(
        &main,
        "include = \"a.toml\"\n[listener.web]\nbind = \"${ADDRESS}\"\npool = \"app\"\n",
    )
    .expect("a file");
    fs::write(directory.join("a.toml"), "[pool.app]\nendpoints = [\"10.0.0.2\"]\n")
        .expect("a file");
    let check = |address: Option<&str>| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_subak"));
        command.args(["check", "--json"]).arg(&main).env_remove("ADDRESS");
        let output = command.envs(address.map(|address| ("ADDRESS", address))).output();
        let output = output.expect("subak runs");
        let found: serde_json::Value = serde_json::from_slice(&output.stdout).expect("JSON");
        let place = |one: &serde_json::Value| {
            let file = one["file"].as_str().and_then(|file| file.rsplit('/').next());
            format!("{}:{}:{}", file.unwrap_or_default(), one["line"], one["column"])
        };
        let places: Vec<String> = found.as_array().into_iter().flatten().map(place).collect();
        (output.status.code(), places.join(" "))
    };
    assert_eq!(check(None), (Some(2), "subak.toml:3:9 a.toml:2:15".to_string()));
    assert_eq!(check(Some("127.0.0.1:80")), (Some(2), "a.toml:2:15".to_string()));
    fs::write(directory.join("a.toml"), "[pool.app]\nendpoints = [\"10.0.0.2:80\"]\n")
        .expect("a file");
    assert_eq!(check(Some("127.0.0.1:80")), (Some(0), String::new()));
    fs::remove_dir_all(directory).expect("a directory of its own");
}
