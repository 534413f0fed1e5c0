//! Logs that Subak, nginx and HAProxy really wrote, replayed: the endpoints' work is known, so the
//! right answer is.

use std::fs::File;
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;

use serde_json::Value;

use crate::lab;
use crate::load::Endpoints;
use crate::support::{Nginx, Setup, fresh_address, fresh_directory, wait_until};

/// In nginx's words, what a replay needs.
const NGINX: &str = r#"$remote_addr [$msec] "$request" $status $request_time $upstream_addr"#;

/// Of some 2,300 that are asked for. A replay wants 2,000.
const ANSWERS: u64 = 2_100;

/// Two endpoints of 10 ms in the mean, and one of 24 that four fifths of the time has all its hands
/// full when it gets a third of the requests.
struct Servers {
    _quick: [Endpoints; 2],
    _slow: Endpoints,
    addresses: [String; 3],
}

impl Servers {
    fn start() -> Servers {
        let start = |service| {
            let address = fresh_address();
            let four = ["--service", service, "--concurrency", "4"];
            (Endpoints::at(&address, &four), address)
        };
        let (one, first) = start("exponential:10ms");
        let (other, second) = start("exponential:10ms");
        let (slow, third) = start("exponential:24ms");
        Servers { _quick: [one, other], _slow: slow, addresses: [first, second, third] }
    }
}

/// Asks at random for a little longer than a replay needs. False, loudly, where the machine was too
/// busy for as many answers as that takes.
fn load(address: &str) -> bool {
    let url = format!("http://{address}/");
    let rate = ["--rate", "420/s", "--poisson", "--for", "5500ms", "--max-connections", "100"];
    let output = lab(&[&["load", &*url, "--json"], &rate[..]].concat());
    assert!(output.status.success(), "{output:?}");
    let told: Value = serde_json::from_slice(&output.stdout).expect("JSON");
    let answered = told["answered"].as_u64().expect("a count");
    if answered < ANSWERS {
        eprintln!("SKIPPED: a log of {answered} answers, where others keep the machine busy");
    }
    answered >= ANSWERS
}

/// What a replay finds in the log: an error where it is not the right answer. A machine that has other
/// things to do adds to service times what no model has: then the log cannot tell, which is right too.
#[track_caller]
fn finds(log: &Path, more: &[&str], format: &str) -> Result<(), String> {
    let log = log.to_str().expect("a path in UTF-8");
    let output = format!("{log}.finding");
    let replay = ["replay", log, "--output", &output, "--json"];
    let told = lab(&[&replay[..], more].concat());
    assert!(told.status.success(), "{told:?}");
    let finding: Value = serde_json::from_slice(&told.stdout).expect("JSON");
    let answer = finding["answer"].as_str().expect("an answer");
    let setup = finding["report"]["setup"].to_string();
    assert!(setup.contains(&format!("\"{format}\"")), "{format}: {setup}");
    if finding["advice"] == "cannot_tell" {
        let is_noise = answer.contains("does not come out") || answer.contains("hardly ever below");
        assert!(is_noise, "{format}: {answer}");
        eprintln!("SKIPPED: the advice from a log ({format}), made while others worked: {answer}");
        return Ok(());
    }
    let best = finding["recommended"].as_str().unwrap_or_default();
    let sees_load = ["least_connections", "power_of_two", "peak_ewma", "least_response_time"];
    let is_right = finding["made_by"] == "round_robin"
        && finding["advice"] == "change"
        && sees_load.contains(&best);
    let wrong = || format!("{format}: made by {}: {answer}", finding["made_by"]);
    is_right.then_some(()).ok_or_else(wrong)
}

/// Once right out of three is enough: what others do to the machine meanwhile is in the log too.
fn tried(one: fn() -> Result<(), String>) {
    let wrong: Vec<String> = (0..3).map_while(|_| one().err()).collect();
    assert!(wrong.len() < 3, "{wrong:#?}");
}

fn of_subak() -> Result<(), String> {
    let servers = Servers::start();
    let directory = fresh_directory();
    let log = directory.join("subak.json");
    let path = log.display();
    let top = format!("access_log = {{ path = \"{path}\", format = \"json\" }}");
    let mut subak = Setup::before_addresses(servers.addresses.clone()).top(&top).start();
    let is_enough = load(subak.address());
    // What it holds is written at its end.
    subak.signal("TERM");
    subak.wait_for_exit();
    let found = if is_enough { finds(&log, &[], "json") } else { Ok(()) };
    let _ = std::fs::remove_dir_all(directory);
    found
}

fn of_nginx() -> Result<(), String> {
    let servers = Servers::start();
    let (directory, address) = (fresh_directory(), fresh_address());
    let log = directory.join("nginx.log");
    let list: String = servers.addresses.iter().map(|one| format!("server {one};\n")).collect();
    let text = format!(
        "log_format replayed '{NGINX}';\nupstream app {{\n{list}keepalive 64;\n}}\n\
         server {{\nlisten {address};\naccess_log {} replayed;\n\
         location / {{ proxy_pass http://app; proxy_http_version 1.1; \
         proxy_set_header Connection \"\"; }}\n}}\n",
        log.display()
    );
    let Some(nginx) = Nginx::start(&directory, &text, &address) else { return Ok(()) };
    let is_enough = load(&address);
    drop(nginx);
    let found = if is_enough { finds(&log, &["--format", NGINX], "as given") } else { Ok(()) };
    let _ = std::fs::remove_dir_all(directory);
    found
}

/// Ends with this.
struct Haproxy(Child);

impl Drop for Haproxy {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn of_haproxy() -> Result<(), String> {
    let servers = Servers::start();
    let (directory, address) = (fresh_directory(), fresh_address());
    let log = directory.join("haproxy.log");
    let list: String = (1..)
        .zip(&servers.addresses)
        .map(|(number, address)| format!("server s{number} {address}\n"))
        .collect();
    let text = format!(
        "global\nlog stdout format raw local0\nnbthread 1\ndefaults\nmode http\nlog global\n\
         option httplog\ntimeout connect 5s\ntimeout client 60s\ntimeout server 60s\n\
         frontend web\nbind {address}\ndefault_backend app\n\
         backend app\nbalance roundrobin\n{list}"
    );
    let file = directory.join("haproxy.cfg");
    std::fs::write(&file, text).expect("write");
    let started = Command::new("haproxy")
        .arg("-db")
        .arg("-f")
        .arg(&file)
        .stdin(Stdio::null())
        .stdout(File::create(&log).expect("a file"))
        .stderr(Stdio::null())
        .spawn();
    let haproxy = match started {
        Ok(child) => Haproxy(child),
        Err(error) => {
            eprintln!("SKIPPED: a log of HAProxy: {error}");
            return Ok(());
        }
    };
    wait_until("HAProxy listens", || TcpStream::connect(&*address).is_ok());
    let is_enough = load(&address);
    drop(haproxy);
    let found = if is_enough { finds(&log, &[], "haproxy") } else { Ok(()) };
    let _ = std::fs::remove_dir_all(directory);
    found
}

#[test]
fn logs_of_three_balancers_are_read_and_each_shows_the_slow_endpoint() {
    thread::scope(|scope| {
        for one in [of_subak, of_nginx, of_haproxy] {
            scope.spawn(move || tried(one));
        }
    });
}
