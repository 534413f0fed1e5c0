//! What one configuration has that another has not, in a line for log, events and history.

use subak_config::Config;

/// Names that are listed; more are counted.
const LISTED: usize = 5;

/// What is other in `after` than it was in `before`.
#[derive(Debug)]
pub(super) struct Difference {
    parts: Vec<String>,
    /// Whether a listener or a pool is gone.
    pub(super) takes_away: bool,
}

impl Difference {
    pub(super) fn between(before: &Config, after: &Config) -> Difference {
        let mut difference = Difference { parts: Vec::new(), takes_away: false };
        difference.note("listener", before, after, |config| {
            config.listeners.iter().map(|one| (&*one.name, one)).collect()
        });
        difference.note("pool", before, after, |config| {
            config.pools.iter().map(|one| (&*one.name, one)).collect()
        });
        difference
    }

    fn note<T: PartialEq>(
        &mut self,
        what: &str,
        before: &Config,
        after: &Config,
        named: impl for<'a> Fn(&'a Config) -> Vec<(&'a str, &'a T)>,
    ) {
        let (before, after) = (named(before), named(after));
        let find = |list: &[(&str, &T)], name: &str| list.iter().position(|one| one.0 == name);
        let only = |list: &[(&str, &T)], other: &[(&str, &T)]| -> Vec<String> {
            let names = list.iter().filter(|one| find(other, one.0).is_none());
            names.map(|one| one.0.to_owned()).collect()
        };
        let (added, removed) = (only(&after, &before), only(&before, &after));
        let changed = after
            .iter()
            .filter(|one| find(&before, one.0).is_some_and(|index| before[index].1 != one.1));
        let changed: Vec<String> = changed.map(|one| one.0.to_owned()).collect();
        self.takes_away |= !removed.is_empty();
        for (verb, names) in [("added", added), ("removed", removed), ("changed", changed)] {
            if names.is_empty() {
                continue;
            }
            let plural = if names.len() == 1 { "" } else { "s" };
            let more = match names.len().saturating_sub(LISTED) {
                0 => String::new(),
                more => format!(" and {more} more"),
            };
            let listed = names[..names.len().min(LISTED)].join(", ");
            self.parts.push(format!("{what}{plural} {verb}: {listed}{more}"));
        }
    }
}

impl std::fmt::Display for Difference {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.parts.is_empty() {
            true => out.write_str("listeners and pools stay as they were"),
            false => out.write_str(&self.parts.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Difference;
    use std::path::Path;

    fn config(text: &str) -> subak_config::Config {
        subak_config::parse(text, Path::new("subak.toml")).config.expect("a configuration")
    }

    #[test]
    fn what_comes_goes_and_changes_is_named() {
        let before = config(
            "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n\
             [pool.app]\nendpoints = [\"10.0.0.2:80\"]\n[pool.old]\nendpoints = [\"10.0.0.3:80\"]\n",
        );
        let after = config(
            "[listener.web]\nbind = \"0.0.0.0:80\"\npool = \"app\"\n\
             [pool.app]\nendpoints = [\"10.0.0.4:80\"]\n[pool.new]\nendpoints = [\"10.0.0.3:80\"]\n",
        );
        let difference = Difference::between(&before, &after);
        assert_eq!(difference.to_string(), "pool added: new; pool removed: old; pool changed: app");
        assert!(difference.takes_away);
        let same = Difference::between(&after, &after);
        assert!(!same.takes_away);
        assert_eq!(same.to_string(), "listeners and pools stay as they were");
    }
}
