//! A card with guests: it takes frames and flows, and is checked after each move.

use crate::machine::{GuestDriverConfig, Received, SIZE, TestMachine};
use crate::policy::VfSettings;
use plane::guard::GuardedPlane;
use plane::pacing::TransmitPacing;
use plane::switch::{StormState, SwitchTables};
use plane::{ForwardingPlane, PortCounters, PortIndex, UnsegmentedPacketLayout};
use softiov_fuzz::claims::{ClaimsModel, OtherPlane, VFS};
use softiov_fuzz::flows::TcpFlow;
use softiov_fuzz::stations::HOST;
use std::array::from_fn;
use std::sync::Arc;
use units::{MacAddress, Time};
use virtio::VirtioFeatures as F;
use virtio::net::NetHeader;
use virtio_nic::{MAX_VFS, VfRules};

/// Key of the stations' table.
const KEY: u64 = 0x5eed_0f57_a710_0001;
/// Number of addresses that a guest requests at most.
const MOST_REQUESTS: usize = 3;

/// Numbers of events that the target is for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Reached {
    refused_claims: u64,
    guarded_frames: u64,
    /// Packets of the uplink or of a guest that a driver got unsegmented.
    passed_uncut: u64,
    /// Packets that left by the uplink unsegmented.
    left_uncut: u64,
    coalesced: u64,
}

impl Reached {
    /// Returns the sums of these numbers and others.
    pub(crate) fn with(&self, other: &Self) -> Self {
        Self {
            refused_claims: self.refused_claims + other.refused_claims,
            guarded_frames: self.guarded_frames + other.guarded_frames,
            passed_uncut: self.passed_uncut + other.passed_uncut,
            left_uncut: self.left_uncut + other.left_uncut,
            coalesced: self.coalesced + other.coalesced,
        }
    }

    pub(crate) fn has_everything(&self) -> bool {
        let Self { refused_claims, guarded_frames, passed_uncut, left_uncut, coalesced } = *self;
        [refused_claims, guarded_frames, passed_uncut, left_uncut, coalesced].iter().all(|number| *number > 0)
    }
}

/// A card, its guests and what surrounds it.
pub(crate) struct World {
    pub(crate) machine: TestMachine,
    pub(crate) claims: ClaimsModel,
    pub(crate) link: Arc<OtherPlane>,
    policies: [VfSettings; VFS],
    /// Addresses that the guests have requested, as they do of a PF driver.
    requested: [Vec<MacAddress>; VFS],
    /// Time in nanoseconds.
    now: u64,
    /// Events before the last hand-over.
    past: Reached,
}

/// Frames that came out of the card: those to the uplink, and those to each guest.
pub(crate) struct Outcome {
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) received: [Vec<Received>; VFS],
}

fn port(vf: usize) -> PortIndex {
    PortIndex::of_field(vf as u32)
}

/// Returns a driver configuration that a byte selects: what it receives, and its ring format.
fn guest(bits: u8) -> GuestDriverConfig {
    let mut features = F::VERSION_1.with(F::CSUM).with(F::HOST_TSO4).with(F::HOST_TSO6).with(F::HOST_ECN);
    let choices =
        [F::MRG_RXBUF, F::GUEST_CSUM, F::GUEST_TSO4, F::GUEST_TSO6, F::GUEST_ECN, F::EVENT_IDX, F::IN_ORDER];
    for (bit, feature) in choices.into_iter().enumerate() {
        if bits >> bit & 1 != 0 {
            features = features.with(feature);
        }
    }
    GuestDriverConfig { packed: bits & 0x80 != 0, features, pairs: 1, size: SIZE }
}

impl World {
    /// Creates a card that some bits configure. Each VF has a byte for its policy, and one for its guest.
    pub(crate) fn new(card: u8, vfs: [[u8; 2]; VFS]) -> Self {
        let mut machine = TestMachine::with(&vfs.map(|[_, features]| guest(features)));
        machine.nic.coalesce_segments(card & 1 != 0);
        machine.wire.takes_uncut = card & 2 != 0;
        if card & 4 != 0 {
            machine.nic.take_no_shortcuts();
        }
        let link = Arc::new(OtherPlane::default());
        let policies = vfs.map(|[policy, _]| VfSettings(policy));
        let (claims, requested) = (ClaimsModel::default(), Default::default());
        let mut world = Self { machine, claims, link, policies, requested, now: 0, past: Reached::default() };
        world.machine.plane.share_addresses(Some(world.link.clone()));
        world.apply_policies();
        (0..VFS).for_each(|vf| world.post(vf));
        world.settle();
        world
    }

