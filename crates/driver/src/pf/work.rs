//! Measures the PF driver's work for each VF, for a host that charges VFs for it. Work is counted by the registers that
//! it accesses, so each kind of request costs what it does; nothing here reads a clock.

use super::counters::MailboxMessageKind;
use crate::hal::Hal;
use core::time::Duration;
use i82576::ids::{MAX_VFS, VLAN_FILTERS};
use i82576::mailbox::WORDS;
use i82576::register as r;
use i82576::{MacAddress, Time, VfIndex};
use units::WorkCost;

/// Cost of the shares of a filter table, which the driver computes for a request of a filter.
const SHARES: WorkCost = WorkCost(20);
/// Cost of a look-up in the shares, in units.
const LOOK_UP: usize = 2;

impl MailboxMessageKind {
    /// Returns the cost of a request of this kind, without the driver's accesses to registers.
    pub(super) fn cost(self) -> WorkCost {
        let request = WorkCost::of_request(4 * WORDS);
        match self {
            Self::Reset => request + WorkCost::SETUP,
            Self::Mac => request + SHARES,
            // A change also has the driver try VLANs again that wait for a filter.
            Self::Vlan => request + SHARES + SHARES,
            Self::Multicast | Self::FrameLength | Self::Promiscuity | Self::Other => request,
        }
    }
}

/// Work of one run of the PF driver for its VFs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PfWork {
    /// Cost of the work for each VF.
    pub costs: [WorkCost; MAX_VFS],
    /// VFs whose requests or resets have written registers beside those of the mailbox, a bit each: the card may have
    /// to compute the switch's tables again.
    pub changed: u8,
    /// VFs whose requests or resets have written VLAN filters, a bit each.
    pub changed_vlans: u8,
    /// VFs with a request, an acknowledgement or a reset that waits for credit, a bit each: run the PF driver again at
    /// once.
    pub unpaid: u8,
}

impl PfWork {
    /// Adds the cost of work for a VF.
    pub(super) fn charge(&mut self, vf: VfIndex, cost: WorkCost) {
        let sum = &mut self.costs[vf.index()];
        *sum = *sum + cost;
    }

    /// Charges the VFs whose requests or resets have changed VLAN filters for look-ups in the shares of all VFs. They share the
    /// cost.
    pub(super) fn charge_look_ups(&mut self, look_ups: usize) {
        let changed = u32::from(self.changed_vlans);
        let count = changed.count_ones().max(1) as usize;
        let share = WorkCost::of_units((look_ups * LOOK_UP).div_ceil(count));
        for vf in VfIndex::all().filter(|vf| changed & vf.bit() != 0) {
            self.charge(vf, share);
        }
    }

    /// Calls `act` with access to the card, and charges a VF for the registers that it accesses.
    pub(super) fn measure<H: Hal, R>(
        &mut self,
        hal: &mut H,
        vf: VfIndex,
        act: impl FnOnce(&mut MeasuringHal<'_, H>) -> R,
    ) -> R {
        let mut measured = MeasuringHal { hal, vf, accesses: 0, changes: false, changes_vlans: false };
        let result = act(&mut measured);
        let MeasuringHal { accesses, changes, changes_vlans, .. } = measured;
        self.charge(vf, WorkCost(accesses));
        let bit = vf.bit() as u8;
        self.changed |= if changes { bit } else { 0 };
        self.changed_vlans |= if changes_vlans { bit } else { 0 };
        result
    }
}

/// Access to the card that counts the accesses to registers.
pub(super) struct MeasuringHal<'a, H> {
    hal: &'a mut H,
    vf: VfIndex,
    accesses: u32,
    /// True if a register beside those of the mailbox was written.
    changes: bool,
    /// True if a VLAN filter was written.
    changes_vlans: bool,
}

impl<H: Hal> Hal for MeasuringHal<'_, H> {
    fn read(&mut self, offset: u32) -> u32 {
        self.accesses = self.accesses.saturating_add(WorkCost::ACCESS.0);
        self.hal.read(offset)
    }

    fn write(&mut self, offset: u32, value: u32) {
        self.accesses = self.accesses.saturating_add(WorkCost::ACCESS.0);
        let words = r::vmbmem(self.vf, 0)..=r::vmbmem(self.vf, WORDS as u32 - 1);
        let is_mailbox = [r::p2v_mailbox(self.vf), r::MBVFICR].contains(&offset) || words.contains(&offset);
        self.changes |= !is_mailbox;
        self.changes_vlans |= (r::vlvf(0)..=r::vlvf(VLAN_FILTERS as u32 - 1)).contains(&offset);
        self.hal.write(offset, value);
    }

    fn now(&self) -> Time {
        self.hal.now()
    }

    fn wait(&mut self, time: Duration) {
        self.hal.wait(time);
    }

    fn may_have_address(&mut self, vf: u8, address: MacAddress) -> bool {
        self.accesses = self.accesses.saturating_add(WorkCost::ACCESS.0);
        self.hal.may_have_address(vf, address)
    }

    fn revoke_address(&mut self, vf: u8, address: MacAddress) -> bool {
        self.accesses = self.accesses.saturating_add(WorkCost::ACCESS.0);
        self.hal.revoke_address(vf, address)
    }
}
