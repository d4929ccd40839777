//! What is counted of a pool's traffic: for the card's owner 64-bit and never cleared, and for drivers the VF's
//! statistics registers, which wrap and are never cleared by reading. Left out: the port's registers, which count
//! what crosses the wire (`uplink`).

use crate::Nic;
use crate::queue::receive::Missed;
use crate::switch::Source;
use i82576::bits::{icr, srrctl};
use i82576::ids::{FCS, MAX_VFS};
use i82576::register::{self as r, rx, rx_block, vf_stats};
use i82576::{MacAddress, Queue, VfIndex};
use serde::{Deserialize, Serialize};

/// RQDPC has 12 bits and stops at its end.
const RQDPC_END: u32 = 0xfff;

/// A pool's traffic and losses since power-on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct PoolCounters {
    /// Frames received into the pool.
    pub rx_packets: u64,
    /// Their bytes, frame check sequence excluded.
    pub rx_bytes: u64,
    /// Of these frames, multicast ones.
    pub rx_multicast: u64,
    /// Of these frames, broadcast ones.
    pub rx_broadcast: u64,
    /// Frames for the pool that found too few descriptors.
    pub rx_no_descriptors: u64,
    /// Frames for the pool while its queue was not set up.
    pub rx_disabled: u64,
    /// Frames for the pool that storm control kept from it.
    pub rx_storm: u64,
    /// Frames sent by the pool that the card switched or put on the wire.
    pub tx_packets: u64,
    /// Their bytes, frame check sequence excluded.
    pub tx_bytes: u64,
    /// Of the frames sent, multicast ones.
    pub tx_multicast: u64,
    /// Of the frames sent, broadcast ones.
    pub tx_broadcast: u64,
    /// Packets that made no sense: descriptors, lengths, offload requests.
    pub tx_invalid: u64,
    /// Frames with an address or VLAN that is not the pool's, and link-control frames.
    pub tx_blocked: u64,
    /// Of these, frames with an address or VLAN that is not the pool's.
    pub tx_spoofed: u64,
    /// Of these, link-control frames: pause, spanning tree and the like.
    pub tx_link_control: u64,
    /// Frames that nobody took: no destination, or the wire refused.
    pub tx_unclaimed: u64,
    /// Memory requests that the bus refused.
    pub dma_faults: u64,
}

impl PoolCounters {
    /// Every counter.
    pub(crate) fn all(&self) -> impl Iterator<Item = u64> {
        let Self { rx_packets, rx_bytes, rx_multicast, rx_broadcast, .. } = *self;
        let Self { rx_no_descriptors, rx_disabled, rx_storm, tx_packets, tx_bytes, .. } = *self;
        let Self { tx_multicast, tx_broadcast, tx_invalid, tx_blocked, tx_spoofed, .. } = *self;
        let Self { tx_link_control, tx_unclaimed, dma_faults, .. } = *self;
        let received =
            [rx_packets, rx_bytes, rx_multicast, rx_broadcast, rx_no_descriptors, rx_disabled, rx_storm];
        let sent = [tx_packets, tx_bytes, tx_multicast, tx_broadcast, tx_invalid, tx_blocked, tx_spoofed];
        received.into_iter().chain(sent).chain([tx_link_control, tx_unclaimed, dma_faults])
    }
}

impl core::ops::Add for PoolCounters {
    type Output = Self;

    fn add(self, other: Self) -> Self {
        Self {
            rx_packets: self.rx_packets + other.rx_packets,
            rx_bytes: self.rx_bytes + other.rx_bytes,
            rx_multicast: self.rx_multicast + other.rx_multicast,
            rx_broadcast: self.rx_broadcast + other.rx_broadcast,
            rx_no_descriptors: self.rx_no_descriptors + other.rx_no_descriptors,
            rx_disabled: self.rx_disabled + other.rx_disabled,
            rx_storm: self.rx_storm + other.rx_storm,
            tx_packets: self.tx_packets + other.tx_packets,
            tx_bytes: self.tx_bytes + other.tx_bytes,
            tx_multicast: self.tx_multicast + other.tx_multicast,
            tx_broadcast: self.tx_broadcast + other.tx_broadcast,
            tx_invalid: self.tx_invalid + other.tx_invalid,
            tx_blocked: self.tx_blocked + other.tx_blocked,
            tx_spoofed: self.tx_spoofed + other.tx_spoofed,
            tx_link_control: self.tx_link_control + other.tx_link_control,
            tx_unclaimed: self.tx_unclaimed + other.tx_unclaimed,
            dma_faults: self.dma_faults + other.dma_faults,
        }
    }
}

