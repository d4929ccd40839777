//! The wire side: the seam to whatever carries frames beyond the card, and the port's own counters for what
//! crosses it (`tally`). Left out: obeying a pause, which is for the other side's buffers and ours are memory, and
//! everything below a frame.

mod tally;

use crate::file::RegisterFile;
use i82576::bits::{ctrl, rctl};
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

/// Whether the length field of a frame without tags says more than there is, if it has one.
pub fn is_truncated(frame: &[u8]) -> bool {
    let Some((head, payload)) = frame.split_first_chunk::<14>() else { return false };
    let length = u16::from_be_bytes([head[12], head[13]]);
    length <= LONGEST_PAYLOAD && usize::from(length) > payload.len()
}

/// The largest number that is a length and not a type (IEEE 802.3, 3.2.6).
const LONGEST_PAYLOAD: u16 = 1500;

/// Where pause frames go (IEEE 802.3, annex 31B).
const FLOW_CONTROL: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x01]);
/// The ether type of MAC control, and the operation that is a pause.
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
const PAUSE: [u8; 2] = [0, 1];

/// Whether a frame from the wire ends in the MAC. Without CTRL.RFCE no frame does; with it a MAC control frame for the
/// port is counted, and ends here if it is a pause and RCTL.DPF is set, or is none and RCTL.PMCF is clear (datasheet of
/// the I210, 3.7.5.2). All else goes to the filters.
pub fn ends_here(file: &mut RegisterFile, frame: &[u8]) -> bool {
    let Some((head, [op @ .., q0, q1])) = frame
        .split_first_chunk::<14>()
        .and_then(|(head, rest)| rest.first_chunk::<4>().map(|rest| (head, rest)))
    else {
        return false;
    };
    if head[12..] != MAC_CONTROL || file.get(r::CTRL) & ctrl::RFCE == 0 || !is_the_ports(file, head) {
        return false;
    }
    let (pause, control) = (*op == PAUSE, file.get(r::RCTL));
    let counter = match (pause, q0 | q1) {
        (false, _) => r::FCRUC,
        (true, 0) => r::XONRXC,
        (true, _) => r::XOFFRXC,
    };
    file.count(counter, 1);
    if pause { control & rctl::DPF != 0 } else { control & rctl::PMCF == 0 }
}

fn is_the_ports(file: &RegisterFile, frame: &[u8]) -> bool {
    let own = MacAddress::from_words(file.get(r::ral(0)), file.get(r::rah(0)));
    MacAddress::from_slice(frame).is_some_and(|to| to == FLOW_CONTROL || to == own)
}
