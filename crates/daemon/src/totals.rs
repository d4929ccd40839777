//! Counters of a port that its status last published. A successor process continues from them, so that no counter
//! falls. `port::succession` stores them, and `state` encodes them.

use crate::control::export::ExportedCounters;
use crate::control::status::{
    DropCounts, FunctionStatus, PortStatus, TrafficCounts, VfMailboxStatus, VfStatus, VmmInterventions,
};
use crate::control::uplink::{UplinkDrops, UplinkStatus, UplinkTraffic};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Published counters of a port, its uplink and its functions, for the successor process.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "Totals")]
pub struct PortCounterTotals {
    /// Configured uplink of the port as text, such as "tap:NAME". Another uplink counts from 0.
    pub uplink_name: String,
    /// Counters of the port's uplink.
    pub uplink: UplinkCounterTotals,
    /// Number of broadcast and multicast storms that the port has detected.
    pub storms: u64,
    /// Counters of the PF, if a guest drives it.
    pub pf: FunctionCounterTotals,
    /// Counters of the VFs, by index.
    pub vfs: BTreeMap<u8, VfCounterTotals>,
    /// Delays of the PF driver's answers to mailbox requests.
    pub answers: MailboxAnswerTotals,
}

/// Counters of an uplink: returns, traffic and drops.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "UplinkTotals")]
pub struct UplinkCounterTotals {
    reattached: u64,
    rx: UplinkTraffic,
    tx: UplinkTraffic,
    drops: UplinkDrops,
}

/// Counters of a function: traffic, drops, and messages and interrupts.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "FunctionTotals")]
pub struct FunctionCounterTotals {
    rx: TrafficCounts,
    tx: TrafficCounts,
    drops: DropCounts,
    interventions: VmmInterventions,
}

/// Counters of a VF: those of its function, its mailbox and its offences.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "VfTotals")]
pub struct VfCounterTotals {
    function: FunctionCounterTotals,
    mailbox: VfMailboxStatus,
    offences: BTreeMap<String, u64>,
}

/// Statistics of the PF driver's answers to mailbox requests. A successor process takes them over unchanged, instead of
/// adding them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "AnswerTotals")]
pub struct MailboxAnswerTotals {
    /// Number of runs of the PF driver that answered a mailbox request.
    pub visits: u64,
    /// Largest number of requests that one run of the PF driver answered.
    pub most: u8,
    /// Longest delay of an answer to a mailbox request, nanoseconds.
    pub max_ns: u64,
    /// Sum of the delays of all answers, nanoseconds.
    pub sum_ns: u64,
    /// Number of delays in each non-empty class of the histogram of answer delays, by class.
    pub counts: Vec<(u16, u64)>,
}

/// Set of counters that can be added to another set or subtracted from it, counter by counter.
trait CombinableCounters: Default {
    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64);
}

impl CombinableCounters for u64 {
    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        *self = with(*self, *other);
    }
}

impl<K: Ord + Clone, V: CombinableCounters> CombinableCounters for BTreeMap<K, V> {
    fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
        for (key, value) in other {
            self.entry(key.clone()).or_default().combine(value, with);
        }
    }
}

/// Implements [`CombinableCounters`] for a type, field by field. The destructuring refuses to compile if the type has
/// a field that is not listed here.
macro_rules! combine {
    ($($type:ident { $($field:ident),* })*) => { $(impl CombinableCounters for $type {
        fn combine(&mut self, other: &Self, with: fn(u64, u64) -> u64) {
            let Self { $($field),* } = self;
            $($field.combine(&other.$field, with);)*
        }
    })* };
}

combine! {
    TrafficCounts { packets, bytes, multicast, broadcast, dropped }
    DropCounts {
        rx_no_descriptors, rx_disabled, tx_invalid, tx_blocked, tx_spoofed, tx_link_control, rx_storm, tx_unclaimed, dma_faults
    }
    VmmInterventions { reads, posted_writes, synchronous_writes, interrupts }
    VfMailboxStatus { requests, granted, refused, unanswered, resets, notices }
    UplinkTraffic { packets, bytes, multicast }
    UplinkDrops { too_long, no_room, no_link, malformed, missed, impaired, unrecorded }
    UplinkCounterTotals { reattached, rx, tx, drops }
    FunctionCounterTotals { rx, tx, drops, interventions }
    VfCounterTotals { function, mailbox, offences }
}

impl PortCounterTotals {
    /// Creates totals from the counters of a published status and the configured uplink.
    #[must_use]
    pub fn of(status: &PortStatus, uplink_name: String, answers: MailboxAnswerTotals) -> Self {
        let vf = |vf: &VfStatus| VfCounterTotals {
            function: FunctionCounterTotals::of(&vf.function),
            mailbox: vf.mailbox.clone(),
            offences: vf.conduct.offences.clone(),
        };
        Self {
            uplink_name,
            uplink: status.uplink_status.as_ref().map(UplinkCounterTotals::of).unwrap_or_default(),
            storms: status.storms,
            pf: status.pf.as_ref().map(FunctionCounterTotals::of).unwrap_or_default(),
            vfs: status.vfs.iter().map(|status| (status.index, vf(status))).collect(),
            answers,
        }
    }

    /// Returns the counts that a successor process has to add to its own counters `now`, so that the sums continue from
    /// these totals.
    #[must_use]
    pub fn beyond(mut self, now: &Self) -> Self {
        let less = u64::saturating_sub;
        if self.uplink_name == now.uplink_name {
            self.uplink.combine(&now.uplink, less);
        } else {
            self.forget_uplink();
        }
        self.storms.combine(&now.storms, less);
        self.pf.combine(&now.pf, less);
        self.vfs.combine(&now.vfs, less);
        self
    }

