//! Draws the rate of cards with several workers divided by their rate with one. Beside it are the same ratio of the lab's model of
//! multi-core netback (Zhang et al.), and the one that the paper states.

use super::drawing::{bars, chart};
use super::rows::{BenchmarkReport, BenchmarkRow};
use crate::contender::ContenderKind;
use crate::model::LabListing;
use crate::variation::WorkerSettings;
use anyhow::Result;
use figure::{Chart, ChartSeries, PublishedValueMarker};
use std::collections::BTreeSet;

/// Name of the rows of the lab's model.
pub const MODEL: &str = "workers, model of four guests";
/// Name of the modelled set-up: guests with the split driver, whose back end has several pairs of tasklets.
pub const MODELLED: &str = "split driver (netback-multicore)";
/// Experiment of the lab's catalogue with the back end on several virtual CPUs.
pub const EXPERIMENT: &str = "netback-multicore";
/// Number of guests in the model: one for each of the paper's four wires.
pub const GUESTS: u64 = 4;

/// Meaning of the stated values in the legend of the chart. A legend has no further lines.
const STATED: &str = "stated by the paper: four tasklets, divided by the stock back end";

/// Returns the worker settings that correspond to a point of the lab's experiment. All events of the stock back end go to the first
/// virtual CPU.
#[must_use]
pub fn of_point(tasklets: u8, dispatcher: &str) -> WorkerSettings {
    let dispatcher = if dispatcher == "vcpu0" { "off" } else { dispatcher };
    WorkerSettings { count: tasklets, dispatcher: dispatcher.to_owned() }
}

/// Returns the rates that the paper states, in Gb/s, from the lab's listing.
///
/// # Errors
/// The lab is of another version.
pub(crate) fn stated(lab: &LabListing) -> Result<Vec<(WorkerSettings, f64)>> {
    let rate = lab.stated(EXPERIMENT)?.iter().filter_map(|value| {
        let tasklets = value.point.get("tasklets")?.parse().ok()?;
        Some((of_point(tasklets, value.point.get("dispatcher")?), value.value))
    });
    Ok(rate.collect())
}

/// Returns the stated rates with several workers, each divided by the stated rate with one, to hundredths.
fn stated_ratios(stated: &[(WorkerSettings, f64)]) -> Vec<(WorkerSettings, f64)> {
    let (one, several): (Vec<_>, Vec<_>) = stated.iter().partition(|(workers, _)| workers.count == 1);
    let one = one.first().map(|(_, gbps)| *gbps);
    let ratio = |gbps: f64| Some((gbps / one? * 100.0).round() / 100.0);
    several.into_iter().filter_map(|(workers, gbps)| Some((workers.clone(), ratio(*gbps)?))).collect()
}

/// Row of a card with several workers and no other variation.
struct LiveRow<'a> {
    row: &'a BenchmarkRow,
    workers: WorkerSettings,
}

impl<'a> LiveRow<'a> {
    fn of(row: &'a BenchmarkRow) -> Option<Self> {
        row.ports?;
        Some(Self { row, workers: WorkerSettings::parse(&row.variation)? })
    }

    /// Returns the card's name, its mode and its number of ports.
    fn contender(&self) -> (&'a str, ContenderKind, Option<usize>) {
        (self.row.peer_without_variation(), self.row.mode, self.row.ports)
    }

    /// Returns the rate divided by that of the same card with one worker.
    fn ratio(&self) -> Option<f64> {
        let own = self.row.peer_without_variation();
        let one = self.row.ratios.iter().find(|ratio| ratio.to == own && ratio.mode == self.row.mode)?;
        // The median over rounds, which a change of the machine's speed between slices disturbs least.
        one.median_of_all
    }
}

