//! The Admin API of this process: opened by the configuration in force, and again when that
//! changes. That it cannot be opened is logged and keeps nothing else from running.

use subak_admin::{Command, Door, Gate, Opened, Serving, Token};
use subak_config::Admin;
use subak_telemetry::{ProblemKind, Problems};
use tokio::sync::mpsc;

/// Commands that wait for the control side; more wait with their connections.
const COMMANDS_MAX: usize = 64;

/// There is one.
const WHAT: &str = "admin";

/// The Admin API, open or not.
pub(crate) struct AdminServer {
    commands: mpsc::Sender<Command>,
    wanted: Admin,
    serving: Option<Serving>,
}

impl AdminServer {
    /// A closed one, and where what it is asked arrives.
    pub(crate) fn new() -> (AdminServer, mpsc::Receiver<Command>) {
        let (commands, asked) = mpsc::channel(COMMANDS_MAX);
        (AdminServer { commands, wanted: Admin::Off, serving: None }, asked)
    }

    /// Opens, closes or changes it. What is wanted and is not open is tried again.
    pub(crate) async fn follow(&mut self, wanted: &Admin, problems: &Problems) {
        if self.wanted == *wanted && (*wanted == Admin::Off || self.serving.is_some()) {
            return;
        }
        if let Some(serving) = self.serving.take() {
            serving.end().await;
        }
        problems.end(ProblemKind::Admin, WHAT);
        if let Some((door, gate)) = door_and_gate(wanted) {
            let begin = |opened: Opened| {
                Serving::begin(opened, gate, self.commands.clone())
                    .map_err(|error| error.to_string())
            };
            match door.open().map_err(|error| error.to_string()).and_then(begin) {
                Ok(serving) => {
                    tracing::info!(place = serving.place(), "the Admin API is open");
                    self.serving = Some(serving);
                }
                Err(error) => {
                    let detail = format!("there is no Admin API: {error}; a reload tries again");
                    problems.begin(ProblemKind::Admin, WHAT, detail);
                }
            }
        }
        self.wanted = wanted.clone();
    }

    /// Where it is open.
    pub(crate) fn place(&self) -> Option<&str> {
        self.serving.as_ref().map(Serving::place)
    }

    /// Accepts nobody any more and leaves the path to a successor; who is here may look on.
    pub(crate) fn close(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.close();
        }
    }
}

fn door_and_gate(wanted: &Admin) -> Option<(Door, Gate)> {
    match wanted {
        Admin::Off => None,
        Admin::Socket(None) => Some((Door::Usual, Gate::Open)),
        Admin::Socket(Some(path)) => Some((Door::Socket(path.clone()), Gate::Open)),
        Admin::Tcp { address, token, hosts, unix_endpoints } => {
            let (token, hosts) = (Token::new(token.secret()), hosts.clone());
            let gate = Gate::Locked { token, hosts, unix_endpoints: *unix_endpoints };
            Some((Door::Tcp(*address), gate))
        }
    }
}
