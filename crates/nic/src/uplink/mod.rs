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
    octets: u32,
    multicast: u32,
    broadcast: u32,
    /// The first of six, by size.
    sizes: u32,
}

const RECEIVED: PortCounters = PortCounters {
    packets: r::GPRC,
    octets: r::GORCL,
    multicast: r::MPRC,
    broadcast: r::BPRC,
    sizes: r::PRC64,
};

const SENT: PortCounters = PortCounters {
    packets: r::GPTC,
    octets: r::GOTCL,
    multicast: r::MPTC,
    broadcast: r::BPTC,
    sizes: r::PTC64,
};

impl PortCounters {
    fn count(&self, file: &mut RegisterFile, destination: MacAddress, length: usize) {
        count_pair(file, (self.packets, self.octets), length);
        file.count(self.sizes + 4 * size_class(length + FCS), 1);
        if destination.is_broadcast() {
            file.count(self.broadcast, 1);
        } else if destination.is_group() {
            file.count(self.multicast, 1);
        }
    }
}

/// Counts a frame of `length` bytes in a register of packets and in a pair of octets, which include the frame
/// check sequence.
fn count_pair(file: &mut RegisterFile, (packets, octets): (u32, u32), length: usize) {
    file.count(packets, 1);
    file.count_wide(octets, (length + FCS) as u32);
}

/// Which of the six counters by size takes a frame of `bytes`, frame check sequence included.
fn size_class(bytes: usize) -> u32 {
    [65, 128, 256, 512, 1024].iter().map(|end| u32::from(bytes >= *end)).sum()
}

/// Something of `length` bytes came from the wire.
pub fn count_arrived(file: &mut RegisterFile, length: usize) {
    count_pair(file, (r::TPR, r::TORL), length);
}

/// What came is shorter (RUC) or longer (ROC) than a frame may be.
pub fn count_length_error(file: &mut RegisterFile, which: u32) {
    file.count(which, 1);
    file.count(r::RLEC, 1);
}

/// A good frame of `length` bytes passed the filters; `reached` memory, or found no room there.
pub fn count_received(file: &mut RegisterFile, destination: MacAddress, length: usize, reached: bool) {
    RECEIVED.count(file, destination, length);
    if reached {
        count_pair(file, (r::RPTHC, r::HGORCL), length);
    }
}

/// A frame of `length` bytes went to the wire. All that goes there is the host's.
pub fn count_sent(file: &mut RegisterFile, destination: MacAddress, length: usize) {
    SENT.count(file, destination, length);
    count_pair(file, (r::TPT, r::TOTL), length);
    count_pair(file, (r::HGPTC, r::HGOTCL), length);
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
