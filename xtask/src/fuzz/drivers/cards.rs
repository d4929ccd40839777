//! Inputs of the cards, of the mailbox and of virtchnl: what a driver writes to registers, and its rings and messages. Each
//! input is a list of moves of its target (`fuzz/fuzz_targets`), whose fixture has memory of its own: addresses of rings and
//! packets become the fixture's.

use std::collections::{BTreeMap, BTreeSet};

use avf::admin::{self, AdminQueueDescriptor};
use avf::register as avf_register;
use avf::virtchnl::{EncodedMessageList, VirtchnlOpcode, VirtchnlRequest};
use i82576::bits::{ctrl, v2p};
use i82576::mailbox::{self, id};
use i82576::register::vf;
use i82576::window;

use super::moves::Moves;
use super::recording::{DriverRecording, RegisterAccess, number};

/// Writes of a doorbell, or of an AVF's register, that are moves. Later ones are traffic.
const WRITES: usize = 12;
/// Descriptors of a doorbell in a move.
const BURST: usize = 12;
/// Bytes of a transmit descriptor of an 82576.
const DESCRIPTOR: usize = 16;
/// Bytes of a packet's headers in a move.
const PACKET_HEAD: usize = 63;

/// Requests to an 82576's PF, in the order of the target `i82576_mailbox`.
const REQUESTS: [u32; 7] = [
    id::VF_RESET,
    id::SET_MAC_ADDR,
    id::SET_MULTICAST,
    id::SET_VLAN,
    id::SET_LPE,
    id::SET_PROMISC,
    id::PF_CONTROL,
];
/// Addresses of the rings and packets in the fixture of `i82576_guest`.
const RX_RING: u32 = 0x1_0000;
const TX_RING: u32 = 0x1_1000;
const PACKETS: u64 = 0x7_0000;
/// Distance of packets in the fixture of `i82576_guest`, and the unit in which a move names memory.
const PACKET_STRIDE: u64 = 0x100;
const MEMORY_UNIT: u64 = 16;
/// Addresses of transmit and receive rings in the fixture of `avf_guest`, and the distance of rings.
const AVF_TX_RINGS: u64 = 0x18_0000;
const AVF_RX_RINGS: u64 = 0x20_0000;
const AVF_RING: u64 = 0x4000;
/// Longest body of a message in a move of `avf_guest`.
const LONGEST_BODY: usize = 510;

/// Returns true if a recording is of an AVF's driver, which has a mailbox in memory.
fn is_avf(recording: &DriverRecording) -> bool {
    recording.accesses.iter().any(
        |access| matches!(access, RegisterAccess::Write(offset, ..) if *offset == avf_register::VF_ATQBAL),
    )
}

/// Makes inputs of the target `i82576_mailbox`: messages, acknowledgements and resets.
pub(super) fn i82576_mailbox(recording: &DriverRecording) -> Vec<Vec<u8>> {
    let mut moves = Moves::default();
    let mut words = [0; mailbox::WORDS];
    for access in recording.accesses.iter().filter(|_| !is_avf(recording)) {
        match access {
            RegisterAccess::Write(offset, value, _) => {
                let word = (offset.wrapping_sub(vf::VMBMEM) / 4) as usize;
                if let Some(place) = words.get_mut(word) {
                    *place = *value;
                } else if *offset == vf::CTRL && value & ctrl::RST != 0 {
                    moves.add(vec![5, 0]);
                } else if *offset == vf::V2PMAILBOX && value & v2p::REQ != 0 {
                    moves.add(mailbox_message(&std::mem::take(&mut words)));
                } else if *offset == vf::V2PMAILBOX {
                    moves.add(vec![4, *value as u8]);
                }
            }
            RegisterAccess::Read(vf::V2PMAILBOX) => moves.add(vec![5, 1]),
            RegisterAccess::Read(_) => {}
        }
    }
    moves.joined(&[0])
}

