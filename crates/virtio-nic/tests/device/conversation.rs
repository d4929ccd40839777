//! Random actions of guests, the administrator, the uplink and time, which tests and the fuzzer perform on simulated
//! cards.

use crate::address;
use crate::driver::{Buffer, ReturnedChain};
use crate::machine::{GuestDriverConfig, MODERN, POSTED, Received, SIZE, TestMachine};
use crate::packets::requested;
use plane::PortIndex;
use plane::switch::{PortMirrorRule, PortMirrorRules};
use units::{MacAddress, VlanIds};
use virtio::VirtioFeatures as F;
use virtio_nic::{RingStartError, VfRules, VlanMembership};

/// Number of VFs of the tested card, each with a guest.
pub(crate) const VFS: u8 = 3;

/// Action of a conversation. Numbers of VFs, rings and stations wrap: each is taken modulo the count of these.
#[derive(Debug, Clone)]
pub(crate) enum ConversationAction {
    /// Sends `count` packets of a kind to a station, in pieces.
    Send {
        vf: u8,
        pair: u8,
        to: u8,
        kind: u8,
        length: u8,
        request: u8,
        pieces: u8,
        count: u8,
    },
    /// Sends a malformed chain, which no correct driver sends. Fields: VF, queue pair, and kind of fault.
    Malformed(u8, u8, u8),
    /// Posts `count` receive buffers of a shape.
    Post {
        vf: u8,
        pair: u8,
        shape: u8,
        count: u8,
    },
    /// Changes the rules of a VF. Fields: VF, and bits that select the rules.
    Rules(u8, u16),
    Rate(u8, u32),
    Mirror(bool),
    /// Stops, starts, enables or disables a ring. Fields: VF, ring, and kind of change.
    Ring(u8, u8, u8),
    /// Makes a driver request interrupts, or none. Fields: VF, ring, and request.
    Interrupts(u8, u8, u8),
    /// Receives a frame from the uplink. Fields: destination station, kind, and length of the frame.
    Arrive(u8, u8, u8),
    /// Advances the time, and polls the card once. Fields: nanoseconds, and budget of the poll.
    Poll(u64, u8),
    /// Lets all drivers collect the chains that the card has returned.
    Collect,
}

/// Returns a driver configuration (features, ring format, ring size and queue pairs) that `bits` select.
pub(crate) fn guest(bits: u16) -> GuestDriverConfig {
    let mut features = MODERN.without(F::MRG_RXBUF).without(F::VERSION_1).with(F::HOST_ECN);
    let choices = [F::MRG_RXBUF, F::EVENT_IDX, F::IN_ORDER, F::INDIRECT_DESC, F::VERSION_1];
    for (bit, feature) in choices.into_iter().enumerate() {
        if bits >> bit & 1 != 0 {
            features = features.with(feature);
        }
    }
    if bits & 0x400 != 0 {
        features = features.with(F::GUEST_TSO4).with(F::GUEST_TSO6);
    }
    if bits & 0x60 == 0x60 {
        features = features.without(F::HOST_TSO6).without(F::CSUM);
    }
    let (packed, pairs) = (bits & 0x80 != 0, 1 + (bits >> 8 & 3).min(2) as u8);
    // The number of entries of a packed ring need not be a power of two.
    let size = [SIZE, SIZE, 32, if packed { 7 } else { 4 }][usize::from(bits >> 11 & 3)];
    GuestDriverConfig { packed, features, pairs, size }
}

/// Card with guests on which random actions are performed.
pub(crate) struct GuestConversation {
    pub(crate) machine: TestMachine,
    /// First VF whose driver follows the standard. Chains of VFs below it may be lost.
    pub(crate) first_honest: u8,
    now: u64,
    pub(crate) more: bool,
    pub(crate) frames: Vec<Vec<Received>>,
    pub(crate) finished: Vec<Vec<ReturnedChain>>,
}

impl GuestConversation {
    pub(crate) fn new(guests: [u16; VFS as usize]) -> Self {
        Self::shifted(guests, [0, 0])
    }

