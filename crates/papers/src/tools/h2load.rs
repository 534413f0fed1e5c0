//! nghttp2's h2load: `h2load --h1 -n N -c C URL`.

use std::process::Command;
use std::time::Duration;

use super::number_after;
use crate::cell::Need;
use crate::world::World;

/// What h2load prints of a run.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct H2load {
    /// Answered with 2xx or 3xx.
    pub succeeded: f64,
    /// All others.
    pub failed: f64,
    /// Requests per second.
    pub rate: f64,
    /// "time for request", mean: from a request to its whole answer.
    pub request_ms: f64,
    /// "time to 1st byte", mean over clients: from the beginning, with the connection's time.
    pub first_byte_ms: f64,
}

/// How h2load is called.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Requests.
    pub requests: u32,
    /// Clients.
    pub clients: u32,
    /// HTTP/1.1 instead of HTTP/2.
    pub h1: bool,
    /// What for.
    pub url: &'a str,
    /// Where to connect, whatever the URL names: of an address of IPv6 in a URL h2load 1.52 makes a
    /// Host without brackets, which is none.
    pub to: &'a str,
}

impl Call<'_> {
    /// The command as a person would write it.
    pub fn text(&self) -> String {
        format!("h2load {}", self.arguments().join(" "))
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        if self.h1 {
            arguments.push("--h1".to_owned());
        }
        arguments.extend(["-n".to_owned(), self.requests.to_string()]);
        arguments.extend(["-c".to_owned(), self.clients.to_string()]);
        arguments.extend([format!("--connect-to={}", self.to), self.url.to_owned()]);
        arguments
    }

    /// Runs it.
    ///
    /// # Errors
    /// It is not there, gave up or says something unexpected.
    pub fn run(&self, world: &World) -> Result<H2load, String> {
        let mut command = Command::new(world.tool(Need::H2load)?);
        let said = world.say(command.args(self.arguments()), Duration::from_secs(600))?;
        read(&said.text).ok_or_else(|| format!("h2load said: {}", said.text.trim()))
    }
}

fn read(text: &str) -> Option<H2load> {
    let line = |name: &str| text.lines().find_map(|line| line.trim().strip_prefix(name));
    let requests = line("requests:")?;
    let count = |name: &str| {
        let before = &requests[..requests.find(name)?];
        before.rsplit([' ', ',']).find(|word| !word.is_empty())?.parse::<f64>().ok()
    };
    // min, max, mean, sd.
    let mean = |name: &str| line(name)?.split_whitespace().nth(2).and_then(milliseconds);
    Some(H2load {
        succeeded: count("succeeded")?,
        failed: count("failed")?,
        rate: number_after(line("finished in")?, ",")?,
        request_ms: mean("time for request:")?,
        first_byte_ms: mean("time to 1st byte:")?,
    })
}

/// `730us`, `10.62ms`, `1.20s`.
fn milliseconds(text: &str) -> Option<f64> {
    let (number, factor) = match text {
        _ if text.ends_with("us") => (text.trim_end_matches("us"), 1e-3),
        _ if text.ends_with("ms") => (text.trim_end_matches("ms"), 1.0),
        _ => (text.trim_end_matches('s'), 1e3),
    };
    number.parse::<f64>().ok().map(|number| number * factor)
}

#[cfg(test)]
mod tests {
    use super::{H2load, milliseconds, read};

    /// By h2load 1.52.0.
    const SAID: &str = "\
finished in 296.57ms, 6743.79 req/s, 1001.03KB/s
requests: 2000 total, 2000 started, 2000 done, 1998 succeeded, 2 failed, 0 errored, 0 timeout
status codes: 2000 2xx, 0 3xx, 0 4xx, 0 5xx
traffic: 296.88KB (304000) total, 210.94KB (216000) headers (space savings 0.00%), 9.77KB (10000) data
                     min         max         mean         sd        +/- sd
time for request:      730us     86.81ms     10.62ms     17.41ms    91.75%
time for connect:    11.03ms     68.14ms     33.40ms     21.03ms    66.00%
time to 1st byte:    43.93ms    153.84ms    107.27ms     24.90ms    77.00%
req/s           :      67.73       88.99       81.95        7.52    78.00%
";

    #[test]
    fn reads_what_h2load_says() {
        let expected = H2load {
            succeeded: 1998.0,
            failed: 2.0,
            rate: 6743.79,
            request_ms: 10.62,
            first_byte_ms: 107.27,
        };
        assert_eq!(read(SAID), Some(expected));
        assert_eq!(read("unrecognized option"), None);
    }

    #[test]
    fn times_have_units() {
        assert_eq!(milliseconds("730us"), Some(0.73));
        assert_eq!(milliseconds("1.20s"), Some(1200.0));
    }
}
