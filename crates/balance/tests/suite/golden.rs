//! The same picks as Debian's nginx 1.22, request by request: see `golden/README.md`.

use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::path::Path;

use crate::support::{Pool, endpoints};
use subak_balance::{Algorithm, Endpoints, Entry, Key, catalogue};
use subak_base::{BitSet, Rng, Weight};

struct Golden {
    algorithm: Algorithm,
    /// As they were written, where that matters.
    names: Vec<String>,
    weights: Vec<u16>,
    /// Family, seed, number of requests.
    clients: (String, u64, usize),
    down: Vec<usize>,
    dies: Option<usize>,
    /// For each request the endpoints that refused it, in order, and the one that answered.
    requests: Vec<(Vec<usize>, usize)>,
}

fn read(text: &str) -> Golden {
    let (head, picks) = text.split_once("\n\n").expect("a blank line ends the head");
    let fields: BTreeMap<_, _> = head.lines().filter_map(|line| line.split_once(' ')).collect();
    let words = |name: &str| fields[name].split(' ').filter(|word| *word != "-");
    let indices = |name: &str| words(name).map(|word| word.parse().unwrap()).collect::<Vec<_>>();

    let mut requests = Vec::new();
    let mut refused = Vec::new();
    for letter in picks.bytes().filter(|letter| *letter != b'\n') {
        match letter {
            b'a'..=b'z' => refused.push(usize::from(letter - b'a')),
            _ => requests.push((std::mem::take(&mut refused), usize::from(letter - b'0'))),
        }
    }
    let clients: Vec<_> = words("clients").collect();
    let listing = catalogue::find(fields["algorithm"]).unwrap();
    let method = fields.get("method").map(|method| ("method", (*method).into()));
    let names = fields.get("names").map(|names| names.split(' ').map(str::to_owned).collect());
    Golden {
        algorithm: listing.configure(listing.name, method.as_slice()).unwrap(),
        names: names.unwrap_or_default(),
        weights: fields["weights"].split(':').map(|weight| weight.parse().unwrap()).collect(),
        clients: (clients[0].into(), clients[1].parse().unwrap(), clients[2].parse().unwrap()),
        down: indices("down"),
        dies: indices("dies").first().copied(),
        requests,
    }
}

/// The endpoints of a file.
fn list(golden: &Golden) -> Endpoints {
    if golden.names.is_empty() {
        return endpoints(&golden.weights);
    }
    let entry = |(name, weight): (&String, &u16)| {
        Entry::new(format!("http://{name}"), name.clone(), Weight(*weight))
    };
    Endpoints::new(golden.names.iter().zip(&golden.weights).map(entry).collect()).unwrap()
}

/// The next client of a family; a text is written to `text`.
fn client<'a>(family: &str, rng: &mut Rng, text: &'a mut String) -> Key<'a> {
    match family {
        "ipv4" => Key::Address(IpAddr::V4(Ipv4Addr::from((rng.next_u64() >> 32) as u32))),
        "ipv6" => {
            let bits = u128::from(rng.next_u64()) << 64 | u128::from(rng.next_u64());
            Key::Address(IpAddr::V6(Ipv6Addr::from(bits)))
        }
        "text" => {
            let word = format!("{:016x}", rng.next_u64());
            let length = 1 + usize::from_str_radix(&word[..1], 16).unwrap();
            *text = format!("/{}", &word[..length]);
            Key::Bytes(text.as_bytes())
        }
        _ => Key::None,
    }
}

/// Follows every request of a file, retries included; the picks compared, and how many of them a
/// retry left to round robin (where nginx steps on with the tried endpoints left out, and this
/// crate skips forward in the compiled sequence).
fn follow(name: &str, golden: &Golden) -> (usize, usize) {
    let (family, seed, count) = &golden.clients;
    assert_eq!(golden.requests.len(), *count, "{name}");
    let mut pool = Pool::new(golden.algorithm.clone(), list(golden));
    pool.set_eligible((0..golden.weights.len()).filter(|i| !golden.down.contains(i)).collect());
    let mut rng = Rng::new(*seed);
    let (mut compared, mut left) = (0, 0);
    for (number, (refused, answered)) in golden.requests.iter().enumerate() {
        let mut text = String::new();
        let client = client(family, &mut rng, &mut text);
        let mut tried = BitSet::EMPTY;
        for expected in refused.iter().chain([answered]) {
            let tickets = pool.tickets.0.get();
            let picked = pool.pick_with(client, &tried).unwrap();
            if pool.tickets.0.get() > tickets && !tried.is_empty() {
                assert!(!tried.contains(picked), "{name}, request {number}");
                left += 1;
            } else {
                assert_eq!(picked, *expected, "{name}, request {number}, after {tried:?}");
                compared += 1;
            }
            tried.insert(*expected);
        }
        if let Some(dead) = golden.dies.filter(|dead| refused.contains(dead)) {
            let mut eligible = pool.eligible.clone();
            eligible.remove(dead);
            pool.set_eligible(eligible);
        }
    }
    (compared, left)
}

#[test]
fn picks_what_nginx_picks() {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden");
    let (mut files, mut compared, mut left) = (0, 0, 0);
    for file in std::fs::read_dir(directory).unwrap() {
        let path = file.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "txt") {
            continue;
        }
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        let golden = read(&std::fs::read_to_string(&path).unwrap());
        let counts = follow(&name, &golden);
        (files, compared, left) = (files + 1, compared + counts.0, left + counts.1);
    }
    assert_eq!((files, compared, left), (72, 498_111, 12));
}
