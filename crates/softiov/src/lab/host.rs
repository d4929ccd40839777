//! `softiov lab host`: prints this machine's measurements and the predictions from them. Progress goes to standard
//! error.

use host::measure::{DurationProbe, DurationProbeResult, PROBES, VirtualizationFeature, features};
use lab::catalogue::{ConstantEffect, ModelConstant};
use lab::here::{self, HostPath, HostPrediction};
use lab::runner::plan::SettingAssignment;
use serde::Serialize;

use super::LabHostArgs;
use super::calibrate::{heading, json, save};
use super::progress::{jobs, print_progress};
use super::table::TextTable;
use crate::output;

const HEADER: &str = "# Measured by `softiov lab host`; for `softiov lab run --settings FILE`.\n";

/// Measured property of this machine (median and range), or the reason why it cannot be measured.
#[derive(Debug, Serialize)]
struct MachineMeasurement {
    name: &'static str,
    what: &'static str,
    unit: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    median: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    least: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    most: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    why_not: Option<String>,
}

/// Assumption of the lab about the processor, with the result of its check on this machine.
#[derive(Debug, Serialize)]
struct ProcessorAssumption {
    what: &'static str,
    /// True if the assumption holds on this machine; `null` if the machine does not report it.
    here: Option<bool>,
    source: &'static str,
}

impl From<VirtualizationFeature> for ProcessorAssumption {
    fn from(VirtualizationFeature { what, found, source }: VirtualizationFeature) -> Self {
        Self { what, here: found, source }
    }
}

#[derive(Debug, Serialize)]
struct LabMachineReport {
    measured: Vec<MachineMeasurement>,
    /// Assumptions about the processor that the table of constants `modern` makes.
    assumed: Vec<ProcessorAssumption>,
    table: Vec<ModelConstant>,
    predictions: Vec<HostPrediction>,
    paths: Vec<HostPath>,
}

pub(super) fn host(args: &LabHostArgs) -> anyhow::Result<()> {
    args.save.as_deref().map_or(Ok(()), output::check_writable)?;
    let measured: Vec<_> = PROBES.iter().map(measure).collect();
    let readings: Vec<_> = measured.iter().filter_map(|it| Some((it.name, it.median?))).collect();
    let table = here::table(&readings);
    save(args.save.as_deref(), || Ok(file(&here::settings(&table))))?;
    let progress = |text: &str| print_progress(&format!("predicting: {text}"));
    let predictions = here::predict(&table, jobs(args.jobs), &progress)?;
    let paths = here::paths(&here::settings(&table))?;
    let assumed = features().map(ProcessorAssumption::from).into();
    let found = LabMachineReport { measured, assumed, table: here::parameters(&table), predictions, paths };
    output::print(&if args.json { json(&found)? } else { as_text(&found) })
}

fn measure(probe: &DurationProbe) -> MachineMeasurement {
    print_progress(&format!("measuring: {}", probe.what));
    let DurationProbe { name, unit, what, run } = *probe;
    let nothing =
        MachineMeasurement { name, what, unit, median: None, least: None, most: None, why_not: None };
    match run() {
        Ok(DurationProbeResult { median, least, most }) => {
            let [median, least, most] = [median, least, most].map(|value| Some(lab::row::rounded(value)));
            MachineMeasurement { median, least, most, ..nothing }
        }
        Err(why_not) => MachineMeasurement { why_not: Some(why_not.to_string()), ..nothing },
    }
}

fn file(settings: &[SettingAssignment]) -> String {
    let lines = settings.iter().map(|SettingAssignment { key, value }| format!("{key}={value}\n"));
    HEADER.to_owned() + &lines.collect::<String>()
}

fn as_text(found: &LabMachineReport) -> String {
    let sections = [
        measurements(&found.measured),
        constants(&found.table),
        predictions(&found.predictions),
        paths(&found.paths),
    ];
    let notes = found.predictions.iter().map(sensitivity).collect::<String>();
    let assumed = found.assumed.iter().map(assumption_text).collect::<String>();
    format!("{}\n{assumed}{notes}", sections.join("\n"))
}

fn measurements(measured: &[MachineMeasurement]) -> String {
    let mut table = TextTable::new(heading(&["measured", "unit", "median", "least", "most"]), 2);
    let mut missing = String::new();
    for it in measured {
        let number = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), short);
        let names = [it.what, it.unit].map(str::to_owned);
        table.row(
            [names, [number(it.median), number(it.least)]]
                .concat()
                .into_iter()
                .chain([number(it.most)])
                .collect(),
        );
        if let Some(why_not) = &it.why_not {
            missing += &format!(
                "not measured here: {}: {why_not}; the table shows another machine's value\n",
                it.what
            );
        }
    }
    format!("{table}{missing}")
}

fn constants(parameters: &[ModelConstant]) -> String {
    let mut table = TextTable::new(heading(&["constant", "unit", "kind", "source", "value"]), 4);
    for it in parameters.iter().filter(|it| it.kind == "measured") {
        table.row(vec![
            it.name.clone(),
            it.unit.clone(),
            it.kind.clone(),
            it.source.clone(),
            it.value.to_string(),
        ]);
    }
    let rest = parameters.iter().find(|it| it.kind != "measured").map_or("", |it| it.table.as_str());
    format!("{table}all other constants: as in table `{rest}`\n")
}

fn predictions(predictions: &[HostPrediction]) -> String {
    let mut table = TextTable::new(
        heading(&["ten guests, ten gigabit ports", "point", "Gb/s", "CPU %", "CPU % a Gb/s"]),
        2,
    );
    for it in predictions {
        let numbers = [it.throughput_gbps, it.cpu_total_pct, it.cpu_pct_per_gbps].map(short);
        table.row([vec![it.what.clone(), it.point.clone()], numbers.to_vec()].concat());
    }
    table.to_string()
}

