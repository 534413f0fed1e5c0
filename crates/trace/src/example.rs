//! Logs whose right answer is known: made by the simulator, the same ones every time.

use std::io::{self, Write};
use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;
use std::time::Duration;

use subak_balance::{Algorithm, catalogue};
use subak_base::Rng;
use subak_sim::{
    Arrivals, Cache, EndpointModel, Event, Scenario, Service, Step, Trace, TracedRequest, run_with,
};

/// A log that can be made.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Example {
    /// Ten endpoints in turn, one of them four times as slow: leave that out where it is busy.
    SlowEndpoint,
    /// Ten endpoints in turn, each with a cache that holds a tenth of what is asked for: keep each path
    /// at one endpoint.
    HotKeys,
    /// Ten equal endpoints by least connections: there is nothing to gain.
    Equal,
}

impl Example {
    /// All of them, by name.
    pub const ALL: [(&'static str, Example); 3] = [
        ("slow-endpoint", Example::SlowEndpoint),
        ("hot-keys", Example::HotKeys),
        ("equal", Example::Equal),
    ];

    /// Writes so many lines of Subak's JSON, with the keys that a replay looks at.
    ///
    /// # Errors
    /// Of the writer.
    pub fn write(self, lines: u32, seed: u64, out: &mut dyn Write) -> io::Result<()> {
        let scenario = self.scenario(lines, seed);
        let Arrivals::Trace(trace) = &scenario.arrivals else { return Ok(()) };
        let mut result = Ok(());
        let mut note = |event: Event| {
            if let (Step::Answered(endpoint), Ok(())) = (event.step, &result) {
                let request = &trace.requests[event.request as usize];
                let client = trace.clients[request.client as usize];
                let took_ns = event.at.0.saturating_sub(request.at_ns);
                result = line(out, request, client, took_ns, endpoint);
            }
        };
        run_with(&scenario, &mut note);
        result
    }

    fn scenario(self, lines: u32, seed: u64) -> Scenario {
        let ms = Duration::from_millis;
        let (name, rate, slots) = match self {
            Example::SlowEndpoint => ("round_robin", 800, 8),
            Example::HotKeys => ("round_robin", 1500, 8),
            Example::Equal => ("least_connections", 1500, 8),
        };
        let mut models = vec![EndpointModel::new(slots, Service::Exponential(ms(20))); 10];
        match self {
            Example::SlowEndpoint => models[3].service = Service::Exponential(ms(80)),
            Example::HotKeys => models.iter_mut().for_each(|model| {
                let hit = Service::Exponential(ms(2));
                model.cache = Some(Cache { objects: 200, hit });
            }),
            Example::Equal => {}
        }
        let algorithm = catalogue::find(name).map(|listing| listing.algorithm());
        let algorithm = algorithm.unwrap_or(Algorithm::LeastConnections);
        let pool = Scenario::pool_of(algorithm, &[1; 10]);
        let trace = traced(lines, rate, seed);
        Scenario { seed, ..Scenario::new(pool, models, Arrivals::Trace(Arc::new(trace))) }
    }
}

/// Clients and paths of a made log.
const CLIENTS: u64 = 5_000;
const PATHS: u64 = 2_000;

/// When the first request of a made log comes: 21 November 2026, in milliseconds since 1970.
const BEGINS_MS: u64 = 1_795_219_200_000;

/// Poisson arrivals; all clients equally often; paths very unequally, by a place below a place below a
/// place.
fn traced(lines: u32, rate: u64, seed: u64) -> Trace {
    let mut random = Rng::new(seed);
    let mut now = 0;
    let request = |_| {
        let uniform = (random.next_u64() >> 11) as f64 / (1_u64 << 53) as f64;
        now += (-libm::log(1.0 - uniform) * 1e9 / rate as f64) as u64;
        let most = random.below(PATHS) + 1;
        let most = random.below(most) + 1;
        TracedRequest {
            at_ns: now,
            service_ns: 0,
            client: random.below(CLIENTS) as u32,
            object: random.below(most) as u32,
            bytes: 1000 + random.below(4000) as u32,
        }
    };
    Trace {
        requests: (0..lines).map(request).collect(),
        // 198.18.0.0/15 is for tests.
        clients: (0..CLIENTS as u32).map(|one| Ipv4Addr::from(0xC612_0000 | one).into()).collect(),
        objects: (0..PATHS).map(|one| format!("/page/{one}").into_bytes().into()).collect(),
    }
}

fn line(
    out: &mut dyn Write,
    request: &TracedRequest,
    client: IpAddr,
    took_ns: u64,
    endpoint: usize,
) -> io::Result<()> {
    let millis = BEGINS_MS + request.at_ns / 1_000_000;
    let seconds = millis / 1000;
    let (day, of_day) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = crate::moment::civil(day as i64);
    let (hour, minute, second) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let took = took_ns as f64 / 1e6;
    writeln!(
        out,
        "{{\"time\":\"{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{:03}Z\",\
         \"client\":\"{client}\",\"url\":\"/page/{}\",\"status\":200,\"bytes_out\":{},\
         \"endpoint\":\"10.0.0.{}:80\",\"queue_ms\":0,\"total_ms\":{took:.3},\"end\":\"ok\"}}",
        millis % 1000,
        request.object,
        request.bytes,
        endpoint + 1,
    )
}
