//! What is said of an endpoint's reports: once when they stop, when they are no longer counted, when
//! they come back, and when its class changes.
//!
//! A class is said when it has lasted as long as a report is fresh: a load at a border says nothing.

use std::fmt;
use std::time::Duration;

use subak_balance::weigher::{Class, Options, Standing, Weighed};
use subak_balance::weights::Factor;
use subak_base::Tick;

/// What has been said of an endpoint, which is as good as free until something else is said.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Told {
    standing: Option<Standing>,
    /// Since when it is asked in vain, before it was ever heard.
    unheard_since: Option<Tick>,
    class: Option<Class>,
    /// Another class than was said, since when.
    other: Option<(Class, Tick)>,
}

/// Something to be said of an endpoint.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum News {
    /// Its load has another class.
    Class { from: Class, to: Class },
    /// It has stopped reporting; its factor stays.
    Held { factor: Factor, hold: Duration, why: Option<String> },
    /// It does not report, or has not for long.
    Silent { why: Option<String> },
    /// It reports again.
    Back,
}

impl Told {
    /// What is new of an endpoint that was weighed just now.
    pub(super) fn hear(
        &mut self,
        weighed: &Weighed,
        failure: Option<&str>,
        options: &Options,
        now: Tick,
    ) -> Vec<News> {
        let mut news = Vec::new();
        let is_new = self.standing.is_none();
        if is_new && weighed.standing == Standing::Silent {
            // Before its first answer that is nobody's fault, and one that is late says little.
            let unheard_since = match failure {
                Some(_) => *self.unheard_since.get_or_insert(now),
                None => return news,
            };
            if now.since(unheard_since) < options.fresh {
                return news;
            }
        }
        if self.standing != Some(weighed.standing) {
            let why = failure.map(str::to_owned);
            match weighed.standing {
                Standing::Current if is_new => {}
                Standing::Current => news.push(News::Back),
                Standing::Held => {
                    news.push(News::Held { factor: weighed.factor, hold: options.hold, why });
                }
                Standing::Silent => news.push(News::Silent { why }),
            }
            self.standing = Some(weighed.standing);
        }
        news.extend(self.class(weighed, options.fresh, now));
        news
    }

    fn class(&mut self, weighed: &Weighed, patience: Duration, now: Tick) -> Option<News> {
        let Some(measured) = weighed.measured else {
            (self.class, self.other) = (None, None);
            return None;
        };
        let (from, to) = (self.class.unwrap_or(Class::Free), measured.class);
        let since = match self.other {
            _ if to == from => {
                self.other = None;
                return None;
            }
            Some((other, since)) if other == to => since,
            _ => now,
        };
        self.other = Some((to, since));
        if now.since(since) < patience {
            return None;
        }
        (self.class, self.other) = (Some(to), None);
        Some(News::Class { from, to })
    }
}

impl fmt::Display for News {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let because = |why: &Option<String>| match why {
            Some(why) => format!(": {why}"),
            None => String::new(),
        };
        match self {
            News::Class { from, to } => {
                write!(out, "its load was {} and is {}", from.name(), to.name())
            }
            News::Held { factor, hold, why } => write!(
                out,
                "its agent reports no more, its factor stays {factor} until {hold:?} after the last \
                 report{}",
                because(why)
            ),
            News::Silent { why } => {
                write!(out, "its agent does not report, its factor is 1{}", because(why))
            }
            News::Back => out.write_str("its agent reports again"),
        }
    }
}

/// Says it.
pub(super) fn log(pool: &str, endpoint: &str, news: &News) {
    match news {
        News::Class { to: Class::Overload, .. } | News::Held { .. } | News::Silent { .. } => {
            tracing::warn!(pool, endpoint, "{news}");
        }
        News::Class { .. } | News::Back => tracing::info!(pool, endpoint, "{news}"),
    }
}

#[cfg(test)]
mod tests {
    use subak_balance::weigher::{PerResource, Ppm, Report, Weigher};

    use super::*;

    /// A weigher of one endpoint, weighed once a second.
    struct One {
        weigher: Weigher,
        told: Told,
        options: Options,
        seconds: u64,
    }

    impl One {
        fn new() -> One {
            let options = Options::default();
            let weigher = Weigher::new(options.clone(), 1);
            One { weigher, told: Told::default(), options, seconds: 100 }
        }

        /// Goes on for so many seconds, with a report of this load in each or with failures; what
        /// was said.
        fn run(&mut self, load: Result<u64, &str>, seconds: u64) -> Vec<String> {
            let mut said = Vec::new();
            for _ in 0..seconds {
                self.seconds += 1;
                let now = Tick::from_millis(self.seconds * 1000);
                let used = |load| PerResource {
                    cpu: Some(Ppm::saturating(load)),
                    ..PerResource::default()
                };
                let report = load.ok().map(|load| Report {
                    at: now,
                    capacity: PerResource::default(),
                    used: used(load),
                });
                let weighed = self.weigher.update(&[report], now)[0];
                let news = self.told.hear(&weighed, load.err(), &self.options, now);
                said.extend(news.iter().map(ToString::to_string));
            }
            said
        }
    }

    #[test]
    fn silence_is_said_once_in_each_of_its_two_parts_and_so_is_its_end() {
        let mut one = One::new();
        assert!(one.run(Ok(0), 10).is_empty());
        let said = one.run(Err("no connection"), 120);
        assert_eq!(
            said,
            [
                "its agent reports no more, its factor stays 1.000 until 30s after the last report: \
                 no connection",
                "its agent does not report, its factor is 1: no connection"
            ]
        );
        assert_eq!(one.run(Ok(0), 10), ["its agent reports again"]);
        assert!(one.run(Err("late"), 3).is_empty(), "three are nothing yet");
        assert!(one.run(Ok(0), 10).is_empty());
    }

    #[test]
    fn an_agent_that_was_never_heard_is_named_when_it_was_asked_in_vain_for_a_while() {
        let mut one = One::new();
        let silent = one.weigher.update(&[None], Tick(1))[0];
        assert!(one.told.hear(&silent, None, &one.options, Tick(1)).is_empty());
        assert!(one.run(Err("refused"), 3).is_empty(), "it may only be late");
        let said = one.run(Err("refused"), 60);
        assert_eq!(said, ["its agent does not report, its factor is 1: refused"]);
        assert_eq!(one.run(Ok(0), 1), ["its agent reports again"]);
    }

    #[test]
    fn a_class_is_said_when_it_has_lasted_and_not_at_a_border() {
        let mut one = One::new();
        assert!(one.run(Ok(900_000), 3).is_empty());
        assert_eq!(one.run(Ok(900_000), 60), ["its load was free and is overload"]);
        for _ in 0..20 {
            assert!(one.run(Ok(799_000), 2).is_empty());
            assert!(one.run(Ok(801_000), 1).is_empty());
        }
        assert_eq!(one.run(Ok(700_000), 60), ["its load was overload and is normal"]);
        assert_eq!(one.run(Ok(100_000), 60), ["its load was normal and is free"]);
        // Who comes back is as good as free until seen otherwise.
        one.run(Ok(900_000), 60);
        one.run(Err("gone"), 60);
        assert_eq!(one.run(Ok(0), 10), ["its agent reports again"]);
    }
}
