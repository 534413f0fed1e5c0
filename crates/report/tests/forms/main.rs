//! The three forms of a report: JSON loses nothing, HTML is well-formed and needs nothing else,
//! Markdown's tables are tables.

mod looks;
mod sample;

use roxmltree::{Document, Node, ParsingOptions};
use sample::sample;
use subak_report::{
    Axis, Block, Cell, Column, Plot, PlotKind, Point, Report, Scale, Section, Series, Table,
};

fn parsed(html: &str) -> Document<'_> {
    let options = ParsingOptions { allow_dtd: true, ..ParsingOptions::default() };
    Document::parse_with_options(html, options).expect("well-formed")
}

fn one_plot(kind: PlotKind, x: Scale, y: Scale, points: Vec<Point>) -> Report {
    let axis = |label: &str, scale| Axis::new(label, Some("ms"), scale);
    let series = vec![Series { name: "a".to_owned(), points }];
    let plot = Plot { caption: String::new(), kind, x: axis("x", x), y: axis("y", y), series };
    Report { sections: vec![Section::new("s", vec![Block::Plot(plot)])], ..Report::default() }
}

#[test]
fn json_loses_nothing() {
    let report = sample();
    assert_eq!(Report::from_json(&report.json()).expect("a report"), report);
    assert!(Report::from_json("{\"title\": 3}").is_err());
    let odd = [0.1 + 0.2, 1e-310, f64::MAX, -0.0, f64::INFINITY, f64::NEG_INFINITY];
    let rows = odd.map(|value| vec![Cell::between(value, value, value, 2)]).to_vec();
    let table = Block::Table(Table { rows, ..Table::default() });
    let report = Report { sections: vec![Section::new("odd", vec![table])], ..Report::default() };
    assert_eq!(Report::from_json(&report.json()).expect("a report"), report);
}

#[test]
fn what_is_for_programs_is_in_the_json_alone() {
    let rows = vec![vec![Cell::text("one of 300")]];
    let table = Table { caption: "all of them".to_owned(), columns: vec![Column::new("a")], rows };
    let sections = vec![Section::new("many", vec![Block::Data(table)])];
    let report = Report { sections, ..Report::default() };
    assert_eq!(Report::from_json(&report.json()).expect("a report"), report);
    for shown in [report.html(), report.markdown(), report.text()] {
        assert!(!shown.contains("all of them") && !shown.contains("300"), "{shown}");
    }
}

#[test]
fn html_is_well_formed_and_needs_nothing_else() {
    let html = sample().html();
    let document = parsed(&html);
    let addresses = ["src", "href", "srcset", "action", "data", "poster", "background", "style"];
    for node in document.descendants().filter(Node::is_element) {
        let name = node.tag_name().name();
        assert!(!["script", "link", "img", "iframe", "object", "use"].contains(&name), "{name}");
        for attribute in node.attributes() {
            assert!(!addresses.contains(&attribute.name()), "{name} {}", attribute.name());
            assert!(!attribute.name().starts_with("on"), "{name} {}", attribute.name());
        }
    }
    let style = document.descendants().find(|node| node.has_tag_name("style"));
    let style = style.and_then(|node| node.text()).expect("styles");
    assert!(!style.contains("url(") && !style.contains("@import"), "styles from elsewhere");
    // The awkward words of the sample are words.
    assert!(html.contains("&lt;script&gt;") && !html.contains("<script"));
    assert!(!html.contains('\u{1b}'));
}

#[test]
fn every_plot_is_drawn_for_desks_and_for_phones_with_all_its_points_inside() {
    let html = sample().html();
    let document = parsed(&html);
    let drawings: Vec<Node> =
        document.descendants().filter(|node| node.has_attribute("viewBox")).collect();
    let of = |class| drawings.iter().filter(move |node| node.attribute("class") == Some(class));
    assert_eq!((of("wide").count(), of("narrow").count()), (5, 5));
    for drawing in of("wide").chain(of("narrow")) {
        let sizes = drawing.attribute("viewBox").expect("sizes").split(' ');
        let sizes: Vec<f64> = sizes.map(|size| size.parse().expect("a number")).collect();
        for node in drawing.descendants().filter(Node::is_element) {
            for (name, limit) in [("x", sizes[2]), ("cx", sizes[2]), ("y", sizes[3])] {
                if let Some(at) = node.attribute(name) {
                    let at: f64 = at.parse().expect("a number");
                    assert!((0.0..=limit).contains(&at), "{name} {at} of {limit}");
                }
            }
            for path in [node.attribute("d"), node.attribute("points")].into_iter().flatten() {
                assert!(!path.contains("NaN") && !path.contains("inf"), "{path}");
            }
        }
    }
}

