//! The port's own counters of what crosses the wire (datasheet 8.18). Frames are tallied during a poll and
//! added to the registers at its end: software reads between polls. Left out: errors that only cables make.

use crate::file::RegisterFile;
use i82576::ids::FCS;
use i82576::{MacAddress, register as r};

/// Packets and their octets, frame check sequence included.
#[derive(Debug, Default, Clone, Copy)]
struct Pair {
    packets: u32,
    octets: u32,
}

impl Pair {
    fn add(&mut self, length: usize) {
        self.packets += 1;
        self.octets += (length + FCS) as u32;
    }

    fn settle(&self, file: &mut RegisterFile, packets: u32, octets: u32) {
        file.count(packets, self.packets);
        file.count_wide(octets, self.octets);
    }
}

/// Good packets of one direction.
#[derive(Debug, Default, Clone, Copy)]
struct Good {
    all: Pair,
    multicast: u32,
    broadcast: u32,
    sizes: [u32; 6],
}

impl Good {
    fn add(&mut self, destination: MacAddress, length: usize) {
        self.all.add(length);
        self.sizes[size_class(length + FCS)] += 1;
        if destination.is_group() {
            self.broadcast += u32::from(destination.is_broadcast());
            self.multicast += u32::from(!destination.is_broadcast());
        }
    }

    /// Adds to the registers, of which those by size begin at `sizes`.
    fn settle(&self, file: &mut RegisterFile, multicast: u32, broadcast: u32, sizes: u32) {
        file.count(multicast, self.multicast);
        file.count(broadcast, self.broadcast);
        (0..).zip(self.sizes).for_each(|(class, packets)| file.count(sizes + 4 * class, packets));
    }
}

/// Which of the six counters by size takes a frame of `bytes`, frame check sequence included.
fn size_class(bytes: usize) -> usize {
    match bytes {
        ..65 => 0,
        65..1024 => bytes.ilog2() as usize - 5,
        _ => 5,
    }
}

/// What crossed the wire in one poll. A poll has a budget, so that 32 bits are plenty.
#[derive(Debug, Default, Clone, Copy)]
pub(crate) struct Tally {
    arrived: Pair,
    received: Good,
    reached: Pair,
    sent: Good,
}

impl Tally {
    /// Something of `length` bytes came from the wire.
    pub(crate) fn arrived(&mut self, length: usize) {
        self.arrived.add(length);
    }

    /// A good frame passed the filters; it `reached` memory, or found no room there.
    pub(crate) fn received(&mut self, destination: MacAddress, length: usize, reached: bool) {
        self.received.add(destination, length);
        if reached {
            self.reached.add(length);
        }
    }

    /// A frame went to the wire.
    pub(crate) fn sent(&mut self, destination: MacAddress, length: usize) {
        self.sent.add(destination, length);
    }

    /// Adds everything to the registers.
    pub(crate) fn settle(&mut self, file: &mut RegisterFile) {
        let tally = core::mem::take(self);
        if tally.arrived.packets > 0 {
            tally.arrived.settle(file, r::TPR, r::TORL);
            tally.received.all.settle(file, r::GPRC, r::GORCL);
            tally.received.settle(file, r::MPRC, r::BPRC, r::PRC64);
            tally.reached.settle(file, r::RPTHC, r::HGORCL);
        }
        if tally.sent.all.packets > 0 {
            // All that goes to the wire is the host's, and good.
            for (packets, octets) in [(r::GPTC, r::GOTCL), (r::TPT, r::TOTL), (r::HGPTC, r::HGOTCL)] {
                tally.sent.all.settle(file, packets, octets);
            }
            tally.sent.settle(file, r::MPTC, r::BPTC, r::PTC64);
        }
    }
}
