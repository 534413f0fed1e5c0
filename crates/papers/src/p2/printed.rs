//! The paper's own numbers, and what follows from them alone.

use super::LOADS;

/// Rows of tables 5, 6 and 7: four algorithms, then no balancer.
pub(super) const ROWS: [&str; 5] =
    ["round_robin", "least_connections", "least_response_time", "least_packets", "none/alike"];

/// Table 5, "response time" in ms, by row and load.
pub(super) const RESPONSE_MS: [[f64; LOADS.len()]; 5] = [
    [13.649, 13.701, 13.513, 13.302],
    [13.548, 13.449, 13.041, 12.922],
    [14.45, 15.047, 14.154, 16.297],
    [15.309, 15.642, 15.621, 13.253],
    [19.072, 19.146, 19.15, 19.247],
];

/// Table 6, throughput in Kbytes/s ("Kbps" in the paper; ab's unit is Kbytes/s).
pub(super) const THROUGHPUT: [[f64; LOADS.len()]; 5] = [
    [83.77, 83.44, 84.61, 85.95],
    [84.39, 85.01, 87.66, 88.47],
    [79.12, 75.98, 80.77, 86.26],
    [74.68, 73.09, 73.19, 70.15],
    [58.39, 58.12, 58.06, 57.51],
];

/// Table 7, the highest CPU use of the servers in percent.
pub(super) const CPU_PERCENT: [[f64; LOADS.len()]; 5] = [
    [1.3724, 1.7452, 2.3027, 2.4405],
    [1.2765, 1.3758, 1.8411, 2.3759],
    [1.4042, 2.9082, 2.6191, 4.6571],
    [1.1228, 2.025, 1.7222, 2.2178],
    [4.6858, 5.339, 7.2668, 8.3135],
];

/// Response time × throughput of a row at a load: where one is the inverse of the other this is the
/// bytes of an answer, the same everywhere.
pub(super) fn product(row: usize, load: usize) -> f64 {
    RESPONSE_MS[row][load] * THROUGHPUT[row][load]
}

/// The same with the throughputs of `least_response_time` and `least_packets` at 12,000 exchanged.
pub(super) fn product_restored(row: usize, load: usize) -> f64 {
    let throughput = match (row, load) {
        (2, 3) => THROUGHPUT[3][3],
        (3, 3) => THROUGHPUT[2][3],
        _ => THROUGHPUT[row][load],
    };
    RESPONSE_MS[row][load] * throughput
}

#[cfg(test)]
mod tests {
    use super::{CPU_PERCENT, product, product_restored};

    #[test]
    fn response_time_and_throughput_are_one_number_but_for_one_exchange() {
        for row in 0..4 {
            for load in 0..4 {
                let restored = product_restored(row, load);
                assert!((restored / 1143.2 - 1.0).abs() < 0.001, "{row} {load}: {restored}");
            }
        }
        assert!((product(2, 3) - 1405.8).abs() < 1.0 && (product(3, 3) - 929.7).abs() < 1.0);
    }

    #[test]
    fn least_packets_is_not_lowest_at_6_000() {
        let lowest = |load: usize| {
            (0..4).min_by(|a, b| CPU_PERCENT[*a][load].total_cmp(&CPU_PERCENT[*b][load])).unwrap()
        };
        assert_eq!([0, 1, 2, 3].map(lowest), [3, 1, 3, 3]);
    }
}
