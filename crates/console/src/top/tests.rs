//! The picture on screens of several sizes, and what keys do, on a drawn buffer.

use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use ratatui_core::backend::TestBackend;
use ratatui_core::terminal::Terminal;

use super::draw::{self, Pen};
use super::keys::{self, Action};
use super::plain;
use super::state::{Mode, State, Update};
use crate::status::Status;

/// A status with this many endpoints in each of its pools.
fn status(pools: usize, endpoints: usize) -> Status {
    let endpoint = |id: usize| {
        serde_json::json!({
            "id": id, "name": format!("10.0.{}.{}:8080", id / 250, id % 250), "state": "ready",
            "reason": "as configured", "eligible": true, "hits": 3000, "in_flight": 2,
            "latency_ms": 1.25, "failures": id % 2, "weight": {"configured": 1, "in_force": 1}
        })
    };
    let pool = |number: usize| {
        let endpoints: Vec<_> =
            (0..endpoints).map(|id| endpoint(number * endpoints + id)).collect();
        serde_json::json!({
            "name": format!("pool{number}"), "algorithm": "least_connections", "because": "primaries",
            "requests": {"2xx": 12_000}, "endpoints": endpoints
        })
    };
    let status = serde_json::json!({
        "version": "0.1.0", "uptime_s": 11_100.0, "generation": 4, "connections": 10,
        "problems": [{"kind": "access_log", "what": "/var/log/access", "detail": "disk full", "for_s": 3.0}],
        "listeners": [{"name": "web", "addresses": ["0.0.0.0:80"], "requests": {"2xx": 12_000}}],
        "pools": (0..pools).map(pool).collect::<Vec<_>>()
    });
    serde_json::from_value(status).expect("a status")
}

fn state(pools: usize, endpoints: usize) -> State {
    let mut state = State::new();
    state.take(Update::Status(Box::new(status(pools, endpoints))), 0.0);
    state
}

fn shown(state: &mut State, width: u16, height: u16, pen: Pen) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).expect("a buffer");
    let drawn = terminal.draw(|frame| {
        let area = frame.area();
        draw::screen(state, frame.buffer_mut(), area, pen, 1.0);
    });
    drawn.expect("drawn");
    plain::lines(terminal.backend().buffer())
}

const ASCII: Pen = Pen { colours: false, utf8: false };

fn press(state: &mut State, keys: &str) -> Action {
    let mut last = Action::None;
    for key in keys.chars() {
        let code = match key {
            '\n' => KeyCode::Enter,
            '\x1b' => KeyCode::Esc,
            key => KeyCode::Char(key),
        };
        last = keys::press(state, KeyEvent::new(code, KeyModifiers::NONE));
    }
    last
}

#[test]
fn a_back_off_says_why_first_and_streams_are_counted() {
    let mut state = state(1, 4);
    let status = state.status.as_mut().expect("a status");
    status.listeners[0].streams = 3;
    let crate::status::Endpoints::Listed(endpoints) = &mut status.pools[0].endpoints else {
        unreachable!("all are listed")
    };
    let first = &mut endpoints[0];
    first.state = "back_off".into();
    (first.eligible, first.back_off_for_s, first.streams) = (false, Some(1.5), 2);
    first.refusal = Some("the endpoint cannot be reached: Connection refused".into());
    let lines = shown(&mut state, 140, 24, ASCII);
    let row = lines.iter().find(|line| line.contains("10.0.0.0:8080")).expect("an endpoint");
    assert!(row.contains("backoff: the endpoint cannot"), "{row}");
    assert!(lines.concat().contains("0 conns with 3 streams"), "{lines:#?}");
}

#[test]
fn eighty_columns_show_everything_of_an_endpoint_and_ascii_is_enough() {
    let lines = shown(&mut state(1, 4), 80, 24, ASCII);
    assert!(lines.concat().is_ascii(), "{lines:#?}");
    let row = lines.iter().find(|line| line.contains("10.0.0.1:8080")).expect("an endpoint");
    for text in [" 3,000 ", "###|", " 25 ", "1.25", "ready"] {
        assert!(row.contains(text), "{text} in {row}");
    }
    let text = lines.join("\n");
    assert!(text.contains("! access_log /var/log/access: disk full"), "{text}");
    assert!(text.contains("web 0.0.0.0:80") && text.contains("12,000"), "{text}");
    assert!(text.contains("v pool0 least_connections"), "{text}");
}

