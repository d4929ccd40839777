//! A hostile guest beside two honest ones on a card of virtio network devices, whose model drivers play a conversation.
//!
//! The first six bytes of the input select the guests' features and ring formats. The rest is a list of moves, each a byte with the
//! kind and then its parameters: actions of a conversation, and writes to the first guest's memory, which may also change during
//! the card's accesses, or lose pages. Checked: no panic, a number of accesses in proportion to the frames that were counted,
//! honest guests without a fault, who get all their chains back, and receive each other's frames and the uplink's, none of which
//! is in the hostile guest's memory.
#![cfg_attr(not(test), no_main)]

use conversation::{ConversationAction, GuestConversation, VFS};
use driver::store;
use machine::{POSTED, RING};
use plane::PortIndex;
use softiov_fuzz::{FrameMark, FuzzerInput};
use units::MacAddress;
use virtio::net::NetHeader;
use virtio_nic::{RingStartParameters, VfRules};

#[path = "../../crates/virtio-nic/tests/device/bus.rs"]
mod bus;
#[path = "../../crates/virtio-nic/tests/device/conversation.rs"]
mod conversation;
#[path = "../../crates/virtio-nic/tests/device/driver.rs"]
mod driver;
#[path = "../../crates/virtio-nic/tests/device/machine.rs"]
mod machine;
#[path = "../../crates/virtio-nic/tests/device/packets.rs"]
mod packets;

/// Maximum number of accesses for a frame or a packet that is counted: the buffers of the longest packet, read three times, and
/// three bursts of receive buffers, each in as many places as a burst may have.
const MOST_ACCESSES: u64 = 1_500;
/// Number of frames that are counted for a poll without a frame: each ring is looked at.
const RINGS: u64 = 40;
/// Number of a station beyond the uplink.
const STATION: u8 = 9;

/// Returns the Ethernet address of VF `n`.
fn address(n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, n]
}

/// Returns the next action of the conversation, of a kind.
fn action(kind: u8, input: &mut FuzzerInput<'_>) -> Option<ConversationAction> {
    Some(match kind % 13 {
        0 | 1 => {
            let [vf, pair, to, kind, length, request, pieces, count] = input.array()?;
            ConversationAction::Send {
                vf,
                pair,
                to: to % 10,
                kind,
                length,
                request,
                pieces,
                count: count % 50,
            }
        }
        2 => {
            let [pair, kind] = input.array()?;
            ConversationAction::Malformed(0, pair, kind)
        }
        3 => {
            let [vf, pair, shape, count] = input.array()?;
            // An honest driver posts buffers with room for a header.
            let shape = if vf.is_multiple_of(VFS) { shape } else { shape % 10 };
            ConversationAction::Post { vf, pair, shape, count: count % 60 }
        }
        4 => {
            let [vf, low, high] = input.array()?;
            ConversationAction::Rules(vf, u16::from_le_bytes([low, high]))
        }
        5 => {
            let [vf, rate] = input.array()?;
            ConversationAction::Rate(vf, u32::from(rate) * 100)
        }
        6 => {
            let [vf, ring, change] = input.array()?;
            ConversationAction::Ring(vf, ring, change)
        }
        7 => {
            let [vf, ring, wish] = input.array()?;
            ConversationAction::Interrupts(vf, ring, wish)
        }
        8 => {
            let [to, kind, length] = input.array()?;
            ConversationAction::Arrive(to % 10, kind, length)
        }
        9 => ConversationAction::Mirror(kind & 0x80 != 0),
        10 => ConversationAction::Collect,
        _ => {
            let [later, budget] = input.array()?;
            ConversationAction::Poll(u64::from(later) * 1_000, budget % 70)
        }
    })
}

/// Lets the hostile guest change its memory or its rings. Returns `None` at the end of the input.
fn attack(conversation: &mut GuestConversation, kind: u8, input: &mut FuzzerInput<'_>) -> Option<()> {
    let machine = &mut conversation.machine;
    let rings = u64::from(2 * machine.pairs(0));
    match kind % 6 {
        // A number in a ring.
        0 | 1 => {
            let [ring, low, high, first, second] = input.array()?;
            let offset = u64::from(u16::from_le_bytes([low, high])) % 0x3400;
            let place = RING * (u64::from(ring) % rings) + offset;
            store(&mut machine.bus.memories[0], place, &[first, second]);
        }
        // A descriptor.
        2 => {
            let [ring, slot, address, length, flags, next] = input.array()?;
            let place = RING * (u64::from(ring) % rings) + 16 * u64::from(slot & 127);
            let memory = &mut machine.bus.memories[0];
            let address =
                if address & 1 == 0 { u64::from(address) << 8 } else { POSTED + u64::from(address) };
            store(memory, place, &address.to_le_bytes());
            store(memory, place + 8, &(u32::from(length) * 9).to_le_bytes());
            store(memory, place + 12, &[flags, 0, next, flags & 0x80]);
        }
        // A table of descriptors at any place of its memory, if the ring has room for it.
        3 => {
            let [ring, low, high, count] = input.array()?;
            let ring = &mut machine.guests[0].rings[(u64::from(ring) % rings) as usize];
            if ring.outstanding() == 0 {
                let place = u64::from(u16::from_le_bytes([low, high])) << 4;
                ring.add_table(&mut machine.bus.memories[0], place, count.into());
            }
        }
        4 => {
            let [ring, size, packed, base, end] = input.array()?;
            let (ring, size, packed) = (u32::from(ring % 40), u32::from(size), packed & 1 != 0);
            let addresses = machine.guests[0].rings[ring as usize % rings as usize].addresses();
            let position = (base & 1 != 0).then_some(u32::from(base) | u32::from(end) << 8);
            let start = RingStartParameters {
                ring,
                size,
                packed,
                enabled: true,
                position,
                has_run_elsewhere: base & 2 != 0,
                addresses,
                memory: 0,
            };
            let _ = machine.nic.start_ring(0, &start, &mut machine.bus);
        }
        _ => {
            let [page, pages, after, lasting, seed] = input.array()?;
            let hole = u64::from(page) << 14;
            machine.bus.holes = vec![(0, hole..hole + (u64::from(pages % 8) << 12))];
            (machine.bus.holes_after, machine.bus.holes_last) = (after.into(), lasting.into());
            machine.bus.turmoil = (seed != 0).then_some((0, 0..0x9_0000, seed.into()));
        }
    }
    machine.nic.kick(0, u32::from(kind >> 4));
    Some(())
}

