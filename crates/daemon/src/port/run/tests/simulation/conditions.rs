//! Conditions of a simulated life, which hold from its begin to its end.

use super::families::SimulatedFamily;
use crate::config::file::CardFamily;

/// Number that tells the draw of a life's conditions from that of its steps.
const CONDITIONS: u64 = 0x5eed_c0de;

/// Conditions of a life. The default ones are those of lives that were recorded without any.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LifeConditions {
    /// Program of each process that ends, by index in `EARLIER_PROGRAMS`. Its successor is today's program, also if this is `None`.
    pub(super) program: Option<usize>,
    /// True if guests map the register pages of their VFs.
    pub(super) maps_registers: bool,
}

impl LifeConditions {
    /// Draws the conditions of the life of a seed. A draw of their own leaves the steps of each seed as they were.
    pub(super) fn draw(seed: u64, families: &[SimulatedFamily]) -> Self {
        let mut random = fastrand::Rng::with_seed(seed ^ CONDITIONS);
        let of = |family| families.iter().any(|function| function.of_card() == family);
        // The earlier programs had no virtio functions, and only the first change was one of the AVF's state.
        let programs: &[Option<usize>] = match (of(CardFamily::I82576), of(CardFamily::Virtio)) {
            (true, _) => &[None, Some(0), Some(1)],
            (false, false) => &[None, Some(1)],
            (false, true) => &[None],
        };
        let program = programs[random.usize(0..programs.len())];
        let has_pages = of(CardFamily::I82576) || of(CardFamily::Avf);
        Self { program, maps_registers: has_pages && random.u32(0..3) == 0 }
    }

    /// Returns the keys of a port's configuration that the conditions need.
    pub(super) fn port_keys(&self) -> &'static str {
        if self.maps_registers { "wait = \"mapped\"\n" } else { "" }
    }
}
