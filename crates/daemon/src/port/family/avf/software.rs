//! What of an AVF port outlives its card, and a port that begins: with that, or anew. A successor starts the card anew in
//! either case; a driver finds its mailbox off, and sets its VF up again as after any reset.

use super::{Avf, Decided};
use crate::config::PortConfig;
use crate::port::PortError;
use crate::port::bus::LiveBus;
use crate::port::inheritance::InheritanceError;
use crate::port::side::configured;
use crate::state::avf::AvfState;
use crate::state::{self, StateError};
use driver::pf::VfPolicy;
use i82576::VfIndex;
use iovm::VirtualFunction;

impl Avf {
    /// A new port.
    pub(in crate::port) fn new(
        config: &PortConfig,
        link: bool,
        guests: &mut LiveBus,
    ) -> Result<Self, PortError> {
        Self::bring_up(link, configured(config), config.policy, decided(config), guests)
    }

    /// A port whose guests were configured by a predecessor. What the configuration says otherwise than when the
    /// predecessor read it is put to work.
    pub(in crate::port) fn by_software(
        config: &PortConfig,
        link: bool,
        bytes: &[u8],
        guests: &mut LiveBus,
    ) -> Result<Self, InheritanceError> {
        let AvfState { functions, policies, quarantined, configured: before, policy } = state::read(bytes)?;
        let policy = if before.port == config.policy { policy } else { config.policy };
        let mut decided = decided(config);
        for (vf, now) in config.vfs.iter().zip(&mut decided) {
            if before.vfs.get(vf.index.index()) == Some(&now.policy)
                && let Some(policy) = policies.get(vf.index.index())
            {
                now.policy = *policy;
            }
            now.quarantined |= u32::from(quarantined) & vf.index.bit() != 0;
        }
        let mut avf = Self::bring_up(link, configured(config), policy, decided, guests)?;
        for ((vf, function), state) in VfIndex::all().zip(&mut avf.functions).zip(&functions) {
            if vf.index() < config.vfs.len() && function.load(state) {
                avf.card.set_bus_master(vf.get(), function.endpoint().bus_master());
            }
        }
        Ok(avf)
    }

    pub(super) fn saved(&self) -> Result<Vec<u8>, StateError> {
        let shut_in = VfIndex::all().zip(&self.decided).filter(|(_, decided)| decided.quarantined);
        state::write(&AvfState {
            functions: self.functions.iter().map(VirtualFunction::save).collect(),
            policies: self.decided.iter().map(|decided| decided.policy).collect(),
            quarantined: shut_in.fold(0, |bits, (vf, _)| bits | vf.bit() as u8),
            configured: self.configured.clone(),
            policy: self.rules.policy,
        })
    }
}

/// What the configuration decides for every VF that the card has; those that are not offered move nothing.
fn decided(config: &PortConfig) -> Vec<Decided> {
    let nothing = VfPolicy { enabled: false, ..VfPolicy::default() };
    let decide = |vf: VfIndex| {
        let config = config.vfs.get(vf.index());
        let policy = config.map_or(nothing, |config| config.policy);
        Decided { policy, quarantined: config.is_some_and(|config| config.quarantine), hidden: false }
    };
    VfIndex::all().map(decide).collect()
}
