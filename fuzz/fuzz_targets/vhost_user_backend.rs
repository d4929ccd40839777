//! A hostile front end that sends any bytes in any pieces, with descriptors anywhere, and may not read its replies.
//!
//! The input is a list of moves. A move starts with an opcode byte: raw bytes, a message with a valid header, so that the
//! fuzzer reaches the code behind the header's checks, or a hand-over to a successor. Checked: no panic, bounded work,
//! well-formed replies, live rings in mapped memory only, agreement of host and session on memory, a handed-over session that
//! is the same, no descriptor left at the end.

#![cfg_attr(not(test), no_main)]

use std::collections::BTreeMap;
use std::rc::Rc;

use vhost_user::backend::{
    BackendEvent, BackendOffer, BackendProgress, BackendSession, GuestRange, HostOperation,
    HostOperationOutcome, MAX_UNSENT_REPLIES,
};
use vhost_user::features::protocol;
use vhost_user::inflight::InflightLayout;
use vhost_user::message::{InflightArea, MAX_BODY, RingBase};
use vhost_user::outbox::OutgoingMessages;

type FakeDescriptor = Rc<()>;

const RINGS: u32 = 4;
/// Bytes of a larger area for records of unfinished descriptors, which the host refuses: it would take long, by the same code.
const LARGE_AREA: u64 = 1 << 20;
const FEATURES: u64 = 1 << 26 | 1 << 29 | 1 << 32 | 1 << 34;

/// Host of the vhost-user session that asserts everything which the session promises.
#[derive(Default)]
struct CheckingBackendHost {
    /// Sizes and descriptors of the guest memory regions that are mapped, by guest address.
    regions: BTreeMap<u64, (u64, FakeDescriptor)>,
    live: [bool; RINGS as usize],
    eventfds: [[Option<FakeDescriptor>; 3]; RINGS as usize],
}

impl CheckingBackendHost {
    fn check(&self, range: GuestRange) {
        let (guest, (size, _)) = self.regions.range(..=range.address).next_back().unwrap();
        assert!(range.address - guest + range.size <= *size);
    }

    fn event(&mut self, event: BackendEvent<FakeDescriptor>) {
        match event {
            BackendEvent::RingLive(ring) => {
                [ring.descriptors, ring.available, ring.used].into_iter().for_each(|range| self.check(range));
                assert!(ring.packed || ring.size.is_power_of_two());
                assert!(!std::mem::replace(&mut self.live[ring.ring as usize], true));
            }
            BackendEvent::RingPaused { ring } => {
                assert!(std::mem::replace(&mut self.live[ring as usize], false));
            }
            BackendEvent::RingEnabled { ring, .. } => assert!(self.live[ring as usize]),
            BackendEvent::KickSet { ring, fd } => self.eventfds[ring as usize][0] = fd,
            BackendEvent::CallSet { ring, fd } => self.eventfds[ring as usize][1] = fd,
            BackendEvent::ErrorSet { ring, fd } => self.eventfds[ring as usize][2] = fd,
            BackendEvent::UnusedDescriptors(fds) => assert!(!fds.is_empty()),
            _ => {}
        }
    }

    fn task(&mut self, task: HostOperation<FakeDescriptor>) -> HostOperationOutcome<FakeDescriptor> {
        match task {
            HostOperation::ReplaceMemory(regions) => {
                assert_eq!(self.live, [false; RINGS as usize]);
                let regions = regions.into_iter();
                self.regions = regions.map(|r| (r.region.guest_address, (r.region.size, r.fd))).collect();
            }
            HostOperation::AddRegion(shared) => {
                assert_eq!(self.live, [false; RINGS as usize]);
                if shared.region.size == 0x66_6000 {
                    return HostOperationOutcome::Failed;
                }
                let entry = (shared.region.size, shared.fd);
                assert!(self.regions.insert(shared.region.guest_address, entry).is_none());
            }
            HostOperation::RemoveRegion(region) => {
                assert_eq!(self.live, [false; RINGS as usize]);
                assert_eq!(self.regions.remove(&region.guest_address).unwrap().0, region.size);
            }
            HostOperation::StopRing { ring } => {
                self.live[ring as usize] = false;
                self.eventfds[ring as usize][0] = None;
                return HostOperationOutcome::Base(RingBase::from_wire(0x8003_8003, ring % 2 == 0));
            }
            HostOperation::ReadConfig { size, .. } => {
                return HostOperationOutcome::Config(vec![1; size as usize]);
            }
            HostOperation::CreateInflight { .. } => {
                let area = InflightArea { size: 0x1000, ..InflightArea::default() };
                return HostOperationOutcome::Inflight { area, fd: FakeDescriptor::default() };
            }
            HostOperation::RestoreInflight { area, .. } if !has_no_record(area) => {
                return HostOperationOutcome::Failed;
            }
            HostOperation::WriteConfig(_) => return HostOperationOutcome::Failed,
            _ => {}
        }
        HostOperationOutcome::Done
    }
}

