//! What a VF did last, taken from the flight recorder. Left out: what is noted (`device`, `tell`, `run`), and where it goes.

use super::Port;
use super::hal::now;
use super::slot::Slot;
use crate::config::file::Family;
use crate::flight::recording::Taken;
use crate::pcapng;
use pcie::VfIndex;

impl Port {
    /// What a VF did last.
    pub(super) fn flight(&mut self, index: VfIndex) -> Option<Taken> {
        let family = self.card.family();
        let slot = self.slots.iter_mut().find(|slot| slot.function.vf() == Some(index))?;
        slot.flight.count(now(), self.card.counters(slot.function));
        Some(slot.take_flight(family, None))
    }
}

impl Slot {
    /// The notes as they are now. They stay.
    pub(super) fn take_flight(&self, family: Family, because: Option<&'static str>) -> Taken {
        let (vf, notes) = (self.name.clone(), self.flight.copy());
        Taken { vf, family, because, now: now(), time_ns: pcapng::time(), notes }
    }
}