/// Returns the number of frames and packets that all counters have.
fn counted(conversation: &mut GuestConversation) -> u64 {
    let count = |vf: u8| {
        let machine = &conversation.machine;
        let port = machine.plane.ledger.total(PortIndex::of_field(vf.into()));
        let device = machine.nic.counters(vf).expect("the VF exists");
        port.all().sum::<u64>() - port.rx_bytes - port.tx_bytes + device.faults
    };
    (0..VFS).map(count).sum()
}

/// Gives each VF its own address only, and lifts the administrator's other rules, by which the hostile guest may get frames of
/// others.
fn set_plain_rules(conversation: &mut GuestConversation) {
    for vf in 0..VFS {
        let rules = VfRules { addresses: vec![MacAddress(address(vf))], ..VfRules::default() };
        conversation.machine.nic.set_rules(vf, rules);
    }
    conversation.perform(&ConversationAction::Mirror(false));
}

/// Starts the honest drivers again, and sends marked frames to them, from each other and from the uplink. Checks that they get
/// exactly these, and that the hostile guest, whose rings are in any state, gets none.
fn exchange(conversation: &mut GuestConversation, mark: FrameMark) {
    for vf in 1..VFS {
        conversation.perform(&ConversationAction::Ring(vf, 0, 6));
        for pair in 0..conversation.machine.pairs(vf) {
            conversation.perform(&ConversationAction::Post { vf, pair, shape: 2, count: 3 });
        }
    }
    conversation.frames.clear();
    let mut sent = [(1, 2), (STATION, 2), (2, 1), (STATION, 1)].map(|(from, to)| {
        let frame = mark.frame(MacAddress(address(to)), MacAddress(address(from)));
        if from == STATION {
            conversation.machine.wire.arriving.push_back(frame.clone());
        } else {
            let chain = conversation.machine.place(from, NetHeader::default(), &frame, &[]);
            assert!(conversation.machine.make_available(from, 1, &chain));
        }
        frame
    });
    assert_eq!(conversation.end(), 0, "an honest guest waits for its chains");
    let frames = conversation.frames.iter().flatten();
    let mut received: Vec<_> = frames.map(|(_, bytes, _)| bytes.clone()).collect();
    sent.sort();
    received.sort();
    assert!(received == sent, "the honest guests have {} frames", received.len());
    let found = mark.position(&conversation.machine.bus.memories[0]);
    assert_eq!(found, None, "the hostile guest has a neighbour's frame in its memory");
}

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(data: &[u8]) {
    let (mut input, mark) = (FuzzerInput(data), FrameMark::of(data));
    let [a, b, c, d, e, f] = input.array().unwrap_or_default();
    let mut conversation = GuestConversation::new([[a, b], [c, d], [e, f]].map(u16::from_le_bytes));
    conversation.first_honest = 1;
    while let Some([kind]) = input.array() {
        let before = counted(&mut conversation);
        conversation.machine.bus.accesses = 0;
        let moved = if kind < 0x60 {
            attack(&mut conversation, kind, &mut input)
        } else {
            action(kind, &mut input).map(|action| conversation.perform(&action))
        };
        if moved.is_none() {
            break;
        }
        let (accesses, counted) = (conversation.machine.bus.accesses, counted(&mut conversation) - before);
        assert!(
            accesses as u64 <= MOST_ACCESSES * (counted + RINGS),
            "{accesses} accesses, {counted} frames"
        );
    }
    conversation.machine.bus.turmoil = None;
    set_plain_rules(&mut conversation);
    assert_eq!(conversation.end(), 0, "an honest guest waits for its chains");
    exchange(&mut conversation, mark);
    for vf in 1..VFS {
        let faults = conversation.machine.nic.counters(vf).expect("the VF exists").faults;
        assert_eq!((faults, conversation.machine.stray_byte(vf)), (0, None), "VF {vf}");
    }
}
