//! The rows for people. Left out: which columns a terminal has room for; 100 are taken.

use super::{Report, Row};
use std::fmt;

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { bench, peer, size, .. } = self;
        let mode = format!("{:?}", self.mode).to_lowercase();
        write!(f, "{bench:34} {peer:20} {size:>5} {mode:7}")?;
        let number =
            |value: Option<f64>, digits| value.map_or("-".to_owned(), |value| format!("{value:.digits$}"));
        write!(f, " {:>7} {:>7}", number(self.mpps, 2), number(self.gbps, 1))?;
        write!(f, " {:>7} {:>6}", number(self.cycles_per_packet, 0), number(self.ratio_to_best_peer, 2))?;
        if let (Some((low, high)), Some(pairs), Some(slices)) = (self.ratio_spread, self.pairs, self.slices) {
            write!(f, "  {low:.2} to {high:.2}, {pairs} of {slices} slices")?;
        }
        if let Some(nanoseconds) = self.nanoseconds {
            write!(f, "  {nanoseconds:.0} ns")?;
        }
        if let Some(latency) = &self.latency {
            let us = |nanoseconds: Option<f64>| number(nanoseconds.map(|nanoseconds| nanoseconds / 1e3), 1);
            let (p50, p99, p999) = (us(latency.p50_ns), us(latency.p99_ns), us(latency.p999_ns));
            write!(f, "  {:.0} % load: p50 {p50} p99 {p99} p99.9 {p999} us", latency.load * 100.0)?;
        }
        Ok(())
    }
}

impl fmt::Display for Report {
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
        self.rows.iter().try_for_each(|row| writeln!(f, "{row}"))
    }
}
