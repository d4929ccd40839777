//! Draws the report's charts: rates of the contenders by frame size, latency of SoftIOV's card, and policies of
//! interrupt moderation. Drawn like the lab's.

use super::drawing::{bars, chart, line};
use super::rows::{BenchmarkReport, BenchmarkRow};
use super::{comparison, workers};
use crate::contender::ContenderKind;
use crate::contender::work::Workload;
use crate::moderation;
use figure::{Chart, ChartSeries, PublishedValueMarker};

/// Function that returns the number that a chart shows for a row, or `None` if the row has none.
type RowValue = fn(&BenchmarkRow) -> Option<f64>;

/// Percentiles of a row's latency in microseconds, each with its label.
const PERCENTILES: [(&str, RowValue); 3] = [
    ("p50", |row| Some(row.latency?.p50_ns? / 1e3)),
    ("p99", |row| Some(row.latency?.p99_ns? / 1e3)),
    ("p99.9", |row| Some(row.latency?.p999_ns? / 1e3)),
];

/// Horizontal axis of a chart: its title, and the function that returns a row's position as text.
#[derive(Clone, Copy)]
struct ChartAxis {
    title: &'static str,
    of: fn(&BenchmarkRow) -> String,
}

const SIZES: ChartAxis = ChartAxis { title: "frame", of: |row| format!("{} bytes", row.size) };
const LOADS: ChartAxis =
    ChartAxis { title: "load", of: |row| row.bench.trim_start_matches(moderation::BENCH).to_owned() };

