//! The terminal: taken over at the start, given back at the end, whatever ends it.

use std::io::{self, Stdout, stdout};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Once};
use std::time::Duration;

use crossterm::cursor::{Hide, Show};
use crossterm::event::{self, Event, KeyEvent};
use crossterm::execute;
use crossterm::terminal::{
    EnterAlternateScreen, LeaveAlternateScreen, disable_raw_mode, enable_raw_mode, size,
};
use ratatui_core::layout::Rect;
use ratatui_core::terminal::{Terminal, TerminalOptions, Viewport};
use ratatui_crossterm::CrosstermBackend;
use tokio::sync::mpsc;

/// How often the thread that reads keys looks whether it shall end.
const LOOK: Duration = Duration::from_millis(100);

/// Whether there is a terminal to give back; one for the process.
static TAKEN: AtomicBool = AtomicBool::new(false);
static ON_PANIC: Once = Once::new();

/// What comes from the terminal.
#[derive(Debug)]
pub(super) enum Input {
    Key(KeyEvent),
    /// The window has another size.
    Resized,
    /// The terminal is gone.
    Gone,
}

/// A terminal in our hands.
pub(super) struct Screen {
    pub(super) terminal: Terminal<CrosstermBackend<Stdout>>,
    ended: Arc<AtomicBool>,
}

impl Screen {
    /// Takes the terminal over. Keys go to `inputs` from then on.
    pub(super) fn take(inputs: mpsc::Sender<Input>) -> io::Result<Screen> {
        ON_PANIC.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                give_back();
                before(info);
            }));
        });
        TAKEN.store(true, Ordering::SeqCst);
        let ended = Arc::new(AtomicBool::new(false));
        let taken = || -> io::Result<_> {
            enable_raw_mode()?;
            execute!(stdout(), EnterAlternateScreen, Hide)?;
            let terminal = terminal()?;
            let told = ended.clone();
            std::thread::Builder::new()
                .name("keys".to_owned())
                .spawn(move || read(&inputs, &told))?;
            Ok(terminal)
        };
        match taken() {
            Ok(terminal) => Ok(Screen { terminal, ended }),
            Err(error) => {
                give_back();
                Err(error)
            }
        }
    }
}

/// A terminal that does not know its size, as a serial line, has the usual one.
fn terminal() -> io::Result<Terminal<CrosstermBackend<Stdout>>> {
    let backend = CrosstermBackend::new(stdout());
    let viewport = match size() {
        Ok((1.., 1..)) => Viewport::Fullscreen,
        _ => Viewport::Fixed(Rect { x: 0, y: 0, width: 80, height: 24 }),
    };
    Terminal::with_options(backend, TerminalOptions { viewport })
}

impl Drop for Screen {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::SeqCst);
        give_back();
    }
}

fn give_back() {
    if TAKEN.swap(false, Ordering::SeqCst) {
        // A terminal that is gone needs nothing back.
        let _ = execute!(stdout(), Show, LeaveAlternateScreen);
        let _ = disable_raw_mode();
    }
}

fn read(inputs: &mpsc::Sender<Input>, ended: &AtomicBool) {
    while !ended.load(Ordering::SeqCst) {
        let input = match event::poll(LOOK) {
            Ok(false) => continue,
            Ok(true) => match event::read() {
                Ok(Event::Key(key)) => Input::Key(key),
                Ok(Event::Resize(..)) => Input::Resized,
                Ok(_) => continue,
                Err(_) => Input::Gone,
            },
            Err(_) => Input::Gone,
        };
        let gone = matches!(input, Input::Gone);
        if inputs.blocking_send(input).is_err() || gone {
            return;
        }
    }
}
