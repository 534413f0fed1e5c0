//! Which Subak this is, and what it can do: `subak --version` and `subak version --json`.

use std::sync::LazyLock;

use subak_balance::catalogue;

use crate::files;

/// What this build can do, for people who compare two of them.
const FEATURES: &[(&str, &[&str])] = &[
    (
        "clients",
        &[
            "HTTP/1.1",
            "HTTP/2",
            "TLS 1.2 and 1.3",
            "client certificates",
            "gRPC",
            "WebSocket",
            "PROXY protocol 1 and 2",
            "unix sockets",
        ],
    ),
    (
        "endpoints",
        &[
            "HTTP/1.1",
            "HTTP/2",
            "TLS 1.2 and 1.3",
            "gRPC",
            "WebSocket",
            "PROXY protocol 1 and 2",
            "unix sockets",
            "names by DNS",
        ],
    ),
    ("TLS", &["rustls", "aws-lc", "ACME", "OCSP stapling"]),
    ("health", &["probes by HTTP, gRPC and TCP", "ejection", "agents", "circuits"]),
    ("operation", &["reload", "Admin API", "access logs", "Prometheus metrics", "laboratory"]),
    ("service", &["user switch", "systemd notification", "systemd watchdog", "journal"]),
];

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// All that is listed: the table above, and the algorithms of the catalogue.
fn features() -> impl Iterator<Item = (&'static str, Vec<&'static str>)> {
    let algorithms = catalogue::all().iter().map(|listing| listing.name).collect();
    let listed = FEATURES.iter().map(|(name, each)| (*name, each.to_vec()));
    listed.chain(std::iter::once(("algorithms", algorithms)))
}

/// The commit it was built from: packages and the Makefile say it.
fn commit() -> &'static str {
    option_env!("SUBAK_COMMIT").filter(|commit| !commit.is_empty()).unwrap_or("unknown")
}

fn profile() -> &'static str {
    if cfg!(debug_assertions) { "debug" } else { "release" }
}

/// The long form, without the program's name on its first line: clap puts it there.
pub(crate) fn long() -> &'static str {
    static LONG: LazyLock<String> = LazyLock::new(described);
    &LONG
}

fn described() -> String {
    let mut text = format!(
        "{VERSION}\ncommit: {}\nbuild: {} for {}, by rustc {}\n",
        commit(),
        profile(),
        env!("SUBAK_TARGET"),
        env!("SUBAK_RUSTC"),
    );
    for (name, each) in features() {
        text += &format!("{name}: {}\n", each.join(", "));
    }
    text.truncate(text.trim_end().len());
    text
}

/// Prints it; answers with the exit status.
pub(crate) fn print(json: bool) -> u8 {
    let text = match json {
        false => format!("subak {}\n", long()),
        true => format!("{}\n", to_json()),
    };
    files::told(files::print(&text))
}

fn to_json() -> serde_json::Value {
    let features: serde_json::Map<String, serde_json::Value> =
        features().map(|(name, each)| (name.to_owned(), each.into())).collect();
    serde_json::json!({
        "version": VERSION,
        "commit": commit(),
        "profile": profile(),
        "target": env!("SUBAK_TARGET"),
        "rustc": env!("SUBAK_RUSTC"),
        "features": features,
    })
}
