//! A DNS server of a few lines that can misbehave in every way: real packets on real sockets, by UDP
//! and by TCP at one address.

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::{IpAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

/// How it answers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum DnsMood {
    /// By its records.
    Good,
    /// Not at all.
    Silent,
    /// After this time.
    Slow(Duration),
    /// With this response code: 2 is SERVFAIL, 3 is NXDOMAIN, 5 is REFUSED.
    Code(u8),
    /// With the id of another question.
    WrongId,
    /// As if another name had been asked.
    OtherQuestion,
    /// With records of another name.
    OtherName,
    /// With bytes that are no DNS.
    Garbage,
    /// By UDP cut short; by TCP as a whole.
    Truncated,
    /// By UDP cut short; TCP is closed at once.
    TruncatedForGood,
}

/// What is known of a name: type and data.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Record {
    name: String,
    kind: u16,
    ttl: u32,
    data: Vec<u8>,
}

const A: u16 = 1;
const CNAME: u16 = 5;
const AAAA: u16 = 28;
const SRV: u16 = 33;

impl Record {
    pub(crate) fn address(name: &str, ttl: u32, address: &str) -> Record {
        let (kind, data) = match address.parse().expect("an address") {
            IpAddr::V4(ip) => (A, ip.octets().to_vec()),
            IpAddr::V6(ip) => (AAAA, ip.octets().to_vec()),
        };
        Record { name: name.to_owned(), kind, ttl, data }
    }

    pub(crate) fn alias(name: &str, ttl: u32, target: &str) -> Record {
        Record { name: name.to_owned(), kind: CNAME, ttl, data: wire(target) }
    }

    pub(crate) fn service(
        name: &str,
        (priority, weight, port): (u16, u16, u16),
        target: &str,
    ) -> Record {
        let numbers = [priority, weight, port].map(u16::to_be_bytes).concat();
        let data = [numbers, wire(target)].concat();
        Record { name: name.to_owned(), kind: SRV, ttl: 1, data }
    }
}

/// The server. Its sockets stay until the test ends.
#[derive(Clone)]
pub(crate) struct Dns {
    address: String,
    shared: Arc<Mutex<Shared>>,
}

struct Shared {
    mood: DnsMood,
    records: Vec<Record>,
    /// Questions by name and way.
    asked: BTreeMap<(String, &'static str), usize>,
}

impl Dns {
    /// With these records, at an address of its own.
    pub(crate) fn new(records: Vec<Record>) -> Dns {
        let dns = Dns::absent(records);
        dns.appear();
        dns
    }

    /// One that is not there before it appears.
    pub(crate) fn absent(records: Vec<Record>) -> Dns {
        static NEXT: AtomicU16 = AtomicU16::new(0);
        let [high, low] = (std::process::id() as u16).to_be_bytes();
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let address = format!("127.200.{high}.{low}:{}", 5300 + number);
        let shared = Shared { mood: DnsMood::Good, records, asked: BTreeMap::new() };
        Dns { address, shared: Arc::new(Mutex::new(shared)) }
    }

    pub(crate) fn appear(&self) {
        let udp = UdpSocket::bind(&self.address).expect("bind UDP");
        let tcp = TcpListener::bind(&self.address).expect("bind TCP");
        let this = self.clone();
        std::thread::spawn(move || {
            let mut packet = [0; 65_536];
            while let Ok((length, from)) = udp.recv_from(&mut packet) {
                let Some(answer) = this.answer(&packet[..length], "udp") else { continue };
                let udp = udp.try_clone().expect("a socket");
                let wait = this.wait();
                std::thread::spawn(move || {
                    std::thread::sleep(wait);
                    // Whoever asked may have gone.
                    let _ = udp.send_to(&answer, from);
                });
            }
        });
        let this = self.clone();
        std::thread::spawn(move || {
            for mut stream in tcp.incoming().flatten() {
                if this.mood() == DnsMood::TruncatedForGood {
                    continue;
                }
                let this = this.clone();
                std::thread::spawn(move || {
                    let mut length = [0; 2];
                    while stream.read_exact(&mut length).is_ok() {
                        let mut question = vec![0; u16::from_be_bytes(length).into()];
                        if stream.read_exact(&mut question).is_err() {
                            return;
                        }
                        let Some(answer) = this.answer(&question, "tcp") else { return };
                        let length = u16::try_from(answer.len()).expect("one message");
                        let message = [&length.to_be_bytes()[..], &answer].concat();
                        if stream.write_all(&message).is_err() {
                            return;
                        }
                    }
                });
            }
        });
    }

    /// The line of a configuration that has it asked, often.
    pub(crate) fn line(&self) -> String {
        self.line_with("")
    }

