//! Network namespaces: a network of a test's own, and a second one at the other end of a cable where
//! the kernel counts what arrives and leaves.
//!
//! They go with the processes that hold them: nothing is left, however a test ends.

use std::io::Write;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use super::wait_until;

/// Runs the test that calls it again, in a network namespace of its own. True inside of it; false
/// where the work has been done, or cannot be because the rights are missing.
pub(crate) fn in_a_network_of_its_own(test: &str) -> bool {
    const INSIDE: &str = "SUBAK_TEST_INSIDE_NAMESPACE";
    if std::env::var_os(INSIDE).is_some() {
        return true;
    }
    let may = Command::new("unshare").args(["--net", "true"]).stderr(Stdio::null()).status();
    if !may.is_ok_and(|status| status.success()) {
        eprintln!("SKIPPED: {test} needs `unshare --net` (root)");
        return false;
    }
    let this = std::env::current_exe().expect("this program of tests");
    let run = Command::new("unshare")
        .arg("--net")
        .arg(&this)
        .args(["--exact", &full_name(&this, test), "--nocapture"])
        .env(INSIDE, "yes")
        .output()
        .expect("unshare");
    let said = String::from_utf8_lossy(&run.stdout);
    assert!(run.status.success(), "{said}{}", String::from_utf8_lossy(&run.stderr));
    assert!(said.contains("1 passed"), "{said}");
    false
}

/// A test's name with the modules that it is in.
#[track_caller]
fn full_name(program: &Path, test: &str) -> String {
    let list = Command::new(program).arg("--list").output().expect("the list of tests");
    let list = String::from_utf8_lossy(&list.stdout);
    let names = list.lines().filter_map(|line| line.strip_suffix(": test"));
    let mut found = names.filter(|name| name.rsplit("::").next() == Some(test));
    let name = found.next().expect("a test of this name");
    assert_eq!(found.next(), None, "two tests are called {test}");
    name.to_owned()
}

/// Runs `ip`, words separated by spaces.
#[track_caller]
pub(crate) fn ip(command: &str) {
    let status = Command::new("ip").args(command.split(' ')).status().expect("ip");
    assert!(status.success(), "ip {command}");
}

/// A network beyond a cable. This side of the cable is 10.9.0.1; packets have at most 1,500 bytes and
/// are not joined on their way, so that each is counted.
pub(crate) struct Beyond {
    holder: Child,
    addresses: Vec<String>,
}

/// What went to an address and came from it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Counted {
    pub(crate) packets: u64,
    /// With the headers of IP and TCP.
    pub(crate) bytes: u64,
}

impl Beyond {
    /// Whether packets can be counted here; says loudly if not.
    pub(crate) fn can_count() -> bool {
        let list = Command::new("nft").args(["list", "tables"]).stderr(Stdio::null()).output();
        let can = list.is_ok_and(|output| output.status.success());
        if !can {
            eprintln!("SKIPPED: packets are counted by nft (scripts/setup.sh test installs it)");
        }
        can
    }

    /// Lays the cable from this network namespace to one with these addresses, 10.9.0.2 and so on, and
    /// counts what comes to and from each of them.
    #[track_caller]
    pub(crate) fn new(addresses: &[&str]) -> Beyond {
        // `cat` ends with its input, which ends with this process.
        let mut command = Command::new("unshare");
        command.args(["--net", "cat"]).stdin(Stdio::piped()).stdout(Stdio::null());
        let holder = command.spawn().expect("unshare");
        let addresses = addresses.iter().map(|address| (*address).to_owned()).collect();
        let beyond = Beyond { holder, addresses };
        let here = std::fs::read_link("/proc/self/ns/net").expect("this namespace");
        let there = format!("/proc/{}/ns/net", beyond.holder.id());
        wait_until("the other namespace is there", || {
            std::fs::read_link(&there).is_ok_and(|there| there != here)
        });
        let pid = beyond.holder.id();
        ip("link set lo up");
        ip(&format!("link add near mtu 1500 type veth peer name far mtu 1500 netns {pid}"));
        ip("addr add 10.9.0.1/24 dev near");
        ip("link set near gso_max_segs 1 up");
        for address in &beyond.addresses {
            beyond.run(&format!("ip addr add {address}/24 dev far"), "");
        }
        beyond.run("ip link set far gso_max_segs 1 up", "");
        // Without time stamps the headers of every packet have the same length.
        std::fs::write("/proc/sys/net/ipv4/tcp_timestamps", "0").expect("switch time stamps off");
        beyond.run("nft -f -", &beyond.rules());
        beyond
    }

    fn rules(&self) -> String {
        let each = |line: &dyn Fn(usize, &str) -> String| {
            let lines = self.addresses.iter().enumerate();
            lines.map(|(index, address)| line(index, address)).collect::<String>()
        };
        let counters = each(&|index, _| format!("counter c{index} {{ }}\n"));
        let input =
            each(&|index, at| format!("ip daddr {at} tcp dport 80 counter name c{index}\n"));
        let output =
            each(&|index, at| format!("ip saddr {at} tcp sport 80 counter name c{index}\n"));
        format!(
            "table ip seen {{\n{counters}\
             chain input {{\ntype filter hook input priority 0;\n{input}}}\n\
             chain output {{\ntype filter hook output priority 0;\n{output}}}\n}}\n"
        )
    }

    /// The command that runs another one there.
    pub(crate) fn enter(&self) -> [String; 2] {
        ["nsenter".to_owned(), format!("--net=/proc/{}/ns/net", self.holder.id())]
    }

    /// By the kernel of the other side, of port 80 of each address.
    #[track_caller]
    pub(crate) fn counted(&self) -> Vec<Counted> {
        let text = self.run("nft -j list counters", "");
        let json: serde_json::Value = serde_json::from_str(&text).expect("nft's JSON");
        let all = json["nftables"].as_array().expect("a list");
        let of = |index| {
            let name = format!("c{index}");
            let found = all.iter().map(|entry| &entry["counter"]);
            let counter =
                found.clone().find(|counter| counter["name"] == *name).expect("a counter");
            let number = |key: &str| counter[key].as_u64().expect("a number");
            Counted { packets: number("packets"), bytes: number("bytes") }
        };
        (0..self.addresses.len()).map(of).collect()
    }

    /// Runs this there, words separated by spaces; what it prints.
    #[track_caller]
    fn run(&self, command: &str, input: &str) -> String {
        let [enter, namespace] = self.enter();
        let mut child = Command::new(enter)
            .arg(namespace)
            .args(command.split(' '))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("nsenter");
        let mut stdin = child.stdin.take().expect("stdin");
        stdin.write_all(input.as_bytes()).expect("write to it");
        drop(stdin);
        let output = child.wait_with_output().expect("wait");
        assert!(output.status.success(), "{command}");
        String::from_utf8(output.stdout).expect("text")
    }
}

impl Drop for Beyond {
    fn drop(&mut self) {
        let _ = self.holder.kill();
        let _ = self.holder.wait();
    }
}
