//! A log's requests as the simulator takes them: moments, clients and objects.

use std::ops::Range;

use subak_sim::{Trace, TracedRequest};

use crate::address::address;
use crate::log::{Log, Request};
use crate::objects::{Part, object};

/// A part of the log as the simulator takes it, with only the clients and objects that occur in it.
pub(crate) fn traced(log: &Log, part: Range<usize>, key: Part) -> Trace {
    let requests = &log.requests[part];
    let first = requests.first().map_or(0, |request| request.arrived);
    let mut clients = Numbers::new(log.clients.len());
    let mut objects = Numbers::new(log.uris.len());
    let one = |request: &Request| TracedRequest {
        at_ns: request.arrived - first,
        service_ns: 0,
        client: clients.of(request.client),
        object: objects.of(request.uri),
        bytes: request.bytes,
    };
    let requests = requests.iter().map(one).collect();
    Trace {
        requests,
        clients: clients.used.iter().map(|one| address(log.clients.text(*one))).collect(),
        objects: objects.used.iter().map(|one| object(log.uris.text(*one), key).into()).collect(),
    }
}

/// New numbers, from 0, in the order of first use.
struct Numbers {
    new: Vec<u32>,
    used: Vec<u32>,
}

impl Numbers {
    fn new(count: usize) -> Numbers {
        Numbers { new: vec![u32::MAX; count], used: Vec::new() }
    }

    fn of(&mut self, old: u32) -> u32 {
        let new = &mut self.new[old as usize];
        if *new == u32::MAX {
            *new = self.used.len() as u32;
            self.used.push(old);
        }
        *new
    }
}
