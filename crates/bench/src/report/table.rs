//! Text table of the report's rows, about 100 columns wide.

use super::comparison;
use super::rows::{
    ArrivalOrder, BenchmarkReport, BenchmarkRow, NotificationRates, RateRatio, ReceiverInterrupts,
};
use std::fmt;

impl fmt::Display for BenchmarkRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bench, peer, size, .. } = self;
        write!(f, "{bench:34} {peer:20} {size:>5} {:7}", self.mode.to_string())?;
        let number =
            |value: Option<f64>, digits| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        write!(f, " {:>7} {:>7}", number(self.mpps, 2), number(self.gbps, 1))?;
        write!(f, " {:>7} {:>6}", number(self.cycles_per_packet, 0), number(self.ratio_to_best_peer, 2))?;
        if let (Some((low, high)), Some(pairs), Some(slices)) = (self.ratio_spread, self.pairs, self.slices) {
            write!(f, "  {low:.2} to {high:.2}, {pairs} of {slices} slices")?;
        }
        if let Some(unfairness) = self.unfairness.filter(|_| self.bench == "VFs in use") {
            write!(f, "  max/min {unfairness:.2}")?;
        }
        if let Some(instructions) = self.instructions_per_packet {
            write!(f, "  {instructions:.0} instructions")?;
        }
        if let Some(NotificationRates { kicks, messages, interrupts }) =
            self.notifications.filter(|_| self.bench.starts_with(comparison::BENCH))
        {
            write!(f, "  per 1,000: {kicks:.1} kicks, {messages:.1} messages, {interrupts:.1} interrupts")?;
        }
        if let Some(ArrivalOrder { lost, reordered }) = self.order {
            write!(f, "  {lost} lost, {reordered} reordered")?;
        }
        if let Some(under_way) = self.under_way {
            write!(f, "  {:.0} % of the frames in flight", under_way * 100.0)?;
        }
        if let Some(nanoseconds) = self.nanoseconds {
            write!(f, "  {nanoseconds:.0} ns")?;
        }
        if let Some(share) = self.idle_share {
            write!(f, "  idle: {:.2} % of a processor", share * 100.0)?;
        }
        if let Some(latency) = &self.latency {
            let us = |nanoseconds: Option<f64>| number(nanoseconds.map(|nanoseconds| nanoseconds / 1e3), 1);
            let (p50, p99, p999) = (us(latency.p50_ns), us(latency.p99_ns), us(latency.p999_ns));
            match (self.idle_share, self.interrupts) {
                (Some(_), _) => write!(f, ",")?,
                (_, Some(ReceiverInterrupts { hertz, lost })) => {
                    write!(f, "  {hertz:.0} interrupts/s, {:.2} % lost,", lost * 100.0)?;
                }
                _ => write!(f, "  {:.0} % load:", latency.load * 100.0)?,
            }
            write!(f, " p50 {p50} p99 {p99} p99.9 {p999} us")?;
        }
        if let Some(note) = self.note {
            write!(f, "\n{:36}{note}", "")?;
        }
        for ratio in &self.ratios {
            let RateRatio { to, mode, median, spread, pairs, median_of_all, spread_of_all } = ratio;
            if let (Some(median), Some((low, high))) = (median, spread) {
                write!(f, "\n{:36}{median:.2} of {to} ({mode}): {low:.2} to {high:.2}, {pairs} slices", "")?;
            }
            if let (Some(median), Some((low, high))) = (median_of_all, spread_of_all) {
                write!(f, "\n{:36}{median:.2} of {to} ({mode}) in all rounds: {low:.2} to {high:.2}", "")?;
            }
        }
        Ok(())
    }
}

impl fmt::Display for BenchmarkReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let machine = &self.machine;
        let pages = if machine.huge_pages { "with" } else { "without" };
        writeln!(
            f,
            "{}, {} processors, Linux {}, load {}; DPDK {pages} huge pages; cycles from {}",
            machine.processor,
            machine.processors,
            machine.kernel,
            machine.load.map_or("unknown".to_owned(), |load| load.to_string()),
            format!("{:?}", machine.cycles).to_lowercase(),
        )?;
        writeln!(
            f,
            "{:34} {:20} {:>5} {:7} {:>7} {:>7} {:>7} {:>6}",
            "bench", "peer", "bytes", "mode", "Mpps", "Gb/s", "cycles", "ratio"
        )?;
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))?;
        self.skipped.iter().try_for_each(|reason| writeln!(f, "skipped: {reason}"))?;
        self.claims.iter().try_for_each(|claim| writeln!(f, "{claim}"))
    }
}
