//! A pick log that was recorded live is replayed bit for bit by another process, from its JSON and the
//! configuration alone: for every algorithm, under concurrent traffic, over changes of weights.

use std::process::Command;

use subak_balance::catalogue;

use crate::support::{Admin, Endpoint, Setup, Subak, admin};

const WORKERS: usize = 2;
const CLIENTS: usize = 4;
const REQUESTS: usize = 30;

/// Exit status and what was said.
fn subak(arguments: &[&str]) -> (i32, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_subak")).args(arguments).output().expect("subak");
    let said = [output.stdout, output.stderr].concat();
    (output.status.code().expect("an exit status"), String::from_utf8_lossy(&said).into_owned())
}

/// Pools by name, with their `balance`: every algorithm, and those that have more than one form.
fn pools() -> Vec<(String, String)> {
    let plain = catalogue::all()
        .iter()
        .map(|listing| (listing.name.to_owned(), format!("algorithm = \"{}\"", listing.name)));
    let forms = [
        ("burst", "algorithm = \"round_robin\", order = \"burst\""),
        ("ring", "algorithm = \"hash\", key = \"header:X-Key\", method = \"ring\""),
        (
            "bounded",
            "algorithm = \"hash\", key = \"query:k\", method = \"maglev\", balance_factor = 1.25",
        ),
        ("three", "algorithm = \"power_of_two\", choices = 3"),
    ];
    plain.chain(forms.map(|(name, form)| (name.to_owned(), form.to_owned()))).collect()
}

/// Some clients at once, all pools by turns.
fn traffic(subak: &Subak, pools: &[(String, String)]) {
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            scope.spawn(move || {
                let mut connection = subak.client();
                for request in 0..REQUESTS {
                    for (name, _) in pools {
                        let host = (client * 50 + request) % 250;
                        let head = format!(
                            "GET /{name}/{request}?k={client} HTTP/1.1\r\nHost: a\r\nX-Key: {request}\r\n\
                             X-Forwarded-For: 192.{client}.{request}.{host}\r\n\r\n"
                        );
                        connection.send(head.as_bytes());
                        assert_eq!(connection.answer().status, 200, "{name}");
                    }
                }
            });
        }
    });
}

#[test]
fn every_algorithm_s_live_picks_are_repeated_by_another_process() {
    let endpoints = ["a", "b", "c"].map(Endpoint::named);
    let pools = pools();
    let list = endpoints
        .iter()
        .zip([3, 1, 2])
        .map(|(endpoint, weight)| format!("\"{} weight={weight}\"", endpoint.address()));
    let list = list.collect::<Vec<_>>().join(", ");
    let tail: String = pools
        .iter()
        .map(|(name, form)| {
            format!(
                "[[listener.web.route]]\npath = {{ prefix = \"/{name}/\" }}\npool = \"{name}\"\n\
                 [pool.{name}]\nbalance = {{ {form} }}\nendpoints = [{list}]\npick_log = 500\n"
            )
        })
        .collect();
    let setup = Setup::before(&[&endpoints[0]])
        .workers(WORKERS)
        .listener("trusted_proxies = [\"127.0.0.0/8\"]")
        .tail(&tail);
    let running = setup.start();
    let api = Admin::of(&running);
    let socket = api.socket().to_str().expect("a path").to_owned();
    traffic(&running, &pools);
    let second = endpoints[1].address().to_string();
    for (name, _) in &pools {
        let path = format!("/v1/pools/{name}/endpoints/{second}");
        admin::json(&api.ask("PATCH", &path, r#"{"weight": 4}"#), 200);
    }
    traffic(&running, &pools);

    let in_directory = |name: &str| {
        let path = running.directory().join(name);
        path.to_str().expect("a path").to_owned()
    };
    let (config, log) = (&*in_directory("subak.toml"), &*in_directory("picks.json"));
    for (name, _) in &pools {
        let asked = ["explain", "--socket", &socket, "--recent", "1000", "--pool", name, "--json"];
        let (status, text) = subak(&asked);
        assert_eq!(status, 0, "{text}");
        std::fs::write(log, &text).expect("written");
        let replay = ["lab", "picks", log, "--config", config];
        let picks = 2 * CLIENTS * REQUESTS;
        let expected = format!("pool {name}: {picks} picks of the algorithm, all the same again\n");
        assert_eq!(subak(&replay), (0, expected));
        assert!(text.contains("\"version\": 0") && text.contains("\"version\": 1"), "{name}");
    }

    // Whoever tampers with it is found out.
    let text = std::fs::read_to_string(log).expect("a log");
    let mut told: serde_json::Value = serde_json::from_str(&text).expect("JSON");
    let picked = &mut told["picks"][7]["recorded"]["picked"];
    *picked = ((picked.as_u64().expect("a place") + 1) % 3).into();
    std::fs::write(log, told.to_string()).expect("written");
    let (status, said) = subak(&["lab", "picks", log, "--config", config, "--json"]);
    let said: serde_json::Value = serde_json::from_str(&said).expect(&said);
    assert_eq!(status, 1, "{said}");
    assert_eq!(said["pools"][0]["same"], 2 * CLIENTS * REQUESTS - 1, "{said}");
    let other = &said["pools"][0]["first_other"];
    let truth = &told["picks"][7];
    assert_eq!(other["number"], truth["number"], "{said}");
    assert_eq!(other["how"], format!("now it is {}", truth["endpoint"].as_str().expect("a name")));
    assert_ne!(other["was"], truth["endpoint"], "{said}");
    told["picks"][7]["random"] = "not a number".into();
    std::fs::write(log, told.to_string()).expect("written");
    let (status, said) = subak(&["lab", "picks", log, "--config", config]);
    assert_eq!(status, 2, "{said}");
    assert!(said.contains("random words are not hexadecimal"), "{said}");
}