/// The counters of all pools.
pub type Counters = [PoolCounters; MAX_VFS];

/// What became of a frame for a pool, from bad to good.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Fate {
    /// The port missed it: there were no descriptors, and the queue does not drop.
    Missed,
    /// It was for the pool, and was dropped there.
    Dropped,
    /// It is in memory.
    Reached,
}

impl Nic {
    /// A frame of a pool reached one of its queues, or did not.
    pub(crate) fn count_received(
        &mut self,
        pool: u8,
        queue: Queue,
        dst: MacAddress,
        length: usize,
        source: Source,
        outcome: Result<(), Missed>,
    ) -> Fate {
        let counters = &mut self.state.counters[usize::from(pool)];
        match outcome {
            Ok(()) => {
                counters.rx_packets += 1;
                counters.rx_bytes += length as u64;
                if dst.is_group() {
                    counters.rx_broadcast += u64::from(dst.is_broadcast());
                    counters.rx_multicast += u64::from(!dst.is_broadcast());
                }
                self.count_vf_received(pool, dst, length, source);
                return Fate::Reached;
            }
            Err(Missed::Disabled) => counters.rx_disabled += 1,
            Err(Missed::Fault) => counters.dma_faults += 1,
            Err(Missed::NoDescriptors) => {
                counters.rx_no_descriptors += 1;
                return self.count_missed(queue);
            }
        }
        Fate::Dropped
    }

    fn count_vf_received(&mut self, pool: u8, dst: MacAddress, length: usize, source: Source) {
        self.count_vf(pool, length, (vf_stats::VFGPRC, vf_stats::VFGORC));
        if source != Source::Wire {
            self.count_vf(pool, length, (vf_stats::VFGPRLBC, vf_stats::VFGORLBC));
        }
        if dst.is_group()
            && !dst.is_broadcast()
            && let Some(vf) = self.vf_of(pool)
        {
            self.state.file.count_around(r::vf_block(vf) + vf_stats::VFMPRC, 1);
        }
    }

    /// A frame found no descriptors. A queue that drops (QDE, SRRCTL.DROP_EN) counts it itself; for one that would
    /// have the port wait it counts as missed by the port, which waits for nobody.
    fn count_missed(&mut self, queue: Queue) -> Fate {
        let block = rx_block(queue);
        let drops = self.state.file.get(r::QDE) & 1 << queue.get() != 0
            || self.state.file.get(block + rx::SRRCTL) & srrctl::DROP_EN != 0;
        self.state.file.count(r::RNBC, 1);
        if queue.pool() >= self.state.owners.vfs {
            self.state.interrupts.raise_other(&mut self.state.file, icr::RXO);
        }
        if drops {
            let dropped = self.state.file.get(block + rx::RQDPC).saturating_add(1).min(RQDPC_END);
            self.state.file.set(block + rx::RQDPC, dropped);
            return Fate::Dropped;
        }
        self.state.file.count(r::MPC, 1);
        Fate::Missed
    }

    /// A pool has sent a frame: to somebody here, to the wire, or both.
    pub(crate) fn count_sent(&mut self, pool: u8, dst: MacAddress, length: usize, local: bool, wire: bool) {
        let counters = &mut self.state.counters[usize::from(pool)];
        if dst.is_group() {
            counters.tx_broadcast += u64::from(dst.is_broadcast());
            counters.tx_multicast += u64::from(!dst.is_broadcast());
        }
        counters.tx_packets += 1;
        counters.tx_bytes += length as u64;
        counters.tx_unclaimed += u64::from(!local && !wire);
        self.count_vf(pool, length, (vf_stats::VFGPTC, vf_stats::VFGOTC));
        if local {
            self.count_vf(pool, length, (vf_stats::VFGPTLBC, vf_stats::VFGOTLBC));
        }
    }

    /// Counts a frame in a VF's packet and octet registers; octets include the frame check sequence.
    fn count_vf(&mut self, pool: u8, length: usize, (packets, octets): (u32, u32)) {
        if let Some(vf) = self.vf_of(pool) {
            self.state.file.count_around(r::vf_block(vf) + packets, 1);
            self.state.file.count_around(r::vf_block(vf) + octets, (length + FCS) as u32);
        }
    }

    /// The VF a pool belongs to, if it is not the PF's.
    fn vf_of(&self, pool: u8) -> Option<VfIndex> {
        VfIndex::new(pool).filter(|vf| vf.get() < self.state.owners.vfs)
    }
}
