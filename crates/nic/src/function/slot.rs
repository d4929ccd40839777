//! Reading and writing bits of the file, for PF and VFs alike: the file does it, and then the part of the card that the
//! register table names. Left out: what the PF alone may do.

use crate::Nic;
use i82576::Time;
use i82576::table::{Effect, Part};
use i82576::window::Slot;

impl Nic {
    pub(super) fn read_slot(&mut self, slot: Slot, now: Time) -> u32 {
        match self.effect(slot) {
            Effect::Acts(Part::Board) => self.board_read(slot, now),
            Effect::Acts(Part::Interrupt) => self.vectors_read(slot, now),
            Effect::Acts(Part::Police) => {
                self.pass_storm_windows(now);
                self.state.file.read(slot)
            }
            Effect::Acts(Part::Statistics) => self.pair_read(slot),
            Effect::Acts(Part::Vf | Part::Queue | Part::Pacing) | Effect::Stores | Effect::Never => {
                self.state.file.read(slot)
            }
        }
    }

    pub(super) fn write_slot(&mut self, slot: Slot, value: u32, now: Time) {
        let effect = self.effect(slot);
        if effect == Effect::Acts(Part::Interrupt) {
            return self.vectors_written(slot, value, now);
        }
        self.state.file.write(slot, value);
        match effect {
            Effect::Acts(Part::Queue) => self.queue_written(slot.offset),
            Effect::Acts(Part::Pacing) => self.pacing_written(slot.offset),
            Effect::Acts(Part::Police) => self.police_written(slot.offset, value, now),
            // What a VF sees of the board is read-only.
            Effect::Acts(Part::Board | Part::Interrupt | Part::Vf | Part::Statistics)
            | Effect::Stores
            | Effect::Never => {}
        }
    }

    fn effect(&self, slot: Slot) -> Effect {
        self.derived.map.find(slot.offset).map_or(Effect::Never, |place| place.effect)
    }

    /// The high half of a counter clears both.
    fn pair_read(&mut self, slot: Slot) -> u32 {
        self.state.file.set(slot.offset - 4, 0);
        self.state.file.read(slot)
    }
}
