//! A VF of the card: its registers, as `avf::table` defines them, and its other state.

use crate::brake::VfThrottle;
use crate::counters::VfEventCounters;
use crate::held;
use crate::interrupt::Interrupts;
use crate::mailbox::Mailbox;
use crate::packet::DescriptorOffloads;
use crate::rx_ring::ReceiveQueue;
use crate::scaling::RssSettings;
use crate::tx_ring::TransmitQueue;
use alloc::vec::Vec;
use avf::bits::rstat;
use avf::control::{QueueInterruptCause, VlanTagHandling};
use avf::ids::MAX_PAIRS;
use avf::table::{MailboxQueue, RegisterKind, VfRegisterAccessMode, find};
use avf::virtchnl::VfTrafficStatistics;
use rings::PausedPacketMemory;
use serde::{Deserialize, Serialize};
use units::{ExcessPieces, VlanIds};

/// Maximum number of addresses of a VF: more than a PF driver grants.
const MOST_ADDRESSES: usize = 256;
/// Upper bound of a restored counter. A counter that starts below this bound takes centuries to overflow.
pub(crate) const MOST_COUNTED: u64 = 1 << 62;

/// State of a VF: its registers and queues, and the settings that the PF driver has ordered for the VF.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename = "Function")]
pub(crate) struct VfHardware {
    pub(crate) mailbox: Mailbox,
    pub(crate) interrupts: Interrupts,
    pub(crate) rstat: u32,
    pub(crate) unused: u32,
    pub(crate) scaling: RssSettings,
    pub(crate) rx: [ReceiveQueue; MAX_PAIRS],
    pub(crate) tx: [TransmitQueue; MAX_PAIRS],
    /// Packet of the VF that is paused between two of its segments.
    #[serde(with = "crate::held")]
    pub(crate) held: PausedPacketMemory<DescriptorOffloads>,
    /// Transmit queues that may hold a packet, a bit each. Writing a queue's tail or starting the queue sets its bit; a
    /// visit of the queue that finds no packet clears it.
    pub(crate) tx_ready: u16,
    /// Receive queues with descriptors that were filled and not yet written back, a bit each. The set is empty between
    /// two calls of the card.
    #[serde(skip)]
    pub(crate) rx_filled: u16,
    pub(crate) rx_causes: [Option<QueueInterruptCause>; MAX_PAIRS],
    pub(crate) tx_causes: [Option<QueueInterruptCause>; MAX_PAIRS],
    pub(crate) filters: VfFilters,
    pub(crate) statistics: VfTrafficStatistics,
    pub(crate) counters: VfEventCounters,
    /// True if the VF may use the bus (Bus Master Enable).
    pub(crate) master: bool,
    /// Mapped registers whose published values may be out of date (`doorbell`). Bit n stands for the registers of queue
    /// pair n and of vector n + 1.
    #[serde(skip, default = "all")]
    pub(crate) stale: u16,
    /// Limits on the VF's messages and interrupts. The saved state stores these limits apart from the VF (`saved`),
    /// because the saved form of a VF is older than they are.
    #[serde(skip)]
    pub(crate) brake: VfThrottle,
    /// Receive buffers that the VF pays for, because frames occupy more of them than they need.
    #[serde(skip)]
    pub(crate) pieces: ExcessPieces,
}

/// Filters, checks and rate of a VF, for the forwarding plane.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(rename = "Filters")]
pub struct VfFilters {
    /// Unicast and multicast addresses that the VF receives.
    pub addresses: Vec<[u8; 6]>,
    /// VLANs that the VF receives; 0 is frames without a tag.
    pub vlans: VlanIds,
    /// True if the VF receives every unicast frame.
    pub unicast: bool,
    /// True if the VF receives every multicast frame.
    pub multicast: bool,
    /// True to drop frames that the VF sends with another VF's address or VLAN.
    pub spoof_check: bool,
    /// Transmit rate of the VF in Mb/s; 0 is no limit.
    pub rate: u32,
    /// Handling of VLAN tags for the VF.
    pub tags: VlanTagHandling,
}

impl VfFilters {
    fn is_sound(&self) -> bool {
        self.addresses.len() <= MOST_ADDRESSES
    }
}

/// Returns the `stale` bits of all mapped registers of a VF, so that the card publishes all of them.
fn all() -> u16 {
    u16::MAX
}

impl VfHardware {
    pub(crate) fn new() -> Self {
        Self {
            mailbox: Mailbox::default(),
            interrupts: Interrupts::default(),
            rstat: rstat::ACTIVE,
            unused: 0,
            scaling: RssSettings::default(),
            rx: Default::default(),
            tx: Default::default(),
            held: PausedPacketMemory::default(),
            tx_ready: 0,
            rx_filled: 0,
            rx_causes: [None; MAX_PAIRS],
            tx_causes: [None; MAX_PAIRS],
            filters: VfFilters::default(),
            statistics: VfTrafficStatistics::default(),
            counters: VfEventCounters::default(),
            master: false,
            stale: all(),
            brake: VfThrottle::default(),
            pieces: ExcessPieces::default(),
        }
    }

