//! Counts frames that cross the uplink. The device takes these counts at the end of a poll, for its own counters.

use units::{FCS, MacAddress};

/// Number of packets and of their octets, frame check sequence included.
#[derive(Debug, Default, Clone, Copy)]
pub struct PacketOctetCounts {
    /// Number of counted packets in one direction.
    pub packets: u32,
    /// Number of octets in the counted packets, frame check sequence included.
    pub octets: u32,
}

impl PacketOctetCounts {
    #[inline]
    fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += octets(length);
    }
}

/// Returns the number of octets of a frame with its frame check sequence. It fits 32 bits, since no frame has 4 GB.
#[inline]
fn octets(length: usize) -> u32 {
    let [a, b, c, d, ..] = (length + FCS).to_le_bytes();
    u32::from_le_bytes([a, b, c, d])
}

/// Counts of good packets in one direction.
#[derive(Debug, Default, Clone, Copy)]
pub struct GoodPackets {
    /// Number of all good packets in this direction.
    pub all: PacketOctetCounts,
    /// Number of good multicast packets in this direction.
    pub multicast: u32,
    /// Number of good broadcast packets in this direction.
    pub broadcast: u32,
    /// Numbers of good packets by size: up to 64 octets, 127, 255, 511, 1023, and more.
    pub sizes: [u32; 6],
}

impl GoodPackets {
    #[inline]
    fn add(&mut self, destination: MacAddress, length: usize) {
        self.all.add(length);
        self.sizes[size_class(length + FCS)] += 1;
        if destination.is_group() {
            self.broadcast += u32::from(destination.is_broadcast());
            self.multicast += u32::from(!destination.is_broadcast());
        }
    }
}

/// Returns the index of the size counter for a frame of `bytes`, frame check sequence included.
#[inline]
fn size_class(bytes: usize) -> usize {
    match bytes {
        ..65 => 0,
        65..1024 => bytes.ilog2() as usize - 5,
        _ => 5,
    }
}

/// Counts of the frames that crossed the uplink in one poll. A poll has a budget, so 32 bits cannot overflow.
#[derive(Debug, Default, Clone, Copy)]
pub struct UplinkTally {
    /// Number of frames that arrived at the uplink.
    pub arrived: PacketOctetCounts,
    /// Counts of good frames from the uplink that passed the filters.
    pub received: GoodPackets,
    /// Number of good frames from the uplink that found room in a port's buffers, or wait for room.
    pub reached: PacketOctetCounts,
    /// Counts of frames that were sent by the uplink.
    pub sent: GoodPackets,
    /// Number of frames from the uplink that were too long for all their ports.
    pub too_long: u32,
    /// Number of frames from the uplink whose length field exceeded the frame.
    pub truncated: u32,
}

impl UplinkTally {
    /// Counts a frame of `length` bytes that arrived at the uplink.
    #[inline]
    pub fn arrived(&mut self, length: usize) {
        self.arrived.add(length);
    }

    /// Counts a good frame that passed the filters. `reached` is true if the frame is in a port's buffers or waits for
    /// room, false if it found no room.
    #[inline]
    pub(crate) fn received(&mut self, destination: MacAddress, length: usize, reached: bool) {
        self.received.add(destination, length);
        if reached {
            self.reached.add(length);
        }
    }

    /// Counts a frame that was sent by the uplink.
    #[inline]
    pub(crate) fn sent(&mut self, destination: MacAddress, length: usize) {
        self.sent.add(destination, length);
    }
}
