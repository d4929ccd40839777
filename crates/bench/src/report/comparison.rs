//! Names of the rows that compare the card's families.

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