/// Returns the move that sends a mailbox message.
fn mailbox_message(words: &[u32; mailbox::WORDS]) -> Vec<u8> {
    let [first, rest @ ..] = words;
    let used = rest.iter().rposition(|word| *word != 0).map_or(0, |last| last + 1);
    let body: Vec<u8> = rest[..used].iter().flat_map(|word| word.to_le_bytes()).collect();
    match REQUESTS.iter().position(|request| *request == first & mailbox::ID_MASK) {
        Some(request) => {
            let info = (first >> mailbox::INFO_SHIFT) as u8;
            [&[0, request as u8, info, body.len() as u8], &body[..]].concat()
        }
        None => [&[3, rest[0] as u8][..], &first.to_le_bytes()].concat(),
    }
}

/// Makes inputs of the target `i82576_guest`: registers, and descriptors with the headers of their packets.
pub(super) fn i82576_guest(recording: &DriverRecording) -> Vec<Vec<u8>> {
    let mut moves = Moves::default();
    let mut doorbells: BTreeMap<u32, usize> = BTreeMap::new();
    for access in recording.accesses.iter().filter(|_| !is_avf(recording)) {
        let RegisterAccess::Write(offset, value, memory) = access else { continue };
        let Some((row, element)) = vf_register(*offset) else { continue };
        let is = |name: &str| window::TABLE[usize::from(row)].name == name;
        if is("TDT") {
            let count = doorbells.entry(*offset).or_default();
            *count += 1;
            if *count <= WRITES {
                packets(memory, &mut moves);
            }
            continue;
        }
        if is("RDT") {
            // Posts 15 descriptors: the kind is 8 of 14, and its high digit the number.
            moves.add(vec![0xf6]);
            continue;
        }
        let value = match window::TABLE[usize::from(row)].name {
            "RDBAL" => RX_RING,
            "TDBAL" => TX_RING,
            "RDBAH" | "TDBAH" => 0,
            _ => *value,
        };
        moves.add([&[3, row, element, 4][..], &value.to_le_bytes()].concat());
    }
    moves.joined(&[0])
}

/// Returns the row of a VF's register in the 82576's table, and the element.
fn vf_register(offset: u32) -> Option<(u8, u8)> {
    window::TABLE.iter().enumerate().find_map(|(row, register)| {
        let element = offset.checked_sub(register.offset)?;
        let is_element =
            element.is_multiple_of(register.stride) && element / register.stride < register.count;
        is_element.then_some((row as u8, (element / register.stride) as u8))
    })
}

/// Adds the moves that write the packets of a doorbell's descriptors, send them, and poll the card.
fn packets(memory: &BTreeMap<u64, Vec<u8>>, moves: &mut Moves) {
    let mut ring = Vec::new();
    for raw in memory.values().filter(|bytes| bytes.len() == DESCRIPTOR).take(BURST) {
        let mut raw = raw.clone();
        if let Some(head) = memory.get(&number(&raw, 0, 8)).filter(|head| head.len() > DESCRIPTOR) {
            let address = PACKETS + PACKET_STRIDE * (ring.len() as u64);
            let [low, high] = ((address - u64::from(RX_RING)) / MEMORY_UNIT).to_le_bytes()[..2] else {
                continue;
            };
            let head = &head[..head.len().min(PACKET_HEAD)];
            moves.add([&[4, low, high, head.len() as u8], head].concat());
            raw[..8].copy_from_slice(&address.to_le_bytes());
        }
        ring.push(raw);
    }
    if !ring.is_empty() {
        let descriptors = ring.iter().flat_map(|raw| [&[3, 0, 0, 0, 0, 0], &raw[..]].concat());
        moves.add([5, ring.len() as u8 - 1].into_iter().chain(descriptors).collect());
        moves.add(vec![13]);
    }
}

