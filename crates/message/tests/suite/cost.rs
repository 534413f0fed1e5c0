//! No head makes more work than its size explains: measured by the clock in relation to ordinary heads
//! of the same size, and to half the size. What instructions say is counted by `benches/cost.rs`.

use std::time::{Duration, Instant};

use shapes::{SHAPES, Shape, serve};
use subak_message::RequestHead;

mod shapes;

const SMALL: usize = 8 * 1024;
const LARGE: usize = 32 * 1024;

/// Four times the bytes make four times the work; a quadratic reading makes sixteen times.
const GROWTH_MAX: f64 = 9.0;
/// Times the work of an ordinary head of the same size, unoptimised: shapes that are read byte by byte
/// make up to 150 times the work of one that is copied in runs. Every field looked for among 30 KiB of
/// list members made more than 1,000.
const TIMES_ORDINARY_MAX: f64 = 400.0;
/// Below this a measurement says nothing.
const FLOOR: Duration = Duration::from_micros(40);
/// A machine that does something else at the moment is asked again.
const ATTEMPTS: usize = 12;

/// The least time of several, for one head of this size.
fn least(shape: Shape, size: usize) -> Duration {
    let input = shape(size);
    let (mut head, mut out) = (RequestHead::default(), Vec::new());
    let mut time = || {
        let began = Instant::now();
        std::hint::black_box(serve(std::hint::black_box(&input), &mut head, &mut out));
        began.elapsed()
    };
    (0..9).map(|_| time()).min().expect("several")
}

#[test]
fn no_head_makes_more_work_than_its_size_explains() {
    let mut wrong = Vec::new();
    for (name, shape) in SHAPES {
        let (mut times, mut growth) = (f64::MAX, f64::MAX);
        let is_well = (0..ATTEMPTS).any(|_| {
            let ordinary = least(SHAPES[0].1, LARGE).max(FLOOR).as_secs_f64();
            let small = least(*shape, SMALL).max(FLOOR).as_secs_f64();
            let large = least(*shape, LARGE).as_secs_f64();
            (times, growth) = (times.min(large / ordinary), growth.min(large / small));
            times <= TIMES_ORDINARY_MAX && growth <= GROWTH_MAX
        });
        let found =
            format!("{name}: {times:.1} times an ordinary head, {growth:.1} times a quarter of it");
        println!("{found}");
        if !is_well {
            wrong.push(found);
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
