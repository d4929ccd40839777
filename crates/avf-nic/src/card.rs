//! The card: its PF and VFs, and accesses to their registers.

use crate::admin::AdminQueues;
use crate::counters::VfEventCounters;
use crate::function::VfHardware;
use crate::scratch::PollScratchMemory;
use alloc::vec;
use alloc::vec::Vec;
use avf::admin::MAX_BODY;
use avf::ids::MAX_VFS;
use pcie::{VfIndex, VfSet};
use serde::{Deserialize, Serialize};
use units::Time;

/// Adaptive Virtual Function card with up to 64 VFs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Card")]
pub struct Nic {
    pub(crate) functions: Vec<VfHardware>,
    /// VFs that may access guest memory (Bus Master Enable is set). A poll skips all other VFs.
    #[serde(skip)]
    pub(crate) masters: VfSet,
    pub(crate) admin: AdminQueues,
    /// VFs that were reset by their guests, and whose reset the PF has not seen yet.
    pub(crate) flr: u64,
    /// VF whose mailbox the next poll reads first; every VF is first in turn.
    pub(crate) turn: u8,
    /// Earliest time at which the card may send a frame that a VF's transmit rate delays, as of the last call of
    /// [`Nic::visit_ready`].
    #[serde(skip)]
    pub(crate) due: Option<Time>,
    /// Memory for the frames and descriptors of one call of the card.
    #[serde(skip)]
    pub(crate) scratch: PollScratchMemory,
    /// Buffer for the body of a message that the card copies from a VF's mailbox to the PF, or from the PF to a VF.
    #[serde(skip, default = "body")]
    pub(crate) body: Vec<u8>,
}

fn body() -> Vec<u8> {
    vec![0; MAX_BODY]
}

impl Nic {
    /// Creates a card after power-on with `vfs` VFs, 64 at most.
    #[must_use]
    pub fn new(vfs: u8) -> Self {
        let functions = (0..usize::from(vfs).min(MAX_VFS)).map(|_| VfHardware::new()).collect();
        let (admin, body) = (AdminQueues::default(), body());
        let (masters, flr, turn, due) = (VfSet::NONE, 0, 0, None);
        Self { functions, masters, admin, flr, turn, due, scratch: PollScratchMemory::default(), body }
    }

    /// Switches bursts of frames off: from now on every frame is sent alone and parsed completely. Tests compare such a
    /// card with a card that sends bursts.
    pub fn take_no_shortcuts(&mut self) {
        self.scratch.careful = true;
    }

    /// Adds VFs in the state after power-on, until the card has `vfs` of them, 64 at most. Existing VFs stay as they
    /// are.
    pub fn grow(&mut self, vfs: u8) {
        let count = usize::from(vfs).min(MAX_VFS).max(self.functions.len());
        self.functions.resize_with(count, VfHardware::new);
    }

    /// Returns the first consistency rule that the restored card's state breaks, or `None` if the state is valid.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let vfs = self.functions.len();
        let rules = [
            (vfs <= MAX_VFS, "the card has more than 64 VFs"),
            (
                self.flr.checked_shr(vfs as u32).unwrap_or(0) == 0,
                "a function-level reset is pending for a VF that does not exist",
            ),
            (usize::from(self.turn) < vfs.max(1), "the next VF to visit is beyond the last VF"),
            (self.admin.is_sound(), "a register of the PF's admin queues has an invalid value"),
        ];
        let of_card = rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what);
        of_card.or_else(|| self.functions.iter().find_map(VfHardware::flaw))
    }

    /// Reads a register of BAR 0 for a VF's driver. An offset without a register reads zero.
    pub fn read(&mut self, vf: u8, offset: u32) -> u32 {
        self.functions.get_mut(usize::from(vf)).map_or(0, |function| function.read(offset))
    }

    /// Writes a register of BAR 0 for a VF's driver.
    pub fn write(&mut self, vf: u8, offset: u32, value: u32) {
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.write(offset, value);
        }
    }

    /// Sets Bus Master Enable of a VF. Without it the card sends no memory request and no interrupt in the VF's name.
    pub fn set_bus_master(&mut self, vf: u8, on: bool) {
        if let Some(function) = self.functions.get_mut(usize::from(vf)) {
            function.master = on;
            self.find_masters();
        }
    }

    /// Updates `masters`, the set of VFs that may use the bus.
    pub(crate) fn find_masters(&mut self) {
        let masters = VfIndex::first(self.functions.len()).zip(&self.functions);
        self.masters = masters.filter(|(_, function)| function.master).map(|(vf, _)| vf).collect();
    }

    /// Returns the earliest time at which the card may send a frame that [`Nic::visit_ready`] has delayed to keep a
    /// VF's transmit rate.
    #[must_use]
    pub fn due(&self) -> Option<Time> {
        self.due
    }

    /// Returns true if a VF may use the bus.
    #[must_use]
    pub fn is_bus_master(&self, vf: u8) -> bool {
        self.functions.get(usize::from(vf)).is_some_and(|function| function.master)
    }

    /// Returns the counters of a VF's messages, interrupts and errors, or `None` if the card does not have the VF.
    #[must_use]
    pub fn counters(&self, vf: u8) -> Option<&VfEventCounters> {
        self.functions.get(usize::from(vf)).map(|function| &function.counters)
    }
}