    /// Begins a conversation whose guests have their rings and receive buffers some bytes behind the usual addresses.
    pub(crate) fn shifted(guests: [u16; VFS as usize], shifts: [u64; 2]) -> Self {
        let machine = TestMachine::shifted(&guests.map(guest), shifts);
        let (first_honest, now, more, frames, finished) = (0, 0, false, Vec::new(), Vec::new());
        let mut conversation = Self { machine, first_honest, now, more, frames, finished };
        for vf in 0..VFS {
            for pair in 0..conversation.machine.pairs(vf) {
                conversation.perform(&ConversationAction::Post { vf, pair, shape: 0, count: 40 });
            }
        }
        conversation
    }

    pub(crate) fn perform(&mut self, action: &ConversationAction) {
        let machine = &mut self.machine;
        match *action {
            ConversationAction::Send { vf, pair, to, kind, length, request, pieces, count } => {
                let (vf, ring) = (vf % VFS, 2 * u32::from(pair % machine.pairs(vf % VFS)) + 1);
                let (header, frame) = requested(kind, (vf, to), length, request);
                let all: [&[usize]; 8] =
                    [&[], &[], &[], &[12], &[10], &[3, 4, 5], &[12, 50, 700, 9], &[1; 40]];
                for _ in 0..count {
                    let chain = machine.place(vf, header, &frame, all[usize::from(pieces & 7)]);
                    machine.make_available(vf, ring, &chain);
                }
            }
            ConversationAction::Malformed(vf, pair, kind) => {
                let (vf, ring) = (vf % VFS, 2 * u32::from(pair % machine.pairs(vf % VFS)) + 1);
                machine.make_available(vf, ring, &malformed(kind));
            }
            ConversationAction::Post { vf, pair, shape, count } => {
                let (vf, ring) = (vf % VFS, 2 * u32::from(pair % machine.pairs(vf % VFS)));
                (0..count).for_each(|_| post(machine, vf, ring, shape));
            }
            ConversationAction::Rules(vf, bits) => {
                let rate = machine.nic.rules(vf % VFS).map_or(0, |rules| rules.max_tx_rate);
                machine.nic.set_rules(vf % VFS, rules(vf % VFS, bits, rate));
            }
            ConversationAction::Rate(vf, rate) => {
                let rules = machine.nic.rules(vf % VFS).unwrap().clone();
                machine.nic.set_rules(vf % VFS, VfRules { max_tx_rate: rate, ..rules });
            }
            ConversationAction::Mirror(on) => mirror(machine, on),
            ConversationAction::Ring(vf, ring, change) => {
                let vf = vf % VFS;
                let started = change_ring(machine, vf, u32::from(ring % (2 * machine.pairs(vf))), change);
                // A hostile guest may have run the ring in another format, which has other positions.
                assert!(started.is_ok() || vf < self.first_honest, "{started:?}");
            }
            ConversationAction::Interrupts(vf, ring, wish) => {
                let (vf, ring) = (usize::from(vf % VFS), usize::from(ring));
                let rings = &machine.guests[vf].rings;
                let after = (wish > 1).then_some(u16::from(wish % 16));
                rings[ring % rings.len()].ask_interrupts(&mut machine.bus.memories[vf], wish > 0, after);
            }
            ConversationAction::Arrive(to, kind, length) => {
                machine.wire.arriving.push_back(requested(kind, (9, to), length, 0xf0).1);
            }
            ConversationAction::Poll(later, budget) => {
                self.now += later;
                self.more = machine.poll_once(self.now, budget.into());
            }
            ConversationAction::Collect => self.collect(),
        }
    }

    fn collect(&mut self) {
        for vf in self.first_honest..VFS {
            for pair in 0..u32::from(self.machine.pairs(vf)) {
                self.frames.push(self.machine.received_by(vf, 2 * pair));
                self.finished.push(self.machine.collect(vf, 2 * pair + 1));
            }
        }
    }

    /// Ends the conversation: lifts the rate limits, and polls until the card has no more work. Returns the number of
    /// sent chains that live rings have not returned to drivers that follow the standard.
    pub(crate) fn end(&mut self) -> usize {
        (0..VFS).for_each(|vf| self.perform(&ConversationAction::Rate(vf, 0)));
        self.perform(&ConversationAction::Poll(1 << 40, 64));
        for _ in 0..1_000 {
            if !self.more {
                break;
            }
            self.perform(&ConversationAction::Poll(0, 64));
        }
        assert!(!self.more, "the card has work for ever");
        self.collect();
        let live = |vf: u8| self.machine.nic.rings(vf).1.len() == usize::from(self.machine.pairs(vf));
        let left = |vf: u8| {
            let rings = &self.machine.guests[usize::from(vf)].rings;
            rings.iter().skip(1).step_by(2).map(|ring| ring.outstanding()).sum::<usize>()
        };
        (self.first_honest..VFS).filter(|vf| live(*vf)).map(left).sum()
    }
}

