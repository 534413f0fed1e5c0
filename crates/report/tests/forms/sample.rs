//! One report with everything that a report can hold, awkward words and numbers included.

use subak_report::*;

/// The report.
pub(crate) fn sample() -> Report {
    let names = ["round_robin", "least_connections", "power_of_two", "peak_ewma", "ip_hash"];
    let axis = |label: &str, unit, scale| Axis::new(label, unit, scale);
    let by_name = || Scale::Names(names.map(str::to_owned).to_vec());
    let line = |name: &str, slope: f64| Series {
        name: name.to_owned(),
        points: (0..=12)
            .map(|index| {
                let x = f64::from(index) * 5.0;
                let y = 4.0 + slope * x * x / 40.0;
                Point::between(x, y, y * 0.93, y * 1.09)
            })
            .collect(),
    };
    let bars = |name: &str, factor: f64| Series {
        name: name.to_owned(),
        points: [182.4, 31.2, 35.9, 24.1, 260.8]
            .iter()
            .enumerate()
            .map(|(index, y)| {
                let y = y * factor;
                Point::between(index as f64, y, y * 0.95, y * 1.06)
            })
            .collect(),
    };
    let noise = Series {
        name: String::new(),
        points: (0..5_000)
            .map(|index| {
                let x = f64::from(index) / 50.0;
                Point::new(x, 40.0 + 20.0 * (x / 7.0).sin() + 8.0 * (x * 13.7).sin())
            })
            .collect(),
    };
    let log = |name: &str, slope: f64| Series {
        name: name.to_owned(),
        points: [10.0, 30.0, 100.0, 300.0, 1_000.0, 3_000.0, 10_000.0]
            .map(|x: f64| Point::new(x, 8.0 * x.powf(slope)))
            .to_vec(),
    };
    let mut logarithmic = vec![log("linear search", 0.97), log("binary search", 0.18)];
    logarithmic[1].points.push(Point::new(20_000.0, 0.0));
    Report {
        title: "Slow endpoint: which algorithm notices?".to_owned(),
        question: "One of five endpoints takes ten times as long from second 20 on. Which algorithm keeps the others' clients fast?".to_owned(),
        answer: "peak_ewma: its p95 is 24.1 ms (22.9 to 25.5), 87 % below round_robin.".to_owned(),
        made: "2026-11-21 23:50 UTC".to_owned(),
        setup: vec![
            ("subak".to_owned(), "0.1.0".to_owned()),
            ("load".to_owned(), "Poisson, 400 requests/s for 60 s, 1,000 clients".to_owned()),
            ("<script>".to_owned(), "alert(\"& it's \u{1b}[31mred\")".to_owned()),
        ],
        verdicts: vec![
            Verdict::new("p95 of peak_ewma stays under 50 ms", Word::Holds, "24.1 ms (22.9 to 25.5) over 5 seeds"),
            Verdict::new("round_robin stays under 50 ms", Word::Fails, "182.4 ms"),
            Verdict::new("least_connections beats power_of_two", Word::NoDifference, "31.2 and 35.9 ms; the interval of their difference holds 0"),
            Verdict::new("on real servers too", Word::NotRun, "needs --on real"),
            Verdict::new("CPU under 60 %", Word::Invalid, "the load generator's core was 98 % busy"),
        ],
        sections: vec![
            Section::new(
                "Latency",
                vec![
                    Block::Text("Ranges are 95 % intervals over 5 seeds.\n\nA *second* paragraph | with <b>signs</b>.".to_owned()),
                    Block::Table(Table {
                        caption: "Latency by algorithm".to_owned(),
                        columns: vec![
                            Column::new("algorithm"),
                            Column::with_unit("p50", "ms"),
                            Column::with_unit("p95", "ms"),
                            Column::with_unit("p99", "ms"),
                            Column::new("failed"),
                            Column::with_unit("requests", "1"),
                        ],
                        rows: names
                            .iter()
                            .enumerate()
                            .map(|(index, name)| {
                                let p = 5.0 + index as f64;
                                vec![
                                    Cell::text(*name),
                                    Cell::between(p, p - 0.2, p + 0.3, 1),
                                    Cell::between(p * 7.0, p * 6.5, p * 7.4, 1),
                                    Cell::between(p * 21.0, p * 19.0, p * 24.0, 1),
                                    if index == 2 { Cell::Missing } else { Cell::count(index as u64) },
                                    Cell::count(24_000 + index as u64),
                                ]
                            })
                            .collect(),
                    }),
                    Block::Plot(Plot {
                        caption: "Latency by algorithm; whiskers are 95 % intervals over 5 seeds".to_owned(),
                        kind: PlotKind::Bars,
                        x: axis("algorithm", None, by_name()),
                        y: axis("latency", Some("ms"), Scale::Linear),
                        series: vec![bars("p50", 0.2), bars("p95", 1.0)],
                    }),
                    Block::Plot(Plot {
                        caption: "The same on a logarithmic scale".to_owned(),
                        kind: PlotKind::Dots,
                        x: axis("algorithm", None, by_name()),
                        y: axis("latency", Some("ms"), Scale::Log),
                        series: vec![bars("p50", 0.2), bars("p95", 1.0), bars("p99", 2.1)],
                    }),
                ],
            ),
            Section::new(
                "Over time",
                vec![
                    Block::Plot(Plot {
                        caption: "p95 in each five seconds; bands are 95 % intervals".to_owned(),
                        kind: PlotKind::Lines,
                        x: axis("time", Some("s"), Scale::Linear),
                        y: axis("p95", Some("ms"), Scale::Linear),
                        series: names.iter().enumerate().map(|(i, name)| line(name, 0.2 + i as f64 * 0.4)).collect(),
                    }),
                    Block::Plot(Plot {
                        caption: "In flight".to_owned(),
                        kind: PlotKind::Steps,
                        x: axis("time", Some("s"), Scale::Linear),
                        y: axis("in flight", None, Scale::Linear),
                        series: vec![noise],
                    }),
                    Block::Plot(Plot {
                        caption: "Cost of a pick".to_owned(),
                        kind: PlotKind::Lines,
                        x: axis("endpoints", None, Scale::Log),
                        y: axis("time of a pick", Some("ns"), Scale::Log),
                        series: logarithmic,
                    }),
                    Block::Commands(vec!["subak lab run slow-endpoint --seeds 5".to_owned()]),
                ],
            ),
        ],
        repeat: vec!["subak lab run slow-endpoint --algorithms round_robin,peak_ewma --seeds 5 --output lab-results/slow-endpoint".to_owned()],
    }
}