    /// Returns what has happened until now.
    pub(crate) fn reached(&self) -> Reached {
        let one = |vf: usize| {
            let device = self.machine.nic.counters(vf as u8).expect("the VF exists");
            Reached {
                passed_uncut: device.passed_uncut,
                left_uncut: device.uncut_to_uplink,
                coalesced: device.coalesced_packets,
                ..self.reached_by_plane(vf)
            }
        };
        (0..VFS).map(one).fold(self.past, |all, one| all.with(&one))
    }

    /// Returns what the present forwarding plane has counted for a VF.
    fn reached_by_plane(&self, vf: usize) -> Reached {
        Reached {
            refused_claims: self.machine.plane.refused_claims(port(vf)).refused,
            guarded_frames: self.machine.plane.guarded_frames(port(vf)).iter().sum(),
            ..Reached::default()
        }
    }

    /// Hands the switch over to another process, which gets the addresses that the VFs hold.
    pub(crate) fn hand_over(&mut self) {
        self.past = (0..VFS).fold(self.past, |all, vf| all.with(&self.reached_by_plane(vf)));
        let held = self.machine.plane.held_addresses();
        *self.machine.plane = ForwardingPlane::new(
            SwitchTables::closed(0),
            TransmitPacing::new(None),
            StormState::default(),
            [PortCounters::default(); MAX_VFS],
        );
        self.apply_policies();
        self.machine.plane.restore_held_addresses(&held);
        self.machine.plane.share_addresses(Some(self.link.clone()));
        self.claims.hand_over();
        // New rules have the card give the switch its tables.
        let rules = self.rules(0);
        self.machine.nic.set_rules(0, rules);
        self.settle();
    }

    pub(crate) fn policy(&self, vf: usize) -> VfSettings {
        self.policies[vf]
    }

    fn rules(&self, vf: usize) -> VfRules {
        self.policy(vf).rules(vf, &self.requested[vf])
    }

    fn apply_policies(&mut self) {
        let guards: Vec<_> = (0..VFS).map(|vf| self.policy(vf).guard(vf)).collect();
        self.machine.plane.set_guards(&guards, &[HOST], KEY);
        for (vf, guard) in guards.iter().enumerate() {
            let claims = &mut self.claims.vfs[vf];
            (claims.checked, claims.assigned) = (guard.checks_claims, guard.assigned);
            let rules = self.rules(vf);
            if self.machine.nic.rules(vf as u8) != Some(&rules) {
                self.machine.nic.set_rules(vf as u8, rules);
            }
        }
    }

    /// Changes a VF's policy.
    pub(crate) fn set_policy(&mut self, vf: usize, policy: u8) {
        self.policies[vf] = VfSettings(policy);
        self.apply_policies();
        self.settle();
    }

    /// Requests an address for a VF as its guest does of a PF driver, which asks the switch.
    pub(crate) fn request(&mut self, vf: usize, mac: MacAddress) {
        let full = self.policy(vf).has(VfSettings::MAC) || self.requested[vf].len() >= MOST_REQUESTS;
        if full || !mac.is_valid_unicast() || !self.machine.plane.may_request(port(vf), mac) {
            return;
        }
        self.requested[vf].push(mac);
        let rules = self.rules(vf);
        self.machine.nic.set_rules(vf as u8, rules);
    }

    pub(crate) fn announce(&mut self, vf: usize, mac: MacAddress) {
        self.machine.nic.announce(vf as u8, mac);
        let outcome = self.settle();
        self.check_left(vf, &outcome);
    }

