//! Which certificate is for the name that a client asks for?
//!
//! A name is looked up as it is, then with its first label replaced by `*`: `*.example.com` is for
//! `www.example.com`, and neither for `example.com` nor for `a.b.example.com` (RFC 6125, 6.4.3). Two
//! look-ups in a hash table, whatever the number of names. A table of values by name, so that the
//! same code tells certificates and challenges apart.

use std::collections::HashMap;

/// The longest name DNS knows.
const MAX_NAME: usize = 253;

/// Values by name, exact or wildcard.
#[derive(Clone, Debug)]
pub struct Names<T> {
    exact: HashMap<Box<str>, T>,
    /// By what follows `*.`.
    wildcard: HashMap<Box<str>, T>,
}

impl<T> Default for Names<T> {
    fn default() -> Names<T> {
        Names { exact: HashMap::new(), wildcard: HashMap::new() }
    }
}

impl<T> Names<T> {
    /// The value kept for exactly this pattern, made if there is none.
    pub fn entry(&mut self, pattern: &str) -> &mut T
    where
        T: Default,
    {
        let pattern = normal(pattern);
        match pattern.strip_prefix("*.") {
            Some(parent) => self.wildcard.entry(parent.into()).or_default(),
            None => self.exact.entry(pattern.into()).or_default(),
        }
    }

    /// The value for a name: that of the name itself, else that of its wildcard.
    pub fn find(&self, name: &str) -> Option<&T> {
        if name.len() > MAX_NAME + 1 {
            return None;
        }
        // What arrives is in lower case nearly always: then nothing is copied.
        let lowered;
        let name = match name.bytes().any(|byte| byte.is_ascii_uppercase()) {
            true => {
                lowered = name.to_ascii_lowercase();
                &*lowered
            }
            false => name,
        };
        let name = name.strip_suffix('.').unwrap_or(name);
        self.exact.get(name).or_else(|| {
            let (label, parent) = name.split_once('.')?;
            self.wildcard.get(parent).filter(|_| !label.is_empty())
        })
    }

    /// All values, in no order.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut T> {
        self.exact.values_mut().chain(self.wildcard.values_mut())
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.exact.is_empty() && self.wildcard.is_empty()
    }
}

/// Whether a certificate for `patterns` is good for `name`, which may be a wildcard itself.
pub fn is_covered_by<'a>(name: &str, patterns: impl IntoIterator<Item = &'a str>) -> bool {
    let name = normal(name);
    patterns.into_iter().any(|pattern| {
        let pattern = normal(pattern);
        pattern == name
            || pattern.strip_prefix("*.").is_some_and(|parent| {
                name.split_once('.').is_some_and(|(label, rest)| {
                    !label.is_empty() && label != "*" && rest == parent
                })
            })
    })
}

fn normal(name: &str) -> String {
    let name = name.to_ascii_lowercase();
    name.strip_suffix('.').map(str::to_owned).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn names(patterns: &[&str]) -> Names<Option<String>> {
        let mut names = Names::default();
        for pattern in patterns {
            *names.entry(pattern) = Some((*pattern).to_owned());
        }
        names
    }

    fn found(names: &Names<Option<String>>, name: &str) -> Option<String> {
        names.find(name).cloned().flatten()
    }

    #[test]
    fn exact_goes_before_wildcard_and_a_wildcard_is_for_one_label() {
        let names = names(&["example.com", "*.example.com", "www.example.com", "*.a.example.com"]);
        let cases = [
            ("example.com", Some("example.com")),
            ("EXAMPLE.com", Some("example.com")),
            ("example.com.", Some("example.com")),
            ("www.example.com", Some("www.example.com")),
            ("api.example.com", Some("*.example.com")),
            ("a.example.com", Some("*.example.com")),
            ("b.a.example.com", Some("*.a.example.com")),
            ("c.b.a.example.com", None),
            (".example.com", None),
            ("com", None),
            ("", None),
            ("example.org", None),
        ];
        for (name, expected) in cases {
            assert_eq!(found(&names, name).as_deref(), expected, "{name}");
        }
    }

    #[test]
    fn a_wildcard_covers_itself_and_names_of_one_label_more() {
        assert!(is_covered_by("*.example.com", ["*.example.com"]));
        assert!(is_covered_by("www.Example.com", ["a.org", "*.example.com"]));
        assert!(!is_covered_by("example.com", ["*.example.com"]));
        assert!(!is_covered_by("a.b.example.com", ["*.example.com"]));
        assert!(!is_covered_by("*.b.example.com", ["*.example.com"]));
    }

    proptest! {
        /// The table says what the slow definition says, for every name and set of patterns.
        #[test]
        fn the_table_is_the_definition(
            patterns in prop::collection::vec("(\\*\\.)?[ab]{1,2}(\\.[ab]{1,2}){0,2}", 0..8),
            name in "[abAB]{0,2}(\\.[ab]{0,2}){0,3}",
        ) {
            let table = names(&patterns.iter().map(String::as_str).collect::<Vec<_>>());
            let lower = name.to_ascii_lowercase();
            let lower = lower.strip_suffix('.').unwrap_or(&lower);
            let exact = patterns.iter().find(|pattern| *pattern == lower);
            let wild = patterns.iter().find(|pattern| {
                pattern.strip_prefix('*').is_some_and(|rest| {
                    lower.strip_suffix(rest).is_some_and(|l| !l.is_empty() && !l.contains('.'))
                })
            });
            prop_assert_eq!(found(&table, &name), exact.or(wild).cloned());
        }

        #[test]
        fn nothing_that_a_client_sends_is_too_much(name in "\\PC{0,400}") {
            let table = names(&["*.example.com", "example.com"]);
            let _ = table.find(&name);
        }
    }
}
