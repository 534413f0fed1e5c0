//! Endpoints by name with a real DNS server (NSD) at its usual port, in a network of the test's own:
//! its zone changes, loses the name, outgrows a packet; it dies and comes back. Traffic goes on.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::support::{
    Admin, Endpoint, Load, Setup, Subak, fresh_address, fresh_directory, in_a_network_of_its_own,
    ip, ok, wait_until,
};

const SERVER: &str = "127.0.0.53";

/// NSD with one zone, `internal`.
struct Nsd {
    directory: PathBuf,
    child: Option<Child>,
    serial: u32,
}

impl Nsd {
    fn path() -> Option<&'static Path> {
        let path = Path::new("/usr/sbin/nsd");
        path.exists().then_some(path)
    }

    /// With `app.internal` at these addresses.
    fn start(addresses: &[String]) -> Nsd {
        let mut nsd = Nsd { directory: fresh_directory(), child: None, serial: 0 };
        let directory = nsd.directory.display().to_string();
        let text = format!(
            "server:\n ip-address: {SERVER}\n username: \"\"\n chroot: \"\"\n database: \"\"\n \
             server-count: 1\n zonesdir: {directory:?}\n pidfile: \"{directory}/nsd.pid\"\n \
             xfrdfile: \"{directory}/xfrd.state\"\n zonelistfile: \"{directory}/zone.list\"\n\
             remote-control:\n control-enable: no\n\
             zone:\n name: \"internal\"\n zonefile: \"internal.zone\"\n"
        );
        std::fs::write(nsd.directory.join("nsd.conf"), text).expect("write the configuration");
        nsd.write(addresses);
        nsd.run();
        nsd
    }

    fn run(&mut self) {
        let path = Nsd::path().expect("nsd");
        let mut command = Command::new(path);
        command.arg("-d").arg("-c").arg(self.directory.join("nsd.conf"));
        self.child = Some(command.stdout(Stdio::null()).spawn().expect("nsd"));
    }

    /// Lists these; without any, there is no such name.
    fn list(&mut self, addresses: &[String]) {
        self.write(addresses);
        let pid = self.child.as_ref().expect("it runs").id().to_string();
        let sent = Command::new("kill").args(["-HUP", &pid]).status().expect("kill");
        assert!(sent.success());
    }

    fn write(&mut self, addresses: &[String]) {
        self.serial += 1;
        let mut zone = format!(
            "$ORIGIN internal.\n$TTL 1\n@ SOA ns hostmaster {} 1 1 1 1\n@ NS ns\nns A {SERVER}\n\
             app CNAME pool\n",
            self.serial
        );
        for address in addresses {
            writeln!(zone, "pool A {address}").expect("memory");
        }
        // A name with nothing but an alias to nothing is no name either.
        let zone = if addresses.is_empty() { zone.replace("app CNAME pool\n", "") } else { zone };
        let path = self.directory.join("internal.zone");
        std::fs::write(path, zone).expect("write the zone");
    }

    fn kill(&mut self) {
        if let Some(mut child) = self.child.take() {
            // In the foreground it ends its own children by this.
            let _ = Command::new("kill").arg(child.id().to_string()).status();
            let _ = child.wait();
        }
    }
}

impl Drop for Nsd {
    fn drop(&mut self) {
        self.kill();
        let _ = std::fs::remove_dir_all(&self.directory);
    }
}