    /// Lets seconds pass, and has the switch look for stations that are gone.
    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now += seconds * 1_000_000_000;
        self.claims.review(self.now);
        self.machine.plane.review_claims(Time::from_nanos(self.now));
        self.settle();
    }

    /// Ends a guest's driver, or its client's connection, and starts the same guest, another or one from another card.
    pub(crate) fn restart(&mut self, vf: usize, how: u8) {
        match how & 3 {
            0 => {}
            1 | 3 => {
                self.machine.plane.release_claims(port(vf));
                self.claims.release(vf);
            }
            _ => {
                self.machine.plane.keep_claims_for_return(port(vf));
                self.claims.keep_for_return(vf);
            }
        }
        self.requested[vf].clear();
        let (rules, vf8) = (self.rules(vf), vf as u8);
        self.machine.nic.reset(vf8);
        self.machine.nic.set_rules(vf8, rules);
        // The switch may get its tables before the next driver starts, or only then.
        if how & 4 != 0 {
            self.settle();
        }
        let features = self.machine.guests[vf].features;
        self.machine.nic.set_features(vf8, features);
        for ring in 0..2 {
            self.machine.restart(vf8, ring);
            if how & 3 == 3 {
                let position = self.machine.guests[vf].rings[ring as usize].first_position();
                self.machine.start_as(vf8, ring, Some(position), true).expect("a sound ring");
            }
        }
        self.post(vf);
        self.settle();
    }

    /// Posts as many receive buffers as the ring has room for.
    fn post(&mut self, vf: usize) {
        let size = if self.merges(vf) { 1_600 } else { 9_800 };
        while self.machine.post_one(vf as u8, 0, &[size]) {}
    }

    /// Returns true if a guest takes packets in several buffers, so that each finds room.
    pub(crate) fn merges(&self, vf: usize) -> bool {
        self.machine.guests[vf].features.contains(F::MRG_RXBUF)
    }

    /// Lets a frame of a station arrive.
    pub(crate) fn arrive(&mut self, frame: Vec<u8>) {
        self.claims.note(source(&frame));
        self.machine.wire.arriving.push_back(frame);
        self.settle();
    }

    /// Lets a flow arrive in one packet.
    pub(crate) fn arrive_uncut(&mut self, flow: &TcpFlow, packet: (Vec<u8>, UnsegmentedPacketLayout)) {
        self.claims.note(flow.from);
        self.machine.wire.large = Some(packet);
        let outcome = self.settle();
        self.check_flow(flow, &flow.segments(), &outcome);
    }

    /// Lets a flow arrive in segments.
    pub(crate) fn arrive_in_segments(&mut self, flow: &TcpFlow, segments: &[Vec<u8>]) {
        self.claims.note(flow.from);
        self.machine.wire.arriving.extend(segments.iter().cloned());
        let outcome = self.settle();
        self.check_flow(flow, segments, &outcome);
    }

    /// Sends a packet of a guest.
    pub(crate) fn send(&mut self, vf: usize, header: NetHeader, packet: &[u8]) {
        let chain = self.machine.place(vf as u8, header, packet, &[]);
        assert!(self.machine.make_available(vf as u8, 1, &chain), "VF {vf} waits for its chains");
        let outcome = self.settle();
        self.check_left(vf, &outcome);
    }

    /// Polls the card until it has no more work, and checks what the VFs got: addresses and frames.
    pub(crate) fn settle(&mut self) -> Outcome {
        let Self { machine, claims, link, .. } = self;
        let arrived = from_fn(|vf| machine.nic.known_guest(vf as u8).has_arrived);
        let mut polls = 0;
        while machine.poll_once(self.now, 64) || machine.nic.has_changed() {
            polls += 1;
            assert!(polls < 1_000, "the card has work for ever");
        }
        claims.update(|mac, vf| machine.plane.tables().exact.is_of(mac, port(vf)), arrived, link);
        let sent = std::mem::take(&mut machine.wire.sent);
        let received = from_fn(|vf| {
            machine.collect(vf as u8, 1);
            machine.received_by(vf as u8, 0)
        });
        for (vf, frames) in received.iter().enumerate() {
            frames.iter().for_each(|frame| self.check_received(vf, frame));
            self.post(vf);
        }
        Outcome { sent, received }
    }
}

/// Returns the source address of a frame.
pub(crate) fn source(frame: &[u8]) -> MacAddress {
    MacAddress::from_slice(&frame[6..]).expect("a frame has addresses")
}
