//! As root to bind, then as somebody else: what is given up, what a reload may still do, and what is
//! said where that cannot be. In a network and a `/run` of their own; they need root.

use std::collections::BTreeSet;
use std::os::unix::fs::{MetadataExt, PermissionsExt};
use std::path::Path;
use std::process::Command;

use crate::support::{Subak, fresh_directory, in_a_network_of_its_own, ip, wait_until};

/// An empty `/run`, and then the command.
const OWN_RUN: [&str; 5] =
    ["unshare", "--mount", "sh", "-c", "mount -t tmpfs -o mode=755 run /run && exec \"$0\" \"$@\""];
const NOBODY: u32 = 65534;

fn inside(test: &str) -> bool {
    let inside = in_a_network_of_its_own(test);
    if inside {
        ip("link set lo up");
    }
    inside
}

fn serving(top: &str, bind: &str) -> String {
    format!(
        "workers = 2\n{top}\n[listener.web]\nbind = {bind}\n[[listener.web.route]]\nrespond = 200\n"
    )
}

/// A line of `/proc/PID/task/*/status`, over all threads.
fn of_all_threads(pid: u32, name: &str) -> BTreeSet<String> {
    let threads = std::fs::read_dir(format!("/proc/{pid}/task")).expect("threads");
    let of = |thread: std::io::Result<std::fs::DirEntry>| {
        let status = thread.expect("a thread").path().join("status");
        let status = std::fs::read_to_string(status).expect("its status");
        let line = status.lines().find_map(|line| line.strip_prefix(name)).expect("a line");
        line.trim_start_matches(':').split_whitespace().collect::<Vec<_>>().join(" ")
    };
    threads.map(of).collect()
}

fn one(value: &str) -> BTreeSet<String> {
    BTreeSet::from([value.to_owned()])
}

/// What the process sees at this path, in its own `/run`.
fn seen_by(subak: &Subak, path: &str) -> std::path::PathBuf {
    format!("/proc/{}/root{path}", subak.pid()).into()
}

#[test]
fn root_becomes_the_user_with_one_right_and_a_reload_binds_a_new_low_port() {
    if !inside("root_becomes_the_user_with_one_right_and_a_reload_binds_a_new_low_port") {
        return;
    }
    let top = "user = \"nobody\"\npid_file = \"/run/subak/subak.pid\"";
    let config = serving(top, "\"127.0.0.1:80\"");
    let mut subak = Subak::spawn_with(&OWN_RUN, &config, "127.0.0.1:80").ready(&config);
    assert_eq!(subak.get("/").0, 200);
    let pid = subak.pid();
    let four = format!("{NOBODY} {NOBODY} {NOBODY} {NOBODY}");
    assert_eq!(of_all_threads(pid, "Uid"), one(&four));
    assert_eq!(of_all_threads(pid, "Gid"), one(&four));
    assert_eq!(of_all_threads(pid, "Groups"), one(&NOBODY.to_string()));
    assert_eq!(of_all_threads(pid, "NoNewPrivs"), one("1"));
    // CAP_NET_BIND_SERVICE is number 10.
    for set in ["CapEff", "CapPrm", "CapBnd"] {
        assert_eq!(of_all_threads(pid, set), one("0000000000000400"), "{set}");
    }
    assert_eq!(of_all_threads(pid, "CapInh"), one("0000000000000000"));

    let socket = std::fs::metadata(seen_by(&subak, "/run/subak/admin.sock")).expect("the socket");
    assert_eq!((socket.uid(), socket.mode() & 0o777), (NOBODY, 0o600));
    let file = std::fs::read_to_string(seen_by(&subak, "/run/subak/subak.pid")).expect("pid file");
    assert_eq!(file, format!("{pid}\n"));

    let more = serving(top, "[\"127.0.0.1:80\", \"127.0.0.1:81\"]");
    subak.write_config(&more);
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2");
    assert_eq!(crate::support::Client::connect("127.0.0.1:81").get("/").status, 200);
    let run = std::fs::File::open(seen_by(&subak, "/run/subak")).expect("the directory");
    subak.signal("TERM");
    assert_eq!(subak.wait_for_exit().code(), Some(0));
    // The mount lives as long as the directory is held open.
    let left =
        std::fs::read_dir(format!("/proc/self/fd/{}", std::os::fd::AsRawFd::as_raw_fd(&run)));
    let left: Vec<_> =
        left.expect("the directory").map(|one| one.expect("a name").file_name()).collect();
    assert_eq!(left, ["admin.sock.lock"], "pid file and socket are gone");
}

