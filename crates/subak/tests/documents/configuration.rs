//! Configurations that a document shows and no command reads: `subak check` has to find nothing in
//! them, once they are made whole.
//!
//! A bare ```` ```toml ```` block is a configuration, or tables of one; the listener `web` and the pool
//! `app` are added where they are missing. `in=pool`, `in=listener`, `in=route` and `in=top` are keys of
//! these tables. `each` takes every line for itself: they are alternatives. `wrong` shows a mistake.

use std::fs;
use std::process::Command;

use crate::blocks::Block;

/// What `subak check` finds.
pub(crate) fn check(block: &Block) -> Result<(), String> {
    let is_wrong = block.option("wrong").is_some();
    let parts: Vec<String> = match block.option("each") {
        Some(_) => block.lines.iter().filter(|line| !line.is_empty()).cloned().collect(),
        None => vec![block.text()],
    };
    for part in parts {
        let whole = whole(&part, block.option("in"))?;
        match (refused(&whole), is_wrong) {
            (Some(why), false) => return Err(format!("{why}\n{whole}")),
            (None, true) => return Err(format!("is said to be wrong, and is not\n{whole}")),
            _ => {}
        }
    }
    Ok(())
}

/// What is shown, with what it needs around it.
fn whole(shown: &str, table: Option<&str>) -> Result<String, String> {
    const LISTENER: &str = "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n";
    const POOL: &str = "[pool.app]\nendpoints = [\"10.0.0.2:8080\", \"10.0.0.3:8080\"]\n";
    const ROUTE: &str = "[[listener.web.route]]\n";
    Ok(match table {
        Some("top") => format!("{shown}{LISTENER}{POOL}"),
        Some("listener") => {
            // What is said again takes the place of what is there.
            let line = |key: &str| match shown.lines().any(|line| line.starts_with(key)) {
                true => String::new(),
                false => LISTENER.lines().filter(|l| l.starts_with(key)).collect::<String>() + "\n",
            };
            format!("[listener.web]\n{}{}{shown}{POOL}", line("bind"), line("pool"))
        }
        Some("route") => format!("{LISTENER}{ROUTE}{shown}{POOL}"),
        Some("pool") => match shown.lines().any(|line| line.starts_with("endpoints")) {
            true => format!("{LISTENER}[pool.app]\n{shown}"),
            false => format!("{LISTENER}{POOL}{shown}"),
        },
        Some(other) => return Err(format!("in={other} is not known")),
        None => {
            let routes_alone = LISTENER.split_inclusive('\n').take(2).collect::<String>();
            let listener = if shown.contains("[listener.web]") {
                ""
            } else if shown.contains("[[listener.web.route]]") {
                &routes_alone
            } else {
                LISTENER
            };
            let pool = if shown.contains("[pool.app]") { "" } else { POOL };
            // Keys of the top level come before the first table.
            let top = shown.lines().take_while(|line| !line.starts_with('['));
            let top: String = top.map(|line| format!("{line}\n")).collect();
            let tables = &shown[top.len().min(shown.len())..];
            format!("{top}{listener}{tables}{pool}")
        }
    })
}

/// What `subak check` says of it, where it finds anything.
fn refused(whole: &str) -> Option<String> {
    static NEXT: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let number = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
    let name = format!("subak-shown-{}-{number}", std::process::id());
    let directory = std::env::temp_dir().join(name);
    fs::create_dir_all(&directory).expect("a directory");
    for (name, text) in files() {
        let path = directory.join(name);
        fs::write(&path, text).expect("write a file");
        let mode = std::os::unix::fs::PermissionsExt::from_mode(0o600);
        fs::set_permissions(&path, mode).expect("keep it private");
    }
    let path = directory.join("subak.toml");
    fs::write(&path, whole).expect("write it");
    let check = Command::new(env!("CARGO_BIN_EXE_subak"))
        .args(["check", "--color", "never", "subak.toml"])
        .current_dir(&directory)
        .output()
        .expect("subak");
    let _ = fs::remove_dir_all(&directory);
    let said = [check.stdout, check.stderr].concat();
    let said = String::from_utf8_lossy(&said).into_owned();
    // A warning does not change the exit status.
    (!check.status.success() || said.contains("warning")).then_some(said)
}

/// The files that configurations in documents name.
fn files() -> Vec<(&'static str, String)> {
    let pem = |section: &str| format!("-----BEGIN {section}-----\nAA==\n-----END {section}-----\n");
    let secret = |name: &str| format!("{name}-00ff00ff00ff00ff00ff00ff00ff00ff\n");
    vec![
        ("site.pem", pem("CERTIFICATE")),
        ("site.key", pem("PRIVATE KEY")),
        ("admin.token", secret("admin")),
        ("agent.token", secret("agent")),
        ("session.keys", "00ff00ff00ff00ff00ff00ff00ff00ff\n".to_owned()),
        ("token", secret("any")),
        ("extra.toml", String::new()),
        ("502.html", "<p>sorry</p>\n".to_owned()),
        ("error.html", "<p>sorry</p>\n".to_owned()),
    ]
}
