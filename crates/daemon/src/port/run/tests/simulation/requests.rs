//! Requests of hostile guests to the PF driver: valid in form, with the addresses, VLANs and lengths of others. A guest
//! without trust gets nothing by them that its policy does not grant: no address of another, no VLAN, no frame between two
//! others.

use super::families::configured_mac;
use super::hostile::HostileGuest;
use avf::virtchnl::VirtchnlOpcode;
use i82576::MacAddress;
use i82576::bits::v2p;
use i82576::mailbox::{INFO_SHIFT, WORDS, id, mac_filter};
use i82576::register::vf as r;

/// Operations of an AVF that state names on the wire.
const NAMING: [VirtchnlOpcode; 5] = [
    VirtchnlOpcode::AddEthAddr,
    VirtchnlOpcode::DelEthAddr,
    VirtchnlOpcode::AddVlan,
    VirtchnlOpcode::DelVlan,
    VirtchnlOpcode::ConfigPromiscuousMode,
];

/// Draws a VLAN: one that the administrator uses, or any.
fn vlan(random: &mut fastrand::Rng) -> u16 {
    [0, 7, 8, random.u16(..)][random.usize(0..4)]
}

/// Draws an address: that of any guest or station, a group's, or any. A guest that chooses its addresses would get that of another
/// guest which has its second one now: it asks for those of stations.
fn address(random: &mut fastrand::Rng, guest: HostileGuest) -> [u8; 6] {
    let any: [u8; 6] = std::array::from_fn(|_| random.u8(..));
    let all = guest.guests + guest.stations;
    let of = match (guest.has_free_mac, guest.stations) {
        (false, _) => random.u16(0..all),
        (true, 0) => guest.index,
        (true, _) => random.u16(guest.guests..all),
    };
    [configured_mac(of.into()).0, [0x33, 0x33, any[2], 0, 0, 1], [0xff; 6], any][random.usize(0..4)]
}

/// Returns the request of an 82576's VF for an address, as writes to its registers.
pub(super) fn mailbox_claim(mac: MacAddress) -> Vec<(u32, u32)> {
    let [low, high] = words_of(mac.0);
    ask(&[id::SET_MAC_ADDR, low, high])
}

/// Returns the virtchnl message of an AVF that adds an address to its own VSI: its operation, and its body.
pub(super) fn virtchnl_claim(vf: u16, mac: MacAddress) -> (u32, Vec<u8>) {
    let head = [vf + 1, 1].map(u16::to_le_bytes).concat();
    (VirtchnlOpcode::AddEthAddr as u32, [&head[..], &mac.0, &[0; 2]].concat())
}

/// Returns an address as two words of a mailbox.
pub(super) fn words_of(mac: [u8; 6]) -> [u32; 2] {
    let low = u32::from_le_bytes([mac[0], mac[1], mac[2], mac[3]]);
    [low, u16::from_le_bytes([mac[4], mac[5]]).into()]
}

/// Returns writes to registers that take the mailbox's buffer, fill it, and ask.
pub(super) fn ask(words: &[u32]) -> Vec<(u32, u32)> {
    let buffer = (r::VMBMEM..).step_by(4).zip(words.iter().copied());
    [(r::V2PMAILBOX, v2p::VFU)].into_iter().chain(buffer).chain([(r::V2PMAILBOX, v2p::REQ)]).collect()
}

/// Draws a request in the mailbox of an 82576's VF, as writes to its registers: it takes the buffer, fills it, and asks.
pub(super) fn mailbox(random: &mut fastrand::Rng, guest: HostileGuest) -> Vec<(u32, u32)> {
    let ids = [id::VF_RESET, id::SET_MAC_ADDR, id::SET_MULTICAST, id::SET_VLAN, id::SET_LPE, id::SET_PROMISC];
    let kind = ids[random.usize(0..ids.len())];
    let mut words = [0u32; WORDS];
    let info = [0, mac_filter::ADD, mac_filter::CLEAR, random.u32(0..32)][random.usize(0..4)];
    words[0] = kind | info << INFO_SHIFT;
    let mac = address(random, guest);
    match kind {
        id::SET_VLAN => words[1] = vlan(random).into(),
        id::SET_LPE => words[1] = [60, 1_518, 9_728, random.u32(..)][random.usize(0..4)],
        id::SET_MULTICAST => words[1..].fill_with(|| random.u32(..)),
        _ => words[1..3].copy_from_slice(&words_of(mac)),
    }
    ask(&words)
}

/// Draws a virtchnl message of an AVF: its operation, and its body.
pub(super) fn virtchnl(random: &mut fastrand::Rng, guest: HostileGuest) -> (u32, Vec<u8>) {
    if random.u32(0..3) == 0 {
        let operation = VirtchnlOpcode::ALL[random.usize(0..VirtchnlOpcode::ALL.len())];
        let body = (0..random.usize(0..80)).map(|_| random.u8(..) & [0, 1, 3, 0xff][random.usize(0..4)]);
        return (operation as u32, body.collect());
    }
    let operation = NAMING[random.usize(0..NAMING.len())];
    // The PF refuses lists above the quota, and lists with a broadcast address.
    let count = [1, random.u16(1..4), random.u16(1..40)][random.usize(0..3)];
    // The PF driver numbers the VSIs of its VFs from 1.
    let vsi = [guest.index, random.u16(0..guest.guests)][random.usize(0..2)] + 1;
    let mut body = vsi.to_le_bytes().to_vec();
    match operation {
        VirtchnlOpcode::ConfigPromiscuousMode => body.extend(random.u16(0..4).to_le_bytes()),
        VirtchnlOpcode::AddVlan | VirtchnlOpcode::DelVlan => {
            body.extend(count.to_le_bytes());
            body.extend((0..count).flat_map(|_| vlan(random).to_le_bytes()));
        }
        _ => {
            body.extend(count.to_le_bytes());
            body.extend(
                (0..count).flat_map(|_| [&address(random, guest)[..], &[random.u8(0..3), 0]].concat()),
            );
        }
    }
    (operation as u32, body)
}
