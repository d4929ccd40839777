//! Reads and writes of a register's bits, for PF and VFs alike: in the file, and then in the part of the card that the
//! register table names. Effects for the PF alone are in `pf`.

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
            // VFs reach the board's registers read-only, and the PF's writes do not come here.
            Effect::Acts(Part::Board | Part::Interrupt | Part::Vf | Part::Statistics)
            | Effect::Stores
            | Effect::Never => {}
        }
    }

    fn effect(&self, slot: Slot) -> Effect {
        self.derived.map.find(slot.offset).map_or(Effect::Never, |place| place.effect)
    }

    /// Reads the high half of a wide counter, which clears both halves. Drivers read the low half first.
    fn pair_read(&mut self, slot: Slot) -> u32 {
        self.state.file.set(slot.offset - 4, 0);
        self.state.file.read(slot)
    }
}