/// Returns the chain of a packet that is malformed in one of several ways.
pub(crate) fn malformed(kind: u8) -> Vec<Buffer> {
    let place = POSTED + 0x2000;
    match kind % 8 {
        0 => vec![(place, 12, false)],
        1 => vec![(place, 5, false)],
        2 => vec![(place, 200, false), (place, 0, false)],
        3 => vec![(place, 200, false), (place, 100, true)],
        4 => vec![(place, 200, true)],
        5 => vec![(place, 12, false), (1 << 50, 100, false)],
        6 => vec![(1 << 50, 100, false)],
        _ => vec![(place, u32::MAX, false)],
    }
}

fn post(machine: &mut TestMachine, vf: u8, ring: u32, shape: u8) {
    let shapes: [&[u32]; 12] = [
        &[1_536],
        &[1_536],
        &[2_060],
        &[9_800],
        &[100],
        &[12, 1_514],
        &[10, 700, 700],
        &[5, 9, 3_000],
        &[512],
        &[1; 30],
        &[11],
        &[13],
    ];
    match shape % 32 {
        31 => _ = machine.make_available(vf, ring, &[(1 << 50, 1_536, true)]),
        30 => _ = machine.make_available(vf, ring, &[(POSTED, 1_536, false)]),
        shape if shape < 12 => _ = machine.post_one(vf, ring, shapes[usize::from(shape)]),
        shape => _ = machine.post_one(vf, ring, shapes[usize::from(shape % 4)]),
    }
}

fn rules(vf: u8, bits: u16, max_tx_rate: u32) -> VfRules {
    let on = |bit: u16| bits >> bit & 1 != 0;
    let vlans = match bits >> 4 & 7 {
        0 => VlanMembership::Port(7),
        1 => {
            let mut ids = VlanIds::untagged();
            if on(7) {
                ids.insert(7);
            }
            VlanMembership::Guest(Box::new(ids))
        }
        _ => VlanMembership::Any,
    };
    VfRules {
        enabled: bits & 0xe000 != 0,
        promised: None,
        addresses: if bits & 0x700 == 0 { Vec::new() } else { vec![MacAddress(address(vf))] },
        vlans,
        spoof_check: on(0),
        all_multicast: on(1),
        promiscuous: on(2),
        longest_frame: [1_514, 9_724, 9_724, 600][usize::from(bits >> 11 & 3)],
        max_tx_rate,
    }
}

fn mirror(machine: &mut TestMachine, on: bool) {
    let [to, ports] = [2, 1].map(|port| PortIndex::of_field(port).only());
    machine.mirrors = PortMirrorRules::NONE;
    if on {
        let vlans = VlanIds::new();
        machine.mirrors.add(PortMirrorRule { to, ports, from_uplink: false, to_uplink: false, vlans });
    }
    // A change of rules has the card's user give the plane the mirrors too.
    let rules = machine.nic.rules(0).unwrap().clone();
    machine.nic.set_rules(0, rules);
}

/// Changes a ring. Returns the result of its start at the position at which it was stopped.
fn change_ring(machine: &mut TestMachine, vf: u8, ring: u32, change: u8) -> Result<(), RingStartError> {
    match change % 7 {
        0 => machine.nic.enable_ring(vf, ring, false),
        1 => machine.nic.enable_ring(vf, ring, true),
        2 => machine.nic.pause_ring(vf, ring),
        3 => {
            let position = machine.nic.stop_ring(vf, ring);
            return machine.start(vf, ring, Some(position));
        }
        4 => _ = machine.start(vf, ring, None),
        5 => machine.restart(vf, ring),
        // A driver that starts anew may merge receive buffers, or no longer.
        _ => {
            let guest = &mut machine.guests[usize::from(vf)];
            guest.features = F::from_bits(guest.features.bits() ^ F::MRG_RXBUF.bits());
            machine.nic.reset(vf);
            machine.nic.set_features(vf, guest.features);
            (0..u32::from(2 * machine.pairs(vf))).for_each(|ring| machine.restart(vf, ring));
        }
    }
    Ok(())
}
