//! Tests that a card that sends frames in bursts and one that sends each frame alone cause the same frames, chains,
//! interrupts and counters.

use crate::conversation::{ConversationAction, GuestConversation, VFS};
use crate::driver::ReturnedChain;
use crate::machine::{POSTED, Received};
use plane::PortIndex;
use plane::ledger::PortCounters;
use proptest::prelude::{Strategy, any, prop, prop_oneof, proptest};
use units::{MacAddress, Time, WorkCost};
use virtio_nic::DeviceCounters;

/// State of a card that guests, administrator and uplink see.
#[derive(Debug, Clone, PartialEq)]
struct VisibleCardState {
    ports: Vec<PortCounters>,
    devices: Vec<DeviceCounters>,
    calls: Vec<(u8, u16)>,
    sent: Vec<Vec<u8>>,
    due: Option<Time>,
    addresses: Vec<Option<MacAddress>>,
    more: bool,
    frames: Vec<Vec<Received>>,
    finished: Vec<Vec<ReturnedChain>>,
}

impl GuestConversation {
    /// Returns the card's state that changed since the last call, and all counters.
    fn seen(&mut self) -> VisibleCardState {
        let Self { machine, more, frames, finished, .. } = self;
        let ports = (0..VFS).map(|vf| machine.plane.ledger.total(PortIndex::of_field(vf.into())));
        VisibleCardState {
            ports: ports.collect(),
            devices: (0..VFS).map(|vf| *machine.nic.counters(vf).unwrap()).collect(),
            calls: std::mem::take(&mut machine.bus.calls),
            sent: std::mem::take(&mut machine.wire.sent),
            due: machine.nic.due(),
            addresses: (0..VFS).map(|vf| machine.nic.address(vf)).collect(),
            more: *more,
            frames: std::mem::take(frames),
            finished: std::mem::take(finished),
        }
    }
}

pub(crate) fn action() -> impl Strategy<Value = ConversationAction> {
    let vf = || 0..VFS;
    let pair = || prop_oneof![3 => 0..1_u8, 1 => 0..3_u8];
    let to = || prop_oneof![12 => 0..VFS, 1 => 8..10_u8, 1 => 255..=255_u8];
    // Most packets are plain, and make no request.
    let kind = || prop_oneof![2 => 0..2_u8, 1 => any::<u8>()];
    let request = || prop_oneof![2 => 0xf0..0xf6_u8, 1 => 0xf9..0xfc_u8, 2 => any::<u8>()];
    let pieces = || prop_oneof![3 => 0..1_u8, 1 => 0..8_u8];
    let count = || prop_oneof![2 => 1..4_u8, 1 => 1..50_u8];
    let send = ((vf(), pair(), to(), kind()), (any::<u8>(), request(), pieces(), count()));
    prop_oneof![
        12 => send.prop_map(|((vf, pair, to, kind), (length, request, pieces, count))| {
            ConversationAction::Send { vf, pair, to, kind, length, request, pieces, count }
        }),
        1 => (vf(), pair(), any::<u8>()).prop_map(|(vf, pair, kind)| ConversationAction::Malformed(vf, pair, kind)),
        6 => (vf(), pair(), any::<u8>(), 1..60_u8)
            .prop_map(|(vf, pair, shape, count)| ConversationAction::Post { vf, pair, shape, count }),
        1 => (vf(), any::<u16>()).prop_map(|(vf, bits)| ConversationAction::Rules(vf, bits)),
        1 => (vf(), prop_oneof![0..1_u32, 10..20_000_u32]).prop_map(|(vf, rate)| ConversationAction::Rate(vf, rate)),
        1 => prop::bool::weighted(0.2).prop_map(ConversationAction::Mirror),
        1 => (vf(), 0..6_u8, any::<u8>()).prop_map(|(vf, ring, change)| ConversationAction::Ring(vf, ring, change)),
        1 => (vf(), 0..6_u8, any::<u8>()).prop_map(|(vf, ring, wish)| ConversationAction::Interrupts(vf, ring, wish)),
        2 => (to(), kind(), any::<u8>()).prop_map(|(to, kind, length)| ConversationAction::Arrive(to, kind, length)),
        10 => (0..40_000_u64, 1..70_u8).prop_map(|(later, budget)| ConversationAction::Poll(later, budget)),
        4 => prop::bool::ANY.prop_map(|_| ConversationAction::Collect),
    ]
}

/// Asserts that a card with bursts and a card that sends each frame alone agree after each action.
fn assert_ways_agree(guests: [u16; VFS as usize], actions: &[ConversationAction]) {
    let [mut usual, mut careful] = [false, true].map(|careful| {
        let mut conversation = GuestConversation::new(guests);
        // A frame alone costs more than in a burst, so a VF could send fewer of them in a round.
        conversation.machine.plane.shares.set_quantum(WorkCost(u32::MAX));
        if careful {
            conversation.machine.nic.take_no_shortcuts();
        }
        conversation
    });
    for (n, action) in actions.iter().enumerate() {
        let [usual, careful] = [&mut usual, &mut careful].map(|conversation| {
            conversation.perform(action);
            conversation.seen()
        });
        assert_eq!(usual, careful, "after action {n}");
    }
    for conversation in [&mut usual, &mut careful] {
        assert_eq!(conversation.end(), 0, "all sent chains return");
    }
    assert_eq!(usual.seen(), careful.seen(), "at the end");
    for vf in 0..usize::from(VFS) {
        assert_eq!(usual.machine.stray_byte(vf as u8), None, "VF {vf}");
        // The formats of the rings leave it to the device how many chains it returns together.
        let [usual, careful] =
            [&usual, &careful].map(|conversation| &conversation.machine.bus.memories[vf][POSTED as usize..]);
        if usual != careful {
            let differs = usual.iter().zip(careful).position(|(usual, careful)| usual != careful);
            panic!("memory of VF {vf} differs at {:#x}", differs.unwrap_or(0) + POSTED as usize);
        }
    }
}

/// Returns true if a driver that follows the standard may perform the action: it posts buffers in its own memory with
/// room for a header.
fn is_honest(action: &ConversationAction) -> bool {
    match action {
        ConversationAction::Malformed(..) => false,
        ConversationAction::Post { shape, .. } => shape % 32 < 10,
        _ => true,
    }
}

proptest! {
    #[test]
    fn valid_driver_actions_cause_no_fault_and_return_all_chains(
        guests in any::<[u16; VFS as usize]>(),
        actions in prop::collection::vec(action().prop_filter("honest", is_honest), 1..50),
    ) {
        let mut conversation = GuestConversation::new(guests);
        actions.iter().for_each(|action| conversation.perform(action));
        assert_eq!(conversation.end(), 0, "all sent chains return");
        for vf in 0..VFS {
            let ledger = conversation.machine.plane.ledger.total(PortIndex::of_field(vf.into()));
            assert_eq!((ledger.dma_faults, conversation.machine.nic.counters(vf).unwrap().faults), (0, 0));
        }
    }

    #[test]
    fn burst_and_single_frame_processing_give_equal_results(
        guests in any::<[u16; VFS as usize]>(),
        actions in prop::collection::vec(action(), 1..50),
    ) {
        assert_ways_agree(guests, &actions);
    }
}