/// Draws the ratios at the largest message size by workers and dispatcher. Returns `None` without a card that has several workers.
pub(super) fn beside_model(report: &BenchmarkReport) -> Option<String> {
    let live: Vec<LiveRow<'_>> = report.rows.iter().filter_map(LiveRow::of).collect();
    let largest = live.iter().map(|live| live.row.size).max()?;
    let live: Vec<_> = live.into_iter().filter(|live| live.row.size == largest).collect();
    let modelled = modelled_ratios(report);
    let stated = stated_ratios(&report.stated_workers);
    let settings = live.iter().map(|live| &live.workers);
    let settings = settings.chain(modelled.iter().chain(&stated).map(|(workers, _)| workers));
    let places: Vec<&WorkerSettings> = settings.collect::<BTreeSet<_>>().into_iter().collect();

    let model = |place: &&WorkerSettings| {
        modelled.iter().find(|(workers, _)| workers == *place).map(|(_, ratio)| *ratio)
    };
    let mut series: Vec<ChartSeries> =
        vec![bars(format!("model of the {MODELLED}"), 0, places.iter().map(model).collect())];
    let mut contenders = Vec::new();
    for contender in live.iter().map(LiveRow::contender) {
        if contenders.contains(&contender) {
            continue;
        }
        contenders.push(contender);
        let (peer, mode, ports) = contender;
        let ratio = |place: &&WorkerSettings| {
            live.iter().find(|live| live.contender() == contender && live.workers == **place)?.ratio()
        };
        let label = format!("{peer}, {mode}, {} ports", ports.unwrap_or_default());
        series.push(bars(label, contenders.len(), places.iter().map(ratio).collect()));
    }
    let marker = |(workers, ratio): &(WorkerSettings, f64)| {
        let at = places.iter().position(|place| *place == workers)?;
        Some(PublishedValueMarker { series: 0, at, height: *ratio, value: *ratio, is_calibrated: false })
    };
    let stated = stated.iter().filter_map(marker).collect();
    let names = places.iter().map(|place| vec![format!("{} workers", place.count), place.dispatcher.clone()]);
    let drawn = chart(
        "Rate with several workers divided by that with one",
        "ratio",
        "workers",
        names.collect(),
        series,
    );
    Some(Chart { stated, stated_label: Some(STATED.to_owned()), ..drawn }.to_svg())
}

/// Returns the model's rates with several workers, each divided by that of the stock back end, which has no variation.
fn modelled_ratios(report: &BenchmarkReport) -> Vec<(WorkerSettings, f64)> {
    let rows = || report.rows.iter().filter(|row| row.bench == MODEL);
    let one = rows().find(|row| row.variation.is_empty()).and_then(|row| row.gbps).filter(|gbps| *gbps > 0.0);
    rows().filter_map(|row| Some((WorkerSettings::parse(&row.variation)?, row.gbps? / one?))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::machine;
    use crate::report::comparison;
    use crate::report::rows::RateRatio;

    fn model(variation: &str, gbps: f64) -> BenchmarkRow {
        let mut row = BenchmarkRow::new(MODEL, MODELLED, 1_514, ContenderKind::Raw);
        row.set_variation(variation);
        row.gbps = Some(gbps);
        row
    }

    fn live(variation: &str, ratio: f64) -> BenchmarkRow {
        let peer = format!("softiov virtio, {variation}");
        let mut row = BenchmarkRow::new(&comparison::name(2), &peer, 4_000, ContenderKind::Kicked);
        row.set_variation(variation);
        row.ports = Some(2);
        row.ratios = vec![RateRatio {
            to: "softiov virtio".to_owned(),
            mode: ContenderKind::Kicked,
            median: None,
            spread: None,
            pairs: 0,
            median_of_all: Some(ratio),
            spread_of_all: None,
        }];
        row
    }

    fn papers_rates() -> Vec<(WorkerSettings, f64)> {
        vec![(of_point(1, "vcpu0"), 2.3), (of_point(4, "balanced"), 3.7)]
    }

    #[test]
    fn papers_ratio_of_workers_is_a_quotient_of_its_rates() {
        let stated = stated_ratios(&papers_rates());
        let [(workers, ratio)] = &stated[..] else { panic!("{stated:?}") };
        assert_eq!(workers.to_string(), "workers = 4; dispatcher = \"balanced\"");
        assert_eq!(*ratio, 1.61, "3.7 instead of 2.3 Gb/s");
    }

    #[test]
    fn ratio_of_workers_is_drawn_beside_the_model_and_the_paper() {
        let spread = "workers = 2; dispatcher = \"spread\"";
        let mut report = BenchmarkReport::new(machine::describe());
        report.stated_workers = papers_rates();
        report.rows = vec![model("", 2.0), model(spread, 3.0), live("events", 0.5)];
        assert_eq!(beside_model(&report), None, "no card has several workers");
        report.rows.extend([live(spread, 0.75), live("workers = 2; rx_usecs = 50", 0.25)]);
        let svg = beside_model(&report).unwrap();
        for title in [
            "2 workers, spread: model of the split driver (netback-multicore) 1.5 ratio",
            "2 workers, spread: softiov virtio, kicked, 2 ports 0.75 ratio",
            "1.61 ratio (stated by the paper: four tasklets, divided by the stock back end)",
        ] {
            assert!(svg.contains(title), "{title}: {svg}");
        }
        assert!(!svg.contains("0.25 ratio") && !svg.contains("0.5 ratio"), "{svg}");
    }
}
