//! Accesses of clients to configuration space and BAR 0 of VFs of an AVF port. `iovm` has the accesses to MSI-X tables,
//! and `PortClients::read_doorbells` those to mapped registers.

use super::AvfCard;
use avf_nic::Nic;
use pcie::VfIndex;

impl AvfCard {
    /// Resets a VF in the card by `reset`, after the VF's configuration space was reset.
    pub(super) fn reset_card(&mut self, vf: VfIndex, reset: impl FnOnce(&mut Nic, u8)) {
        self.card.nic.set_bus_master(vf.get(), false);
        reset(&mut self.card.nic, vf.get());
        self.pf_memory.changed = true;
    }

    pub(super) fn config_write(&mut self, vf: VfIndex, offset: u64, data: &[u8]) {
        let effects = self.functions[vf.index()].config_write(offset, data);
        if effects.function_reset {
            self.reset_card(vf, Nic::function_level_reset);
        }
        if let Some(on) = effects.bus_master {
            self.card.nic.set_bus_master(vf.get(), on);
        }
    }

    /// Reads registers of a VF for its client. For a part of a dword it reads the whole dword.
    pub(super) fn read_registers(&mut self, vf: VfIndex, offset: u64, data: &mut [u8]) {
        let mut at = offset as u32;
        let mut rest = data;
        while !rest.is_empty() {
            let inside = (at % 4) as usize;
            let word = self.card.nic.read(vf.get(), at & !3).to_le_bytes();
            let (piece, tail) = rest.split_at_mut(rest.len().min(4 - inside));
            piece.copy_from_slice(&word[inside..inside + piece.len()]);
            at += piece.len() as u32;
            rest = tail;
        }
    }

    /// Writes registers of a VF for its client. Only whole dwords are written, wherever the data begins: a long write arrives in
    /// pieces, and what it does must not depend on them.
    pub(super) fn write_registers(&mut self, vf: VfIndex, offset: u64, data: &[u8]) {
        let first = offset.next_multiple_of(4);
        let words = data.get((first - offset) as usize..).unwrap_or_default();
        for (at, word) in (first as u32..).step_by(4).zip(words.as_chunks::<4>().0) {
            self.card.nic.write(vf.get(), at, u32::from_le_bytes(*word));
        }
    }
}
