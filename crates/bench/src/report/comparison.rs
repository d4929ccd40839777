//! Names of the rows that compare the card's families, and the rates that the paper states.

use lab::catalogue::PublishedValue;
use lab::value::ParameterValue;

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
pub(super) struct StatedRate {
    /// Index of the guests' set-up in [`MODELLED`].
    pub(super) set_up: usize,
    /// Number of guests that share the rate.
    pub(super) guests: usize,
    /// Gigabits of payload a second.
    pub(super) gbps: f64,
}

/// Returns the rates that the paper states for its figures 12, 14 and 16, from the lab's catalogue.
pub(super) fn stated() -> Vec<StatedRate> {
    let catalogue = lab::experiments::catalogue();
    // The lab has the rate of figure 12 as a setting of its card.
    let between = catalogue.settings.iter().find(|setting| setting.name == "loopback_mbps");
    let between = between.and_then(|setting| match setting.default {
        ParameterValue::Int(mbps) => Some(StatedRate { set_up: 0, guests: 2, gbps: mbps as f64 / 1e3 }),
        _ => None,
    });
    between.into_iter().chain(catalogue.stated.iter().filter_map(from_wires)).collect()
}

/// Returns the rate of guests that receive from wires: over VFs (figure 14), or over the split driver (figure 16).
fn from_wires(value: &PublishedValue) -> Option<StatedRate> {
    let set_up = ["fig14", "fig16"].iter().position(|name| *name == value.experiment)?;
    let (_, guests) = value.axes.iter().find(|(axis, _)| *axis == "vms")?;
    let guests = guests.parse().ok()?;
    (value.metric == "throughput_gbps").then_some(StatedRate { set_up, guests, gbps: value.value })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn papers_rates_between_guests_come_from_the_lab() {
        let mut found: Vec<_> = stated().iter().map(|rate| (rate.set_up, rate.guests, rate.gbps)).collect();
        found.sort_by_key(|(set_up, guests, _)| (*set_up, *guests));
        assert_eq!(found, [(0, 2, 2.8), (0, 10, 9.57), (0, 60, 9.57), (1, 10, 3.6)]);
    }
}