/// Returns a table of today's paths. Nothing is simulated for them: their counts are not of this machine.
fn paths(paths: &[HostPath]) -> String {
    let columns = ["a segment on today's paths, posted interrupts", "cycles", "least", "most", "Gb/s a core"];
    let mut table = TextTable::new(heading(&columns), 1);
    for it in paths {
        let numbers = [it.cycles, it.least, it.most, it.gbps_per_core].map(short);
        table.row([vec![it.path.clone()], numbers.to_vec()].concat());
    }
    table.to_string()
}

/// Returns a line of text for an assumption: its content, the state of this machine, and the source.
fn assumption_text(ProcessorAssumption { what, here, source }: &ProcessorAssumption) -> String {
    let says = match here {
        Some(true) => "present on this machine",
        Some(false) => "absent on this machine, where interrupts cost more",
        None => "not reported by this machine",
    };
    format!("assumed: {what}; {says} ({source})\n")
}

/// Returns a line with the constants on which the throughput and CPU load of a prediction depend most.
fn sensitivity(prediction: &HostPrediction) -> String {
    const SHOWN: usize = 4;
    let list = |effects: &[ConstantEffect]| {
        let shown = effects.iter().take(SHOWN);
        let texts: Vec<_> =
            shown.map(|it| format!("{} {:+.1}/{:+.1} %", it.constant, it.less_pct, it.more_pct)).collect();
        if texts.is_empty() { "no constant".to_owned() } else { texts.join(", ") }
    };
    let HostPrediction { what, throughput_hangs_on, cpu_hangs_on, .. } = prediction;
    format!(
        "{what}: largest effects of a constant at -20/+20 %: throughput: {}; CPU: {}\n",
        list(throughput_hangs_on),
        list(cpu_hangs_on)
    )
}

/// Formats a measured value with about three digits; repeated measurements agree on fewer.
fn short(value: f64) -> String {
    let digits = if value.abs() >= 100.0 { 0 } else { 2 };
    format!("{value:.digits$}")
}

#[cfg(test)]
mod tests {
    use lab::catalogue::ConstantEffect;

    use super::*;

    const UNMEASURED: MachineMeasurement = MachineMeasurement {
        name: "switch",
        what: "a switch",
        unit: "ns",
        median: None,
        least: None,
        most: None,
        why_not: None,
    };

    #[test]
    fn failed_lab_measurement_is_shown_with_its_reason() {
        let why_not =
            Some("KVM does not work on this machine: opening /dev/kvm failed: No such file".to_owned());
        let text = measurements(&[
            MachineMeasurement {
                median: Some(1009.21),
                least: Some(912.0),
                most: Some(99.123),
                ..UNMEASURED
            },
            MachineMeasurement { what: "an exit", why_not, ..UNMEASURED },
        ]);
        assert_eq!(
            text,
            "measured  unit  median  least   most\n\
             a switch  ns      1009    912  99.12\n\
             an exit   ns         -      -      -\n\
             not measured here: an exit: KVM does not work on this machine: opening /dev/kvm failed: No such file; \
             the table shows another machine's value\n"
        );
    }

    #[test]
    fn lab_host_shows_and_saves_only_measured_cost_constants() {
        let table = here::table(&[("clock", 2e9), ("copy_warm", 20.0)]);
        let text = constants(&here::parameters(&table));
        assert_eq!(text.lines().count(), 1 + 2 + 1, "{text}");
        assert!(text.ends_with("all other constants: as in table `modern`\n"), "{text}");
        let kept = file(&here::settings(&table));
        assert_eq!(kept, format!("{HEADER}table=modern\ncost.clock_hertz=2000000000\ncost.copy_warm=40\n"));
    }

    #[test]
    fn lab_host_shows_which_assumptions_this_machine_satisfies() {
        let text =
            |here| assumption_text(&ProcessorAssumption { what: "x2APIC", here, source: "/proc/cpuinfo" });
        assert_eq!(text(Some(true)), "assumed: x2APIC; present on this machine (/proc/cpuinfo)\n");
        assert!(text(Some(false)).contains("absent on this machine, where interrupts cost more"));
        assert!(text(None).contains("not reported by this machine"));
    }

    #[test]
    fn lab_host_shows_each_of_todays_paths() {
        let path = HostPath {
            path: "vdpa".to_owned(),
            cycles: 1_937.4,
            least: 995.0,
            most: 3_224.0,
            gbps_per_core: 17.9,
        };
        let text = paths(&[path]);
        let cells: Vec<_> = text.lines().last().unwrap().split_whitespace().collect();
        assert_eq!(cells, ["vdpa", "1937", "995", "3224", "17.90"]);
        assert!(text.starts_with("a segment on today's paths, posted interrupts  cycles"), "{text}");
    }

    #[test]
    fn lab_prediction_names_its_largest_sensitivities() {
        let effect = ConstantEffect { constant: "rx_wake".to_owned(), less_pct: -6.7, more_pct: 6.72 };
        let prediction = HostPrediction {
            what: "SR-IOV".to_owned(),
            point: "fig14 vms=10".to_owned(),
            throughput_gbps: 9.576,
            cpu_total_pct: 66.8,
            cpu_pct_per_gbps: 6.98,
            throughput_hangs_on: Vec::new(),
            cpu_hangs_on: vec![effect],
        };
        assert_eq!(
            sensitivity(&prediction),
            "SR-IOV: largest effects of a constant at -20/+20 %: throughput: no constant; CPU: rx_wake -6.7/+6.7 %\n"
        );
        assert!(predictions(&[prediction]).ends_with("fig14 vms=10  9.58  66.80          6.98\n"));
    }
}
