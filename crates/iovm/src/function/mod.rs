//! VF in the form that its guest accesses: an ordinary endpoint with ids, BARs, memory enable and its own MSI-X table.
//! The card implements the VF's registers in BAR 0.
//!
//! The SR-IOV capability defines the BARs: 64 bits, not prefetchable, because registers that are cleared by reading
//! cannot be prefetched. (QEMU's model of the card claims prefetchable; drivers accept both.)

#[cfg(test)]
mod tests;

use i82576::config;
use pcie::capability::msix;
use pcie::config::{Bar, ConfigSpace, ConfigSpaceBuilder, ConfigSpaceState, FunctionIds, offset};
use pcie::msix::{InterruptMessage, MsiXTable, MsiXTableState};
use pcie::{ConfigWriteEffects, Endpoint, Function, Rid, VfIndex};
use serde::{Deserialize, Serialize};

/// BARs of a VF, by the number of the BAR.
pub type VfBars = [(u8, Bar)];

/// VF as its guest sees it: an endpoint with its configuration space and MSI-X table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualFunction {
    index: VfIndex,
    rid: Rid,
    endpoint: Endpoint,
    table: MsiXTable,
    /// Offset of the pending bits in the BAR with the MSI-X table.
    pending: u64,
}

impl VirtualFunction {
    /// Creates a VF of the 82576 in its state after reset.
    ///
    /// # Panics
    /// If the BARs do not fit a header.
    #[must_use]
    pub fn new(index: VfIndex, rid: Rid, identity: FunctionIds, bars: &VfBars) -> Self {
        Self::of(index, rid, space(identity, bars))
    }

    /// Creates a VF with the configuration space `space`, whose MSI-X capability determines the VF's MSI-X table.
    #[must_use]
    pub fn of(index: VfIndex, rid: Rid, space: ConfigSpace) -> Self {
        let vectors = |at| (space.word(at + msix::CONTROL) & msix::CONTROL_SIZE) + 1;
        let at = space.find(msix::ID);
        let table = MsiXTable::new(at.map_or(0, vectors));
        let pending = at.map_or(0, |at| u64::from(space.dword(at + msix::PBA) & !7));
        Self { index, rid, endpoint: Endpoint::new(space), table, pending }
    }

    /// Returns the index of the VF.
    #[must_use]
    pub fn index(&self) -> VfIndex {
        self.index
    }

    /// Returns the VF as a function of the device.
    #[must_use]
    pub fn function(&self) -> Function {
        self.index.function()
    }

    /// Returns the VF's routing id on the host's bus. In the guest the VF has an address that the VMM chooses.
    #[must_use]
    pub fn rid(&self) -> Rid {
        self.rid
    }

    /// Returns the VF's configuration space: bytes, bus master, memory enable, MSI-X control.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Reads the VF's configuration space; beyond 4 KiB all bits are ones.
    pub fn config_read(&self, offset: u64, into: &mut [u8]) {
        self.endpoint.read_bytes(offset, into);
    }

    /// Writes the VF's configuration space and updates its MSI-X table; call [`VirtualFunction::release`] afterwards.
    /// The card must follow bus mastering and reset; [`crate::SrIovManager::config_write`] ensures that.
    pub fn config_write(&mut self, offset: u64, from: &[u8]) -> ConfigWriteEffects {
        let effects = self.endpoint.write_bytes(offset, from);
        if effects.function_reset {
            self.table.reset();
        }
        if let Some(control) = effects.msix {
            self.table.set_control(control);
        }
        effects
    }

    /// Reads from the BAR with the VF's MSI-X table: table, pending bits, zero elsewhere.
    pub fn msix_read(&self, offset: u64, into: &mut [u8]) {
        let before = usize::try_from(self.pending.saturating_sub(offset)).unwrap_or(usize::MAX);
        let (table, pending) = into.split_at_mut(before.min(into.len()));
        self.table.read(offset, table);
        self.table.read_pending(offset.saturating_sub(self.pending), pending);
    }

    /// Writes to the BAR with the VF's MSI-X table. Call [`VirtualFunction::release`] afterwards.
    pub fn msix_write(&mut self, offset: u64, from: &[u8]) {
        self.table.write(offset, from);
    }

    /// Signals an MSI-X interrupt vector on behalf of the card. Returns the message to send, or `None` if the vector
    /// stays pending or may not be sent. A message is a memory request, so a function that is no bus master sends none.
    pub fn signal(&mut self, vector: u16) -> Option<InterruptMessage> {
        if self.endpoint.bus_master() { self.table.signal(vector) } else { None }
    }

    /// Returns the next pending MSI-X message whose vector is no longer masked. Call the function until it returns
    /// `None`.
    pub fn release(&mut self) -> Option<(u16, InterruptMessage)> {
        if self.endpoint.bus_master() { self.table.release() } else { None }
    }

    /// Resets the VF's configuration space and MSI-X table to their state when the VF was added. [`crate::ladder`]
    /// resets the card's part of the VF.
    pub fn reset(&mut self) {
        self.endpoint.reset();
        self.table.reset();
    }

    /// Returns the VF's state, from which another process can restore the VF.
    #[must_use]
    pub fn save(&self) -> VirtualFunctionState {
        VirtualFunctionState { config: self.endpoint.save(), table: self.table.save() }
    }

    /// Restores the VF from its saved state. Returns false, and leaves the VF as after a reset, if the configuration in
    /// the state is invalid.
    #[must_use]
    pub fn load(&mut self, state: &VirtualFunctionState) -> bool {
        let whole = self.endpoint.load(&state.config);
        if whole {
            self.table.load(&state.table, self.endpoint.msix().unwrap_or_default());
        } else {
            self.table.reset();
        }
        whole
    }
}

/// Saved state of a VF, serializable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "FunctionState")]
pub struct VirtualFunctionState {
    /// Saved state of the VF's configuration space.
    pub config: ConfigSpaceState,
    /// Saved state of the VF's MSI-X table.
    pub table: MsiXTableState,
}

/// Creates the configuration space of a VF as an ordinary endpoint: with a VF's capabilities, without INTx and ROM.
fn space(identity: FunctionIds, bars: &VfBars) -> ConfigSpace {
    let command = offset::COMMAND_MEMORY
        | offset::COMMAND_BUS_MASTER
        | offset::COMMAND_PARITY
        | offset::COMMAND_SERR
        | offset::COMMAND_INTX_DISABLE;
    let header = config::scratch(ConfigSpaceBuilder::new(identity, command));
    let header = bars.iter().fold(header, |header, &(number, bar)| header.bar(number, bar));
    config::vf::capabilities(header, false).build()
}
