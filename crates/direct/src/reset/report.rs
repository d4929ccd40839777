//! Report of a reset between two owners, for people and for programs.

use host::vfio::{PciAddress, PciIds};
use pcie::ladder::{DeviceResetMethod, ResetAction, ResetCapabilities};
use serde::Serialize;
use std::fmt;

/// Report of a reset between two owners of a function.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResetReport {
    /// PCI address of the reset function.
    pub function: String,
    /// Vendor and device id of the reset function.
    pub ids: String,
    /// True if the function has function-level reset.
    pub flr: bool,
    /// Effect of D3hot and back: `reset`, `no-soft-reset`, or `none` if it has no power states.
    pub d3hot: &'static str,
    /// Use of the function's bus: `own`, `shared`, or `none` if that bus cannot be reset.
    pub bus: &'static str,
    /// Reset method used: `flr`, `d3hot`, `bus`; or `none`.
    pub rung: &'static str,
    /// True if the function has no usable reset method, stays with its owner and was not changed.
    pub refused: bool,
    /// Number of the old owner's pages that the device changed; `None` if no way is known to make the device write.
    pub busy_pages: Option<u32>,
    /// Number of the new owner's pages that the device changed.
    pub late_pages: u32,
    /// Steps of the reset, in the order of their execution.
    pub steps: Vec<ResetStepReport>,
    /// Time from the first step of the function's reset to the last, in milliseconds.
    pub duration_ms: f64,
}

/// Step of a function's reset.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct ResetStepReport {
    /// Name of the reset's step.
    pub step: &'static str,
    /// Duration of the reset's step in milliseconds.
    pub ms: f64,
}

impl ResetReport {
    pub(super) fn new(address: PciAddress, ids: PciIds, device: &ResetCapabilities) -> Self {
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

    pub(super) fn add_step(&mut self, action: ResetAction, start: u64, end: u64) {
        if let ResetAction::Reset(rung) = action {
            self.rung = match rung {
                DeviceResetMethod::Function => "flr",
                DeviceResetMethod::Power => "d3hot",
                DeviceResetMethod::Bus => "bus",
            };
        }
        self.steps.push(ResetStepReport { step: action.name(), ms: milliseconds(start, end) });
    }

    pub(super) fn set_duration(&mut self, begin: u64, end: u64) {
        self.duration_ms = milliseconds(begin, end);
    }

    /// Returns true if the function passed to its new owner, and wrote to no page of that owner.
    #[must_use]
    pub fn is_good(&self) -> bool {
        !self.refused && self.late_pages == 0
    }
}

fn milliseconds(start: u64, end: u64) -> f64 {
    // The result is rounded to a microsecond.
    (end.saturating_sub(start) / 1000) as f64 / 1e3
}

impl fmt::Display for ResetReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { function, ids, flr, d3hot, bus, rung, .. } = self;
        writeln!(f, "{function} {ids}: flr {}, d3hot {d3hot}, bus {bus}", if *flr { "yes" } else { "no" })?;
        if self.refused {
            return write!(
                f,
                "REFUSED: a reset of the function would disturb other owners, so the function stays with its \
                 owner; give the whole bus to one owner, or put the device on a port of its own"
            );
        }
        writeln!(f, "rung {rung}, {:.3} ms:", self.duration_ms)?;
        for ResetStepReport { step, ms } in &self.steps {
            writeln!(f, "    {step:<16} {ms:.3} ms")?;
        }
        match self.busy_pages {
            None => {
                writeln!(f, "before: the device was idle, because no way is known to make the device write")?;
            }
            Some(0) => writeln!(f, "before: the device was idle; send frames to it from the wire")?,
            Some(pages) => {
                writeln!(f, "before: the device wrote to its owner's memory ({pages} pages changed)")?;
            }
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
    use pcie::ladder::{DeviceResetMethod, ResetAction, ResetCapabilities};

    fn report(device: ResetCapabilities) -> ResetReport {
        let ids = PciIds { vendor: 0x8086, device: 0x10d3 };
        ResetReport::new("0000:03:00.0".parse().unwrap(), ids, &device)
    }

    #[test]
    fn device_without_a_reset_method_is_refused_with_a_remedy() {
        let report = report(ResetCapabilities { flr: false, power: Some(true), bus: Some(false) });
        assert!(report.refused && !report.is_good());
        let text = report.to_string();
        assert!(
            text.starts_with("0000:03:00.0 8086:10d3: flr no, d3hot no-soft-reset, bus shared\nREFUSED"),
            "{text}"
        );
        assert!(text.contains("port of its own"), "{text}");
    }

    #[test]
    fn reset_check_fails_if_the_device_writes_to_the_new_owner() {
        let mut report = report(ResetCapabilities { flr: false, power: Some(false), bus: None });
        report.add_step(ResetAction::BusMasterOff, 0, 2_000);
        report.add_step(ResetAction::Reset(DeviceResetMethod::Power), 2_000, 20_502_000);
        report.set_duration(0, 20_502_000);
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
