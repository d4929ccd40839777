//! Both halves over a real grant table: a request's way, what is mapped when, and guests that lie.

use super::{
    Back, Command, Done, Front, Hal, Header, Host, PER_PAGE, READ, REQUESTS, Refused, Response, SEGMENTS,
    Segment, Taken, WRITE,
};
use crate::back::NotGranted;
use crate::message::status;
use crate::ring::{Page, SLOTS};
use alloc::vec::Vec;
use hypervisor::cost::CostTable;
use hypervisor::cpu::{Config, Machine};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::grant::{Access, Grants, Handle, Reference};

const DISK: u64 = 10_000;
const PAGES: u32 = 64;

/// What lies between the halves.
struct Between {
    ring: Page,
    grants: Grants,
    service: DomainId,
    guest: DomainId,
    /// Pages mapped, and events sent to the front end and to the back end.
    mapped: u32,
    to_front: u32,
    to_back: u32,
}

impl Hal for Between {
    fn ring(&mut self) -> &mut Page {
        &mut self.ring
    }

    fn grant(&mut self, page: u32, write: bool) -> Option<u32> {
        let access = if write { Access::Write } else { Access::Read };
        self.grants
            .domain(self.guest)
            .unwrap()
            .grant(self.service, page, access)
            .ok()
            .map(|reference| reference.0)
    }

    fn end(&mut self, reference: u32) {
        self.grants.domain(self.guest).unwrap().end_access(Reference(reference)).unwrap();
    }

    fn notify(&mut self) {
        self.to_back += 1;
    }
}

impl Host for Between {
    type Mapping = Handle;

    fn ring(&mut self) -> &mut Page {
        &mut self.ring
    }

    fn map(&mut self, reference: u32, write: bool) -> Result<Handle, NotGranted> {
        let access = if write { Access::Write } else { Access::Read };
        let mapped = self
            .grants
            .map(self.service, self.guest, Reference(reference), access)
            .map_err(|_| NotGranted)?;
        self.mapped += 1;
        Ok(mapped)
    }

    fn unmap(&mut self, mapping: Handle) {
        self.grants.unmap(self.service, mapping).unwrap();
        self.mapped -= 1;
    }

    fn notify(&mut self) {
        self.to_front += 1;
    }
}

struct Bench {
    front: Front,
    back: Back<Handle>,
    between: Between,
}

impl Bench {
    fn new() -> Self {
        let mut machine = Machine::new(Config::from_table(&CostTable::nehalem(), 1, 1));
        let service = machine.add_domain(DomainKind::Dom0, "dom0".into());
        let guest = machine.add_domain(DomainKind::Pvm, "guest".into());
        let mut grants = Grants::new();
        grants.add_domain(guest, PAGES, 256);
        let ring = Page::default();
        let between = Between { ring, grants, service, guest, mapped: 0, to_front: 0, to_back: 0 };
        Self { front: Front::default(), back: Back::new(DISK, true), between }
    }

    fn submit(&mut self, sector: u64, sectors: u32) -> Result<u16, Refused> {
        let id = self.front.submit(false, sector, (0, sectors), &mut self.between);
        self.front.flush(&mut self.between);
        id
    }

    fn take(&mut self) -> Taken {
        self.back.take(&mut self.between)
    }

    fn command(&mut self) -> Command {
        let Taken::Command(command) = self.take() else { panic!("no command") };
        command
    }

    fn done(&mut self) -> Vec<Done> {
        core::iter::from_fn(|| self.front.take(&mut self.between)).collect()
    }

    /// Writes slots straight into the ring, as a guest may.
    fn write(&mut self, slots: &[[u8; 12]]) {
        let page = &mut self.between.ring;
        for slot in slots {
            page.slots[(page.requests % SLOTS) as usize] = *slot;
            page.requests = page.requests.wrapping_add(1);
        }
    }

    /// Nothing is mapped that no request needs, and everything that was taken is answered once.
    fn assert_kept(&self) {
        let counters = self.back.counters();
        assert_eq!(counters.taken - counters.done, self.back.under_way() as u64);
        assert!(self.between.mapped <= REQUESTS as u32 * u32::from(SEGMENTS));
        assert!(self.back.under_way() > 0 || self.between.mapped == 0, "{} pages", self.between.mapped);
    }
}