/// Returns true if the memory that a front end returns has no record of an unfinished descriptor. The bytes of the area's offset
/// choose its contents: version and number of descriptors in each header, a byte in each part of the records, the rings' form, and
/// the length of the file. Asserts that no byte outside of the area is read, and none twice.
fn has_no_record(area: InflightArea) -> bool {
    if area.size > LARGE_AREA {
        return false;
    }
    let [version, descriptors, record, unfinished, length, ..] = area.offset.to_le_bytes();
    let layout = InflightLayout::new(area.queues, area.queue_size, length & 1 != 0);
    let file = if length > 1 { u64::from(length) << 8 } else { area.size };
    let mut end = 0;
    let checked = layout.check(area.size, |at, into| {
        assert!(at >= end && at + into.len() as u64 <= area.size, "{at} in {area:?}");
        end = at + into.len() as u64;
        into.fill(0);
        if into.len() > 32 {
            into[usize::from(record) * 16 % into.len()] = unfinished;
        } else {
            (into[8], into[10]) = (version, descriptors);
        }
        end <= file
    });
    checked.is_ok()
}

/// Hostile vhost-user front end and the back end's session, joined by buffers.
struct HostileFrontEnd {
    session: BackendSession<FakeDescriptor>,
    host: CheckingBackendHost,
    out: OutgoingMessages<FakeDescriptor>,
    received: Vec<u8>,
    descriptor: FakeDescriptor,
}

impl HostileFrontEnd {
    /// Passes the front end's bytes to the session, as `recvmsg` calls do. Returns false if the connection has ended.
    fn send(&mut self, mut bytes: &[u8], fds: usize) -> bool {
        let mut fds = vec![self.descriptor.clone(); fds];
        while !bytes.is_empty() {
            let (piece, rest) = bytes.split_at(self.session.room().min(bytes.len()));
            if self.session.push(piece, &mut fds).is_err() || !self.handle() {
                return false;
            }
            bytes = rest;
        }
        true
    }

    /// Handles all events that a message of the front end causes. Returns false if the connection has ended.
    fn handle(&mut self) -> bool {
        for _ in 0..100 {
            match self.session.step(&mut self.out) {
                Ok(BackendProgress::Handled) => {}
                Ok(BackendProgress::Event(event)) => self.host.event(event),
                Ok(BackendProgress::Task(task)) => {
                    let outcome = self.host.task(task);
                    self.session.complete(outcome);
                }
                Ok(BackendProgress::Starved) => {
                    let known = self.session.memory().regions().iter().map(|region| region.guest_address);
                    assert!(known.eq(self.host.regions.keys().copied()));
                    return true;
                }
                Ok(BackendProgress::Blocked) => self.read(usize::MAX),
                Ok(BackendProgress::Waiting) => panic!("every task is completed"),
                Err(_) => return false,
            }
            assert!(self.out.pending() <= MAX_UNSENT_REPLIES);
        }
        panic!("no end of work");
    }

    /// Continues the session in a successor, if it may be saved. Returns false if the connection has ended.
    fn hand_over(&mut self) -> bool {
        let Ok(saved) = self.session.save() else { return true };
        self.session = BackendSession::restore(offer(), &saved).expect("a saved session is read");
        // The successor maps the regions again, and starts the rings by the session's events.
        self.host.live = [false; RINGS as usize];
        let lives = self.handle();
        if lives {
            assert_eq!(self.session.save().as_ref(), Ok(&saved), "the session changed on its way");
        }
        lives
    }

