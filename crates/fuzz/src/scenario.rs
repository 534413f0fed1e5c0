//! Scenarios of the laboratory: no text panics, every finding lies in the text, and what is read makes
//! sense and can be run faster.

use std::path::Path;
use std::time::Duration;

use subak_scenario::read;

/// Checks one input. Text that is not UTF-8 never reaches the parser.
pub fn check(data: &[u8]) {
    let Ok(text) = std::str::from_utf8(data) else { return };
    let read = read(text, Path::new("scenario.toml"));
    assert_eq!(read.scenario.is_none(), !read.diagnostics.is_empty());
    for one in &read.diagnostics {
        assert!(!one.message.is_empty());
        assert!(one.span.start <= one.span.end && one.span.end <= text.len(), "{one:?}");
    }
    let shown = read.sources.render(&read.diagnostics, false);
    assert_eq!(shown.is_empty(), read.diagnostics.is_empty());
    let Some(scenario) = read.scenario else { return };
    assert!(scenario.warm_up < scenario.lasts && scenario.lasts > Duration::ZERO);
    assert!(!scenario.algorithms.is_empty() && !scenario.endpoints.is_empty());
    assert!(scenario.seeds >= 2 && scenario.repetitions >= 2 && scenario.balancers.count >= 1);
    for fault in &scenario.faults {
        assert!(fault.from <= fault.until);
        assert!(fault.endpoints.iter().all(|place| *place < scenario.endpoints.len()));
    }
    let fast = scenario.clone().faster(2.0);
    assert_eq!(fast.lasts, scenario.lasts.div_f64(2.0));
    assert_eq!(scenario.clone().faster(1.0), scenario);
}
