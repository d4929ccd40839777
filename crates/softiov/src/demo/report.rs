//! Report of a demo: JSON, tables, and the list of problems.

use super::card::DemoCard;
use daemon::control::status::{self, DropCounts, TrafficCounts, VfStatus};
use serde::Serialize;
use std::fmt;

/// JSON report of a demo.
#[derive(Debug, Default, Serialize)]
pub(super) struct DemoReport {
    /// Card family of the demo's VFs.
    pub(super) family: String,
    /// True if doorbell pages were mapped into the guests.
    pub(super) mapped: bool,
    pub(super) guests: Vec<ReportedGuest>,
    pub(super) pings: Vec<PingResult>,
    pub(super) flows: Vec<TcpFlow>,
    /// Bulk TCP between two virtual machines: the card's family first, then the family it is compared with.
    pub(super) figures: Vec<FamilyPerformance>,
    pub(super) interventions_per_1000_packets: VmmWorkPerThousandPackets,
    pub(super) vfs: Vec<VfCounters>,
}

impl DemoReport {
    /// Creates a demo report without results.
    pub(super) fn new(card: DemoCard<'_>) -> Self {
        Self { family: card.family.to_owned(), mapped: card.mapped, ..Self::default() }
    }
}

/// Counters of a VF, as the host reports them.
#[derive(Debug, Serialize)]
pub(super) struct VfCounters {
    pub(super) vf: String,
    pub(super) rx: TrafficCounts,
    pub(super) tx: TrafficCounts,
    pub(super) drops: DropCounts,
    pub(super) interventions: status::VmmInterventions,
}

impl From<&VfStatus> for VfCounters {
    fn from(vf: &VfStatus) -> Self {
        let (rx, tx, drops, interventions) = (vf.rx, vf.tx, vf.drops, vf.interventions);
        Self { vf: vf.name.clone(), rx, tx, drops, interventions }
    }
}

/// Guest of the demo with the VF that it uses.
#[derive(Debug, Serialize)]
pub(super) struct ReportedGuest {
    pub(super) vf: String,
    pub(super) kind: &'static str,
    pub(super) mac: String,
    pub(super) driver: String,
}

/// Result of a series of pings between two guests.
#[derive(Debug, Serialize)]
pub(super) struct PingResult {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) sent: u64,
    pub(super) received: u64,
    /// Median round trip, microseconds; null if no ping was answered.
    pub(super) rtt_us_p50: Option<f64>,
    /// Number of register accesses that the host carried out, per ping.
    pub(super) trapped_each: f64,
}

/// TCP flow between two guests.
#[derive(Debug, Serialize)]
pub(super) struct TcpFlow {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) protocol: &'static str,
    /// Bytes that the flow's receiver received.
    pub(super) bytes: u64,
    pub(super) mbps: f64,
    /// Number of register accesses that the host carried out, per 1,000 packets.
    pub(super) trapped_per_1000_packets: f64,
}

/// Throughput and cost of bulk TCP between two guests' VFs, both ways together.
#[derive(Debug, Serialize)]
pub(super) struct FamilyPerformance {
    pub(super) family: String,
    /// Name of the network driver in the guests.
    pub(super) driver: String,
    /// Mean throughput of the flows of both directions, Mb/s.
    pub(super) mbps: f64,
    /// Number of register accesses that the host carried out, per 1,000 packets.
    pub(super) trapped_per_1000_packets: f64,
    pub(super) interrupts_per_1000_packets: f64,
}

/// VMM work per 1,000 packets, which SR-IOV is meant to avoid.
#[derive(Debug, Default, Clone, Copy, Serialize)]
pub(super) struct VmmWorkPerThousandPackets {
    /// Number of register reads per 1,000 packets; the guest waits for each.
    pub(super) reads: f64,
    /// Number of register writes per 1,000 packets, posted or not.
    pub(super) writes: f64,
    /// Number of interrupts delivered to the guests per 1,000 packets.
    pub(super) interrupts: f64,
}

impl VmmWorkPerThousandPackets {
    /// Computes the VMM work of all VFs together per 1,000 packets; sent and received packets count alike.
    fn of(vfs: &[VfStatus]) -> Self {
        let sum = |what: fn(&VfStatus) -> u64| vfs.iter().map(what).sum::<u64>();
        let packets = sum(packets).max(1) as f64;
        let rate = |what| to_tenths(sum(what) as f64 * 1000.0 / packets);
        Self {
            reads: rate(|vf| vf.interventions.reads),
            writes: rate(|vf| vf.interventions.posted_writes + vf.interventions.synchronous_writes),
            interrupts: rate(|vf| vf.interventions.interrupts),
        }
    }
}

/// Rounds a measured value to tenths, the precision of the demo's measurements.
pub(super) fn to_tenths(value: f64) -> f64 {
    (value * 10.0).round() / 10.0
}

