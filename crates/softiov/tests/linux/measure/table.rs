//! Prints the results of contenders: a Markdown table, and JSON.

use super::load::{GuestNetworkLoad, NetworkLoadResult, SECONDS};
use bench::statistics::{median, quantile};
use serde::Serialize;

/// Row of the result table: the result of one measured guest (contender) under one load.
#[derive(Debug, Serialize)]
pub(super) struct MeasuredGuestRow {
    load: &'static str,
    contender: String,
    pub(super) turns: usize,
    /// Median rate of the contender over all rounds, in megabits or answers per second.
    rate: Option<f64>,
    unit: &'static str,
    /// Median, over the rounds, of the contender's rate as a multiple of the first contender's rate in the same round.
    over_first: Option<f64>,
    /// Quartiles, over the rounds, of the contender's rate as a multiple of the first contender's rate.
    over_first_spread: Option<(f64, f64)>,
    /// Share of time for which the guest's processors were busy.
    guest_busy: f64,
    /// Processor time per 1,000 packets: of the guest by its own count, and of QEMU and the forwarder by the host's,
    /// milliseconds.
    guest_ms_per_1000_packets: f64,
    vmm_ms_per_1000_packets: f64,
    forwarder_ms_per_1000_packets: f64,
    /// Number of the guest's register accesses that the host counted, or of virtio-net's kicks, per 1,000 packets.
    accesses_per_1000_packets: f64,
    interrupts_per_1000_packets: f64,
    /// Number of retransmitted TCP segments in all rounds.
    sent_again: u64,
}

impl MeasuredGuestRow {
    /// Computes a row of the result table. `turns`, and `first` of the first contender, are in the order of rounds.
    pub(super) fn new(
        contender: &str,
        load: GuestNetworkLoad,
        turns: &[NetworkLoadResult],
        first: &[NetworkLoadResult],
    ) -> Self {
        let sum = |value: fn(&NetworkLoadResult) -> f64| turns.iter().map(value).sum::<f64>();
        let per_1000 = |value: fn(&NetworkLoadResult) -> f64| 1000.0 * sum(value) / sum(|turn| turn.packets);
        let mut rates: Vec<f64> = turns.iter().map(|turn| turn.rate).collect();
        let mut ratios: Vec<f64> =
            turns.iter().zip(first).map(|(turn, first)| turn.rate / first.rate).collect();
        Self {
            load: load.name(),
            contender: contender.to_owned(),
            turns: turns.len(),
            rate: median(&mut rates),
            unit: load.unit(),
            over_first: median(&mut ratios),
            over_first_spread: quantile(&mut ratios, 0.25).zip(quantile(&mut ratios, 0.75)),
            guest_busy: sum(|turn| turn.busy_ms) / sum(|turn| turn.there_ms),
            guest_ms_per_1000_packets: per_1000(|turn| turn.busy_ms),
            vmm_ms_per_1000_packets: per_1000(|turn| turn.vmm_ms),
            forwarder_ms_per_1000_packets: per_1000(|turn| turn.forwarder_ms),
            accesses_per_1000_packets: per_1000(|turn| turn.accesses as f64),
            interrupts_per_1000_packets: per_1000(|turn| turn.interrupts as f64),
            sent_again: turns.iter().map(|turn| turn.again).sum(),
        }
    }
}

/// Prints the result rows as a Markdown table and as JSON. `accel` is the accelerator of the guests' processors.
pub(super) fn print(title: &str, accel: &str, rows: &[MeasuredGuestRow]) {
    println!("\n\n{title}: guests under {accel}, turns of {SECONDS} s\n");
    println!(
        "For 1,000 packets: processor time of the guest as it counts itself, of QEMU and of the forwarder as the host counts \
         them, milliseconds; accesses that left the guest; interrupts.\n\n\
         | load | contender | rate | over the first | middle half | guest busy | guest | QEMU | forwarder | accesses | interrupts \
         | sent again |\n|---|---|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|"
    );
    for row in rows {
        let (from, to) = row.over_first_spread.unwrap_or((f64::NAN, f64::NAN));
        println!(
            "| {} | {} | {:.0} {} | {:.2} | {from:.2} to {to:.2} | {:.0} % | {:.1} | {:.1} | {:.1} | {:.2} | {:.0} | {} |",
            row.load,
            row.contender,
            row.rate.unwrap_or(f64::NAN),
            row.unit,
            row.over_first.unwrap_or(f64::NAN),
            row.guest_busy * 100.0,
            row.guest_ms_per_1000_packets,
            row.vmm_ms_per_1000_packets,
            row.forwarder_ms_per_1000_packets,
            row.accesses_per_1000_packets,
            row.interrupts_per_1000_packets,
            row.sent_again
        );
    }
    let report = serde_json::json!({ "measured": title, "accel": accel, "seconds": SECONDS, "rows": rows });
    println!("\n{report}\n");
}
