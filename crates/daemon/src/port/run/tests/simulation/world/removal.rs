//! Administrator who removes the last VF while guests run, and adds it again for another guest.

use super::super::conditions::LifeConditions;
use super::super::families::SimulatedFamily;
use super::super::frames::SHORTEST;
use super::super::function::LONGEST;
use super::super::guest::SimulatedGuest;
use super::super::host::check_new;
use super::super::life::{SimulatedAction, SimulatedLife, SimulatedStep};
use super::super::summary::SimulationSummary;
use super::super::{print_report, simulate};
use super::{SimulatedWorld, TURN};

impl SimulatedWorld {
    /// Has the administrator remove the last VF while all guests send `frames` times, and add it again for another guest, which
    /// boots. The host may die meanwhile, a number of moments later, or hand over while the port lacks the VF. The frames of the
    /// other guests are not disturbed.
    pub(super) fn replace_vf(
        &mut self,
        (frames, death): (usize, Option<usize>),
        hands_over: bool,
        seed: u64,
    ) -> Result<(), String> {
        let last = self.guests.len() - 1;
        if last == 0 {
            // A port has at least one VF.
            return Ok(());
        }
        self.summary.removed_vfs += 1;
        let mut random = fastrand::Rng::with_seed(seed);
        self.check_at_rest()?;
        self.send_any(frames, &mut random)?;
        let deaths = self.host.borrow().deaths;
        if let Some(moments) = death {
            self.host.borrow().die_after(moments);
        }
        self.host.borrow_mut().offer_vfs(last)?;
        self.summary.interrupted_removals += u64::from(self.host.borrow().deaths > deaths);
        self.host.borrow_mut().rest()?;
        self.host.borrow().check_removed(last)?;
        self.guests[last].check_disconnected()?;
        self.guests[last].vanish();
        self.send_any(frames, &mut random)?;
        if hands_over {
            self.hand_over(true)?;
        }
        self.check_at_rest()?;
        self.send_any(frames, &mut random)?;
        self.host.borrow_mut().offer_vfs(last + 1)?;
        let status = self.host.borrow_mut().status();
        check_new(last, &status.vfs[last], self.host.borrow().policies.of(last))?;
        self.attach(last)?;
        self.check_at_rest()
    }

    /// Has guests send to each other and to stations.
    fn send_any(&mut self, frames: usize, random: &mut fastrand::Rng) -> Result<(), String> {
        for _ in 0..frames {
            let (from, to) = (random.usize(0..self.guests.len()), random.usize(0..self.guests.len()));
            self.send(from, to, random.usize(1..8), random.usize(SHORTEST..LONGEST + 1));
            self.host.borrow_mut().step(TURN);
            self.guests.iter_mut().try_for_each(SimulatedGuest::act)?;
        }
        Ok(())
    }
}

/// Moments from the begin of a removal on, of which the last comes after the removal.
const MOMENTS: usize = 1_000;

/// A host that dies after it has saved that it has a VF less has a successor without the VF, whose socket no longer
/// listens.
#[test]
fn removed_vf_has_no_socket_after_a_death() {
    let test = "port::run::tests::simulation::world::removal::removed_vf_has_no_socket_after_a_death";
    let virtio = SimulatedFamily::Virtio {
        packed: true,
        events: true,
        in_order: false,
        offloads: false,
        descriptors: 16,
    };
    simulate(test, || {
        let mut report = Vec::new();
        for family in [SimulatedFamily::I82576, SimulatedFamily::Avf, virtio] {
            let interrupted = (0..MOMENTS).take_while(|moments| {
                let figures = live_removal(family, *moments);
                assert!(figures.deaths > 0, "{family:?}: no death after {moments} moments");
                figures.interrupted_removals > 0
            });
            let interrupted = interrupted.count();
            assert!(
                (1..MOMENTS).contains(&interrupted),
                "{family:?}: deaths at {interrupted} moments of a removal"
            );
            report.push(format!("{family:?}: {interrupted}"));
        }
        print_report(&format!("deaths at each moment of a removal: {}", report.join(", ")));
    });
}

/// Lives a life in which the host dies a number of moments after the begin of a removal.
fn live_removal(family: SimulatedFamily, moments: usize) -> SimulationSummary {
    let removal = SimulatedAction::ReplaceVf { frames: 0, death: Some(moments), hands_over: true };
    let steps = [SimulatedAction::Attach { guest: 1 }, removal];
    let steps = steps.map(|action| SimulatedStep { action, turns: 2, seed: 1 }).to_vec();
    let conditions = LifeConditions::default();
    let life = SimulatedLife {
        families: vec![family; 2],
        has_uplink: false,
        steps,
        is_keeper_broken: false,
        conditions,
    };
    life.run().unwrap_or_else(|fault| panic!("{family:?}, a death after {moments} moments: {fault}"))
}
