//! Counters and states of a virtio port's VFs, for the port's status report and the log.

use super::VirtioCard;
use super::rules::memberships;
use crate::control::status::{VfFilterStatus, VfMailboxStatus};
use crate::port::engine::family::{REASONS, ReportedVfState, VfDriverState, conduct};
use crate::settings::VfSettings;
use driver::conduct::QuarantineCause;
use nic::PoolCounters;
use pcie::VfIndex;
use plane::PortIndex;

impl VirtioCard {
    /// Returns the frame counters of a VF from the switch, with the device's numbers of stopped rings.
    pub(super) fn vf_counters(&mut self, vf: VfIndex) -> PoolCounters {
        let port = PortIndex::of_field(vf.get().into());
        // A hand-over saves the counters, and no visit of the rings follows.
        self.card.count_dropped(&mut self.plane);
        self.plane.ledger.settle_received(port);
        self.plane.ledger.settle_sent(port);
        let mut counters = *self.plane.ledger.of(port);
        counters.dma_faults += self.card.counters(vf.get()).map_or(0, |device| device.faults);
        counters
    }

    pub(super) fn status(&self, vf: VfIndex) -> ReportedVfState {
        let policy = &self.decided[vf.index()].policy;
        let monitor = &self.conduct[vf.index()];
        let quarantined = monitor.quarantined() == Some(QuarantineCause::Administrator);
        ReportedVfState {
            mac: self.card.address(vf.get()),
            vlans: memberships(policy),
            link: self.has_link(vf),
            active: self.card.is_active(vf.get()),
            filters: VfFilterStatus::default(),
            quotas: None,
            settings: VfSettings::of(policy, quarantined),
            conduct: conduct(monitor),
            mailbox: VfMailboxStatus { resets: self.resets[vf.index()], ..VfMailboxStatus::default() },
        }
    }

    pub(super) fn state_of_driver(&self, vf: VfIndex) -> VfDriverState {
        VfDriverState {
            active: self.card.is_active(vf.get()),
            link: self.has_link(vf),
            cut: false,
            resets: self.resets[vf.index()],
            refused: [0; REASONS],
        }
    }
}
