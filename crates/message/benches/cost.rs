//! Instructions for each byte of a head, by its shape.
//!
//! `cargo bench -p subak-message --bench cost` prints nanoseconds a byte. With a name (or a part of one)
//! behind `--` it does one shape once, for
//! `valgrind --tool=callgrind --toggle-collect='*serve*' target/release/deps/cost-… 'names in'`.

use std::time::Instant;

use shapes::{SHAPES, serve};
use subak_message::RequestHead;

#[path = "../tests/suite/cost/shapes.rs"]
mod shapes;

const SIZES: [usize; 3] = [8 * 1024, 16 * 1024, 32 * 1024];
const ROUNDS: u32 = 101;

fn main() {
    let wanted = std::env::args().skip(1).find(|argument| !argument.starts_with("--"));
    let (mut head, mut out) = (RequestHead::default(), Vec::new());
    for (name, shape) in SHAPES {
        if let Some(wanted) = &wanted {
            if name.contains(wanted.as_str()) {
                let input = shape(SIZES[2]);
                println!("{name}: {} bytes", input.len());
                std::hint::black_box(serve(&input, &mut head, &mut out));
            }
            continue;
        }
        let costs = SIZES.map(|size| {
            let input = shape(size);
            let times = (0..ROUNDS).map(|_| {
                let began = Instant::now();
                std::hint::black_box(serve(std::hint::black_box(&input), &mut head, &mut out));
                began.elapsed()
            });
            let least = times.min().unwrap_or_default();
            least.as_nanos() as f64 / input.len() as f64
        });
        println!("{:>7.2} {:>7.2} {:>7.2} ns a byte  {name}", costs[0], costs[1], costs[2]);
    }
}