fn packets(vf: &VfStatus) -> u64 {
    vf.rx.packets + vf.tx.packets
}

/// Report of a demo, and the data that only the demo's tables and its final line need.
#[derive(Debug)]
pub(super) struct DemoOutcome {
    pub(super) report: DemoReport,
    vfs: Vec<VfStatus>,
    /// Problems of the demo other than unanswered pings.
    wrong: Vec<String>,
}

impl DemoOutcome {
    /// Creates a demo's outcome from the VFs' status at the end (`vfs`) and the problems found so far
    /// (`wrong`).
    pub(super) fn new(mut report: DemoReport, vfs: Vec<VfStatus>, wrong: Vec<String>) -> Self {
        report.interventions_per_1000_packets = VmmWorkPerThousandPackets::of(&vfs);
        report.vfs = vfs.iter().map(VfCounters::from).collect();
        Self { report, vfs, wrong }
    }

    /// Returns all problems of the demo; none if everything that was sent arrived.
    pub(super) fn problems(&self) -> Vec<String> {
        let unanswered = |ping: &PingResult| {
            let lost = ping.received < ping.sent || ping.sent == 0;
            lost.then(|| {
                let PingResult { from, to, sent, received, .. } = ping;
                format!("ping from {from} to {to}: {received} answers to {sent} requests")
            })
        };
        self.report.pings.iter().filter_map(unanswered).chain(self.wrong.iter().cloned()).collect()
    }
}

impl fmt::Display for DemoOutcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", DemoTable::new(&VF_COLUMNS, self.vfs.iter().map(vf_row).collect()))?;
        writeln!(f, "{}", DemoTable::new(&PING_COLUMNS, self.report.pings.iter().map(ping_row).collect()))?;
        writeln!(f, "{}", DemoTable::new(&FLOW_COLUMNS, self.report.flows.iter().map(flow_row).collect()))?;
        if !self.report.figures.is_empty() {
            writeln!(
                f,
                "{}",
                DemoTable::new(&FIGURE_COLUMNS, self.report.figures.iter().map(figure_row).collect())
            )?;
        }
        let VmmWorkPerThousandPackets { reads, writes, interrupts } =
            self.report.interventions_per_1000_packets;
        writeln!(
            f,
            "VMM interventions per 1,000 packets: {reads:.1} reads, {writes:.1} writes, {interrupts:.1} interrupts"
        )
    }
}

const VF_COLUMNS: [&str; 11] = [
    "VF",
    "MAC",
    "link",
    "rx packets",
    "rx bytes",
    "tx packets",
    "tx bytes",
    "drops",
    "interrupts",
    "reads/1k",
    "writes/1k",
];
const PING_COLUMNS: [&str; 5] = ["ping from", "to", "sent", "received", "median RTT"];
const FLOW_COLUMNS: [&str; 6] = ["flow from", "to", "protocol", "bytes", "Mbit/s", "trapped/1k"];
const FIGURE_COLUMNS: [&str; 5] = ["bulk TCP over", "driver", "Mbit/s", "trapped/1k", "interrupts/1k"];

fn vf_row(vf: &VfStatus) -> Vec<String> {
    let VmmWorkPerThousandPackets { reads, writes, .. } =
        VmmWorkPerThousandPackets::of(std::slice::from_ref(vf));
    vec![
        vf.name.clone(),
        vf.mac.clone(),
        if vf.link { "up" } else { "down" }.to_owned(),
        vf.rx.packets.to_string(),
        vf.rx.bytes.to_string(),
        vf.tx.packets.to_string(),
        vf.tx.bytes.to_string(),
        (vf.rx.dropped + vf.tx.dropped).to_string(),
        vf.interventions.interrupts.to_string(),
        format!("{reads:.1}"),
        format!("{writes:.1}"),
    ]
}

fn ping_row(ping: &PingResult) -> Vec<String> {
    let median = ping.rtt_us_p50.map_or("-".to_owned(), |micros| format!("{micros:.0} us"));
    vec![ping.from.clone(), ping.to.clone(), ping.sent.to_string(), ping.received.to_string(), median]
}

fn flow_row(flow: &TcpFlow) -> Vec<String> {
    let (mbps, trapped) = (format!("{:.0}", flow.mbps), format!("{:.1}", flow.trapped_per_1000_packets));
    vec![flow.from.clone(), flow.to.clone(), flow.protocol.to_owned(), flow.bytes.to_string(), mbps, trapped]
}

fn figure_row(figures: &FamilyPerformance) -> Vec<String> {
    vec![
        figures.family.clone(),
        figures.driver.clone(),
        format!("{:.0}", figures.mbps),
        format!("{:.1}", figures.trapped_per_1000_packets),
        format!("{:.1}", figures.interrupts_per_1000_packets),
    ]
}