#[test]
fn what_the_user_may_not_read_is_said_at_once_and_a_reload_changes_nothing() {
    if !inside("what_the_user_may_not_read_is_said_at_once_and_a_reload_changes_nothing") {
        return;
    }
    let directory = fresh_directory();
    let made = rcgen::generate_simple_self_signed(vec!["localhost".into()]).expect("made");
    let (chain, key) = (directory.join("site.pem"), directory.join("site.key"));
    std::fs::write(&chain, made.cert.pem()).expect("write");
    std::fs::write(&key, made.signing_key.serialize_pem()).expect("write");
    let mode = |path: &Path, mode: u32| {
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).expect("chmod");
    };
    mode(&key, 0o600);
    let secure = format!(
        "[listener.secure]\nbind = \"127.0.0.1:443\"\ntls = {{ certificates = [{{ chain = {chain:?}, \
         key = {key:?} }}] }}\n[[listener.secure.route]]\nrespond = 200\n"
    );
    let config = serving("user = \"nobody\"", "\"127.0.0.1:80\"") + &secure;
    let subak = Subak::spawn_with(&OWN_RUN, &config, "127.0.0.1:80").ready(&config);
    let log = subak.log();
    let warned = format!("reloads will fail as nobody (uid {NOBODY}");
    assert!(log.contains(&warned), "{log}");
    assert!(log.contains("site.key"), "{log}");
    assert!(log.contains("`chmod g+r` it"), "{log}");

    subak.signal("HUP");
    subak.wait_for_log("not reloaded (running as nobody");
    assert_eq!(subak.get("/").0, 200);
    mode(&key, 0o644);
    subak.signal("HUP");
    subak.wait_for_log("configuration reloaded generation=2");
    // The configuration itself, too.
    mode(&subak.directory().join("subak.toml"), 0o600);
    subak.signal("HUP");
    wait_until("the second refusal is logged", || {
        subak.log().matches("not reloaded (running as nobody").count() == 2
    });
    assert_eq!(subak.get("/").0, 200);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn a_directory_of_included_files_that_the_user_may_not_look_into_is_not_taken_for_empty() {
    if !inside(
        "a_directory_of_included_files_that_the_user_may_not_look_into_is_not_taken_for_empty",
    ) {
        return;
    }
    let directory = fresh_directory();
    let parts = directory.join("conf.d");
    std::fs::create_dir(&parts).expect("a directory");
    let part = "[listener.more]\nbind = \"127.0.0.1:81\"\n[[listener.more.route]]\nrespond = 200\n";
    std::fs::write(parts.join("more.toml"), part).expect("write");
    std::fs::set_permissions(&parts, std::fs::Permissions::from_mode(0o700)).expect("chmod");
    let top = format!("user = \"nobody\"\ninclude = [\"{}/*.toml\"]", parts.display());
    let config = serving(&top, "\"127.0.0.1:80\"");
    let subak = Subak::spawn_with(&OWN_RUN, &config, "127.0.0.1:80").ready(&config);
    let served = || crate::support::Client::connect("127.0.0.1:81").get("/").status;
    assert_eq!(served(), 200);
    subak.signal("HUP");
    subak.wait_for_log("conf.d cannot be looked into: ");
    subak.wait_for_log("nothing has changed");
    assert_eq!(served(), 200, "what was in force stays so");
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn access_logs_are_the_users_and_are_opened_again_without_roots_rights() {
    if !inside("access_logs_are_the_users_and_are_opened_again_without_roots_rights") {
        return;
    }
    let directory = fresh_directory();
    std::os::unix::fs::chown(&directory, Some(NOBODY), Some(NOBODY)).expect("chown");
    let log = directory.join("access.log");
    let config = serving(
        &format!("user = \"nobody\"\naccess_log = {{ path = {log:?}, format = \"json\" }}"),
        "\"127.0.0.1:80\"",
    );
    let subak = Subak::spawn_with(&OWN_RUN, &config, "127.0.0.1:80").ready(&config);
    let has = |text: &str| std::fs::read_to_string(&log).is_ok_and(|all| all.contains(text));
    assert_eq!(subak.get("/before").0, 200);
    wait_until("the request is in the log", || has("/before"));
    assert_eq!(std::fs::metadata(&log).expect("the log").uid(), NOBODY);
    std::fs::rename(&log, directory.join("access.log.1")).expect("move it away");
    subak.signal("USR1");
    subak.wait_for_log("access logs are opened again");
    wait_until("later requests are in a new log", || {
        assert_eq!(subak.get("/after").0, 200);
        has("/after")
    });
    assert!(!has("/before"));
    let _ = std::fs::remove_dir_all(directory);
}

#[track_caller]
fn not_started(wrapper: &[&str], config: &str, code: i32, expected: &[&str]) {
    let mut subak = Subak::spawn_with(wrapper, config, "127.0.0.1:1");
    let status = subak.wait_for_exit();
    for text in expected {
        subak.wait_for_log(text);
    }
    assert_eq!(status.code(), Some(code), "{}", subak.log());
}

/// As an ordinary user, without any right.
const UNPRIVILEGED: [&str; 4] = ["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"];

fn can_be_unprivileged() -> bool {
    let may = Command::new("setpriv").args(&UNPRIVILEGED[1..]).arg("true").status();
    let may = may.is_ok_and(|status| status.success());
    if !may {
        eprintln!("SKIPPED: becoming an ordinary user needs `setpriv` and root");
    }
    may
}

#[test]
fn only_root_can_become_somebody_else_and_everybody_may_be_who_they_are() {
    if !can_be_unprivileged() {
        return;
    }
    let at = crate::support::fresh_address();
    let bind = format!("{at:?}");
    let root = serving("user = \"root\"", &bind);
    let expected = ["cannot run as root (uid 0", "only root can become another user", "User="];
    not_started(&UNPRIVILEGED, &root, 1, &expected);
    let own = serving("user = \"nobody\"", &bind);
    let subak = Subak::spawn_with(&UNPRIVILEGED, &own, &at).ready(&own);
    assert_eq!(subak.get("/").0, 200);
    assert_eq!(of_all_threads(subak.pid(), "CapPrm"), one("0000000000000000"));
    assert_eq!(of_all_threads(subak.pid(), "NoNewPrivs"), one("1"));
}

#[test]
fn a_user_or_a_group_that_is_not_there_is_named_with_the_command_that_makes_it() {
    let at = format!("{:?}", crate::support::fresh_address());
    let user = serving("user = \"no-such-user\"", &at);
    not_started(&[], &user, 2, &["no user no-such-user", "useradd --system"]);
    let group = serving("user = \"nobody\"\ngroup = \"no-such-group\"", &at);
    not_started(&[], &group, 2, &["no group no-such-group", "groupadd --system"]);
}

#[test]
fn without_the_right_to_change_users_it_is_said_what_a_container_has_to_leave() {
    if !inside("without_the_right_to_change_users_it_is_said_what_a_container_has_to_leave") {
        return;
    }
    let config = serving("user = \"nobody\"", "\"127.0.0.1:80\"");
    let wrapper = ["setpriv", "--bounding-set=-setuid"];
    not_started(&wrapper, &config, 1, &["cannot give up the rights of root", "CAP_SETUID"]);
}

#[test]
fn a_second_process_with_the_same_pid_file_is_refused_and_a_stale_file_is_replaced() {
    let directory = fresh_directory();
    let path = directory.join("subak.pid");
    std::fs::write(&path, "4194305\n").expect("a stale one");
    let top = format!("pid_file = {path:?}");
    let at = crate::support::fresh_address();
    let mut first = Subak::start_at(&serving(&top, &format!("{at:?}")), &at);
    let pid = first.pid();
    assert_eq!(std::fs::read_to_string(&path).expect("it"), format!("{pid}\n"));
    let other = serving(&top, &format!("{:?}", crate::support::fresh_address()));
    not_started(
        &[],
        &other,
        1,
        &[&format!("process {pid} runs with the pid file"), "stop it first"],
    );
    assert_eq!(first.get("/").0, 200);
    first.signal("TERM");
    assert_eq!(first.wait_for_exit().code(), Some(0));
    assert!(!path.exists());
    let nowhere = serving("pid_file = \"/nonexistent/subak.pid\"", &format!("{at:?}"));
    not_started(&[], &nowhere, 1, &["cannot write the pid file /nonexistent/subak.pid"]);
    let _ = std::fs::remove_dir_all(directory);
}

#[test]
fn more_clients_than_files_may_be_open_are_advised_against() {
    let at = crate::support::fresh_address();
    let config = serving("max_connections = 100000", &format!("{at:?}"));
    let wrapper = ["prlimit", "--nofile=1064:1064"];
    let subak = Subak::spawn_with(&wrapper, &config, &at).ready(&config);
    assert!(subak.log().contains("max_connections = 100000, but the limit of 1064 open files"));
    assert!(subak.log().contains("LimitNOFILE"), "{}", subak.log());
}
