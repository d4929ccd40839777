//! The wire side: the seam to whatever carries frames beyond the card, and the port's own counters for what
//! crosses it (`tally`). Left out: obeying a pause, which is for the other side's buffers and ours are memory, and everything
//! below a frame.

mod tally;

use crate::file::RegisterFile;
use i82576::bits::rctl;
use i82576::{MacAddress, register as r};
pub(crate) use tally::Tally;

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

/// What came from the wire is shorter (RUC) or longer (ROC) than a frame may be.
pub(crate) fn count_length_error(file: &mut RegisterFile, which: u32) {
    file.count(which, 1);
    file.count(r::RLEC, 1);
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
