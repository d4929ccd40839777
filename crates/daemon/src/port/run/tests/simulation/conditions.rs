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
        // The first program's port states are today's. Only the first change of a port's was one of the AVF's state, and these
        // programs had no virtio functions.
        let programs: &[Option<usize>] = match (of(CardFamily::I82576), of(CardFamily::Virtio)) {
            (true, _) => &[None, Some(1), Some(2)],
            (false, false) => &[None, Some(2)],
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

#[cfg(test)]
mod tests {
    use super::super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
    use super::super::{print_report, simulate};
    use super::{LifeConditions, SimulatedFamily};

    /// Each encoding of an earlier program is handed over, and mapped registers are compared.
    #[test]
    fn successors_continue_from_states_of_earlier_programs() {
        let test = "port::run::tests::simulation::conditions::tests::successors_continue_from_states_of_earlier_programs";
        simulate(test, || {
            use SimulatedAction::*;
            let burst = Burst { slow: None, rounds: 20, death: None };
            let upgrade = HandOver { succeeds: true };
            let actions = [Attach { guest: 0 }, Attach { guest: 1 }, burst, upgrade, burst, upgrade, burst];
            let steps = (0..).zip(actions).map(|(seed, action)| SimulatedStep { action, turns: 2, seed });
            let (i82576, avf) = (SimulatedFamily::I82576, SimulatedFamily::Avf);
            for (family, program) in [(i82576, 1), (i82576, 2), (avf, 2)] {
                let life = SimulatedLife {
                    families: vec![family; 2],
                    has_uplink: false,
                    conditions: LifeConditions { program: Some(program), maps_registers: true },
                    steps: steps.clone().collect(),
                    is_keeper_broken: false,
                };
                let figures = life.run().unwrap();
                assert_eq!(figures.upgrades, 2, "{family:?}, program {program}");
                assert!(figures.page_registers > 0 && figures.frames > 0);
                print_report(&figures.to_string());
            }
        });
    }
}
