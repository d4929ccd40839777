//! The MAC: control frames that end here, and the port's statistics registers (82576 datasheet 8.18). The forwarding
//! plane tallies frames during a poll; the counts are added to the registers when the poll ends, because software reads
//! registers only between polls.
//!
//! The card does not obey pause frames. It counts them, and discards or passes them as RCTL says.

use crate::file::RegisterFile;
use i82576::bits::{ctrl, rctl};
use i82576::{MacAddress, register as r};
use plane::uplink::{GoodPackets, PacketOctetCounts, UplinkTally};

/// Counts frames from the wire that are too short or too long in the register `which` (RUC or ROC), and in RLEC.
pub(crate) fn count_length_errors(file: &mut RegisterFile, which: u32, frames: u32) {
    file.count(which, frames);
    file.count(r::RLEC, frames);
}

/// Adds the forwarding plane's counts of frames that have crossed the wire to the statistics registers.
pub(crate) fn settle(tally: &mut UplinkTally, file: &mut RegisterFile) {
    let tally = core::mem::take(tally);
    if tally.arrived.packets > 0 {
        pair(file, &tally.arrived, r::TPR, r::TORL);
        pair(file, &tally.received.all, r::GPRC, r::GORCL);
        good(file, &tally.received, r::MPRC, r::BPRC, r::PRC64);
        pair(file, &tally.reached, r::RPTHC, r::HGORCL);
        count_length_errors(file, r::ROC, tally.too_long);
        file.count(r::LENERRS, tally.truncated);
    }
    if tally.sent.all.packets > 0 {
        // Every frame to the wire comes from the host and is good, so total, good and host counters are equal.
        for (packets, octets) in [(r::GPTC, r::GOTCL), (r::TPT, r::TOTL), (r::HGPTC, r::HGOTCL)] {
            pair(file, &tally.sent.all, packets, octets);
        }
        good(file, &tally.sent, r::MPTC, r::BPTC, r::PTC64);
    }
}

fn pair(file: &mut RegisterFile, pair: &PacketOctetCounts, packets: u32, octets: u32) {
    file.count(packets, pair.packets);
    file.count_wide(octets, pair.octets);
}

/// Adds good frames to the port's counters: to the registers `multicast` and `broadcast`, and by size to those from
/// `sizes` on.
fn good(file: &mut RegisterFile, good: &GoodPackets, multicast: u32, broadcast: u32, sizes: u32) {
    file.count(multicast, good.multicast);
    file.count(broadcast, good.broadcast);
    (0..).zip(good.sizes).for_each(|(class, packets)| file.count(sizes + 4 * class, packets));
}

/// Destination of pause frames (IEEE 802.3, annex 31B).
const FLOW_CONTROL: MacAddress = MacAddress([0x01, 0x80, 0xc2, 0, 0, 0x01]);
/// Ether type of MAC control frames (IEEE 802.3, clause 31).
const MAC_CONTROL: [u8; 2] = [0x88, 0x08];
/// Operation code of a pause frame (IEEE 802.3, annex 31B).
const PAUSE: [u8; 2] = [0, 1];

/// Returns true if the MAC consumes a frame from the wire. Without CTRL.RFCE it consumes none. With it, MAC control frames
/// for the port are counted. RCTL.DPF discards pause frames, and RCTL.PMCF passes the other control frames (I210
/// datasheet 3.7.5.2). All other frames go to the filters.
pub(crate) fn ends_here(file: &mut RegisterFile, frame: &[u8]) -> bool {
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
    // A pause of zero quanta (XON) ends a pause.
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
