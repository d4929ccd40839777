//! What crosses the uplink: frames are tallied during a poll, and the family takes the tally at its end, for its counters.
//! Left out: errors that only cables make.

use units::{FCS, MacAddress};

/// Packets and their octets, frame check sequence included.
#[derive(Debug, Default, Clone, Copy)]
pub struct Pair {
    /// Packets.
    pub packets: u32,
    /// Octets.
    pub octets: u32,
}

impl Pair {
    #[inline]
    fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += (length + FCS) as u32;
    }
}

/// Good packets of one direction.
#[derive(Debug, Default, Clone, Copy)]
pub struct Good {
    /// All of them.
    pub all: Pair,
    /// Multicast ones.
    pub multicast: u32,
    /// Broadcast ones.
    pub broadcast: u32,
    /// By size: up to 64 octets, 127, 255, 511, 1023, and more.
    pub sizes: [u32; 6],
}

impl Good {
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

/// Which of the six counters by size takes a frame of `bytes`, frame check sequence included.
#[inline]
fn size_class(bytes: usize) -> usize {
    match bytes {
        ..65 => 0,
        65..1024 => bytes.ilog2() as usize - 5,
        _ => 5,
    }
}

/// What crossed the uplink in one poll. A poll has a budget, so that 32 bits are plenty.
#[derive(Debug, Default, Clone, Copy)]
pub struct Tally {
    /// All that came.
    pub arrived: Pair,
    /// Good frames that passed the filters.
    pub received: Good,
    /// Those of them that found room, in a port's buffers or where they wait for that.
    pub reached: Pair,
    /// Frames that left.
    pub sent: Good,
    /// Frames from the uplink that were too long for every port they were for.
    pub too_long: u32,
    /// Frames that came and whose length field said more than there was.
    pub truncated: u32,
}

impl Tally {
    /// Something of `length` bytes came.
    #[inline]
    pub fn arrived(&mut self, length: usize) {
        self.arrived.add(length);
    }

    /// A good frame passed the filters; it `reached` a port or a place where it waits, or found no room there.
    #[inline]
    pub(crate) fn received(&mut self, destination: MacAddress, length: usize, reached: bool) {
        self.received.add(destination, length);
        if reached {
            self.reached.add(length);
        }
    }

    /// A frame left.
    #[inline]
    pub(crate) fn sent(&mut self, destination: MacAddress, length: usize) {
        self.sent.add(destination, length);
    }
}
