//! The two ends by themselves.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use clap::Args;
use subak_lab::endpoint::{EndpointSpec, Endpoints};
use subak_lab::load::{self, LoadPlan, summary};

#[derive(Args)]
pub(crate) struct EndpointOptions {
    /// Addresses to listen on, named a, b, c …
    #[arg(required = true)]
    addresses: Vec<SocketAddr>,
    /// The CPU to run on
    #[arg(long)]
    cpu: Option<usize>,
}

/// Serves until interrupted, and prints the hits every second while there are new ones.
pub(crate) fn endpoint(options: &EndpointOptions) -> io::Result<()> {
    let name = |index: usize| match u8::try_from(index) {
        Ok(index @ 0..26) => char::from(b'a' + index).to_string(),
        _ => format!("e{index}"),
    };
    let specs = options.addresses.iter().enumerate();
    let specs = specs.map(|(index, address)| EndpointSpec::new(name(index), *address)).collect();
    let endpoints = Endpoints::start_on(specs, options.cpu)?;
    for (index, address) in endpoints.addresses().iter().enumerate() {
        println!("{} listens on {address}", name(index));
    }
    let mut before = Vec::new();
    loop {
        let hits = endpoints.all_hits();
        if hits != before {
            println!("hits: {hits:?}");
            before = hits;
        }
        thread::sleep(Duration::from_secs(1));
    }
}

#[derive(Args)]
pub(crate) struct LoadOptions {
    /// Where to connect
    target: SocketAddr,
    /// What to ask for
    #[arg(long, default_value = "/small")]
    path: String,
    /// Connections at a time
    #[arg(long, short, default_value_t = 64)]
    connections: usize,
    /// A new connection for every request
    #[arg(long, conflicts_with = "rate")]
    new_connections: bool,
    /// Requests per second, instead of as many as are answered
    #[arg(long)]
    rate: Option<f64>,
    /// Length of the measurement, seconds
    #[arg(long, short, default_value_t = 5.0, conflicts_with = "requests")]
    seconds: f64,
    /// End after exactly this many requests; no warm-up
    #[arg(long, short = 'n')]
    requests: Option<u64>,
    /// Addresses to connect from, in turn
    #[arg(long, value_delimiter = ',')]
    sources: Vec<IpAddr>,
}

/// Puts load on an address and prints the report.
pub(crate) fn load(options: &LoadOptions) -> io::Result<()> {
    let plan = LoadPlan::get(options.target, &options.path);
    let mut plan = match options.rate {
        Some(rate) => plan.rate(rate, options.connections),
        None => plan.users(options.connections),
    };
    plan.sources.bind.clone_from(&options.sources);
    let seconds = Duration::try_from_secs_f64(options.seconds).map_err(io::Error::other)?;
    plan = match options.requests {
        Some(requests) => plan.requests(requests),
        None => plan.lasting(seconds),
    };
    if options.new_connections {
        plan = plan.with_new_connections();
    }
    let report = load::run(&plan)?;
    print!("{}", summary::text(&report));
    Ok(())
}