#[test]
fn no_screen_is_too_small_or_too_large_to_be_drawn_on() {
    for (width, height) in [(1, 1), (10, 3), (40, 10), (79, 15), (80, 16), (200, 60), (500, 200)] {
        for mode in [Mode::Browse, Mode::Help, Mode::Filter] {
            let mut state = state(3, 30);
            state.mode = mode;
            let lines = shown(&mut state, width, height, Pen { colours: true, utf8: true });
            assert_eq!(lines.len(), usize::from(height));
        }
    }
}

#[test]
fn a_drain_is_asked_about_and_made_by_y_alone() {
    let mut state = state(1, 4);
    shown(&mut state, 80, 24, ASCII);
    assert_eq!(press(&mut state, "d"), Action::None);
    assert_eq!(state.mode, Mode::Browse, "a pool cannot be drained");
    assert_eq!(press(&mut state, "jjd"), Action::None);
    let lines = shown(&mut state, 80, 24, ASCII);
    assert!(lines[23].contains("Drain 10.0.0.1:8080?"), "{}", lines[23]);
    assert!(lines[23].contains("2 requests under way"), "{}", lines[23]);
    assert_eq!(press(&mut state, "n"), Action::None);
    let Action::Change(change) = press(&mut state, "dy") else { panic!("{:?}", state.mode) };
    let asked = (&*change.pool, &*change.endpoint, &*change.body);
    assert_eq!(asked, ("pool0", "10.0.0.1:8080", r#"{"state":"drain"}"#));
}

#[test]
fn a_weight_is_typed_and_confirmed() {
    let mut state = state(1, 4);
    shown(&mut state, 80, 24, ASCII);
    let Action::Change(change) = press(&mut state, "jw1x2\ny") else { panic!("{:?}", state.mode) };
    assert_eq!(change.body, r#"{"weight":12}"#);
    let Action::Change(change) = press(&mut state, "w\ny") else { panic!("{:?}", state.mode) };
    assert_eq!(change.body, r#"{"weight":null}"#);
    assert_eq!(press(&mut state, "w99999\n"), Action::None);
    assert!(state.message.as_ref().expect("a message").1.contains("65535"));
    assert_eq!(press(&mut state, "w5\x1b"), Action::None);
    assert_eq!(state.mode, Mode::Browse);
}

#[test]
fn a_filter_leaves_what_contains_it_and_the_choice_stays_on_the_screen() {
    let mut state = state(2, 40);
    shown(&mut state, 80, 24, ASCII);
    press(&mut state, "/10.0.0.7");
    let names = |state: &State| state.rows().len();
    // Of the first pool 7, of the second 70 to 79 by their numbers.
    assert_eq!(names(&state), 1 + 1 + 1 + 10);
    press(&mut state, "\x1bG");
    let lines = shown(&mut state, 80, 24, ASCII);
    assert!(lines.iter().any(|line| line.contains("10.0.0.79:8080")), "{lines:#?}");
}

#[test]
fn ten_thousand_endpoints_ask_for_those_on_the_screen_alone() {
    let mut state = state(100, 100);
    shown(&mut state, 80, 24, ASCII);
    assert_eq!(state.rows().len(), 100, "folded");
    assert!(state.wanted().is_empty());
    press(&mut state, "j\n");
    shown(&mut state, 80, 24, ASCII);
    assert_eq!((state.rows().len(), state.wanted()), (200, vec!["pool1".to_owned()]));
    press(&mut state, "G");
    shown(&mut state, 80, 24, ASCII);
    assert!(state.wanted().is_empty(), "{:?}", state.wanted());
}

#[test]
fn a_lost_connection_is_said_and_what_was_seen_stays() {
    let mut state = state(1, 4);
    state.take(Update::Lost("nobody answers at /run/subak/admin.sock".to_owned()), 0.5);
    let lines = shown(&mut state, 80, 24, ASCII);
    assert!(lines[1].contains("NO ANSWER"), "{}", lines[1]);
    assert!(lines[23].contains("nobody answers at"), "{}", lines[23]);
    assert!(lines.iter().any(|line| line.contains("10.0.0.1:8080")), "{lines:#?}");
    state.take(Update::Status(Box::new(status(1, 4))), 2.0);
    assert!(!shown(&mut state, 80, 24, ASCII).concat().contains("NO ANSWER"));
}

/// A pool with shadows, of which one has a long name and one has failed.
fn shadowed() -> State {
    let mut status = status(1, 4);
    let shadows = serde_json::json!({
        "caution": "agreement is not a forecast: a shadow sees load that the pool's algorithm made; subak lab whatif simulates",
        "algorithms": [
            { "name": "peak_ewma", "decisions": 12_000, "agreement": 0.8234, "imbalance": 1.0381, "pool_imbalance": 1.0 },
            { "name": "hash key=header:X-Tenant-Of-The-Customer method=maglev balance_factor=1.5",
              "decisions": 1_234_567_890, "agreement": 0.25, "refusals": 17, "imbalance": 12.5, "pool_imbalance": 1.0 },
            { "name": "maglev" },
            { "name": "first", "decisions": 3, "agreement": 1.0, "stopped": true },
        ]
    });
    status.pools[0].shadows = Some(serde_json::from_value(shadows).expect("shadows"));
    let mut state = State::new();
    state.take(Update::Status(Box::new(status)), 0.0);
    state
}

#[test]
fn a_pool_s_shadows_stand_below_its_endpoints_and_say_what_they_are_not() {
    let mut state = shadowed();
    let lines = shown(&mut state, 80, 24, ASCII);
    let at = |text: &str| {
        let found = lines.iter().position(|line| line.contains(text));
        found.unwrap_or_else(|| panic!("{text} in {lines:#?}"))
    };
    let first = at("shadow peak_ewma: agrees in 82.3% of 12,000; imbalance 1.04, pool's 1.00");
    assert!(first > at("10.0.0.3:8080"));
    assert!(lines[at("shadow hash")].contains("25.0%"), "a long name leaves room: {lines:#?}");
    assert!(at("shadow maglev: has not decided yet") > 0);
    assert!(at("shadow first: has failed, and is asked no more") > 0);
    // Chosen, it tells its caution, and is nothing that can be drained.
    press(&mut state, "jjjjj");
    let lines = shown(&mut state, 80, 24, ASCII);
    let caution = "agreement is not a forecast: a shadow sees load that the pool's algorithm made";
    assert!(lines.iter().any(|line| line.trim_end() == caution), "{lines:#?}");
    press(&mut state, "d");
    assert!(matches!(state.mode, Mode::Browse));
    // Folded away with the pool; found by the filter.
    press(&mut state, "/ewma\n");
    let lines = shown(&mut state, 80, 24, ASCII);
    assert_eq!(lines.iter().filter(|line| line.starts_with("  shadow ")).count(), 1, "{lines:#?}");
}

#[test]
fn eighty_columns_cut_no_warning() {
    let mut state = state(1, 2);
    let status = state.status.as_mut().expect("a status");
    let detail = "no endpoint of it can take requests: 10.0.0.2:8080 is down (connection refused), \
                  10.0.0.3:8080 drains; every request is answered 503";
    status.problems[0].detail = detail.to_owned();
    let squeeze = |lines: &[String]| {
        let words: Vec<&str> = lines.iter().flat_map(|line| line.split_whitespace()).collect();
        words.join(" ")
    };
    let lines = shown(&mut state, 80, 24, ASCII);
    assert!(squeeze(&lines).contains(detail), "{lines:#?}");
    assert!(squeeze(&lines).contains("10.0.0.1:8080"), "the table has room: {lines:#?}");

    // The other endpoint is down: what is asked and what follows stand there whole.
    let status = state.status.as_mut().expect("a status");
    status.connections = 123_456;
    let crate::status::Endpoints::Listed(endpoints) = &mut status.pools[0].endpoints else {
        unreachable!("all are listed")
    };
    endpoints[1].eligible = false;
    endpoints[0].name = "[2001:db8:1234:5678:9abc:def0:1234:5678]:8080".to_owned();
    press(&mut state, "jm");
    let lines = shown(&mut state, 80, 24, ASCII);
    let text = squeeze(&lines);
    for part in ["5678]:8080? y yes, n no", "It is the LAST eligible one of its pool."] {
        assert!(text.contains(part), "{part}: {lines:#?}");
    }
    press(&mut state, "n");
    state.take(Update::Lost("connection refused".to_owned()), 1.0);
    let text = squeeze(&shown(&mut state, 80, 24, ASCII));
    assert!(text.contains("NO ANSWER for 0 s, trying again"), "{text}");
}
