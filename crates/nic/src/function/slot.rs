//! Reads and writes the register bits that the PF or a VF can access: in the register file, then with their side
//! effects in the card. Effects for the PF alone are in `pf`.

use crate::Nic;
use i82576::Time;
use i82576::table::{CardPart, RegisterAccessEffect};
use i82576::window::ResolvedVfRegister;

impl Nic {
    pub(super) fn read_slot(&mut self, slot: ResolvedVfRegister, now: Time) -> u32 {
        match self.effect(slot) {
            RegisterAccessEffect::Acts(CardPart::Board) => self.board_read(slot, now),
            RegisterAccessEffect::Acts(CardPart::Interrupt) => self.vectors_read(slot, now),
            RegisterAccessEffect::Acts(CardPart::Police) => {
                self.pass_storm_windows(now);
                self.state.file.read(slot)
            }
            RegisterAccessEffect::Acts(CardPart::Statistics) => self.pair_read(slot),
            RegisterAccessEffect::Acts(CardPart::Vf | CardPart::Queue | CardPart::Pacing)
            | RegisterAccessEffect::Stores
            | RegisterAccessEffect::Never => self.state.file.read(slot),
        }
    }

    pub(super) fn write_slot(&mut self, slot: ResolvedVfRegister, value: u32, now: Time) {
        let effect = self.effect(slot);
        if effect == RegisterAccessEffect::Acts(CardPart::Interrupt) {
            return self.vectors_written(slot, value, now);
        }
        self.state.file.write(slot, value);
        match effect {
            RegisterAccessEffect::Acts(CardPart::Queue) => self.queue_written(slot.offset),
            RegisterAccessEffect::Acts(CardPart::Pacing) => self.pacing_written(slot.offset),
            RegisterAccessEffect::Acts(CardPart::Police) => self.police_written(slot.offset, value, now),
            // VFs reach the board's registers read-only, and the PF's writes do not come here.
            RegisterAccessEffect::Acts(
                CardPart::Board | CardPart::Interrupt | CardPart::Vf | CardPart::Statistics,
            )
            | RegisterAccessEffect::Stores
            | RegisterAccessEffect::Never => {}
        }
    }

    fn effect(&self, slot: ResolvedVfRegister) -> RegisterAccessEffect {
        self.derived.map.find(slot.offset).map_or(RegisterAccessEffect::Never, |place| place.effect)
    }

    /// Reads the high register of a 64-bit counter, which clears both of its registers. Drivers read the low register
    /// first.
    fn pair_read(&mut self, slot: ResolvedVfRegister) -> u32 {
        self.state.file.set(slot.offset - 4, 0);
        self.state.file.read(slot)
    }
}
