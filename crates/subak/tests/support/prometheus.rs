//! Reads Prometheus's text format 0.0.4, and accepts nothing that its documentation does not.

use std::collections::{BTreeMap, BTreeSet};

/// Labels of one series.
pub(crate) type Labels = BTreeMap<String, String>;

/// A whole scrape.
#[derive(Debug)]
pub(crate) struct Scrape {
    families: BTreeMap<String, Family>,
}

#[derive(Debug)]
struct Family {
    kind: String,
    samples: Vec<(String, Labels, f64)>,
}

impl Scrape {
    /// Reads a text; panics with the line where it breaks a rule.
    #[track_caller]
    pub(crate) fn parse(text: &str) -> Scrape {
        assert!(text.ends_with('\n'), "the last line must end");
        let mut families = BTreeMap::new();
        let mut lines = text.lines().peekable();
        while let Some(line) = lines.next() {
            let help = line.strip_prefix("# HELP ").unwrap_or_else(|| panic!("no HELP: {line}"));
            let (name, help) = help.split_once(' ').expect("a help text");
            assert!(is_name(name) && !help.is_empty(), "{line}");
            let line = lines.next().expect("a TYPE line");
            let kind = line.strip_prefix(&format!("# TYPE {name} ")).expect(line);
            assert!(["counter", "gauge", "histogram"].contains(&kind), "{line}");
            let mut family = Family { kind: kind.to_owned(), samples: Vec::new() };
            let mut seen = BTreeSet::new();
            while let Some(line) = lines.next_if(|line| !line.starts_with('#')) {
                let (sample, labels, value) = parse_sample(line);
                let of_family = match kind {
                    "histogram" => ["_bucket", "_sum", "_count"]
                        .iter()
                        .any(|suffix| sample == format!("{name}{suffix}")),
                    _ => sample == name,
                };
                assert!(of_family, "{line} is not of {name}");
                assert!(kind == "gauge" || value >= 0.0, "{line}");
                assert!(seen.insert((sample.clone(), labels.clone())), "twice: {line}");
                family.samples.push((sample, labels, value));
            }
            if kind == "histogram" {
                check_histogram(name, &family);
            }
            assert_eq!(kind == "counter", name.ends_with("_total"), "{name}");
            assert!(families.insert(name.to_owned(), family).is_none(), "{name} is there twice");
        }
        Scrape { families }
    }

    /// The value of a series, by its name as a sample has it and its labels.
    #[track_caller]
    pub(crate) fn value(&self, name: &str, labels: &[(&str, &str)]) -> f64 {
        let wanted: Labels =
            labels.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let samples = self.families.values().flat_map(|family| &family.samples);
        let found = samples.filter(|sample| sample.0 == name && sample.1 == wanted);
        let values: Vec<f64> = found.map(|sample| sample.2).collect();
        match values[..] {
            [value] => value,
            _ => panic!("{name} {labels:?}: {values:?}"),
        }
    }

    /// The sum of a family's samples with this label.
    pub(crate) fn sum(&self, name: &str, label: (&str, &str)) -> f64 {
        let samples = self.families.get(name).into_iter().flat_map(|family| &family.samples);
        let wanted =
            samples.filter(|(_, labels, _)| labels.get(label.0).is_some_and(|v| v == label.1));
        wanted.map(|sample| sample.2).sum()
    }

    /// The names of all families, with their kinds.
    pub(crate) fn names(&self) -> BTreeMap<&str, &str> {
        self.families.iter().map(|(name, family)| (&**name, &*family.kind)).collect()
    }
}

fn is_name(name: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_' || c == ':';
    name.starts_with(first) && name.chars().all(|c| first(c) || c.is_ascii_digit())
}

fn parse_sample(line: &str) -> (String, Labels, f64) {
    let (name, labels, value) = match line.split_once('{') {
        Some((name, rest)) => {
            let (labels, value) = parse_labels(rest);
            (name, labels, value)
        }
        None => {
            let (name, value) = line.split_once(' ').expect(line);
            (name, Labels::new(), value)
        }
    };
    assert!(is_name(name), "{line}");
    let value = match value {
        "+Inf" => f64::INFINITY,
        number => number.parse().unwrap_or_else(|_| panic!("no number: {line}")),
    };
    (name.to_owned(), labels, value)
}

/// From behind the brace: the labels, and what follows the closing brace and a space.
fn parse_labels(text: &str) -> (Labels, &str) {
    let mut labels = Labels::new();
    let mut rest = text;
    loop {
        let (name, after) = rest.split_once("=\"").expect(text);
        assert!(is_name(name) && !name.contains(':'), "{text}");
        let mut value = String::new();
        let mut characters = after.char_indices();
        let end = loop {
            match characters.next().expect(text) {
                (at, '"') => break at,
                (_, '\\') => value.push(match characters.next().expect(text).1 {
                    'n' => '\n',
                    same @ ('\\' | '"') => same,
                    other => panic!("\\{other} in {text}"),
                }),
                (_, other) => value.push(other),
            }
        };
        assert!(labels.insert(name.to_owned(), value).is_none(), "{name} twice: {text}");
        rest = &after[end + 1..];
        if let Some(value) = rest.strip_prefix("} ") {
            return (labels, value);
        }
        rest = rest.strip_prefix(',').expect(text);
    }
}

/// Every series has rising bounds up to +Inf with counts that do not fall, and a count that is the
/// last of them.
fn check_histogram(name: &str, family: &Family) {
    let mut series: BTreeMap<Labels, Vec<(f64, f64)>> = BTreeMap::new();
    for (sample, labels, value) in &family.samples {
        if sample.ends_with("_bucket") {
            let mut labels = labels.clone();
            let bound = labels.remove("le").expect("le");
            let bound = if bound == "+Inf" { f64::INFINITY } else { bound.parse().expect("le") };
            series.entry(labels).or_default().push((bound, *value));
        }
    }
    for (labels, buckets) in &series {
        assert!(buckets.is_sorted_by(|one, next| one.0 < next.0 && one.1 <= next.1), "{name}");
        let (bound, all) = buckets.last().expect("a bucket");
        assert_eq!(*bound, f64::INFINITY, "{name}");
        let value = |suffix: &str| {
            let full = format!("{name}{suffix}");
            let found =
                family.samples.iter().find(|sample| sample.0 == full && sample.1 == *labels);
            found.unwrap_or_else(|| panic!("no {full} {labels:?}")).2
        };
        assert_eq!(value("_count"), *all);
        assert!(value("_sum") >= 0.0);
    }
}
