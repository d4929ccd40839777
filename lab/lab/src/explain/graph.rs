//! Flame graph of a row's cycles, or of the difference of two rows. Levels from the bottom: kind of domain, port,
//! domain, own work or the hypervisor's, category.

use std::collections::BTreeMap;

use hypervisor::account::CycleCategory;

use super::lines::GuestNames;
use crate::machine::{BreakdownCell, CycleBreakdown};
use figure::flame::{FlameGraphNode, FlameGraphStyle, draw, share};

const HYPERVISOR: &str = "hypervisor's work";
const OWN: &str = "own work";

/// Draws a row's cycles as a flame graph. The width of a box is its share of the busy cycles.
#[must_use]
pub fn of_row(row: &CycleBreakdown, title: &str) -> String {
    let (mut root, guests) = (FlameGraphNode::default(), GuestNames::new(row, None));
    for cell in &row.cells {
        root.add(&path(cell, guests), per_second(row, cell.cycles), 0);
    }
    draw(&root, title, FlameGraphStyle { colour, note: share })
}

/// Draws the difference of two rows as a flame graph. The width of a box is the greater of the two rows' cycles per
/// second. A box is red if `other` has more, and blue if it has fewer.
#[must_use]
pub fn of_difference(row: &CycleBreakdown, other: &CycleBreakdown, title: &str) -> String {
    let guests = GuestNames::new(row, Some(other));
    let mut cells: BTreeMap<Vec<String>, [u64; 2]> = BTreeMap::new();
    for (side, cycles) in [row, other].into_iter().enumerate() {
        for cell in &cycles.cells {
            cells.entry(path(cell, guests)).or_default()[side] += per_second(cycles, cell.cycles);
        }
    }
    let mut root = FlameGraphNode::default();
    for (path, [first, second]) in cells {
        root.add(&path, first.max(second), second.cast_signed().saturating_sub(first.cast_signed()));
    }
    draw(&root, title, FlameGraphStyle { colour: change_colour, note: change })
}

fn path(cell: &BreakdownCell, guests: GuestNames) -> Vec<String> {
    let mut path = vec![guests.of(cell.kind).to_owned()];
    path.extend(cell.port.map(|port| format!("port {port}")));
    path.push(cell.domain.clone());
    path.push(if cell.category.is_hypervisor() { HYPERVISOR } else { OWN }.to_owned());
    path.push(cell.category.name().to_owned());
    path
}

/// Converts cycles of an interval to cycles per second, so that intervals and clocks of two rows may differ.
fn per_second(row: &CycleBreakdown, cycles: u64) -> u64 {
    let all = u128::from(cycles) * u128::from(row.hertz) / u128::from(row.elapsed.max(1));
    u64::try_from(all).unwrap_or(u64::MAX)
}

/// Returns the colour of a box: the hypervisor's work green, a domain's own work warm, domains grey.
fn colour(name: &str, _: &FlameGraphNode) -> &'static str {
    let category = CycleCategory::ALL.into_iter().find(|category| category.name() == name);
    match category.map(CycleCategory::is_hypervisor) {
        Some(true) => "#8cb369",
        Some(false) => "#f4a259",
        None if name == HYPERVISOR => "#8cb369",
        None if name == OWN => "#f4a259",
        None => "#c8ccd4",
    }
}

fn change_colour(_: &str, node: &FlameGraphNode) -> &'static str {
    match node.change {
        0 => "#c8ccd4",
        1.. => "#e8837a",
        _ => "#7fa8d9",
    }
}

/// Returns the change of a box in millions of cycles per second, as text.
fn change(node: &FlameGraphNode, _: &FlameGraphNode) -> String {
    format!("{:+.1} M cycles/s", node.change as f64 / 1e6)
}