/// Definition of a chart: name of its file, heading, unit, horizontal axis, and the row's number that it shows.
type ChartDefinition = (&'static str, &'static str, &'static str, ChartAxis, RowValue);

const MESSAGES: ChartAxis = ChartAxis {
    title: "message",
    of: |row| format!("{}: {} B", row.bench.trim_start_matches(comparison::BENCH), row.size),
};

const COMPARISON: [ChartDefinition; 2] = [
    ("compare", "Payload of messages", "Gb/s", MESSAGES, |row| row.gbps),
    ("compare-cycles", "Host cycles per frame", "cycles", MESSAGES, |row| row.cycles_per_packet),
];
const FORWARDING: [ChartDefinition; 2] = [
    ("forwarding", "Frames forwarded", "millions per second", SIZES, |row| row.mpps),
    ("cycles", "Cycles per frame", "cycles", SIZES, |row| row.cycles_per_packet),
];
const INTERRUPTS: [ChartDefinition; 4] = [
    ("interrupts", "Interrupts", "per second", LOADS, |row| Some(row.interrupts?.hertz)),
    ("interrupts-lost", "Frames lost", "%", LOADS, |row| Some(row.interrupts?.lost * 100.0)),
    (
        "interrupts-p50",
        "Delay until the frame is received or answered: median",
        "us",
        LOADS,
        PERCENTILES[0].1,
    ),
    ("interrupts-p99", "Delay until the frame is received or answered: p99", "us", LOADS, PERCENTILES[1].1),
];

/// Meaning of the stated values in the legend of `compare-stated`. A legend has no further lines.
const STATED: &str = "stated by the paper on its machine: VFs (figures 12 and 14), split driver (figure 16)";

/// Draws the charts of a benchmark report. Returns the SVG of each, with the file's name without extension.
pub(super) fn charts(report: &BenchmarkReport) -> Vec<(&'static str, String)> {
    let rows = |of: fn(&str) -> bool| -> Vec<&BenchmarkRow> {
        report.rows.iter().filter(|row| of(&row.bench)).collect()
    };
    let forwarding = rows(|bench| bench == Workload::Frames(0).to_string());
    let interrupts = rows(|bench| bench.starts_with(moderation::BENCH));
    let mut charts = Vec::new();
    let messages = rows(|bench| bench.starts_with(comparison::BENCH) && bench != comparison::MODEL);
    for (rows, kinds) in [(forwarding, &FORWARDING[..]), (interrupts, &INTERRUPTS), (messages, &COMPARISON)] {
        if !rows.is_empty() {
            let drawn = kinds
                .iter()
                .map(|(name, title, unit, x, value)| (*name, by_peer(&rows, title, unit, *x, *value)));
            charts.extend(drawn);
        }
    }
    let modelled = rows(|bench| bench == comparison::MODEL);
    if !modelled.is_empty() {
        charts.push(("compare-model", beside_model(report, &modelled)));
    }
    if report.rows.iter().any(|row| row.ports.is_some()) {
        charts.push(("compare-stated", beside_stated(report, &modelled)));
    }
    if let Some(svg) = workers::beside_model(report) {
        charts.push(("compare-workers", svg));
    }
    let latency = rows(|bench| bench == "one way");
    if !latency.is_empty() {
        charts.push(("latency", latencies(&latency)));
    }
    charts
}

/// Draws a bar chart: positions on the horizontal axis in the order of the rows, each with a bar for each contender.
fn by_peer(rows: &[&BenchmarkRow], title: &str, unit: &str, x: ChartAxis, value: RowValue) -> String {
    let mut places: Vec<String> = Vec::new();
    for row in rows {
        let place = (x.of)(row);
        if !places.contains(&place) {
            places.push(place);
        }
    }
    let series = contenders(rows).into_iter().enumerate().map(|(at, (peer, mode))| {
        let of = |place: &String| {
            rows.iter().find(|row| (x.of)(row) == *place && row.peer == peer && row.mode == mode)
        };
        let values = places.iter().map(|place| value(of(place)?)).collect();
        let label = if peer.starts_with("softiov") { format!("{peer}, {mode}") } else { peer.to_owned() };
        bars(label, at, values)
    });
    let series = series.collect();
    chart(title, unit, x.title, places.into_iter().map(|place| vec![place]).collect(), series).to_svg()
}

/// Draws a bar chart of latencies.
fn latencies(rows: &[&BenchmarkRow]) -> String {
    let peers = contenders(rows);
    let is_one = peers.iter().all(|(peer, _)| *peer == rows[0].peer);
    let (places, series) = if is_one { latencies_of_one(rows) } else { latencies_of(&peers, rows) };
    chart("One-way latency through SoftIOV's card", "us", "load", places, series).to_svg()
}

/// Returns the positions of one contender's latencies, one for each load, frame size and mode, and a bar for each percentile.
fn latencies_of_one(rows: &[&BenchmarkRow]) -> (Vec<Vec<String>>, Vec<ChartSeries>) {
    let place = |row: &&BenchmarkRow| {
        let [size, load] = load(row);
        vec![size, row.mode.to_string(), load]
    };
    let series = PERCENTILES.iter().enumerate().map(|(at, (label, value))| {
        bars((*label).to_owned(), at, rows.iter().map(|row| value(row)).collect())
    });
    (rows.iter().map(place).collect(), series.collect())
}

/// Returns the positions of several contenders' latencies, one for each load, frame size and percentile, and a bar for each
/// contender.
fn latencies_of(
    peers: &[(&str, ContenderKind)],
    rows: &[&BenchmarkRow],
) -> (Vec<Vec<String>>, Vec<ChartSeries>) {
    let mut loads: Vec<[String; 2]> = Vec::new();
    for load in rows.iter().map(|row| load(row)) {
        if !loads.contains(&load) {
            loads.push(load);
        }
    }
    let series = peers.iter().enumerate().map(|(at, &(peer, mode))| {
        let values = loads.iter().flat_map(|wanted| {
            let is_own = |row: &&&BenchmarkRow| row.peer == peer && row.mode == mode && load(row) == *wanted;
            let row = rows.iter().find(is_own);
            PERCENTILES.map(|(_, value)| row.and_then(|row| value(row)))
        });
        bars(format!("{peer}, {mode}"), at, values.collect())
    });
    let places = loads.iter().flat_map(|[size, load]| {
        PERCENTILES.map(|(percentile, _)| vec![size.clone(), load.clone(), percentile.to_owned()])
    });
    (places.collect(), series.collect())
}

/// Returns the labels of a row's frame size and load.
fn load(row: &BenchmarkRow) -> [String; 2] {
    let load = row.latency.map_or(0.0, |latency| latency.load * 100.0);
    [format!("{} bytes", row.size), format!("{load:.0} %")]
}

/// Returns the contenders of rows with their modes, each once, in the order of the rows.
fn contenders<'a>(rows: &[&'a BenchmarkRow]) -> Vec<(&'a str, ContenderKind)> {
    let mut peers = Vec::new();
    for row in rows {
        if !peers.contains(&(row.peer.as_str(), row.mode)) {
            peers.push((row.peer.as_str(), row.mode));
        }
    }
    peers
}