    /// Continues the traffic, drops and offences of a VF from imported counters: afterwards [`Self::add_to`] makes those of the
    /// status `own` equal to them. A counter that is larger already stays.
    pub fn import(&mut self, vf: u8, counters: ExportedCounters, own: &PortStatus) {
        let ExportedCounters { mut rx, mut tx, mut drops, mut offences } = counters;
        if let Some(own) = own.vfs.iter().find(|status| status.index == vf) {
            let less = u64::saturating_sub;
            rx.combine(&own.function.rx, less);
            tx.combine(&own.function.tx, less);
            drops.combine(&own.function.drops, less);
            offences.combine(&own.conduct.offences, less);
        }
        let totals = self.vfs.entry(vf).or_default();
        totals.function.rx.combine(&rx, u64::max);
        totals.function.tx.combine(&tx, u64::max);
        totals.function.drops.combine(&drops, u64::max);
        totals.offences.combine(&offences, u64::max);
    }

    /// Resets the uplink's counters, for a port that has another uplink now.
    pub fn forget_uplink(&mut self) {
        self.uplink = UplinkCounterTotals::default();
    }

    /// Adds these counters to those of a port's status. Answer delays are not added, because a successor process has
    /// taken them over.
    pub fn add_to(&self, status: &mut PortStatus) {
        let add = u64::saturating_add;
        if let Some(uplink) = &mut status.uplink_status {
            let mut sum = UplinkCounterTotals::of(uplink);
            sum.combine(&self.uplink, add);
            let UplinkCounterTotals { reattached, rx, tx, drops } = sum;
            (uplink.reattached, uplink.rx, uplink.tx, uplink.drops) = (reattached, rx, tx, drops);
        }
        status.storms.combine(&self.storms, add);
        if let Some(pf) = &mut status.pf {
            self.pf.add_to(pf);
        }
        for vf in &mut status.vfs {
            let Some(totals) = self.vfs.get(&vf.index) else { continue };
            totals.function.add_to(&mut vf.function);
            vf.mailbox.combine(&totals.mailbox, add);
            vf.conduct.offences.combine(&totals.offences, add);
            // The status omits named counters that are zero.
            for counts in [&mut vf.mailbox.requests, &mut vf.mailbox.refused, &mut vf.conduct.offences] {
                counts.retain(|_, count| *count > 0);
            }
        }
    }
}

impl UplinkCounterTotals {
    fn of(status: &UplinkStatus) -> Self {
        Self { reattached: status.reattached, rx: status.rx, tx: status.tx, drops: status.drops }
    }
}

impl FunctionCounterTotals {
    fn of(status: &FunctionStatus) -> Self {
        Self { rx: status.rx, tx: status.tx, drops: status.drops, interventions: status.interventions }
    }

    fn add_to(&self, status: &mut FunctionStatus) {
        let mut sum = Self::of(status);
        sum.combine(self, u64::saturating_add);
        (status.rx, status.tx, status.drops, status.interventions) =
            (sum.rx, sum.tx, sum.drops, sum.interventions);
    }
}

#[cfg(test)]
mod tests {
    use super::{CombinableCounters, FunctionCounterTotals, PortCounterTotals, VfCounterTotals};
    use crate::control::uplink::UplinkTraffic;
    use std::collections::BTreeMap;

    /// Returns totals of a port with one VF: `packets` received by uplink and VF, and the VF's `requests` for a MAC
    /// address.
    fn totals(uplink: &str, packets: u64, requests: u64) -> PortCounterTotals {
        let mut vf =
            VfCounterTotals { function: FunctionCounterTotals::default(), ..VfCounterTotals::default() };
        vf.function.rx.packets = packets;
        vf.mailbox.requests = BTreeMap::from([("mac".to_owned(), requests)]);
        let mut totals = PortCounterTotals {
            uplink_name: uplink.to_owned(),
            vfs: BTreeMap::from([(0, vf)]),
            ..PortCounterTotals::default()
        };
        totals.uplink.rx = UplinkTraffic { packets, ..UplinkTraffic::default() };
        totals
    }

    #[test]
    fn next_process_adds_only_counts_missing_from_its_counters() {
        let lacks = totals("tap:a", 10, 3).beyond(&totals("tap:a", 10, 0));
        assert_eq!((lacks.uplink.rx.packets, lacks.vfs[&0].function.rx.packets), (0, 0));
        assert_eq!(lacks.vfs[&0].mailbox.requests["mac"], 3);
        // Counts beyond the stored ones must not become negative.
        let lacks = totals("tap:a", 10, 3).beyond(&totals("tap:a", 12, 4));
        assert_eq!((lacks.uplink.rx.packets, lacks.vfs[&0].mailbox.requests["mac"]), (0, 0));
    }

    #[test]
    fn counters_of_a_replaced_uplink_start_at_zero() {
        let lacks = totals("tap:a", 10, 3).beyond(&totals("tap:b", 0, 0));
        assert_eq!((lacks.uplink.rx.packets, lacks.vfs[&0].function.rx.packets), (0, 10));
    }

    #[test]
    fn sums_of_counters_saturate_at_the_64_bit_maximum() {
        let mut count = u64::MAX - 1;
        count.combine(&5, u64::saturating_add);
        assert_eq!(count, u64::MAX);
    }
}
