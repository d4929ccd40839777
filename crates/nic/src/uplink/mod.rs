//! The wire side: the seam to whatever carries frames beyond the card, and the port's own counters for what
//! crosses it. Left out: obeying a pause, which is for the other side's buffers and ours are memory, and everything
//! below a frame.

use crate::file::RegisterFile;
use i82576::bits::rctl;
use i82576::ids::FCS;
use i82576::{MacAddress, register as r};

/// Frames in, frames out. A frame starts at its destination address and carries no frame check sequence.
pub trait Wire {
    /// Takes a frame; `false` if it was dropped.
    fn transmit(&mut self, frame: &[u8]) -> bool;

    /// Puts the next frame into `into` and answers its length; `None` if there is none. A frame longer than
    /// `into` is dropped, or cut to its length: more fits in there than the longest frame the card takes.
    fn receive(&mut self, into: &mut [u8]) -> Option<usize>;
}

/// No wire: what is sent is dropped, nothing comes.
#[derive(Debug, Clone, Copy, Default)]
pub struct Unplugged;

impl Wire for Unplugged {
    fn transmit(&mut self, _frame: &[u8]) -> bool {
        false
    }

    fn receive(&mut self, _into: &mut [u8]) -> Option<usize> {
        None
    }
}

/// Registers of one direction of the port.
struct PortCounters {
    packets: u32,
    total: u32,
    octets: u32,
    total_octets: u32,
    multicast: u32,
    broadcast: u32,
}

const RECEIVED: PortCounters = PortCounters {
    packets: r::GPRC,
    total: r::TPR,
    octets: r::GORCL,
    total_octets: r::TORL,
    multicast: r::MPRC,
    broadcast: r::BPRC,
};

const SENT: PortCounters = PortCounters {
    packets: r::GPTC,
    total: r::TPT,
    octets: r::GOTCL,
    total_octets: r::TOTL,
    multicast: r::MPTC,
    broadcast: r::BPTC,
};

impl PortCounters {
    fn count(&self, file: &mut RegisterFile, destination: MacAddress, length: usize) {
        let octets = (length + FCS) as u32;
        file.count(self.packets, 1);
        file.count(self.total, 1);
        file.count_wide(self.octets, octets);
        file.count_wide(self.total_octets, octets);
        if destination.is_broadcast() {
            file.count(self.broadcast, 1);
        } else if destination.is_group() {
            file.count(self.multicast, 1);
        }
    }
}

/// A good frame of `length` bytes came from the wire.
pub fn count_received(file: &mut RegisterFile, destination: MacAddress, length: usize) {
    RECEIVED.count(file, destination, length);
}

/// A frame of `length` bytes went to the wire.
pub fn count_sent(file: &mut RegisterFile, destination: MacAddress, length: usize) {
    SENT.count(file, destination, length);
}

/// Where pause frames go (IEEE 802.3, annex 31B).
const FLOW_CONTROL: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x01]);
/// The ether type of MAC control, and the operation that is a pause.
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
const PAUSE: [u8; 2] = [0, 1];

/// Whether a frame from the wire ends in the MAC: a MAC control frame for the port, which is counted, unless
/// RCTL.PMCF passes such frames on.
pub fn ends_here(file: &mut RegisterFile, frame: &[u8]) -> bool {
    let Some((head, [op @ .., q0, q1])) = frame
        .split_first_chunk::<14>()
        .and_then(|(head, rest)| rest.first_chunk::<4>().map(|rest| (head, rest)))
    else {
        return false;
    };
    if head[12..] != MAC_CONTROL || !is_the_ports(file, head) {
        return false;
    }
    let counter = match (*op == PAUSE, q0 | q1) {
        (false, _) => r::FCRUC,
        (true, 0) => r::XONRXC,
        (true, _) => r::XOFFRXC,
    };
    file.count(counter, 1);
    file.get(r::RCTL) & rctl::PMCF == 0
}

fn is_the_ports(file: &RegisterFile, frame: &[u8]) -> bool {
    let own = MacAddress::from_words(file.get(r::ral(0)), file.get(r::rah(0)));
    MacAddress::from_slice(frame).is_some_and(|to| to == FLOW_CONTROL || to == own)
}