/// Draws the rate of each VF divided by that of a virtio function, between two ports by message size, beside the model's
/// rate of SR-IOV divided by that of the split driver.
fn beside_model(report: &BenchmarkReport, modelled: &[&BenchmarkRow]) -> String {
    let sizes: Vec<usize> =
        modelled.iter().filter(|row| row.peer == comparison::MODELLED[0]).map(|row| row.size).collect();
    let divide = |(own, other): (f64, f64)| (other > 0.0).then(|| own / other);
    let model = |peer: &str, size: usize| {
        modelled.iter().find(|row| row.peer == peer && row.size == size).and_then(|row| row.gbps)
    };
    let [vf, split] = comparison::MODELLED;
    let values = sizes.iter().map(|&size| model(vf, size).zip(model(split, size)).and_then(divide)).collect();
    let mut series = vec![line("model: SR-IOV / split driver".to_owned(), 0, values)];
    let live: Vec<&BenchmarkRow> =
        report.rows.iter().filter(|row| row.bench == comparison::name(2)).collect();
    let vfs = contenders(&live).into_iter().filter(|(_, mode)| *mode != ContenderKind::Kicked);
    for (at, (peer, mode)) in (1..).zip(vfs) {
        let ratio = |size: &usize| {
            let row = live.iter().find(|row| row.size == *size && row.peer == peer && row.mode == mode)?;
            // The median over rounds, which a change of the machine's speed between slices disturbs least.
            row.ratios.iter().find(|ratio| ratio.mode == ContenderKind::Kicked)?.median_of_all
        };
        series.push(line(format!("{peer}, {mode} / virtio"), at, sizes.iter().map(ratio).collect()));
    }
    let places = sizes.iter().map(|size| vec![format!("{size} B")]).collect();
    chart("Rate of VFs divided by that of virtio", "ratio", "message", places, series).to_svg()
}

/// Draws the live rates of cards without variation by number of guests, at the largest message size, beside the rates that
/// the paper states and the model's between two guests.
fn beside_stated(report: &BenchmarkReport, modelled: &[&BenchmarkRow]) -> String {
    let stated = &report.stated_rates;
    let live: Vec<&BenchmarkRow> =
        report.rows.iter().filter(|row| row.ports.is_some() && row.variation.is_empty()).collect();
    let largest = live.iter().map(|row| row.size).max();
    let live: Vec<&BenchmarkRow> = live.into_iter().filter(|row| Some(row.size) == largest).collect();
    let mut guests: Vec<usize> =
        stated.iter().map(|rate| rate.guests).chain(live.iter().filter_map(|row| row.ports)).collect();
    guests.sort_unstable();
    guests.dedup();
    let mut series: Vec<ChartSeries> = Vec::new();
    for (at, set_up) in comparison::MODELLED.iter().enumerate() {
        let of_model = modelled.iter().find(|row| row.peer == *set_up && Some(row.size) == largest);
        let value = |guests: &usize| of_model.filter(|_| *guests == 2)?.gbps;
        series.push(bars(format!("model of {set_up}"), at, guests.iter().map(value).collect()));
    }
    for row in &live {
        let label = format!("{}, {}", row.peer, row.mode);
        if series.iter().any(|known| known.label == label) {
            continue;
        }
        let is_own = |other: &&&BenchmarkRow| other.peer == row.peer && other.mode == row.mode;
        let value = |guests: &usize| live.iter().filter(is_own).find(|row| row.ports == Some(*guests))?.gbps;
        series.push(bars(label, series.len(), guests.iter().map(value).collect()));
    }
    let marker = |rate: &comparison::StatedRate| {
        let at = guests.iter().position(|guests| *guests == rate.guests)?;
        let value = rate.gbps;
        Some(PublishedValueMarker { series: rate.set_up, at, height: value, value, is_calibrated: false })
    };
    let stated = stated.iter().filter_map(marker).collect();
    let places = guests.iter().map(|guests| vec![format!("{guests} guests")]).collect();
    let drawn = chart("Payload by number of guests", "Gb/s", "guests", places, series);
    Chart { stated, stated_label: Some(STATED.to_owned()), ..drawn }.to_svg()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::rows::LatencyPercentiles;

    fn one_way(peer: &str, mode: ContenderKind) -> BenchmarkRow {
        let mut row = BenchmarkRow::new("one way", peer, 1_500, mode);
        let [p50_ns, p99_ns, p999_ns] = [5e3, 2e4, 9e4].map(Some);
        row.latency = Some(LatencyPercentiles { load: 0.5, p50_ns, p99_ns, p999_ns });
        row
    }

    #[test]
    fn latencies_of_two_families_have_labels_with_their_names() {
        let rows =
            [one_way("softiov avf", ContenderKind::Mapped), one_way("softiov virtio", ContenderKind::Kicked)];
        let svg = latencies(&[&rows[0], &rows[1]]);
        for label in ["softiov avf, mapped", "softiov virtio, kicked"] {
            assert!(svg.contains(&format!(">{label}<")), "{label}: {svg}");
            assert!(svg.contains(&format!("p99.9: {label} 90 us<")), "{label}: {svg}");
        }
    }

    #[test]
    fn latencies_of_one_family_have_labels_with_loads_and_modes() {
        let svg = latencies(&[
            &one_way("softiov", ContenderKind::Mapped),
            &one_way("softiov", ContenderKind::Posted),
        ]);
        assert!(svg.contains("1500 bytes, posted, 50 %: p99 20 us<"), "{svg}");
        assert!(!svg.contains("softiov,"), "{svg}");
    }
}
