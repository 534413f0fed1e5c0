//! How far the cells of papers are: a bar on a terminal, elsewhere a line for each cell.
//!
//! The time that is left is what the cells that are not over are expected to take, of the one that runs
//! what is left of it.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::line::{Line, bar};
use crate::files;

/// The bar is drawn anew so often while a cell runs.
const EVERY: Duration = Duration::from_millis(500);

pub(super) struct Cells {
    line: Line,
    state: Mutex<State>,
}

/// What is drawn.
struct State {
    /// What all cells of this run are expected to take.
    all: Duration,
    /// What those that are over were expected to take.
    over: Duration,
    running: Option<Running>,
}

struct Running {
    number: usize,
    count: usize,
    name: String,
    takes: Duration,
    began: Instant,
}

impl Cells {
    /// `all` is what the cells that are to be run will take.
    pub(super) fn new(all: Duration) -> Cells {
        let state = State { all, over: Duration::ZERO, running: None };
        Cells { line: Line::new(false), state: Mutex::new(state) }
    }

    /// The cell of this number, of so many, begins.
    pub(super) fn begins(&self, number: usize, count: usize, name: &str, takes: Duration) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let began = Instant::now();
        let running = Running { number, count, name: name.to_owned(), takes, began };
        if !self.line.is_shown() {
            let left = length(state.left(&running, Duration::ZERO));
            files::tell(&format!("{number} of {count}, about {left} left: {name}\n"));
        }
        state.running = Some(running);
        self.draw(&state);
    }

    /// It is over; what there is to say of it stays.
    pub(super) fn ended(&self, message: &str) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(running) = state.running.take() {
            state.over += running.takes;
        }
        if !message.is_empty() {
            self.line.clear();
            files::tell(message);
        }
    }

    /// Draws the bar until the other end of `stop` is gone; then takes it away.
    pub(super) fn keep_drawing(&self, stop: &Receiver<()>) {
        while self.line.is_shown() && stop.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            self.draw(&self.state.lock().unwrap_or_else(PoisonError::into_inner));
        }
        self.line.clear();
    }

    fn draw(&self, state: &State) {
        if let Some(running) = &state.running {
            self.line.show(|| state.text(running, running.began.elapsed()));
        }
    }
}

impl State {
    fn left(&self, running: &Running, elapsed: Duration) -> Duration {
        self.all.saturating_sub(self.over + elapsed.min(running.takes))
    }

    fn text(&self, running: &Running, elapsed: Duration) -> String {
        let left = self.left(running, elapsed);
        let share = 1.0 - left.as_secs_f64() / self.all.as_secs_f64().max(1e-3);
        let (number, count, name) = (running.number, running.count, &running.name);
        format!("{} {number} of {count}, about {} left: {name}", bar(share), length(left))
    }
}

/// `2 h 05 min`, `3 min 20 s`, `1.5 s`.
pub(super) fn length(time: Duration) -> String {
    let seconds = time.as_secs();
    match seconds {
        0..60 => format!("{:.1} s", time.as_secs_f64()),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        _ => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
    }
}

#[cfg(test)]
mod tests {
    use super::{Running, State, length};
    use std::time::{Duration, Instant};

    #[test]
    fn lengths_are_written_as_people_say_them() {
        for (ms, text) in [(1500, "1.5 s"), (200_000, "3 min 20 s"), (7_500_000, "2 h 05 min")] {
            assert_eq!(length(Duration::from_millis(ms)), text);
        }
    }

    #[test]
    fn what_is_left_falls_while_a_cell_runs_but_not_below_the_cells_behind_it() {
        let seconds = Duration::from_secs;
        let (name, began) = ("P2/a#3".to_owned(), Instant::now());
        let running = Running { number: 3, count: 4, name, takes: seconds(60), began };
        let state = State { all: seconds(240), over: seconds(120), running: None };
        let text = |elapsed| state.text(&running, seconds(elapsed));
        assert_eq!(text(0), "[============            ] 3 of 4, about 2 min 00 s left: P2/a#3");
        assert!(text(30).starts_with("[=============== "), "{}", text(30));
        assert!(text(30).contains("1 min 30 s left"));
        assert_eq!(text(60), text(600));
        assert!(text(60).contains("1 min 00 s left"));
    }
}
