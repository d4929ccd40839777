//! Traffic counters of each port: 64 bits wide, cleared only by their owner. The plane tallies frames while it works, and adds
//! them to the counters at the end of a visit or a poll. A family maps them to the registers of its drivers.

use crate::contents::GuardCounts;
use crate::{PortIndex, PortSet};
use serde::{Deserialize, Serialize};

/// Counters of a port's traffic and losses.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "PoolCounters")]
pub struct PortCounters {
    /// Number of frames received into the port.
    pub rx_packets: u64,
    /// Number of bytes of the frames received into the port, frame check sequence excluded.
    pub rx_bytes: u64,
    /// Number of multicast frames received into the port.
    pub rx_multicast: u64,
    /// Number of broadcast frames received into the port.
    pub rx_broadcast: u64,
    /// Number of frames for the port that found too few descriptors.
    pub rx_no_descriptors: u64,
    /// Number of frames lost because the port's queue was not set up, or was stopped while they waited for it.
    pub rx_disabled: u64,
    /// Number of frames for the port that storm control dropped.
    pub rx_storm: u64,
    /// Number of frames sent by the port that were switched or put on the uplink.
    pub tx_packets: u64,
    /// Number of bytes of the frames sent by the port, frame check sequence excluded.
    pub tx_bytes: u64,
    /// Number of multicast frames sent by the port.
    pub tx_multicast: u64,
    /// Number of broadcast frames sent by the port.
    pub tx_broadcast: u64,
    /// Number of malformed packets of the port, dropped for their descriptors, lengths or offload requests.
    pub tx_invalid: u64,
    /// Number of frames of the port dropped by a check of the sender: for an address or VLAN that is not the port's, or
    /// as link-control frames.
    pub tx_blocked: u64,
    /// Number of frames of the port dropped for an address or VLAN that is not the port's.
    pub tx_spoofed: u64,
    /// Number of link-control frames of the port that were dropped: pause, spanning tree and the like.
    pub tx_link_control: u64,
    /// Number of frames of the port that no other port and no uplink received.
    pub tx_unclaimed: u64,
    /// Number of memory requests of the port that the bus to the guest's memory refused.
    pub dma_faults: u64,
}

impl PortCounters {
    /// Iterates over the values of all counters of a port.
    pub fn all(&self) -> impl Iterator<Item = u64> {
        let Self { rx_packets, rx_bytes, rx_multicast, rx_broadcast, .. } = *self;
        let Self { rx_no_descriptors, rx_disabled, rx_storm, tx_packets, tx_bytes, .. } = *self;
        let Self { tx_multicast, tx_broadcast, tx_invalid, tx_blocked, tx_spoofed, .. } = *self;
        let Self { tx_link_control, tx_unclaimed, dma_faults, .. } = *self;
        let received =
            [rx_packets, rx_bytes, rx_multicast, rx_broadcast, rx_no_descriptors, rx_disabled, rx_storm];
        let sent = [tx_packets, tx_bytes, tx_multicast, tx_broadcast, tx_invalid, tx_blocked, tx_spoofed];
        received.into_iter().chain(sent).chain([tx_link_control, tx_unclaimed, dma_faults])
    }

    fn add_received(&mut self, traffic: &UncountedTraffic) {
        let TrafficSum { packets, bytes } = traffic.all();
        self.rx_packets += packets;
        self.rx_bytes += bytes;
        self.rx_multicast += traffic.multicast;
        self.rx_broadcast += traffic.broadcast;
    }

    fn add_sent(&mut self, traffic: &UncountedTraffic) {
        let TrafficSum { packets, bytes } = traffic.all();
        self.tx_packets += packets;
        self.tx_bytes += bytes;
        self.tx_multicast += traffic.multicast;
        self.tx_broadcast += traffic.broadcast;
    }
}

impl core::ops::Add for PortCounters {
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

/// Number of frames and of their bytes, frame check sequence excluded.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TrafficSum {
    /// Number of counted frames.
    pub packets: u64,
    /// Number of bytes in the counted frames, frame check sequence excluded.
    pub bytes: u64,
}

/// Frames that a port has sent or received since they were last added to the port's counters.
#[derive(Debug, Clone, Copy, Default)]
pub struct UncountedTraffic {
    /// Sums of the port's frames: those exchanged with the uplink only, and those exchanged with other ports.
    sums: [TrafficSum; 2],
    /// Number of multicast frames that the port has sent or received.
    pub multicast: u64,
    /// Number of broadcast frames that the port has sent or received.
    pub broadcast: u64,
}