#[test]
fn what_has_no_place_on_an_axis_is_left_out_and_said() {
    let points = vec![Point::new(1.0, 0.0), Point::new(2.0, 5.0), Point::new(3.0, f64::NAN)];
    let html = one_plot(PlotKind::Lines, Scale::Linear, Scale::Log, points).html();
    assert!(html.contains("2 points have no place"), "{html}");
}

#[test]
fn whatever_is_drawn_stays_well_formed() {
    let awkward = [0.0, -1.0, 1e-300, 1e300, f64::NAN, f64::INFINITY, 3.0];
    let names = || Scale::Names(vec!["<a>".to_owned(), String::new(), "b".repeat(300)]);
    let kinds = [PlotKind::Lines, PlotKind::Steps, PlotKind::Bars, PlotKind::Dots];
    for kind in kinds {
        for x in [Scale::Linear, Scale::Log, names()] {
            for y in [Scale::Linear, Scale::Log, names()] {
                for count in 0..=awkward.len() {
                    let point = |y: &f64| Point { x: *y, y: *y, low: Some(-y), high: Some(*y) };
                    let points = awkward[..count].iter().map(point).collect();
                    let html = one_plot(kind, x.clone(), y.clone(), points).html();
                    parsed(&html);
                    assert!(!html.contains("NaN"), "{kind:?} {x:?} {y:?}");
                }
            }
        }
    }
}

#[test]
fn every_row_of_a_markdown_table_has_as_many_cells_as_its_head() {
    let markdown = sample().markdown();
    let mut cells = None;
    for line in markdown.lines() {
        let count = line.replace("\\|", "").matches('|').count();
        match line.starts_with('|') {
            true => assert_eq!(*cells.get_or_insert(count), count, "{line}"),
            false => cells = None,
        }
    }
    assert!(markdown.contains("| peak_ewma | 8.0 (7.8 to 8.3) |"), "{markdown}");
    assert!(markdown.contains("| not run |") || markdown.contains("**not run**"));
}

#[test]
fn in_a_terminal_tables_are_columns_and_nothing_commands_it() {
    let text = sample().text();
    let at = |line: &str, word: &str| line.find(word).map(|byte| line[..byte].chars().count());
    let lines: Vec<&str> = text
        .lines()
        .filter(|line| line.contains("(4.8 to 5.3)") || line.contains("(5.8 to 6.3)"))
        .collect();
    assert_eq!(lines.len(), 2, "{text}");
    assert_eq!(at(lines[0], " (4.8"), at(lines[1], " (5.8"), "{text}");
    assert!(text.contains("✓ holds"), "{text}");
    assert!(!text.contains('\u{1b}'));
}

#[test]
fn eighty_columns_hold_every_line_and_lose_no_word() {
    let mut report = sample();
    let long = "peak_ewma answers sooner, and by more than chance, where one endpoint of many is slow; \
                nothing else about the two is different beyond what chance can do";
    report.answer = long.to_owned();
    report.verdicts[0].because = long.to_owned();
    let Some(Block::Table(table)) = report
        .sections
        .iter_mut()
        .flat_map(|section| &mut section.blocks)
        .find(|block| matches!(block, Block::Table(_)))
    else {
        unreachable!("the sample has a table")
    };
    for more in 0..6 {
        table.columns.push(Column::with_unit(format!("quantile {more}"), "ms"));
        table.rows.iter_mut().for_each(|row| row.push(Cell::between(5.0, 4.8, 5.3, 1)));
    }
    let (narrow, wide) = (report.text_within(80), report.text());
    assert!(wide.lines().any(|line| line.chars().count() > 120), "{wide}");
    for line in narrow.lines() {
        assert!(line.chars().count() <= 80, "{line}");
    }
    let words = |text: &str| {
        let mut words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
        words.sort();
        words.dedup();
        words
    };
    assert_eq!(words(&narrow), words(&wide));
    let times = |text: &str| text.matches("peak_ewma  ").count();
    assert!(times(&narrow) > times(&wide), "rows are named again in each part: {narrow}");
}
