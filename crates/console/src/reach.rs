//! Finds the process that is meant: by `--socket`, by `--url`, or in the usual place.

mod processes;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};

use clap::Args;
use tokio::net::UnixStream;

use crate::ask::{AskError, Target};
use crate::status::Status;

/// The options that say which process is meant; the same for every command that asks one.
#[derive(Args, Clone, Default, Debug)]
pub struct Reach {
    /// The unix socket of its Admin API [default: the one in /run/subak or $XDG_RUNTIME_DIR/subak]
    #[arg(long, value_name = "PATH", conflicts_with = "url", global = true)]
    pub socket: Option<PathBuf>,
    /// The address of its Admin API, where it is asked by TCP: http://127.0.0.1:9000
    #[arg(long, value_name = "URL", global = true)]
    pub url: Option<String>,
    /// The file with the token that its Admin API wants by TCP
    #[arg(long, value_name = "FILE", global = true)]
    pub token_file: Option<PathBuf>,
}

/// Where an Admin API is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Place {
    Socket(PathBuf),
    /// Host and port.
    Tcp(String),
}

impl fmt::Display for Place {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Place::Socket(path) => write!(out, "{}", path.display()),
            Place::Tcp(address) => write!(out, "http://{address}"),
        }
    }
}

impl Reach {
    /// Finds it. Inside a tokio runtime.
    ///
    /// # Errors
    /// [`AskError::NotFound`] and what belongs to it.
    pub async fn find(&self) -> Result<Target, AskError> {
        let token = self.token_file.as_deref().map(read_token).transpose()?;
        let place = match (&self.socket, &self.url) {
            (Some(path), _) => Place::Socket(path.clone()),
            (None, Some(url)) => {
                if token.is_none() {
                    let what = "--url wants --token-file: by TCP the Admin API asks for a token";
                    return Err(AskError::Token(what.to_owned()));
                }
                Place::Tcp(authority(url).map_err(AskError::NotFound)?)
            }
            (None, None) => Place::Socket(usual(subak_admin::usual_sockets()).await?),
        };
        Target::new(place, token.as_deref())
    }
}

/// Why no process was found.
#[derive(Debug)]
pub enum NotFound {
    /// Nobody listens in a usual place.
    None {
        /// The first place that was looked at.
        looked: PathBuf,
        /// Processes that serve all the same.
        running: Vec<u32>,
    },
    /// Several do.
    Several(Vec<String>),
    /// The URL cannot be used.
    Url(String),
}

impl fmt::Display for NotFound {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotFound::None { looked, running } if running.is_empty() => write!(
                out,
                "no Subak runs here: nobody listens at {}\n  start one with `subak serve --config \
                 FILE`, or say where it is with --socket or --url",
                looked.display()
            ),
            NotFound::None { looked, running } => {
                let ids: Vec<_> = running.iter().map(u32::to_string).collect();
                write!(
                    out,
                    "Subak runs (process {}), but its Admin API is not at {}\n  its log says \"the \
                     Admin API is open\" and where: name that place with --socket or --url",
                    ids.join(", "),
                    looked.display()
                )
            }
            NotFound::Several(found) => {
                out.write_str("several run here; say which one with --socket:")?;
                found.iter().try_for_each(|line| write!(out, "\n  {line}"))
            }
            NotFound::Url(what) => out.write_str(what),
        }
    }
}

/// The one usual place at which somebody listens.
async fn usual(paths: Vec<PathBuf>) -> Result<PathBuf, AskError> {
    let (mut open, mut closed) = (Vec::new(), None);
    for path in &paths {
        match UnixStream::connect(path).await {
            Ok(_) => open.push(path.clone()),
            Err(error) if error.kind() == io::ErrorKind::PermissionDenied => {
                closed.get_or_insert(path.clone());
            }
            // Not there, or left behind by a process that was killed.
            Err(_) => {}
        }
    }
    match (&open[..], closed) {
        ([only], None) => Ok(only.clone()),
        ([], Some(path)) => Err(AskError::Rights(path)),
        ([], None) => {
            let looked = paths.first().cloned().unwrap_or_default();
            Err(AskError::NotFound(NotFound::None { looked, running: processes::serving() }))
        }
        (_, closed) => {
            let mut found = Vec::new();
            for path in open {
                found.push(describe(&path).await);
            }
            let of_others = closed.map(|path| format!("{}  of another user", path.display()));
            found.extend(of_others);
            Err(AskError::NotFound(NotFound::Several(found)))
        }
    }
}