impl UncountedTraffic {
    /// Counts a frame of `length` bytes. `local` is true if another port sent or received it.
    #[inline]
    pub(crate) fn add(&mut self, local: bool, length: usize) {
        let sum = &mut self.sums[usize::from(local)];
        sum.packets += 1;
        sum.bytes += length as u64;
    }

    /// Counts unicast frames. `local` is true if another port sent or received them.
    #[inline]
    pub(crate) fn add_run(&mut self, local: bool, packets: u64, bytes: u64) {
        let sum = &mut self.sums[usize::from(local)];
        sum.packets += packets;
        sum.bytes += bytes;
    }

    /// Counts a frame to a group of stations, in addition to [`UncountedTraffic::add`].
    #[cold]
    pub(crate) fn add_group(&mut self, broadcast: bool) {
        self.broadcast += u64::from(broadcast);
        self.multicast += u64::from(!broadcast);
    }

    /// Returns the sum of the frames exchanged with other ports of the plane.
    #[must_use]
    pub fn local(&self) -> TrafficSum {
        self.sums[1]
    }

    /// Returns the sum of the port's frames, to and from the uplink and other ports.
    #[must_use]
    pub fn all(&self) -> TrafficSum {
        let [uplink, local] = self.sums;
        TrafficSum { packets: uplink.packets + local.packets, bytes: uplink.bytes + local.bytes }
    }
}

/// Counters of all ports, and the traffic that is not yet added to these counters.
#[derive(Debug, Clone)]
pub struct TrafficLedger<const N: usize> {
    /// Counters of each port.
    pub counters: [PortCounters; N],
    /// Numbers of each port's frames that guards have dropped.
    guarded: [GuardCounts; N],
    received: [UncountedTraffic; N],
    sent: [UncountedTraffic; N],
}

impl<const N: usize> TrafficLedger<N> {
    pub(crate) fn new(counters: [PortCounters; N]) -> Self {
        let none = [UncountedTraffic::default(); N];
        Self { counters, guarded: [GuardCounts::default(); N], received: none, sent: none }
    }

    /// Returns the counters of a port.
    #[inline]
    pub fn of(&mut self, port: PortIndex) -> &mut PortCounters {
        &mut self.counters[port.index::<N>()]
    }

    /// Returns the numbers of a port's frames that guards have dropped.
    #[must_use]
    pub fn guarded_frames(&self, port: PortIndex) -> GuardCounts {
        self.guarded[port.index::<N>()]
    }

    /// Returns the numbers of a port's frames that guards have dropped, to change them.
    #[cold]
    pub fn guarded(&mut self, port: PortIndex) -> &mut GuardCounts {
        &mut self.guarded[port.index::<N>()]
    }

    #[inline]
    pub(crate) fn received(&mut self, port: PortIndex) -> &mut UncountedTraffic {
        &mut self.received[port.index::<N>()]
    }

    #[inline]
    pub(crate) fn sent(&mut self, port: PortIndex) -> &mut UncountedTraffic {
        &mut self.sent[port.index::<N>()]
    }

    /// Returns the ports that received a frame since [`TrafficLedger::settle_received`].
    #[must_use]
    pub fn reached(&self) -> PortSet {
        let some = |traffic: &UncountedTraffic| traffic.all().packets > 0;
        PortSet::new(self.received.iter().rev().fold(0, |set, traffic| set << 1 | u64::from(some(traffic))))
    }

    /// Returns a port's counters with the traffic that is not yet added to them.
    #[must_use]
    pub fn total(&self, port: PortIndex) -> PortCounters {
        let at = port.index::<N>();
        let mut counters = self.counters[at];
        counters.add_received(&self.received[at]);
        counters.add_sent(&self.sent[at]);
        counters
    }

    /// Takes all counters of a port, and leaves them at zero.
    pub fn take(&mut self, port: PortIndex) -> PortCounters {
        self.settle_received(port);
        self.settle_sent(port);
        core::mem::take(self.of(port))
    }

    /// Adds the frames that a port has received to the port's counters, and returns the added traffic.
    pub fn settle_received(&mut self, port: PortIndex) -> UncountedTraffic {
        let traffic = core::mem::take(&mut self.received[port.index::<N>()]);
        self.of(port).add_received(&traffic);
        traffic
    }

    /// Adds the frames that a port has sent to the port's counters, and returns the added traffic.
    pub fn settle_sent(&mut self, port: PortIndex) -> UncountedTraffic {
        let traffic = core::mem::take(&mut self.sent[port.index::<N>()]);
        self.of(port).add_sent(&traffic);
        traffic
    }
}