fn request(operation: u8, sector: u64, reference: u32, (first, last): (u8, u8)) -> [[u8; 12]; 2] {
    let header = Header { operation, segments: 1, id: 7, sector };
    [header.emit(), Segment { reference, first, last }.emit()]
}

#[test]
fn what_is_put_in_a_slot_is_read_back() {
    let header = Header { operation: WRITE, segments: 11, id: 0xfedc, sector: u64::MAX - 3 };
    assert_eq!(Header::parse(&header.emit()), header);
    let segment = Segment { reference: 0x0102_0304, first: 2, last: 7 };
    assert_eq!(Segment::parse(&segment.emit()), segment);
    let response = Response { id: 31, status: status::ERROR };
    assert_eq!(Response::parse(&response.emit()), response);
}

#[test]
fn a_requests_pages_are_mapped_until_the_disk_is_done() {
    let mut bench = Bench::new();
    let id = bench.submit(100, 20).unwrap();
    assert_eq!(bench.between.to_back, 1, "the back end is told");
    let command = bench.command();
    assert_eq!((command.sector, command.sectors, command.write), (100, 20, false));
    assert_eq!((bench.between.mapped, bench.between.to_front), (3, 0));
    assert!(bench.back.complete(command.tag, true, &mut bench.between));
    assert!(!bench.back.complete(command.tag, true, &mut bench.between), "once");
    assert_eq!((bench.between.mapped, bench.between.to_front), (0, 1));
    assert_eq!(bench.done(), [Done { id, good: true }]);
    assert_eq!((bench.take(), bench.front.under_way()), (Taken::Idle, 0));
    bench.assert_kept();
}

#[test]
fn requests_are_answered_in_whatever_order_the_disk_is_done() {
    let mut bench = Bench::new();
    let ids: Vec<u16> = (0..4).map(|n| bench.submit(n * 88, 88).unwrap()).collect();
    let tags: Vec<u8> = (0..4).map(|_| bench.command().tag).collect();
    for at in [2, 0, 3, 1] {
        assert!(bench.back.complete(tags[at], at != 3, &mut bench.between));
        assert_eq!(bench.done(), [Done { id: ids[at], good: at != 3 }]);
        bench.assert_kept();
    }
}

#[test]
fn a_ring_goes_round_for_ever() {
    let mut bench = Bench::new();
    for n in 0..1_000 {
        let id = bench.submit(n % 9_000, 1 + (n % 88) as u32).unwrap();
        let tag = bench.command().tag;
        bench.back.complete(tag, true, &mut bench.between);
        assert_eq!(bench.done(), [Done { id, good: true }], "{n}");
    }
    bench.assert_kept();
}

#[test]
fn a_front_end_makes_no_request_that_cannot_be() {
    let mut bench = Bench::new();
    assert_eq!(bench.submit(0, 0), Err(Refused::Length));
    assert_eq!(bench.submit(0, 89), Err(Refused::Length));
    let made = (0..).take_while(|_| bench.submit(0, 88).is_ok()).count();
    assert_eq!(made, SLOTS as usize / 12, "a full ring");
    assert_eq!(bench.submit(0, 88), Err(Refused::Full));
}

#[test]
fn a_request_that_is_not_what_it_should_be_is_answered_with_an_error() {
    let mut bench = Bench::new();
    let page = bench.between.grant(3, true).unwrap();
    let read_only = bench.between.grant(4, false).unwrap();
    let whole = (0, PER_PAGE - 1);
    let wrong = [
        request(9, 0, page, whole),
        request(READ, DISK - 7, page, whole),
        request(READ, u64::MAX - 3, page, whole),
        request(READ, 0, page, (5, 4)),
        request(READ, 0, page, (0, PER_PAGE)),
        request(READ, 0, page, (0, u8::MAX)),
        request(READ, 0, 9_999, whole),
        request(READ, 0, read_only, whole),
    ];
    for (refused, slots) in wrong.iter().enumerate() {
        bench.write(slots);
        assert_eq!(bench.take(), Taken::Refused, "{slots:?}");
        let answer = bench.between.ring.slots[refused * 2];
        assert_eq!(Response::parse(&answer), Response { id: 7, status: status::ERROR });
        assert_eq!(bench.between.mapped, 0);
    }
    bench.write(&[Header { operation: READ, segments: 0, id: 1, sector: 0 }.emit()]);
    assert_eq!(bench.take(), Taken::Refused, "without a sector");
    bench.write(&request(WRITE, 0, read_only, whole));
    assert!(bench.command().write, "and the next one is served");
    assert!(!bench.back.is_broken());
    bench.assert_kept();
}