/// Makes inputs of the target `avf_guest`: registers and messages.
pub(super) fn avf_guest(recording: &DriverRecording) -> Vec<Vec<u8>> {
    let offsets: Vec<u32> = avf::table::rows().flat_map(|row| row.offsets()).collect();
    let mut moves = Moves::default();
    let mut writes: BTreeMap<u32, usize> = BTreeMap::new();
    for access in recording.accesses.iter().filter(|_| is_avf(recording)) {
        let RegisterAccess::Write(offset, value, memory) = access else { continue };
        if *offset == avf_register::VF_ATQT {
            messages(memory)
                .iter()
                .filter_map(|(op, body)| message_move(*op, body))
                .for_each(|one| moves.add(one));
        } else if !(avf_register::VF_ARQBAH..avf_register::VF_ATQT).contains(offset)
            && let Some(row) = offsets.iter().position(|register| register == offset)
            && *writes.entry(*offset).and_modify(|count| *count += 1).or_insert(1) <= WRITES
        {
            moves.add([&[0, row as u8][..], &value.to_le_bytes()].concat());
        }
    }
    moves.joined(&[0])
}

/// Makes inputs of the target `virtchnl`: each message once.
pub(super) fn virtchnl(recording: &DriverRecording) -> Vec<Vec<u8>> {
    let mut inputs = BTreeSet::new();
    for access in &recording.accesses {
        let RegisterAccess::Write(avf_register::VF_ATQT, _, memory) = access else { continue };
        for (op, body) in messages(memory) {
            inputs.extend(opcode(op).map(|op| [&[op], &body[..]].concat()));
        }
    }
    inputs.into_iter().collect()
}

/// Returns the messages that memory before a doorbell of an AVF's mailbox has: operation and body.
fn messages(memory: &BTreeMap<u64, Vec<u8>>) -> Vec<(u32, Vec<u8>)> {
    let descriptors = memory.values().filter_map(|raw| raw.as_slice().try_into().ok());
    let descriptors = descriptors.map(|raw: &[u8; admin::SIZE]| AdminQueueDescriptor::parse(raw));
    let sends = descriptors.filter(|descriptor| descriptor.opcode == admin::opcode::SEND_TO_PF);
    sends
        .map(|descriptor| {
            let body = memory.get(&descriptor.address).filter(|_| descriptor.length > 0);
            (descriptor.cookie_high, body.cloned().unwrap_or_default())
        })
        .collect()
}

/// Returns the index of an operation in the list of all.
fn opcode(number: u32) -> Option<u8> {
    VirtchnlOpcode::ALL.iter().position(|op| op.number() == number).map(|index| index as u8)
}