/// `--socket /run/subak/admin.sock  (process 123: web on 0.0.0.0:80)`
async fn describe(path: &Path) -> String {
    let asked = Target::socket(path).ask(hyper::Method::GET, crate::status::BRIEF, "").await;
    let what = match asked.and_then(|answer| answer.json::<Status>()) {
        Ok(status) => {
            let places = status.listeners.iter().take(3);
            let places: Vec<_> = places
                .map(|listener| format!("{} on {}", listener.name, listener.addresses.join(", ")))
                .collect();
            format!("process {}: {}", status.pid, places.join("; "))
        }
        Err(_) => "does not answer".to_owned(),
    };
    format!("--socket {}  ({what})", path.display())
}

/// Host and port of a URL.
fn authority(url: &str) -> Result<String, NotFound> {
    let wrong = |why: &str| Err(NotFound::Url(format!("--url {url}: {why}")));
    if url.starts_with("https://") {
        return wrong("the Admin API speaks http alone; bring TLS by a tunnel (ssh -L)");
    }
    let rest = url.strip_prefix("http://").unwrap_or(url);
    let rest = rest.strip_suffix('/').unwrap_or(rest);
    let has_port = rest.rsplit_once(':').is_some_and(|(host, port)| {
        !host.is_empty()
            && port.parse::<u16>().is_ok()
            && (!host.contains(':') || host.ends_with(']'))
    });
    if rest.contains(['/', '?', '#', '@']) || !has_port {
        return wrong("expected an address and a port alone, such as http://127.0.0.1:9000");
    }
    Ok(rest.to_owned())
}

fn read_token(path: &Path) -> Result<String, AskError> {
    let said = |why: String| AskError::Token(format!("--token-file {}: {why}", path.display()));
    let text = std::fs::read_to_string(path).map_err(|error| said(error.to_string()))?;
    match text.trim() {
        "" => Err(said("the file is empty".to_owned())),
        token => Ok(token.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_an_address_and_a_port() {
        for (url, expected) in [
            ("http://127.0.0.1:9000", "127.0.0.1:9000"),
            ("http://127.0.0.1:9000/", "127.0.0.1:9000"),
            ("localhost:9000", "localhost:9000"),
            ("http://[::1]:9000", "[::1]:9000"),
        ] {
            assert_eq!(authority(url).expect(url), expected);
        }
        for url in [
            "https://127.0.0.1:9000",
            "http://127.0.0.1",
            "http://127.0.0.1:9000/v1",
            "http://me@host:9000",
            "http://::1:9000",
            "http://:9000",
            "",
        ] {
            assert!(authority(url).is_err(), "{url}");
        }
    }

    #[tokio::test]
    async fn sockets_that_were_left_behind_are_not_taken_for_processes() {
        let directory = std::env::temp_dir().join(format!("subak-reach-{}", std::process::id()));
        std::fs::create_dir_all(&directory).expect("a directory");
        let [left, one, two] = ["left", "one", "two"].map(|name| directory.join(name));
        drop(std::os::unix::net::UnixListener::bind(&left).expect("bind"));
        let listener = tokio::net::UnixListener::bind(&one).expect("bind");
        let found = usual(vec![left.clone(), one.clone()]).await;
        assert_eq!(found.expect("the one that listens"), one);
        let second = tokio::net::UnixListener::bind(&two).expect("bind");
        let closing = async |listener: &tokio::net::UnixListener| loop {
            let _ = listener.accept().await;
        };
        let several = tokio::select! {
            several = usual(vec![left.clone(), one.clone(), two.clone()]) => several,
            () = closing(&listener) => return,
            () = closing(&second) => return,
        };
        let several = several.expect_err("two of them").to_string();
        for path in [&one, &two] {
            assert!(several.contains(&format!("--socket {}", path.display())), "{several}");
        }
        drop((listener, second));
        let none = usual(vec![left, two]).await.expect_err("nobody").to_string();
        assert!(none.contains("--socket"), "{none}");
        std::fs::remove_dir_all(&directory).expect("removed");
    }
}
