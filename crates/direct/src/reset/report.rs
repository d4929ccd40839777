//! What came of a reset, for people and for programs.

use host::vfio::{PciAddress, PciIds};
use pcie::ladder::{Action, Device, Rung};
use serde::Serialize;
use std::fmt;

/// A reset before a new owner.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResetReport {
    /// Where the function is.
    pub function: String,
    /// Vendor and device.
    pub ids: String,
    /// It has function-level reset.
    pub flr: bool,
    /// What D3hot and back does: `reset`, `no-soft-reset`, or `none` if it has no power states.
    pub d3hot: &'static str,
    /// Who is on its bus: `own`, `shared`, or `none` if that bus cannot be reset.
    pub bus: &'static str,
    /// The rung used: `flr`, `d3hot`, `bus`; or `none`.
    pub rung: &'static str,
    /// It has no rung, stays with its owner and was not touched.
    pub refused: bool,
    /// Pages that it had changed for its old owner; nothing if it is not known how to make it write.
    pub busy_pages: Option<u32>,
    /// Pages of the new owner that it has changed.
    pub late_pages: u32,
    /// The steps, in their order.
    pub steps: Vec<StepReport>,
    /// From the first step to the last.
    pub duration_ms: f64,
}

/// A step.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StepReport {
    /// Which.
    pub step: &'static str,
    /// How long it took.
    pub ms: f64,
}

impl ResetReport {
    pub(super) fn new(address: PciAddress, ids: PciIds, device: &Device) -> Self {
        Self {
            function: address.to_string(),
            ids: format!("{:04x}:{:04x}", ids.vendor, ids.device),
            flr: device.flr,
            d3hot: match device.power {
                None => "none",
                Some(true) => "no-soft-reset",
                Some(false) => "reset",
            },
            bus: match device.bus {
                None => "none",
                Some(true) => "own",
                Some(false) => "shared",
            },
            rung: "none",
            refused: device.rung().is_none(),
            busy_pages: None,
            late_pages: 0,
            steps: Vec::new(),
            duration_ms: 0.0,
        }
    }

    pub(super) fn did(&mut self, action: Action, start: u64, end: u64) {
        if let Action::Reset(rung) = action {
            self.rung = match rung {
                Rung::Function => "flr",
                Rung::Power => "d3hot",
                Rung::Bus => "bus",
            };
        }
        self.steps.push(StepReport { step: action.name(), ms: milliseconds(start, end) });
    }

    pub(super) fn took(&mut self, begin: u64, end: u64) {
        self.duration_ms = milliseconds(begin, end);
    }

    /// Whether the function was handed over, and wrote nothing to its new owner's pages.
    #[must_use]
    pub fn is_good(&self) -> bool {
        !self.refused && self.late_pages == 0
    }
}

fn milliseconds(start: u64, end: u64) -> f64 {
    // To the microsecond.
    (end.saturating_sub(start) / 1000) as f64 / 1e3
}

impl fmt::Display for ResetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, ids, flr, d3hot, bus, rung, .. } = self;
        writeln!(f, "{function} {ids}: flr {}, d3hot {d3hot}, bus {bus}", if *flr { "yes" } else { "no" })?;
        if self.refused {
            return write!(
                f,
                "REFUSED: it cannot be reset without disturbing others, so it stays with its owner; give the whole bus \
                 to one owner, or put the device on a port of its own"
            );
        }
        writeln!(f, "rung {rung}, {:.3} ms:", self.duration_ms)?;
        for StepReport { step, ms } in &self.steps {
            writeln!(f, "    {step:<16} {ms:.3} ms")?;
        }
        match self.busy_pages {
            None => writeln!(f, "before: idle, since it is not known how to make this device write")?,
            Some(0) => writeln!(f, "before: idle; frames for it have to come from the wire")?,
            Some(pages) => writeln!(f, "before: it wrote to its owner's memory ({pages} pages changed)")?,
        }
        match self.late_pages {
            0 => write!(f, "after: no page of the new owner changed"),
            pages => write!(
                f,
                "FAILS after: {pages} pages of the new owner changed; the device was not reset by this rung (--hide tries \
                 the next)"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::ResetReport;
    use host::vfio::PciIds;
    use pcie::ladder::{Action, Device, Rung};

    fn report(device: Device) -> ResetReport {
        let ids = PciIds { vendor: 0x8086, device: 0x10d3 };
        ResetReport::new("0000:03:00.0".parse().unwrap(), ids, &device)
    }

    #[test]
    fn a_device_without_a_rung_is_refused_with_the_remedy() {
        let report = report(Device { flr: false, power: Some(true), bus: Some(false) });
        assert!(report.refused && !report.is_good());
        let text = report.to_string();
        assert!(
            text.starts_with("0000:03:00.0 8086:10d3: flr no, d3hot no-soft-reset, bus shared\nREFUSED"),
            "{text}"
        );
        assert!(text.contains("port of its own"), "{text}");
    }

    #[test]
    fn a_late_write_spoils_a_reset() {
        let mut report = report(Device { flr: false, power: Some(false), bus: None });
        report.did(Action::BusMasterOff, 0, 2_000);
        report.did(Action::Reset(Rung::Power), 2_000, 20_502_000);
        report.took(0, 20_502_000);
        report.busy_pages = Some(3);
        assert!(report.is_good());
        let text = report.to_string();
        assert!(text.contains("rung d3hot, 20.502 ms:\n    bus-master-off   0.002 ms\n"), "{text}");
        assert!(text.ends_with("(3 pages changed)\nafter: no page of the new owner changed"), "{text}");
        report.late_pages = 2;
        assert!(!report.is_good());
        assert!(report.to_string().contains("FAILS after: 2 pages"), "{report}");
    }
}