    /// The same with further keys, each with a comma before it.
    pub(crate) fn line_with(&self, more: &str) -> String {
        format!(
            "dns = {{ servers = [{:?}], timeout = \"400ms\", min_ttl = \"100ms\", max_ttl = \"1s\", negative_ttl = \"200ms\"{more} }}",
            self.address
        )
    }

    pub(crate) fn set(&self, records: Vec<Record>) {
        self.lock().records = records;
    }

    pub(crate) fn be(&self, mood: DnsMood) {
        self.lock().mood = mood;
    }

    /// How often a name was asked by `udp` or `tcp`, whatever the type.
    pub(crate) fn asked(&self, name: &str, way: &'static str) -> usize {
        self.lock().asked.get(&(name.to_owned(), way)).copied().unwrap_or(0)
    }

    fn mood(&self) -> DnsMood {
        self.lock().mood
    }

    fn wait(&self) -> Duration {
        match self.mood() {
            DnsMood::Slow(wait) => wait,
            _ => Duration::ZERO,
        }
    }

    fn answer(&self, question: &[u8], way: &'static str) -> Option<Vec<u8>> {
        let (name, end) = name_at(question)?;
        let kind = u16::from_be_bytes([*question.get(end)?, *question.get(end + 1)?]);
        let asked = question.get(12..end + 4)?;
        let mut shared = self.lock();
        *shared.asked.entry((name.clone(), way)).or_default() += 1;
        let mood = shared.mood;
        let (mut id, mut code) = ([question[0], question[1]], 0);
        let mut records = matching(&shared.records, &name, kind);
        let mut echoed = asked.to_vec();
        let mut is_cut = false;
        match mood {
            DnsMood::Silent => return None,
            DnsMood::Garbage => return Some(vec![0xFF; 40]),
            DnsMood::Code(number) => {
                code = number;
                records.clear();
            }
            DnsMood::WrongId => id[1] ^= 0x55,
            DnsMood::OtherQuestion => {
                let other = [wire("elsewhere.test"), asked[asked.len() - 4..].to_vec()];
                echoed = other.concat();
            }
            DnsMood::OtherName => {
                for record in &mut records {
                    "elsewhere.test".clone_into(&mut record.name);
                }
            }
            DnsMood::Truncated | DnsMood::TruncatedForGood if way == "udp" => {
                is_cut = true;
                records.clear();
            }
            DnsMood::Good | DnsMood::Slow(_) | DnsMood::Truncated | DnsMood::TruncatedForGood => {}
        }
        if records.is_empty() && code == 0 && !is_cut {
            let is_known = shared.records.iter().any(|record| record.name == name);
            code = if is_known { 0 } else { 3 };
        }
        let flags = [0x84 | if is_cut { 2 } else { 0 } | (question[2] & 1), 0x80 | code];
        let counts = [1, records.len() as u16, 0, 0].map(u16::to_be_bytes).concat();
        let mut message = [&id[..], &flags, &counts, &echoed].concat();
        for record in records {
            message.extend(wire(&record.name));
            message.extend(record.kind.to_be_bytes());
            message.extend([0, 1]);
            message.extend(record.ttl.to_be_bytes());
            message.extend((record.data.len() as u16).to_be_bytes());
            message.extend(&record.data);
        }
        Some(message)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Shared> {
        self.shared.lock().expect("no test thread has failed with it")
    }
}

/// Records of the name and of whatever its aliases lead to.
fn matching(records: &[Record], name: &str, kind: u16) -> Vec<Record> {
    let mut found = Vec::new();
    let mut name = wire(name);
    for _ in 0..8 {
        let of_name: Vec<_> = records.iter().filter(|one| wire(&one.name) == name).collect();
        found.extend(of_name.iter().filter(|one| one.kind == kind).map(|one| (*one).clone()));
        let Some(alias) = of_name.iter().find(|one| one.kind == CNAME) else { break };
        found.push((*alias).clone());
        name = alias.data.clone();
    }
    found
}

fn wire(name: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    for label in name.split('.').filter(|label| !label.is_empty()) {
        bytes.push(u8::try_from(label.len()).expect("a label"));
        bytes.extend(label.as_bytes());
    }
    bytes.push(0);
    bytes
}

/// The name of the question, and where it ends.
fn name_at(packet: &[u8]) -> Option<(String, usize)> {
    let mut at = 12;
    let mut labels = Vec::new();
    loop {
        let length = usize::from(*packet.get(at)?);
        at += 1;
        if length == 0 {
            return Some((labels.join("."), at));
        }
        labels.push(String::from_utf8_lossy(packet.get(at..at + length)?).to_lowercase());
        at += length;
    }
}