/// Table in the demo's report: a heading and rows, each column as wide as its widest cell.
struct DemoTable {
    rows: Vec<Vec<String>>,
    widths: Vec<usize>,
}

impl DemoTable {
    fn new(columns: &[&str], mut rows: Vec<Vec<String>>) -> Self {
        rows.insert(0, columns.iter().map(|&column| column.to_owned()).collect());
        let width =
            |column| rows.iter().filter_map(|row| row.get(column)).map(String::len).max().unwrap_or(0);
        let widths = (0..columns.len()).map(width).collect();
        Self { rows, widths }
    }
}

impl fmt::Display for DemoTable {
    /// Formats the table of the demo's report: names in the first two columns left-aligned, numbers
    /// right-aligned.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.rows {
            let mut line = String::new();
            for (column, (cell, width)) in row.iter().zip(&self.widths).enumerate() {
                line += &if column < 2 { format!("{cell:<width$}  ") } else { format!("{cell:>width$}  ") };
            }
            writeln!(f, "{}", line.trim_end())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{DemoOutcome, DemoReport, FamilyPerformance, PingResult, ReportedGuest, TcpFlow};
    use crate::demo::card::DemoCard;

    fn ping(sent: u64, received: u64) -> PingResult {
        PingResult {
            from: "pf0vf0".into(),
            to: "pf0vf1".into(),
            sent,
            received,
            rtt_us_p50: Some(41.5),
            trapped_each: 1.5,
        }
    }

    fn report(pings: Vec<PingResult>) -> DemoReport {
        let guest = ReportedGuest {
            vf: "pf0vf0".into(),
            kind: "embedded",
            mac: "02:00:00:00:00:01".into(),
            driver: "softiov driver::vf".into(),
        };
        let trapped_per_1000_packets = 0.5;
        let (from, to) = ("a".into(), "b".into());
        let flow = TcpFlow { from, to, protocol: "tcp", bytes: 9, mbps: 1.5, trapped_per_1000_packets };
        let figures = FamilyPerformance {
            family: "82576".into(),
            driver: "igbvf".into(),
            mbps: 1.5,
            trapped_per_1000_packets: 0.5,
            interrupts_per_1000_packets: 20.0,
        };
        let report = DemoReport::new(DemoCard { family: "82576", mapped: false });
        DemoReport { guests: vec![guest], pings, flows: vec![flow], figures: vec![figures], ..report }
    }

    #[test]
    fn names_and_order_of_demo_json_fields_are_stable() {
        let outcome = DemoOutcome::new(report(vec![ping(20, 20)]), vec![], vec![]);
        assert_eq!(
            serde_json::to_string(&outcome.report).unwrap(),
            r#"{"family":"82576","mapped":false,"guests":[{"vf":"pf0vf0","kind":"embedded","mac":"02:00:00:00:00:01","driver":"softiov driver::vf"}],"#
                .to_owned()
                + r#""pings":[{"from":"pf0vf0","to":"pf0vf1","sent":20,"received":20,"rtt_us_p50":41.5,"trapped_each":1.5}],"#
                + r#""flows":[{"from":"a","to":"b","protocol":"tcp","bytes":9,"mbps":1.5,"trapped_per_1000_packets":0.5}],"#
                + r#""figures":[{"family":"82576","driver":"igbvf","mbps":1.5,"trapped_per_1000_packets":0.5,"interrupts_per_1000_packets":20.0}],"#
                + r#""interventions_per_1000_packets":{"reads":0.0,"writes":0.0,"interrupts":0.0},"vfs":[]}"#
        );
    }

    #[test]
    fn unanswered_and_unsent_demo_pings_are_problems() {
        let outcome = DemoOutcome::new(report(vec![ping(20, 20), ping(20, 19), ping(0, 0)]), vec![], vec![]);
        assert_eq!(
            outcome.problems(),
            [
                "ping from pf0vf0 to pf0vf1: 19 answers to 20 requests",
                "ping from pf0vf0 to pf0vf1: 0 answers to 0 requests",
            ]
        );
    }

    #[test]
    fn demo_report_columns_are_aligned_with_their_headings() {
        let text = DemoOutcome::new(report(vec![ping(20, 20)]), vec![], vec![]).to_string();
        let heading = text.lines().find(|line| line.starts_with("ping from")).unwrap();
        let row = text.lines().find(|line| line.starts_with("pf0vf0")).unwrap();
        assert_eq!(heading.find("to"), row.find("pf0vf1"));
        assert_eq!((heading.len(), row.ends_with("42 us")), (row.len(), true));
        assert!(text.contains("igbvf"), "the figures of both families are side by side:\n{text}");
    }
}
