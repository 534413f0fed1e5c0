//! A sampler over kernel files that are written here, as recorded on machines of several kinds.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use proptest::prelude::*;

use super::*;

/// A tree like `/proc` and `/sys`, removed with the test.
struct Tree(PathBuf);

impl Tree {
    /// A machine with two processors, a disk with a partition, and two interfaces.
    fn machine() -> Tree {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("subak-agent-{}-{number}", std::process::id());
        let tree = Tree(std::env::temp_dir().join(name));
        tree.cpu(1000, 1000);
        tree.write("proc/meminfo", "MemTotal: 8000 kB\nMemAvailable: 6000 kB\n");
        tree.disks(100, 100);
        tree.network(0, 0);
        tree.write("proc/net/route", "eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n");
        let everywhere = "0".repeat(32);
        tree.write(
            "proc/net/ipv6_route",
            &format!("{everywhere} 00 {everywhere} 00 fe80 400 1 0 3 eth0\n"),
        );
        tree.write("sys/block/vda/device/model", "disk\n");
        tree.write("sys/block/loop0/size", "0\n");
        tree.write("sys/class/net/eth0/speed", "100\n");
        tree.write("sys/class/net/docker0/speed", "-1\n");
        tree
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.0.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn cpu(&self, busy: u64, idle: u64) {
        self.write("proc/stat", &format!("cpu {busy} 0 0 {idle} 0 0 0 0 0 0\ncpu0 1\ncpu1 1\n"));
    }

    fn disks(&self, vda: u64, loop0: u64) {
        let line = |name, busy| format!("1 0 {name} 0 0 0 0 0 0 0 0 0 {busy} 0\n");
        self.write(
            "proc/diskstats",
            &(line("vda", vda) + &line("vda1", 7) + &line("loop0", loop0)),
        );
    }

    fn network(&self, received: u64, sent: u64) {
        let line = |name, received, sent| format!("{name}: {received} 0 0 0 0 0 0 0 {sent} 0\n");
        let lines = line("  lo", 5, 5) + &line("eth0", received, sent) + &line("docker0", 9, 9);
        self.write("proc/net/dev", &format!("head\n{lines}"));
    }

    fn sampler(&self, options: Options) -> Result<Sampler, MeasureError> {
        let roots = Roots { proc: self.0.join("proc"), sys: self.0.join("sys") };
        Sampler::new(options, roots)
    }
}

impl Drop for Tree {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn ppm(parts: u64) -> Option<Ppm> {
    Some(Ppm::saturating(parts))
}

#[test]
fn a_machine() {
    let tree = Tree::machine();
    let options = Options { disk_speed: "500MB/s".parse().ok(), ..Options::default() };
    let mut sampler = tree.sampler(options).unwrap();
    tree.cpu(1300, 1100);
    tree.disks(100, 900_000);
    let sample = sampler.sample();
    let capacity = PerResource {
        cpu: Some(2000),
        memory: Some(8_192_000),
        disk: Some(500_000_000),
        network: Some(100_000_000),
    };
    assert_eq!(sample.capacity, capacity);
    assert_eq!(sample.used.cpu, ppm(750_000));
    assert_eq!(sample.used.memory, ppm(250_000));
    assert_eq!(sample.used.disk, ppm(0), "a loop device is no disk of its own");
    assert_eq!(sample.used.network, ppm(0));
    assert_eq!(sampler.interfaces_without_speed().count(), 0);
    // More than can have passed since: all of it.
    tree.disks(3_600_100, 900_000);
    tree.network(0, 1 << 40);
    let sample = sampler.sample();
    assert_eq!((sample.used.disk, sample.used.network), (ppm(1_000_000), ppm(1_000_000)));
}

#[test]
fn shares_are_those_of_the_window() {
    let tree = Tree::machine();
    let options = Options { window: Duration::from_millis(40), ..Options::default() };
    let mut sampler = tree.sampler(options).unwrap();
    tree.cpu(2000, 1000);
    assert_eq!(sampler.sample().used.cpu, ppm(1_000_000));
    let mut spans = Vec::new();
    for _ in 0..12 {
        std::thread::sleep(Duration::from_millis(10));
        spans.push(sampler.sample().window);
        assert!(sampler.readings.len() <= 7, "{}", sampler.readings.len());
    }
    tree.cpu(2000, 2000);
    let sample = sampler.sample();
    assert_eq!(sample.used.cpu, ppm(0), "the busy time is out of the window");
    assert!(spans[11] >= Duration::from_millis(40), "{spans:?}");
}

#[test]
fn readings_are_bounded_however_long_the_window() {
    let tree = Tree::machine();
    let options = Options { window: Duration::from_secs(3600), ..Options::default() };
    let mut sampler = tree.sampler(options).unwrap();
    for _ in 0..MAX_READINGS + 10 {
        sampler.sample();
    }
    assert_eq!(sampler.readings.len(), MAX_READINGS);
}

#[test]
fn what_is_named_counts_and_nothing_else() {
    let tree = Tree::machine();
    let options = Options {
        disks: vec!["loop0".to_owned()],
        interfaces: vec!["docker0".to_owned()],
        ..Options::default()
    };
    let mut sampler = tree.sampler(options.clone()).unwrap();
    assert_eq!(sampler.interfaces_without_speed().collect::<Vec<_>>(), ["docker0"]);
    tree.disks(900_000, 100);
    let sample = sampler.sample();
    assert_eq!((sample.used.disk, sample.used.network), (ppm(0), None));
    assert_eq!(sample.capacity.network, None);
    let network_speed = "1Gbit/s".parse().ok();
    let mut sampler = tree.sampler(Options { network_speed, ..options }).unwrap();
    let sample = sampler.sample();
    assert_eq!((sample.used.network, sample.capacity.network), (ppm(0), Some(1_000_000_000)));
}

#[test]
fn interfaces_that_come_later_are_found() {
    let tree = Tree::machine();
    tree.write("proc/net/route", "");
    tree.write("proc/net/ipv6_route", "");
    let mut sampler = tree.sampler(Options::default()).unwrap();
    assert_eq!(sampler.sample().capacity.network, None);
    tree.write("proc/net/route", "eth0 00000000 010200C0 0003 0 0 0 00000000 0 0 0\n");
    let found = (0..LOOK_AGAIN).any(|_| sampler.sample().capacity.network.is_some());
    assert!(found);
}

#[test]
fn what_is_not_there_is_an_error_that_says_what_is() {
    let tree = Tree::machine();
    let error = |options| tree.sampler(options).unwrap_err().to_string();
    let disk = error(Options { disks: vec!["sda".to_owned()], ..Options::default() });
    assert_eq!(disk, "there is no disk sda\n  there is vda, vda1, loop0");
    let interface = error(Options { interfaces: vec!["eth1".to_owned()], ..Options::default() });
    assert_eq!(interface, "there is no network interface eth1\n  there is lo, eth0, docker0");
    let cgroup = error(Options { cgroup: "/app".into(), ..Options::default() });
    assert!(cgroup.starts_with("there is no control group /app ("), "{cgroup}");
    tree.write("proc/stat", "nonsense");
    assert!(error(Options::default()).contains("is /proc mounted here?"));
}

#[test]
fn a_machine_without_the_rest_still_measures_its_cpu() {
    let tree = Tree::machine();
    for file in ["meminfo", "diskstats", "net/dev", "net/route", "net/ipv6_route"] {
        fs::remove_file(tree.0.join("proc").join(file)).unwrap();
    }
    fs::remove_dir_all(tree.0.join("sys")).unwrap();
    let mut sampler = tree.sampler(Options::default()).unwrap();
    tree.cpu(1000, 1100);
    let sample = sampler.sample();
    assert_eq!(sample.used, PerResource { cpu: ppm(0), ..Default::default() });
    assert_eq!(sample.capacity, PerResource { cpu: Some(2000), ..Default::default() });
}

/// Writes a group with half a processor and 4 MiB of memory, of which 1 MiB is in use and another
/// is files not used lately; and `used_ms` of processor time.
fn confine_v2(tree: &Tree, group: &str, used_ms: u64) {
    let write = |file: &str, text: &str| tree.write(&format!("sys/fs/cgroup/{group}/{file}"), text);
    tree.write("sys/fs/cgroup/cgroup.controllers", "cpu memory\n");
    write("cpu.max", "50000 100000\n");
    write("cpu.stat", &format!("usage_usec {}\nuser_usec 1\n", used_ms * 1000));
    write("memory.max", "4194304\n");
    write("memory.current", "2097152\n");
    write("memory.stat", "anon 7\ninactive_file 1048576\nactive_file 5\n");
}

fn confine_v1(tree: &Tree, group: &str, used_ms: u64) {
    let write = |controller: &str, file: &str, text: &str| {
        tree.write(&format!("sys/fs/cgroup/{controller}/{group}/{file}"), text);
    };
    write("cpu", "cpu.cfs_quota_us", "50000\n");
    write("cpu", "cpu.cfs_period_us", "100000\n");
    write("cpuacct", "cpuacct.usage", &format!("{}\n", used_ms * 1_000_000));
    write("memory", "memory.limit_in_bytes", "4194304\n");
    write("memory", "memory.usage_in_bytes", "2097152\n");
    write("memory", "memory.stat", "cache 7\ninactive_file 9\ntotal_inactive_file 1048576\n");
}

#[test]
fn a_group_with_limits_counts_instead_of_its_machine() {
    for confine in [confine_v1, confine_v2] {
        for (group, name) in [("", "/"), ("app/one", "/app/one"), ("app/one", "app/one")] {
            let tree = Tree::machine();
            confine(&tree, group, 0);
            let options = Options { cgroup: Path::new(name).to_owned(), ..Options::default() };
            let mut sampler = tree.sampler(options).unwrap();
            tree.cpu(90_000, 1000);
            let idle = sampler.sample();
            assert_eq!((idle.used.cpu, idle.capacity.cpu), (ppm(0), Some(500)), "{name}");
            let memory = (idle.used.memory, idle.capacity.memory);
            assert_eq!(memory, (ppm(250_000), Some(4_194_304)), "{name}");
            // An hour of processor time in no time.
            confine(&tree, group, 3_600_000);
            assert_eq!(sampler.sample().used.cpu, ppm(1_000_000), "{name}");
        }
    }
}

#[test]
fn a_group_without_limits_is_measured_like_its_machine() {
    let tree = Tree::machine();
    confine_v1(&tree, "app", 0);
    tree.write("sys/fs/cgroup/cpu/app/cpu.cfs_quota_us", "-1\n");
    tree.write("sys/fs/cgroup/memory/app/memory.limit_in_bytes", "9223372036854771712\n");
    let other = Tree::machine();
    confine_v2(&other, "app", 0);
    other.write("sys/fs/cgroup/app/cpu.max", "max 100000\n");
    other.write("sys/fs/cgroup/app/memory.max", "max\n");
    for tree in [tree, other] {
        let options = Options { cgroup: "app".into(), ..Options::default() };
        let mut sampler = tree.sampler(options).unwrap();
        tree.cpu(1100, 1100);
        let sample = sampler.sample();
        assert_eq!((sample.used.cpu, sample.capacity.cpu), (ppm(500_000), Some(2000)));
        let memory = (sample.used.memory, sample.capacity.memory);
        assert_eq!(memory, (ppm(250_000), Some(8_192_000)));
    }
}

const WORD: &str =
    "cpu0?|eth0:|lo|MemTotal:|MemAvailable:|0{8}|0{32}|00|-1|[0-9]{1,20}|\n|\\PC{0,4}";

proptest! {
    /// Words and numbers as the kernel writes them, in places where it would not.
    #[test]
    fn no_text_of_the_kernel_panics(
        words in prop::collection::vec(WORD, 0..60),
    ) {
        let text = words.join(" ");
        let _ = (parse_stat(&text), parse_meminfo(&text));
        let _ = (parse_diskstats(&text).count(), parse_dev(&text).count());
        let _ = (default_routes_v4(&text).count(), default_routes_v6(&text).count());
    }
}
