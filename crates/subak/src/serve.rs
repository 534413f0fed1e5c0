//! `subak serve`: runs until a signal comes.

use std::path::Path;
use std::time::Duration;

use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::time::Instant;

use subak_admin::{Command, Wish};
use tokio::sync::mpsc;

use crate::admin::AdminServer;
use crate::cli::{FAILED, OK, WRONG};
use crate::control::{Control, NotInForce};
use crate::logging::{self, LogFormat};
use crate::service_manager::ServiceManager;

/// How often pools look at the clock, and whether a drain has ended.
const TICK: Duration = Duration::from_millis(100);
const DRAIN_TICK: Duration = Duration::from_millis(20);

/// Serves by a configuration; answers with the exit status.
pub(crate) fn run(path: &Path, log: &str, log_format: Option<LogFormat>) -> u8 {
    let _flush = match logging::start(log, log_format) {
        Ok(flush) => flush,
        Err(message) => {
            eprintln!("error: {message}");
            return WRONG;
        }
    };
    let limit = match subak_net::raise_descriptor_limit() {
        Ok(limit) => limit,
        Err(error) => {
            tracing::error!(%error, "cannot read the limit of open files");
            return FAILED;
        }
    };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let runtime = match runtime {
        Ok(runtime) => runtime,
        Err(error) => {
            tracing::error!(%error, "cannot start: raise `ulimit -n` (LimitNOFILE in systemd)");
            return FAILED;
        }
    };
    runtime.block_on(async {
        let mut signals = match Signals::listen() {
            Ok(signals) => signals,
            Err(error) => {
                tracing::error!(%error, "cannot listen for signals");
                return FAILED;
            }
        };
        // The first answers of names may take a while.
        let started = tokio::select! {
            started = Control::start(path, limit) => started,
            () = signals.stop.recv() => {
                tracing::info!("stopped before it served");
                return OK;
            }
        };
        match started {
            Ok(control) => serve(control, signals).await,
            Err(reason) => {
                tracing::error!("not started: {reason}");
                status_of(&reason)
            }
        }
    })
}

/// What is wrong with the configuration ends with another status than what is wrong with the machine.
fn status_of(reason: &NotInForce) -> u8 {
    match reason {
        NotInForce::Wrong(_) | NotInForce::Service(_) => WRONG,
        NotInForce::Settle(reason) if reason.is_configuration() => WRONG,
        _ => FAILED,
    }
}

struct Signals {
    hangup: Signal,
    user1: Signal,
    user2: Signal,
    stop: StopSignals,
}

/// All of them end it alike; nginx's and others' graceful stop is QUIT.
struct StopSignals {
    terminate: Signal,
    interrupt: Signal,
    quit: Signal,
}

impl Signals {
    fn listen() -> std::io::Result<Signals> {
        let stop = StopSignals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            quit: signal(SignalKind::quit())?,
        };
        let hangup = signal(SignalKind::hangup())?;
        let user1 = signal(SignalKind::user_defined1())?;
        Ok(Signals { hangup, user1, user2: signal(SignalKind::user_defined2())?, stop })
    }
}

impl StopSignals {
    async fn recv(&mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
            _ = self.quit.recv() => {}
        }
    }
}

async fn serve(mut control: Control, mut signals: Signals) -> u8 {
    for listener in &control.config().listeners {
        for address in &listener.bind {
            tracing::info!(listener = %listener.name, %address, "listening");
        }
    }
    let (mut admin, mut asked) = AdminServer::new();
    admin.follow(&control.config().admin, control.problems()).await;
    let mut manager = ServiceManager::from_environment();
    tracing::info!(workers = control.workers(), "serving");
    manager.ready(&control);
    let mut tick = tokio::time::interval(TICK);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                control.tick_pools();
                control.attend_names();
                control.attend_acme();
                control.attend_certificates();
                manager.attend(&control);
            }
            Some(command) = asked.recv() => {
                if matches!(command, Command::Wish { wish: Wish::Reload, .. }) {
                    control.expect_names().await;
                }
                control.obey(command);
                admin.follow(&control.config().admin, control.problems()).await;
            }
            _ = signals.hangup.recv() => {
                manager.reloading();
                control.expect_names().await;
                if control.reload(&"SIGHUP".into()).is_ok() {
                    admin.follow(&control.config().admin, control.problems()).await;
                    tracing::info!(generation = control.generation(), "configuration reloaded");
                }
                manager.ready(&control);
            }
            _ = signals.user1.recv() => {
                control.reopen_access_logs();
                tracing::info!("access logs are opened again");
            }
            _ = signals.user2.recv() => no_upgrade(),
            () = signals.stop.recv() => break,
        }
    }
    // Before the ports are free: whoever can bind those finds its path free.
    admin.close();
    stop(control, signals, asked, manager).await
}

/// USR2 makes nginx start its new binary.
fn no_upgrade() {
    tracing::warn!(
        "SIGUSR2 does nothing: this version cannot hand its sockets to a new process. For another \
         configuration send HUP (`subak ctl reload`); for another binary stop this process (TERM) and \
         start the new one, which need not wait for its end"
    );
}

/// Lets requests under way finish, up to the limit or a second signal.
async fn stop(
    mut control: Control,
    mut signals: Signals,
    mut asked: mpsc::Receiver<Command>,
    mut manager: ServiceManager,
) -> u8 {
    let limit = control.config().shutdown_timeout;
    tracing::info!(connections = control.connections(), ?limit, "stopping; again to end at once");
    manager.stopping(limit);
    control.drain();
    let deadline = Instant::now() + limit;
    let mut tick = tokio::time::interval(DRAIN_TICK);
    loop {
        tokio::select! {
            _ = tick.tick() => {
                if control.has_drained() {
                    break;
                }
                if Instant::now() >= deadline {
                    let connections = control.connections();
                    tracing::warn!(connections, "the time to stop is over; connections are cut off");
                    break;
                }
                control.tick_pools();
                manager.attend(&control);
            }
            Some(command) = asked.recv() => control.obey(command),
            // This process may go on to write for as long as it may take to stop.
            _ = signals.user1.recv() => control.reopen_access_logs(),
            () = signals.stop.recv() => {
                tracing::warn!(connections = control.connections(), "ended by a second signal");
                break;
            }
        }
    }
    control.end();
    tracing::info!("stopped");
    OK
}
