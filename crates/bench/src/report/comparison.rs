//! Names of the rows that compare the card's families, and the rates that the paper states.

use crate::model::{LabListing, StatedValue};
use anyhow::Result;

/// Prefix of the names of the comparison's rows.
pub const BENCH: &str = "messages, ";
/// Name of the rows of the lab's model.
pub const MODEL: &str = "messages, model of two guests";
/// Names of the modelled set-ups: guests with VFs, and guests with the split driver.
pub const MODELLED: [&str; 2] = ["SR-IOV (fig12)", "split driver (fig13)"];

/// Returns the name of the rows of a number of ports.
#[must_use]
pub fn name(ports: usize) -> String {
    format!("{BENCH}{ports} ports")
}

/// Rate that the paper states for guests on its own machine.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct StatedRate {
    /// Index of the guests' set-up in [`MODELLED`].
    pub(crate) set_up: usize,
    /// Number of guests that share the rate.
    pub(crate) guests: usize,
    /// Gigabits of payload a second.
    pub(crate) gbps: f64,
}

/// Returns the rates that the paper states for its figures 12, 14 and 16, from the lab's listing.
///
/// # Errors
/// The lab is of another version.
pub(crate) fn stated(lab: &LabListing) -> Result<Vec<StatedRate>> {
    // The lab has the rate of figure 12 as a setting of its card.
    let between = lab.numeric_default("loopback_mbps")? / 1e3;
    let mut rates = vec![StatedRate { set_up: 0, guests: 2, gbps: between }];
    for (set_up, experiment) in ["fig14", "fig16"].into_iter().enumerate() {
        rates.extend(lab.stated(experiment)?.iter().filter_map(|value| from_wires(set_up, value)));
    }
    Ok(rates)
}

/// Returns the rate of guests that receive from wires: over VFs (figure 14), or over the split driver (figure 16).
fn from_wires(set_up: usize, value: &StatedValue) -> Option<StatedRate> {
    let guests = value.point.get("vms")?.parse().ok()?;
    (value.metric == "throughput_gbps").then_some(StatedRate { set_up, guests, gbps: value.value })
}
