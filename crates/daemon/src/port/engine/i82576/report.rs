//! Filters and mailbox counters of an 82576 port's VFs, for the port's status report.

use crate::control::status::{VfFilterStatus, VfMailboxStatus, VfQuotaStatus};
use driver::pf::{MailboxCounters, MailboxMessageKind, MailboxRefusal, Pf};
use i82576::VfIndex;
use i82576::mailbox::MAX_MULTICAST;
use policy::FilterKind;

pub(super) fn quotas(pf: &Pf, vf: VfIndex) -> VfQuotaStatus {
    let of = |kind| pf.filter_use(vf, kind).into();
    VfQuotaStatus { mac: of(FilterKind::Mac), vlan: of(FilterKind::Vlan) }
}

pub(super) fn filters((used, cut): (usize, bool)) -> VfFilterStatus {
    VfFilterStatus { used: used as u16, most: MAX_MULTICAST as u16, cut }
}

pub(super) fn mailbox(counters: &MailboxCounters) -> VfMailboxStatus {
    let some = |name: &str, count: u64| (count > 0).then(|| (name.to_owned(), count));
    VfMailboxStatus {
        requests: MailboxMessageKind::ALL
            .into_iter()
            .filter_map(|k| some(k.name(), counters.messages(k)))
            .collect(),
        granted: counters.granted,
        refused: MailboxRefusal::ALL
            .into_iter()
            .filter_map(|r| some(r.name(), counters.refused(r)))
            .collect(),
        unanswered: counters.unanswered + counters.dropped,
        resets: counters.resets,
        notices: counters.notices,
    }
}
