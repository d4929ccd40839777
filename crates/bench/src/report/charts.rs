//! The charts: who forwards how much, for each size, and the served card's latency. Drawn as the lab draws its own.

use super::{Report, Row};
use crate::contender::Mode;
use lab::figure::{Chart, Mark, Scale, Series, X};
use std::collections::BTreeSet;

/// A value of a row, if it has one.
type Value = fn(&Row) -> Option<f64>;

const PERCENTILES: [(&str, Value); 3] = [
    ("p50", |row| Some(row.latency?.p50_ns? / 1e3)),
    ("p99", |row| Some(row.latency?.p99_ns? / 1e3)),
    ("p99.9", |row| Some(row.latency?.p999_ns? / 1e3)),
];

/// Names of files without their ending, and SVG.
pub(super) fn charts(report: &Report) -> Vec<(&'static str, String)> {
    let forwarding: Vec<&Row> = report.rows.iter().filter(|row| row.bench == "VF to VF").collect();
    let latency: Vec<&Row> = report.rows.iter().filter(|row| row.latency.is_some()).collect();
    let mut charts = Vec::new();
    if !forwarding.is_empty() {
        charts.push((
            "forwarding",
            by_peer(&forwarding, "Frames forwarded", "millions a second", |row| row.mpps),
        ));
        charts
            .push(("cycles", by_peer(&forwarding, "Cycles a frame", "cycles", |row| row.cycles_per_packet)));
    }
    if !latency.is_empty() {
        charts.push(("latency", latencies(&latency)));
    }
    charts
}

/// Sizes along x, a bar for each contender.
fn by_peer(rows: &[&Row], title: &str, unit: &str, value: Value) -> String {
    let sizes: Vec<usize> = rows.iter().map(|row| row.size).collect::<BTreeSet<_>>().into_iter().collect();
    let mut peers: Vec<(&str, Mode)> = Vec::new();
    for row in rows {
        if !peers.contains(&(&row.peer, row.mode)) {
            peers.push((&row.peer, row.mode));
        }
    }
    let series = peers.iter().enumerate().map(|(at, &(peer, mode))| {
        let of =
            |size: &usize| rows.iter().find(|row| row.size == *size && row.peer == peer && row.mode == mode);
        let values = sizes.iter().map(|size| value(of(size)?)).collect();
        bars(peer.to_owned(), at, values)
    });
    let names = sizes.iter().map(|size| vec![format!("{size} bytes")]).collect();
    chart(title, unit, "frame", names, series.collect())
}

/// Loads within sizes along x, a bar for each percentile.
fn latencies(rows: &[&Row]) -> String {
    let name = |row: &&Row| {
        let load = row.latency.map_or(0.0, |latency| latency.load * 100.0);
        vec![format!("{} bytes", row.size), format!("{load:.0} %")]
    };
    let series = PERCENTILES.iter().enumerate().map(|(at, (label, value))| {
        bars((*label).to_owned(), at, rows.iter().map(|row| value(row)).collect())
    });
    chart("One way through the served card", "us", "load", rows.iter().map(name).collect(), series.collect())
}

fn bars(label: String, at: usize, values: Vec<Option<f64>>) -> Series {
    let variant_label = String::new();
    Series {
        label,
        variant_label,
        colour: at,
        variant: 0,
        mark: Mark::Bar { stack: at },
        right: false,
        values,
    }
}

fn chart(title: &str, unit: &str, x_title: &str, names: Vec<Vec<String>>, series: Vec<Series>) -> String {
    Chart {
        id: title.to_lowercase().replace(' ', "-"),
        title: title.to_owned(),
        description: format!("{title}, {unit}, by {x_title}; summary.json has the numbers"),
        x_title: x_title.to_owned(),
        x: X::Names(names),
        left: Scale { title: title.to_owned(), unit: unit.to_owned() },
        right: None,
        series,
    }
    .to_svg()
}