/// Returns the move of `avf_guest` that sends a message, whose VSI is the fixture's.
fn message_move(number: u32, body: &[u8]) -> Option<Vec<u8>> {
    let (mut body, has_vsi) = match VirtchnlRequest::decode(number, body) {
        Ok(VirtchnlRequest::ConfigureQueues(_, pairs)) => {
            let pairs: Vec<_> = pairs
                .iter()
                .map(|mut pair| {
                    (pair.tx.vsi, pair.rx.vsi) = (1, 1);
                    pair.tx.base = AVF_TX_RINGS + AVF_RING * u64::from(pair.tx.queue);
                    pair.rx.base = AVF_RX_RINGS + AVF_RING * u64::from(pair.rx.queue);
                    pair
                })
                .collect();
            (VirtchnlRequest::ConfigureQueues(1, EncodedMessageList::new(&pairs).list()).encode(), false)
        }
        Ok(VirtchnlRequest::MapVectors(maps)) => {
            let maps: Vec<_> = maps
                .iter()
                .map(|mut map| {
                    map.vsi = 1;
                    map
                })
                .collect();
            (VirtchnlRequest::MapVectors(EncodedMessageList::new(&maps).list()).encode(), false)
        }
        Ok(
            VirtchnlRequest::Version(_)
            | VirtchnlRequest::Resources(_)
            | VirtchnlRequest::Queues(_)
            | VirtchnlRequest::SetHashTypes(_),
        )
        | Err(_) => (body.to_vec(), false),
        Ok(_) => (body.to_vec(), true),
    };
    let op = opcode(number).filter(|_| body.len() <= LONGEST_BODY)?;
    body.resize(body.len().next_multiple_of(2), 0);
    Some([&[3, op, (body.len() / 2) as u8, u8::from(has_vsi)], &body[..]].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use i82576::register::{rx, tx};

    fn write(offset: u32, value: u32) -> RegisterAccess {
        RegisterAccess::Write(offset, value, BTreeMap::new())
    }

    fn recording(accesses: Vec<RegisterAccess>) -> DriverRecording {
        DriverRecording { accesses, ..DriverRecording::default() }
    }

    #[test]
    fn mailbox_message_of_a_driver_is_one_move() {
        let accesses = vec![
            write(vf::VMBMEM, id::SET_VLAN | 1 << mailbox::INFO_SHIFT),
            write(vf::VMBMEM + 4, 7),
            write(vf::V2PMAILBOX, v2p::REQ),
            RegisterAccess::Read(vf::V2PMAILBOX),
            RegisterAccess::Read(vf::V2PMAILBOX),
            write(vf::V2PMAILBOX, v2p::ACK),
        ];
        let ack = v2p::ACK as u8;
        assert_eq!(
            i82576_mailbox(&recording(accesses)),
            [[&[0, 0, 3, 1, 4, 7, 0, 0, 0][..], &[5, 1, 4, ack]].concat()]
        );
    }

    #[test]
    fn ring_and_packet_addresses_become_those_of_the_fixture() {
        let mut descriptor = [0xee; DESCRIPTOR];
        descriptor[..8].copy_from_slice(&0x5000_u64.to_le_bytes());
        let memory = BTreeMap::from([(0x5000, vec![0xaa; 64]), (0x9000, descriptor.to_vec())]);
        let accesses = vec![
            write(vf::TX_BLOCK + tx::TDBAL, 0x9000),
            RegisterAccess::Write(vf::TX_BLOCK + tx::TDT, 1, memory),
        ];
        let (row, _) = vf_register(vf::TX_BLOCK + tx::TDBAL).unwrap();
        let ring = [3, row, 0, 4, 0, 0x10, 1, 0];
        let packet = [&[4, 0, 0x60, 63][..], &[0xaa; 63]].concat();
        let send = [&[5, 0, 3, 0, 0, 0, 0, 0, 0, 0, 7, 0, 0, 0, 0, 0][..], &[0xee; 8], &[13]].concat();
        let input = [&[0][..], &ring, &packet, &send].concat();
        assert_eq!(i82576_guest(&recording(accesses)), [input]);
        assert_eq!(
            vf_register(vf::RX_BLOCK + vf::QUEUE_STRIDE + rx::RDT).map(|(_, element)| element),
            Some(1)
        );
    }

    #[test]
    fn virtchnl_message_of_a_driver_has_the_vsi_of_the_fixture() {
        let body = [2, 0, 5, 0, 1];
        let descriptor = AdminQueueDescriptor {
            opcode: admin::opcode::SEND_TO_PF,
            length: 5,
            cookie_high: VirtchnlOpcode::ConfigRssKey.number(),
            address: 0x100,
            ..AdminQueueDescriptor::default()
        };
        let memory = BTreeMap::from([(0x100, body.to_vec()), (0x200, descriptor.emit().to_vec())]);
        let doorbell = RegisterAccess::Write(avf_register::VF_ATQT, 1, memory);
        let recording = recording(vec![write(avf_register::VF_ATQBAL, 0x200), doorbell]);
        let op = opcode(descriptor.cookie_high).unwrap();
        assert_eq!(virtchnl(&recording), [[&[op][..], &body].concat()]);
        let own = u8::from(VirtchnlRequest::decode(descriptor.cookie_high, &body).is_ok());
        assert_eq!(avf_guest(&recording), [[&[0, 3, op, 3, own][..], &body, &[0]].concat()]);
    }
}
