//! Counters and states of an AVF port's VFs, for the port's status report and the log.

use super::AvfCard;
use crate::control::status::{FilterQuotaStatus, VfFilterStatus, VfMailboxStatus, VfQuotaStatus};
use crate::port::engine::family::{REASONS, ReportedVfState, VfDriverState, conduct, offence_counts};
use crate::settings::VfSettings;
use avf::virtchnl::VirtchnlOpcode;
use driver::avf::pf::{VirtchnlCounters, VirtchnlRefusal};
use driver::conduct::{OffenceCounts, QuarantineCause, VfConductMonitor};
use nic::PoolCounters;
use pcie::VfIndex;
use plane::PortIndex;
use policy::{FilterKind, Offence};

impl AvfCard {
    /// Returns the frame counters of a VF from the switch, with the card's number of its DMA faults.
    pub(super) fn vf_counters(&mut self, vf: VfIndex) -> PoolCounters {
        let port = PortIndex::of_field(vf.get().into());
        self.plane.ledger.settle_received(port);
        self.plane.ledger.settle_sent(port);
        let mut counters = *self.plane.ledger.of(port);
        if let Some(card) = self.card.nic.counters(vf.get()) {
            counters.dma_faults += card.dma_faults;
        }
        counters
    }

    /// Returns the numbers of a VF's events that may be offences, by kind of offence. Everything from its mailbox
    /// counts as a request, valid or not.
    pub(super) fn offence_totals(&mut self, vf: VfIndex, interrupts: u64) -> OffenceCounts {
        let mut totals = offence_counts(&self.vf_counters(vf), interrupts);
        if let Some(card) = self.card.nic.counters(vf.get()) {
            totals[Offence::Mailbox as usize] = card.messages + card.strange;
            totals[Offence::Invalid as usize] += card.strange;
        }
        totals
    }

    pub(super) fn vf_facts(&self, vf: VfIndex) -> ReportedVfState {
        let (n, decided) = (vf.get(), &self.decided[vf.index()]);
        let monitor = self.pf.conduct(n);
        let quarantined =
            monitor.and_then(VfConductMonitor::quarantined) == Some(QuarantineCause::Administrator);
        ReportedVfState {
            mac: self.pf.vf_mac(n),
            vlans: self.pf.vf_vlans(n).collect(),
            link: self.pf.vf_link(n).is_some(),
            active: self.pf.vf_is_active(n),
            filters: self.filters(n),
            quotas: self.quotas(n),
            settings: VfSettings::of(&decided.policy, quarantined),
            conduct: monitor.map(conduct).unwrap_or_default(),
            mailbox: self.pf.counters(n).map(mailbox).unwrap_or_default(),
        }
    }

    pub(super) fn state_of_driver(&self, vf: VfIndex) -> Option<VfDriverState> {
        let (n, counters) = (vf.get(), self.pf.counters(vf.get())?);
        let mut refused = [0; REASONS];
        refused.iter_mut().zip(counters.refused()).for_each(|(place, count)| *place = *count);
        let (active, link) = (self.pf.vf_is_active(n), self.pf.vf_link(n).is_some());
        let cut = self.filters(n).cut;
        Some(VfDriverState { active, link, cut, resets: counters.resets, refused })
    }

    fn quotas(&self, vf: u8) -> Option<VfQuotaStatus> {
        let of = |kind| self.pf.filter_use(vf, kind).map(FilterQuotaStatus::from);
        Some(VfQuotaStatus { mac: of(FilterKind::Mac)?, vlan: of(FilterKind::Vlan)? })
    }

    /// Returns the number and the limit of a VF's receive filters, and true if filters are missing (`cut`): a refused
    /// address is never requested again by iavf.
    fn filters(&self, vf: u8) -> VfFilterStatus {
        let (used, most) = self.pf.filter_use(vf, FilterKind::Mac).map_or((0, 0), |of| (of.used, of.most));
        let refused = self
            .pf
            .counters(vf)
            .map_or(0, |counters| counters.refused_for(VirtchnlRefusal::TooManyAddresses));
        VfFilterStatus { used, most, cut: refused > 0 && self.pf.vf_is_active(vf) }
    }
}

fn mailbox(counters: &VirtchnlCounters) -> VfMailboxStatus {
    let some = |name: &str, count: u64| (count > 0).then(|| (name.to_owned(), count));
    let requests = VirtchnlOpcode::ALL.iter().filter_map(|op| some(op.name(), counters.requests(*op)));
    let refused =
        VirtchnlRefusal::NAMES.iter().zip(counters.refused()).filter_map(|(name, n)| some(name, *n));
    let asked: u64 = VirtchnlOpcode::ALL.iter().map(|op| counters.requests(*op)).sum();
    let denied: u64 = counters.refused().iter().sum();
    VfMailboxStatus {
        requests: requests.collect(),
        granted: (asked + counters.unknown).saturating_sub(denied),
        refused: refused.collect(),
        unanswered: counters.lost,
        resets: counters.resets,
        notices: counters.events,
    }
}