    /// Returns the first consistency rule that the restored VF's state breaks, or `None` if the state is valid.
    pub(crate) fn flaw(&self) -> Option<&'static str> {
        let counted = self.counters.all().into_iter().chain(self.statistics.all());
        let rules = [
            (
                self.mailbox.is_sound(),
                "a VF's mailbox has an invalid register value or too many pending messages",
            ),
            (self.interrupts.is_sound(), "a register of an interrupt vector has an invalid value"),
            (self.rstat <= rstat::STATE, "a VF's reset state (VFGEN_RSTAT) is invalid"),
            (self.rx.iter().all(ReceiveQueue::is_sound), "the configuration of a receive queue is invalid"),
            (self.tx.iter().all(TransmitQueue::is_sound), "the configuration of a transmit queue is invalid"),
            (held::is_sound(&self.held), "the segmentation state of an unfinished packet is invalid"),
            (self.filters.is_sound(), "a VF has too many address filters"),
            (counted.into_iter().all(|count| count < MOST_COUNTED), "a VF's counter is 2^62 or more"),
        ];
        rules.into_iter().find(|(holds, _)| !holds).map(|(_, what)| what)
    }

    /// Returns the bus address of the VF's next mailbox descriptor to the PF. `None` if the ring is empty, or the VF is
    /// in reset.
    pub(crate) fn next_message(&self) -> Option<u64> {
        self.mailbox.send.next().filter(|_| self.rstat == rstat::ACTIVE)
    }

    /// Raises the interrupt cause of a transmit queue when its packets were sent.
    pub(crate) fn raise_sent(&mut self, queue: u8) {
        if let Some(cause) = self.tx_causes[usize::from(queue) % MAX_PAIRS] {
            self.interrupts.raise(cause.vector, cause.itr);
        }
    }

    /// Stops a transmit queue whose ring or buffers are not in the VF's memory.
    #[cold]
    pub(crate) fn stop_sending(&mut self, queue: u8) {
        self.counters.dma_faults += 1;
        if let Some(ring) = self.tx.get_mut(usize::from(queue)) {
            ring.running = false;
        }
    }

    /// Clears the tails of the queues that are not set up. Called when the driver enables its mailbox: a driver that has not
    /// noticed a reset stores tails of its old rings before that.
    fn forget_early_tails(&mut self) {
        self.tx.iter_mut().for_each(TransmitQueue::forget_early_tail);
        self.rx.iter_mut().for_each(ReceiveQueue::forget_early_tail);
        self.stale = all();
    }

    pub(crate) fn read(&mut self, offset: u32) -> u32 {
        let Some((row, index)) = find(offset) else { return 0 };
        let at = usize::from(index);
        match row.kind {
            RegisterKind::TxTail => self.tx[at].tail,
            RegisterKind::RxTail => self.rx[at].tail,
            RegisterKind::Interval(itr) => self.interrupts.interval(index + 1, itr),
            RegisterKind::IntervalOfVector0 => self.interrupts.interval(0, index),
            RegisterKind::Control => self.interrupts.control(index + 1),
            RegisterKind::ControlOfVector0 => self.interrupts.control(0),
            RegisterKind::Causes => self.interrupts.take_causes(),
            RegisterKind::EnabledCauses => self.interrupts.enabled_causes(),
            RegisterKind::Mailbox(MailboxQueue::Send, field) => self.mailbox.send.get(field),
            RegisterKind::Mailbox(MailboxQueue::Receive, field) => self.mailbox.receive.get(field),
            RegisterKind::Reset => self.rstat,
            RegisterKind::HashTypes => self.scaling.types[at],
            RegisterKind::HashKey => self.scaling.key_word(at),
            RegisterKind::LookupTable => self.scaling.table_word(at),
            RegisterKind::Unused => self.unused,
        }
    }

    pub(crate) fn write(&mut self, offset: u32, value: u32) {
        let Some((row, index)) = find(offset) else { return };
        let at = usize::from(index);
        self.stale |= 1_u16.checked_shl(index.into()).unwrap_or(0);
        match row.kind {
            RegisterKind::TxTail => {
                self.tx[at].ring(value);
                self.tx_ready |= 1 << at;
            }
            RegisterKind::RxTail => self.rx[at].tail = value,
            RegisterKind::Interval(itr) => self.interrupts.set_interval(index + 1, itr, value),
            RegisterKind::IntervalOfVector0 => self.interrupts.set_interval(0, index, value),
            RegisterKind::Control => self.interrupts.write_control(index + 1, value),
            RegisterKind::ControlOfVector0 => self.interrupts.write_control(0, value),
            RegisterKind::EnabledCauses => self.interrupts.enable_causes(value),
            RegisterKind::Mailbox(side, field) => {
                let kept = if let VfRegisterAccessMode::Rw(mask) = row.access { value & mask } else { value };
                let was_on = self.mailbox.send.is_on();
                match side {
                    MailboxQueue::Send => self.mailbox.send.set(field, kept),
                    MailboxQueue::Receive => self.mailbox.receive.set(field, kept),
                }
                if self.mailbox.send.is_on() && !was_on {
                    self.forget_early_tails();
                }
            }
            RegisterKind::HashTypes => self.scaling.types[at] = value,
            RegisterKind::HashKey => self.scaling.set_key_word(at, value),
            RegisterKind::LookupTable => self.scaling.set_table_word(at, value),
            RegisterKind::Unused => self.unused = value,
            RegisterKind::Causes | RegisterKind::Reset => {}
        }
    }
}