    /// Reads up to `room` bytes of the back end's replies.
    fn read(&mut self, mut room: usize) {
        while let Some(chunk) = self.out.chunk().filter(|_| room > 0) {
            let taken = chunk.bytes.len().min(room);
            self.received.extend_from_slice(&chunk.bytes[..taken]);
            room -= taken;
            self.out.sent(taken);
        }
    }

    /// Checks that the bytes from the back end are a sequence of replies.
    fn check_replies(&self) {
        let mut rest = &self.received[..];
        while !rest.is_empty() {
            let word = |at: usize| u32::from_le_bytes(rest[at..at + 4].try_into().unwrap());
            assert_eq!(word(4), 5, "version 1 and the reply bit");
            rest = &rest[12 + word(8) as usize..];
        }
    }
}

/// Takes `count` bytes off the fuzzer's input, or all if there are fewer.
fn take<'a>(input: &mut &'a [u8], count: usize) -> &'a [u8] {
    let (taken, rest) = input.split_at(count.min(input.len()));
    *input = rest;
    taken
}

fn byte(input: &mut &[u8]) -> u8 {
    take(input, 1).first().copied().unwrap_or(0)
}

/// Returns a vhost-user message with a valid header: request, flags and length from the fuzzer's input.
fn sound_message(input: &mut &[u8]) -> Vec<u8> {
    let (request, style, length) = (byte(input), byte(input), byte(input));
    let mut body = take(input, usize::from(length)).to_vec();
    if style & 0x80 != 0 {
        body.resize((usize::from(style & 0x7f) << 6).min(MAX_BODY + 1), 0);
    }
    let words = [u32::from(request % 48), 1 | u32::from(style & 8), body.len() as u32];
    let header = words.iter().flat_map(|word| word.to_le_bytes());
    header.chain(body).collect()
}

/// Makes the hostile front end's next move. Returns false if the connection has ended.
fn play(front_end: &mut HostileFrontEnd, input: &mut &[u8]) -> bool {
    let opcode = byte(input);
    let fds = usize::from(byte(input) % 36);
    match opcode % 8 {
        0 => {
            let length = usize::from(byte(input));
            front_end.send(take(input, length), fds)
        }
        7 if opcode >= 0xf0 => front_end.hand_over(),
        7 => {
            front_end.read(usize::from(byte(input)));
            true
        }
        // Most requests take one descriptor or none.
        style => {
            let message = sound_message(input);
            front_end.send(&message, if style < 6 { fds % 2 } else { fds })
        }
    }
}

/// Returns what the back end offers.
fn offer() -> BackendOffer {
    BackendOffer { protocol_features: protocol::SUPPORTED, ..BackendOffer::net(2, FEATURES) }
}

softiov_fuzz::target!(run);

/// Runs the target on one input.
fn run(input: &[u8]) {
    let descriptor = FakeDescriptor::default();
    let mut front_end = HostileFrontEnd {
        session: BackendSession::new(offer()),
        host: CheckingBackendHost::default(),
        out: OutgoingMessages::new(),
        received: Vec::new(),
        descriptor: descriptor.clone(),
    };
    let mut input = input;
    // Most inputs begin with a negotiation, so that the session accepts the messages after it.
    if byte(&mut input) != 0 {
        for (request, bits) in [(16u32, protocol::SUPPORTED), (2, 1 << 30 | 1 << 32)] {
            let header = [request, 1, 8].into_iter().flat_map(u32::to_le_bytes);
            let message: Vec<u8> = header.chain(bits.to_le_bytes()).collect();
            assert!(front_end.send(&message, 0));
        }
    }
    while !input.is_empty() && play(&mut front_end, &mut input) {}
    front_end.read(usize::MAX);
    front_end.check_replies();
    drop(front_end);
    assert_eq!(Rc::strong_count(&descriptor), 1, "every descriptor is closed");
}
