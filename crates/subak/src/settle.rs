//! Between binding and serving: the process becomes what its configuration says it is to its machine.
//! `/run/subak` is handed over, the pid file written, and root's rights given up.

use std::fmt;
use std::path::Path;

use subak_config::Config;
use subak_service::{Account, NoAccount, NoPidFile, NotBecome, PidFile, become_account, hand_over};

use crate::logging;

/// Where the Admin API's socket usually is, and a pid file may be: made anew at every start of the
/// machine, so there may be none yet.
const RUNTIME_DIRECTORY: &str = "/run/subak";

/// Why the process cannot be what it is to be.
#[derive(Debug)]
pub(crate) enum NotSettled {
    /// The machine does not know the user or the group.
    Account(NoAccount),
    /// It cannot become that user.
    Become(NotBecome),
    /// The thread that writes the log cannot be started.
    Log(std::io::Error),
    /// Another process has the pid file, or it cannot be written.
    PidFile(NoPidFile),
}

impl fmt::Display for NotSettled {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            NotSettled::Account(error) => error.fmt(out),
            NotSettled::Become(error) => error.fmt(out),
            NotSettled::Log(error) => write!(
                out,
                "the thread that writes the log cannot be started: {error}; raise `ulimit -u` \
                 (TasksMax= in systemd)"
            ),
            NotSettled::PidFile(error) => error.fmt(out),
        }
    }
}

impl NotSettled {
    /// Whether the configuration asks for what is not there.
    pub(crate) fn is_configuration(&self) -> bool {
        matches!(self, NotSettled::Account(_))
    }
}

/// A process that has settled in. The pid file goes when this is dropped, or before, when it gives way.
#[derive(Debug)]
pub(crate) struct Settled {
    account: Option<Account>,
    pid_file: Option<PidFile>,
}

impl Settled {
    /// Settles in by a configuration that was read from `path`.
    ///
    /// # Errors
    /// [`NotSettled`]; then the process has to end.
    pub(crate) fn by(config: &Config, path: &Path) -> Result<Settled, NotSettled> {
        let find = |user: &str| Account::find(user, config.group.as_deref());
        let account = config.user.as_deref().map(find).transpose().map_err(NotSettled::Account)?;
        let changes = account.as_ref().filter(|account| !account.is_own());
        if let Some(account) = changes
            && let Err(error) = hand_over(Path::new(RUNTIME_DIRECTORY), account)
        {
            tracing::warn!(%error, "{RUNTIME_DIRECTORY} cannot be given to {account}");
        }
        let pid_file = config.pid_file.as_deref().map(PidFile::claim).transpose();
        let pid_file = pid_file.map_err(NotSettled::PidFile)?;
        let has_changed = changes.is_some();
        if let Some(account) = &account {
            become_account(account).map_err(NotSettled::Become)?;
        }
        if let Some(account) = account.as_ref().filter(|_| has_changed) {
            tracing::info!("running as {account}");
            warn_of_what_is_closed(account, path);
        }
        logging::write_by_thread().map_err(NotSettled::Log)?;
        Ok(Settled { account, pid_file })
    }

    /// Leaves the pid file to a successor.
    pub(crate) fn give_way(&mut self) {
        self.pid_file = None;
    }

    /// Who this process runs as, where its configuration says it.
    pub(crate) fn account(&self) -> Option<&Account> {
        self.account.as_ref()
    }
}

/// What root could read when it started, this user may not: every reload would fail. Better to hear of
/// it now.
fn warn_of_what_is_closed(account: &Account, path: &Path) {
    let name = account.name();
    let remedy = format!("`runuser -u {name} -- subak check {}` shows the same", path.display());
    match crate::files::read(path) {
        Err(message) => tracing::warn!("reloads will fail as {account}: {message}\n  {remedy}"),
        Ok(text) => {
            let outcome = subak_config::parse(&text, path);
            if outcome.config.is_none() {
                let rendered = outcome.render(false);
                tracing::warn!(
                    "reloads will fail as {account}: {}\n  {remedy}",
                    rendered.trim_end()
                );
            }
        }
    }
}

/// What a reload cannot change.
pub(crate) fn warn_of_what_waits(before: &Config, now: &Config) {
    if (&before.user, &before.group) != (&now.user, &now.group) {
        tracing::warn!("user = … and group = … take effect at the next start");
    }
    if before.pid_file != now.pid_file {
        tracing::warn!("pid_file = … takes effect at the next start");
    }
}
