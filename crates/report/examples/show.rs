//! Writes a report with everything in it: `cargo run -p subak-report --example show > report.html`,
//! or with `markdown` or `json` behind it.

#[path = "../tests/forms/sample.rs"]
mod sample;

fn main() {
    let report = sample::sample();
    match std::env::args().nth(1).as_deref() {
        Some("markdown") => print!("{}", report.markdown()),
        Some("json") => print!("{}", report.json()),
        _ => print!("{}", report.html()),
    }
}