#[test]
fn traffic_goes_on_whatever_becomes_of_the_name_and_its_server() {
    let test = "traffic_goes_on_whatever_becomes_of_the_name_and_its_server";
    if Nsd::path().is_none() {
        eprintln!("SKIPPED: {test} needs nsd (scripts/setup.sh test installs it)");
        return;
    }
    if !in_a_network_of_its_own(test) {
        return;
    }
    ip("link set lo up");
    let endpoint = |name: &'static str| {
        Endpoint::on_inet(&fresh_address(), move |served| {
            while served.request().is_some() {
                served.send(ok(name));
            }
        })
    };
    let [one, two] = ["one", "two"].map(endpoint);
    let host = |endpoint: &Endpoint| endpoint.address().replace(":8080", "");
    let mut nsd = Nsd::start(&[host(&one)]);
    let dns = format!(
        "dns = {{ servers = [{SERVER:?}], timeout = \"500ms\", min_ttl = \"100ms\", \
         negative_ttl = \"200ms\" }}"
    );
    let setup = Setup::before_addresses(["app.internal:8080".to_owned()]).top(&dns);
    let setup = setup.listener("limits = { requests_per_connection = \"unlimited\" }");
    let subak = setup.workers(2).start();
    let admin = Admin::of(&subak);
    let count = || admin.status()["pools"][0]["endpoints"].as_array().map_or(0, Vec::len);
    let problem = || {
        let status = admin.status();
        status["names"][0]["failing"].as_str().map(str::to_owned)
    };
    // Whichever was quicker, server or Subak.
    wait_until("the name is resolved", || count() == 1);
    let load = Load::begin(subak.address(), 1, 1);
    nsd.list(&[host(&one), host(&two)]);
    wait_until("both serve", || count() == 2);
    load.wait_for(50);
    nsd.list(&[]);
    wait_until("the name is gone", || problem().is_some_and(|why| why.contains("NXDOMAIN")));
    assert_eq!(count(), 2);
    load.wait_for(50);
    nsd.list(&[host(&two)]);
    wait_until("one of them serves", || count() == 1);
    wait_until("it is well", || problem().is_none());
    load.wait_for(50);
    nsd.kill();
    wait_until("the server is missed", || problem().is_some());
    assert_eq!(count(), 1);
    load.wait_for(50);
    nsd.write(&[host(&one)]);
    nsd.run();
    wait_until("it is well again", || problem().is_none());
    wait_until("the other serves", || subak.get("/").1 == "one");
    load.wait_for(50);
    let failures = load.end();
    assert!(failures.is_empty(), "{}: {:?}", failures.len(), &failures[..failures.len().min(5)]);
    // More than a packet of UDP holds.
    let many: Vec<_> = (1..=200).map(|number| format!("127.9.9.{number}")).collect();
    nsd.list(&many);
    wait_until("all are there", || count() == 200);
}

#[test]
fn without_servers_of_its_own_it_asks_those_of_the_machine_and_sees_them_change() {
    let test = "without_servers_of_its_own_it_asks_those_of_the_machine_and_sees_them_change";
    if Nsd::path().is_none() {
        eprintln!("SKIPPED: {test} needs nsd (scripts/setup.sh test installs it)");
        return;
    }
    if !in_a_network_of_its_own(test) {
        return;
    }
    ip("link set lo up");
    let one = Endpoint::on_inet(&fresh_address(), |served| {
        while served.request().is_some() {
            served.send(ok("one"));
        }
    });
    let nsd = Nsd::start(&[one.address().replace(":8080", "")]);
    let file = nsd.directory.join("resolv.conf");
    // Nobody answers there; the search domain would lead to a name that is none.
    std::fs::write(&file, "search internal\nnameserver 127.0.0.54\n").expect("write");
    // In a mount namespace of its own, so that only this Subak sees the file in that place.
    let script = format!("mount --bind {} /etc/resolv.conf && exec \"$@\"", file.display());
    let address = fresh_address();
    let dns = "dns = { timeout = \"300ms\", negative_ttl = \"1s\" }";
    let setup = Setup::before_addresses(["app.internal:8080".to_owned()]).top(dns).bind(&address);
    let config = setup.text();
    let wrapper = ["unshare", "--mount", "sh", "-c", &script, "sh"];
    let subak = Subak::spawn_with(&wrapper, &config, &address).ready(&config);
    assert_eq!(subak.get("/").0, 503);
    std::fs::write(&file, format!("search internal\nnameserver {SERVER}\n")).expect("write");
    wait_until("the other server is asked", || subak.get("/") == (200, "one".to_owned()));
}
