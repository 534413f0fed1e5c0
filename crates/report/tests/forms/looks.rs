//! What a page looks like: in light and in dark its words and lines stand out from the paper, and on a
//! phone nothing is wider than the page. The last is for a browser to say, where there is one.

use std::collections::BTreeMap;
use std::fs;
use std::process::{Command, Stdio};

use crate::sample::sample;

const STYLE: &str = include_str!("../../src/html/style.css");
/// WCAG 2.1, 1.4.3: words.
const WORDS: f64 = 4.5;
/// WCAG 2.1, 1.4.11: lines and marks.
const LINES: f64 = 3.0;
/// What a phone is wide, in pixels.
const PHONE: u32 = 390;

/// The colours of a block that begins after `from`.
fn colours(from: &str) -> BTreeMap<&'static str, [f64; 3]> {
    let (_, block) = STYLE.split_once(from).expect("the block");
    let (block, _) = block.split_once('}').expect("its end");
    let pairs = block.split(';').filter_map(|line| line.split_once(": #"));
    pairs.map(|(name, value)| (name.rsplit("--").next().expect("a name"), rgb(value))).collect()
}

/// `1c2127` or `fff`, from 0 to 1.
fn rgb(hex: &str) -> [f64; 3] {
    let digits = hex.trim();
    let size = digits.len() / 3;
    [0, 1, 2].map(|at| {
        let one = &digits[at * size..(at + 1) * size];
        let value = u8::from_str_radix(&one.repeat(2 / size), 16).expect("a colour");
        f64::from(value) / 255.0
    })
}

/// WCAG's ratio, from 1 to 21.
fn contrast(one: [f64; 3], other: [f64; 3]) -> f64 {
    let light = |colour: [f64; 3]| {
        let [r, g, b] = colour.map(|part| {
            if part <= 0.03928 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * r + 0.7152 * g + 0.0722 * b
    };
    let (one, other) = (light(one), light(other));
    (one.max(other) + 0.05) / (one.min(other) + 0.05)
}

#[test]
fn words_and_lines_stand_out_from_the_paper_in_light_and_in_dark() {
    let dark = colours("(prefers-color-scheme: dark) {\n  :root {");
    for (name, all) in [("light", colours(":root {")), ("dark", dark)] {
        let judge = |what: &str, paper: &str, least: f64| {
            let ratio = contrast(all[what], all[paper]);
            assert!(ratio >= least, "{name}: {what} on {paper} is {ratio:.2} to 1");
        };
        for paper in ["paper", "shade"] {
            judge("ink", paper, WORDS);
            judge("soft", paper, WORDS);
        }
        for mood in ["good", "bad", "careful", "neutral"] {
            judge(mood, &format!("{mood}-back"), WORDS);
        }
        (0..8).for_each(|index| judge(&format!("c{index}"), "paper", LINES));
    }
}

#[test]
fn on_a_phone_nothing_is_wider_than_the_page() {
    let known = ["chromium", "chromium-browser", "google-chrome"];
    let is_there = |name: &&&str| {
        let mut asked = Command::new(name);
        let asked = asked.arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status();
        asked.is_ok_and(|status| status.success())
    };
    let Some(browser) = known.iter().find(is_there) else {
        return eprintln!("SKIPPED: how wide a report is on a phone, for want of a browser");
    };
    let directory = std::env::temp_dir().join(format!("subak-report-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a directory");
    let page = directory.join("page.html");
    let within = sample().html().replace('&', "&amp;").replace('"', "&quot;");
    let ask = "let page = document.querySelector('iframe').contentDocument.documentElement; \
        document.title = 'width ' + page.scrollWidth + ' of ' + page.clientWidth";
    let frame = format!(
        "<!DOCTYPE html><body style=\"margin: 0\" onload=\"{ask}\">\
         <iframe style=\"border: 0; width: {PHONE}px; height: 800px\" srcdoc=\"{within}\"></iframe>"
    );
    fs::write(&page, frame).expect("the page");
    let profile = format!("--user-data-dir={}", directory.join("profile").display());
    let output = Command::new(browser)
        .args([
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--hide-scrollbars",
            "--dump-dom",
        ])
        .args([&profile, &format!("file://{}", page.display())])
        .output()
        .expect("the browser");
    let _ = fs::remove_dir_all(&directory);
    let document = String::from_utf8_lossy(&output.stdout);
    let Some((_, found)) = document.split_once("<title>width ") else {
        let said = String::from_utf8_lossy(&output.stderr);
        return eprintln!("SKIPPED: how wide a report is on a phone, for {browser} says: {said}");
    };
    assert_eq!(found.split('<').next(), Some(&*format!("{PHONE} of {PHONE}")));
}
