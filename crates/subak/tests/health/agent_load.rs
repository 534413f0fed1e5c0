//! `subak agent` under real load: on the whole machine, in a control group with a limit, and in the
//! eyes of HAProxy.

use std::io::{Read, Write};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use crate::support::{Agent, Group, fresh_address, fresh_directory, wait_until};

/// A thread for each processor that does nothing as fast as it can.
struct Load {
    stop: Arc<AtomicBool>,
    threads: Vec<JoinHandle<()>>,
}

impl Load {
    fn on_every_processor() -> Load {
        let stop = Arc::new(AtomicBool::new(false));
        let count = std::thread::available_parallelism().expect("processors").get();
        let spin = |stop: Arc<AtomicBool>| {
            std::thread::spawn(move || while !stop.load(Ordering::Relaxed) {})
        };
        let threads = (0..count).map(|_| spin(stop.clone())).collect();
        Load { stop, threads }
    }
}

impl Drop for Load {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        for thread in self.threads.drain(..) {
            let _ = thread.join();
        }
    }
}

#[test]
fn load_on_every_processor_shows_in_the_report_and_in_agent_check() {
    let agent = Agent::start(&[]);
    let load = Load::on_every_processor();
    wait_until("the CPU is in use", || agent.cpu_ppm() >= 900_000);
    let line = agent.check(b"");
    let percent: u32 = line.trim_end_matches("%\n").parse().expect("a percentage");
    // CPU counts for 60 of 100.
    assert!(percent <= 46, "{line}");
    drop(load);
}

#[test]
fn load_in_a_control_group_counts_against_its_limit_and_goes_again() {
    let Some(group) = Group::new() else { return };
    let agent = Agent::start(&["--cgroup", group.name()]);
    assert_eq!(agent.report().capacity.cpu, Some(30));
    assert!(agent.cpu_ppm() < 100_000, "{}", agent.cpu_ppm());
    let spinning = group.spin();
    wait_until("its limit is in use", || agent.cpu_ppm() >= 700_000);
    drop(spinning);
    wait_until("it is at rest again", || agent.cpu_ppm() < 100_000);
}

/// A running HAProxy that asks an agent for the weight of its only server, which is 200.
struct HaProxy {
    child: Child,
    directory: PathBuf,
}

impl HaProxy {
    /// None, loudly, where there is none.
    fn asking(agent: &Agent) -> Option<HaProxy> {
        let directory = fresh_directory();
        let (address, port) = agent.check.rsplit_once(':').expect("an address and a port");
        let text = format!(
            "global\n  stats socket {}\n\
             defaults\n  mode http\n  timeout connect 1s\n  timeout client 1s\n  timeout server 1s\n\
             frontend in\n  bind {}\n  default_backend app\n\
             backend app\n  server one {} weight 200 agent-check agent-addr {address} \
             agent-port {port} agent-inter 100ms\n",
            directory.join("socket").display(),
            fresh_address(),
            fresh_address(),
        );
        let file = directory.join("haproxy.cfg");
        std::fs::write(&file, text).expect("write");
        // Debian keeps it where an ordinary PATH does not look.
        let path = format!("{}:/usr/sbin", std::env::var("PATH").unwrap_or_default());
        let started = Command::new("haproxy")
            .env("PATH", path)
            .args(["-db", "-f"])
            .arg(&file)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn();
        match started {
            Ok(child) => Some(HaProxy { child, directory }),
            Err(error) => {
                eprintln!("SKIPPED: agent-check in the eyes of HAProxy: {error}");
                let _ = std::fs::remove_dir_all(directory);
                None
            }
        }
    }

    /// What it says of the weight: `30 (initial 200)`; empty while it is not ready.
    fn weight(&self) -> String {
        let mut said = String::new();
        if let Ok(mut socket) = UnixStream::connect(self.directory.join("socket")) {
            // It may be ending, then it has said nothing.
            let asked = socket.write_all(b"get weight app/one\n");
            let _ = asked.and_then(|()| socket.read_to_string(&mut said));
        }
        said.trim().to_owned()
    }
}

impl Drop for HaProxy {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn haproxy_takes_the_weight_of_a_loaded_machine_down() {
    let agent = Agent::start(&["--load", "cpu=1"]);
    let Some(haproxy) = HaProxy::asking(&agent) else { return };
    let load = Load::on_every_processor();
    wait_until("HAProxy has a tenth of the weight left at most", || {
        let weight = haproxy.weight();
        let (now, initial) = weight.split_once(' ').unwrap_or_default();
        initial == "(initial 200)" && now.parse::<u32>().is_ok_and(|now| (1..=20).contains(&now))
    });
    drop(load);
}
