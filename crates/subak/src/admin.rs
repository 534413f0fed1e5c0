//! The admin server of this process: opened by the configuration in force, and again when that
//! changes. That it cannot be opened is logged and keeps nothing else from running.

use subak_admin::{Command, Door, Gate, Opened, Serving};
use tokio::sync::mpsc;

/// Commands that wait for the control side; more wait with their connections.
const COMMANDS_MAX: usize = 64;

/// What the configuration says of it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct AdminSpec {
    pub(crate) door: Door,
    pub(crate) gate: Gate,
}

/// The admin server, open or not.
pub(crate) struct AdminServer {
    commands: mpsc::Sender<Command>,
    wanted: Option<AdminSpec>,
    serving: Option<Serving>,
}

impl AdminServer {
    /// A closed one, and where what it is asked arrives.
    pub(crate) fn new() -> (AdminServer, mpsc::Receiver<Command>) {
        let (commands, asked) = mpsc::channel(COMMANDS_MAX);
        (AdminServer { commands, wanted: None, serving: None }, asked)
    }

    /// Opens, closes or changes it. What is wanted and is not open is tried again.
    pub(crate) async fn follow(&mut self, wanted: Option<AdminSpec>) {
        if self.wanted == wanted && (wanted.is_none() || self.serving.is_some()) {
            return;
        }
        if let Some(serving) = self.serving.take() {
            serving.end().await;
        }
        if let Some(AdminSpec { door, gate }) = &wanted {
            let begin = |opened: Opened| {
                Serving::begin(opened, gate.clone(), self.commands.clone())
                    .map_err(|error| error.to_string())
            };
            match door.open().map_err(|error| error.to_string()).and_then(begin) {
                Ok(serving) => {
                    tracing::info!(place = serving.place(), "the admin server is open");
                    self.serving = Some(serving);
                }
                Err(error) => tracing::warn!("there is no admin server: {error}"),
            }
        }
        self.wanted = wanted;
    }

    /// Accepts nobody any more and leaves the path to a successor; who is here may look on.
    pub(crate) fn close(&mut self) {
        if let Some(serving) = &mut self.serving {
            serving.close();
        }
    }
}
