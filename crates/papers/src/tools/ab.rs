//! ApacheBench: `ab -n N -c C URL`.

use std::process::Command;
use std::time::Duration;

use super::number_after;
use crate::cell::Need;
use crate::world::World;

/// What ab prints, in the units it prints.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Ab {
    /// Requests answered.
    pub complete: f64,
    /// Of them, those ab counts as failed; answers of differing length too.
    pub failed: f64,
    /// Requests per second.
    pub rate: f64,
    /// "Time per request (mean)": how long one took.
    pub time_ms: f64,
    /// "Time per request (mean, across all concurrent requests)": 1 ÷ rate, whatever it is called.
    pub across_ms: f64,
    /// "Transfer rate", in 1,024 bytes a second.
    pub kbytes_per_s: f64,
    /// Half of the requests were answered within this.
    pub median_ms: f64,
    /// 95 % of them.
    pub p95_ms: f64,
}

/// How ab is called.
#[derive(Clone, Debug)]
pub struct Call<'a> {
    /// Requests.
    pub requests: u32,
    /// At a time.
    pub concurrency: u32,
    /// Over connections that stay.
    pub keep_alive: bool,
    /// What for.
    pub url: &'a str,
}

impl Call<'_> {
    /// The command as a person would write it.
    pub fn text(&self) -> String {
        format!("ab {}", self.arguments().join(" "))
    }

    fn arguments(&self) -> Vec<String> {
        let mut arguments = vec!["-n".to_owned(), self.requests.to_string()];
        if self.concurrency > 1 {
            arguments.extend(["-c".to_owned(), self.concurrency.to_string()]);
        }
        if self.keep_alive {
            arguments.push("-k".to_owned());
        }
        arguments.push(self.url.to_owned());
        arguments
    }

    /// Runs it.
    ///
    /// # Errors
    /// It is not there, gave up or says something unexpected.
    pub fn run(&self, world: &World) -> Result<Ab, String> {
        let mut command = Command::new(world.tool(Need::Ab)?);
        let said = world.say(command.args(self.arguments()), Duration::from_secs(1800))?;
        read(&said.text).ok_or_else(|| format!("ab said: {}", said.text.trim()))
    }
}

fn read(text: &str) -> Option<Ab> {
    let times = text.lines().filter(|line| line.starts_with("Time per request:"));
    let mut times = times.filter_map(|line| number_after(line, "Time per request:"));
    let percentile = |name: &str| {
        text.lines().find_map(|line| number_after(line.trim_start(), name)).unwrap_or(0.0)
    };
    Some(Ab {
        complete: number_after(text, "Complete requests:")?,
        failed: number_after(text, "Failed requests:")?,
        rate: number_after(text, "Requests per second:")?,
        time_ms: times.next()?,
        across_ms: times.next()?,
        kbytes_per_s: number_after(text, "Transfer rate:")?,
        median_ms: percentile("50%"),
        p95_ms: percentile("95%"),
    })
}

#[cfg(test)]
mod tests {
    use super::{Ab, Call, read};

    /// By ab 2.3.
    const SAID: &str = "\
Complete requests:      300
Failed requests:        2
   (Connect: 0, Receive: 0, Length: 2, Exceptions: 0)
Total transferred:      249300 bytes
HTML transferred:       203100 bytes
Requests per second:    5135.15 [#/sec] (mean)
Time per request:       1.947 [ms] (mean)
Time per request:       0.195 [ms] (mean, across all concurrent requests)
Transfer rate:          4167.29 [Kbytes/sec] received

Percentage of the requests served within a certain time (ms)
  50%      1
  66%      2
  95%      4
 100%      6 (longest request)
";

    #[test]
    fn reads_what_ab_says() {
        let expected = Ab {
            complete: 300.0,
            failed: 2.0,
            rate: 5135.15,
            time_ms: 1.947,
            across_ms: 0.195,
            kbytes_per_s: 4167.29,
            median_ms: 1.0,
            p95_ms: 4.0,
        };
        assert_eq!(read(SAID), Some(expected));
        assert_eq!(read("apr_socket_recv: Connection refused (111)"), None);
    }

    #[test]
    fn is_called_as_the_papers_call_it() {
        let mut call = Call {
            requests: 12_000,
            concurrency: 10,
            keep_alive: false,
            url: "http://10.10.10.2/",
        };
        assert_eq!(call.text(), "ab -n 12000 -c 10 http://10.10.10.2/");
        call = Call {
            requests: 1000,
            concurrency: 1,
            keep_alive: false,
            url: "http://10.0.0.1:8000/",
        };
        assert_eq!(call.text(), "ab -n 1000 http://10.0.0.1:8000/");
    }
}