#[test]
fn one_bad_page_of_many_leaves_none_mapped() {
    let mut bench = Bench::new();
    let page = bench.between.grant(0, true).unwrap();
    let header = Header { operation: READ, segments: 3, id: 0, sector: 0 }.emit();
    let piece = |reference| Segment { reference, first: 0, last: 7 }.emit();
    bench.write(&[header, piece(page), piece(page), piece(9_999)]);
    assert_eq!((bench.take(), bench.between.mapped), (Taken::Refused, 0));
}

#[test]
fn a_disk_that_may_not_be_written_is_not() {
    let mut bench = Bench::new();
    bench.back = Back::new(DISK, false);
    let page = bench.between.grant(0, false).unwrap();
    bench.write(&request(WRITE, 0, page, (0, 7)));
    assert_eq!(bench.take(), Taken::Refused);
}

#[test]
fn a_ring_that_cannot_be_is_heard_no_more() {
    for claim in [SLOTS + 1, u32::MAX, 1 << 31] {
        let mut bench = Bench::new();
        bench.between.ring.requests = claim;
        assert_eq!(bench.take(), Taken::Idle);
        assert!(bench.back.is_broken());
    }
    for segments in [2, SEGMENTS, SEGMENTS + 1, u8::MAX] {
        let mut bench = Bench::new();
        let header = Header { operation: READ, segments, id: 0, sector: 0 }.emit();
        bench.write(&[header, header]);
        assert_eq!(bench.take(), Taken::Idle, "it has no end");
        assert!(bench.back.is_broken());
    }
}

#[test]
fn a_guest_that_never_takes_answers_back_stops_at_its_ring() {
    let mut bench = Bench::new();
    let page = bench.between.grant(0, true).unwrap();
    (0..SLOTS / 2).for_each(|_| bench.write(&request(READ, 0, page, (0, 7))));
    let mut taken = 0;
    while let Taken::Command(command) = bench.take() {
        bench.back.complete(command.tag, true, &mut bench.between);
        taken += 1;
    }
    assert_eq!(taken, SLOTS / 2);
    bench.assert_kept();
}

#[test]
fn an_answer_to_no_request_is_passed_over() {
    let mut bench = Bench::new();
    let id = bench.submit(0, 8).unwrap();
    for (at, wrong) in [u16::MAX, id + 1].into_iter().enumerate() {
        bench.between.ring.slots[at] = Response { id: wrong, status: status::OKAY }.emit();
    }
    bench.between.ring.responses = 2;
    assert_eq!((bench.done(), bench.front.under_way()), (Vec::new(), 1));
}

/// Any bytes in all slots, any index: bounded work, and nothing stays mapped that the disk does not have.
#[test]
fn noise_on_a_ring_is_survived() {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for _ in 0..300 {
        let mut bench = Bench::new();
        let page = bench.between.grant(0, true).unwrap();
        for slot in &mut bench.between.ring.slots {
            slot.iter_mut().for_each(|byte| *byte = noise() as u8);
            *slot = match noise() % 4 {
                0 => Header { operation: READ, segments: (noise() % 4) as u8, id: 0, sector: 0 }.emit(),
                1 => Segment { reference: page, first: 0, last: (noise() % 9) as u8 }.emit(),
                _ => *slot,
            };
        }
        bench.between.ring.requests = noise() % (SLOTS + 8);
        for turn in 0.. {
            assert!(turn <= SLOTS);
            match bench.take() {
                Taken::Command(command) if noise() % 2 == 0 => {
                    bench.back.complete(command.tag, true, &mut bench.between);
                }
                Taken::Idle => break,
                _ => {}
            }
            bench.assert_kept();
        }
    }
}
