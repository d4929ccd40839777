//! Tests of the block driver's front end and back end over a real grant table: request processing, lifetime of
//! mappings, hostile guests.

use super::{
    BlockBackend, BlockBackendHal, BlockCommand, BlockFrontend, BlockFrontendHal, BlockRequestHeader,
    BlockRequestOutcome, BlockRequestSegment, BlockResponse, BlockSubmitError, CompletedBlockRequest,
    PER_PAGE, READ, REQUESTS, SEGMENTS, WRITE,
};
use crate::back::NotGranted;
use crate::message::status;
use crate::ring::{RingPage, SLOTS};
use alloc::vec::Vec;
use hypervisor::cost::CostTable;
use hypervisor::cpu::{HostMachine, ProcessorConfig};
use hypervisor::domain::{DomainId, DomainKind};
use hypervisor::grant::{GrantAccess, GrantHandle, GrantReference, GrantTables};

const DISK: u64 = 10_000;
const PAGES: u32 = 64;

/// Ring, grants and event counts that the front end and back end of the tested disk share.
struct SharedBlockState {
    ring: RingPage,
    grants: GrantTables,
    service: DomainId,
    guest: DomainId,
    /// Number of pages that the back end has mapped.
    mapped: u32,
    /// Number of events sent to the block front end.
    to_front: u32,
    /// Number of events sent to the block back end.
    to_back: u32,
}

impl BlockFrontendHal for SharedBlockState {
    fn ring(&mut self) -> &mut RingPage {
        &mut self.ring
    }

    fn grant(&mut self, page: u32, write: bool) -> Option<u32> {
        let access = if write { GrantAccess::Write } else { GrantAccess::Read };
        self.grants
            .domain(self.guest)
            .unwrap()
            .grant(self.service, page, access)
            .ok()
            .map(|reference| reference.0)
    }

    fn end(&mut self, reference: u32) {
        self.grants.domain(self.guest).unwrap().end_access(GrantReference(reference)).unwrap();
    }

    fn notify(&mut self) {
        self.to_back += 1;
    }
}

impl BlockBackendHal for SharedBlockState {
    type Mapping = GrantHandle;

    fn ring(&mut self) -> &mut RingPage {
        &mut self.ring
    }

    fn map(&mut self, reference: u32, write: bool) -> Result<GrantHandle, NotGranted> {
        let access = if write { GrantAccess::Write } else { GrantAccess::Read };
        let mapped = self
            .grants
            .map(self.service, self.guest, GrantReference(reference), access)
            .map_err(|_| NotGranted)?;
        self.mapped += 1;
        Ok(mapped)
    }

    fn unmap(&mut self, mapping: GrantHandle) {
        self.grants.unmap(self.service, mapping).unwrap();
        self.mapped -= 1;
    }

    fn notify(&mut self) {
        self.to_front += 1;
    }
}

struct SplitBlockFixture {
    front: BlockFrontend,
    back: BlockBackend<GrantHandle>,
    shared: SharedBlockState,
}

impl SplitBlockFixture {
    fn new() -> Self {
        let mut machine = HostMachine::new(ProcessorConfig::from_table(&CostTable::nehalem(), 1, 1));
        let service = machine.add_domain(DomainKind::Dom0, "dom0".into());
        let guest = machine.add_domain(DomainKind::Pvm, "guest".into());
        let mut grants = GrantTables::new();
        grants.add_domain(guest, PAGES, 256);
        let ring = RingPage::default();
        let shared = SharedBlockState { ring, grants, service, guest, mapped: 0, to_front: 0, to_back: 0 };
        Self { front: BlockFrontend::default(), back: BlockBackend::new(DISK, true), shared }
    }

    fn submit(&mut self, sector: u64, sectors: u32) -> Result<u16, BlockSubmitError> {
        let id = self.front.submit(false, sector, (0, sectors), &mut self.shared);
        self.front.flush(&mut self.shared);
        id
    }

    fn take(&mut self) -> BlockRequestOutcome {
        self.back.take(&mut self.shared)
    }

    fn command(&mut self) -> BlockCommand {
        let BlockRequestOutcome::Command(command) = self.take() else { panic!("expected a disk command") };
        command
    }

    fn done(&mut self) -> Vec<CompletedBlockRequest> {
        core::iter::from_fn(|| self.front.take(&mut self.shared)).collect()
    }

    /// Writes slots into the disk's shared ring and publishes them without the front end, as a hostile guest may.
    fn write(&mut self, slots: &[[u8; 12]]) {
        let page = &mut self.shared.ring;
        for slot in slots {
            page.slots[(page.requests % SLOTS) as usize] = *slot;
            page.requests = page.requests.wrapping_add(1);
        }
    }

    /// Asserts that only pages of pending block requests are mapped, and that the back end has answered every other
    /// request once.
    fn assert_mapped_and_answered(&self) {
        let counters = self.back.counters();
        assert_eq!(counters.taken - counters.done, self.back.in_flight() as u64);
        assert!(self.shared.mapped <= REQUESTS as u32 * u32::from(SEGMENTS));
        assert!(self.back.in_flight() > 0 || self.shared.mapped == 0, "{} pages", self.shared.mapped);
    }
}

fn request(operation: u8, sector: u64, reference: u32, (first, last): (u8, u8)) -> [[u8; 12]; 2] {
    let header = BlockRequestHeader { operation, segments: 1, id: 7, sector };
    [header.emit(), BlockRequestSegment { reference, first, last }.emit()]
}

#[test]
fn block_messages_are_decoded_as_they_were_encoded() {
    let header = BlockRequestHeader { operation: WRITE, segments: 11, id: 0xfedc, sector: u64::MAX - 3 };
    assert_eq!(BlockRequestHeader::parse(&header.emit()), header);
    let segment = BlockRequestSegment { reference: 0x0102_0304, first: 2, last: 7 };
    assert_eq!(BlockRequestSegment::parse(&segment.emit()), segment);
    let response = BlockResponse { id: 31, status: status::ERROR };
    assert_eq!(BlockResponse::parse(&response.emit()), response);
}

#[test]
fn pages_of_a_block_request_stay_mapped_until_the_disk_is_done() {
    let mut bench = SplitBlockFixture::new();
    let id = bench.submit(100, 20).unwrap();
    assert_eq!(bench.shared.to_back, 1, "the submitted request sends the back end an event");
    let command = bench.command();
    assert_eq!((command.sector, command.sectors, command.write), (100, 20, false));
    assert_eq!((bench.shared.mapped, bench.shared.to_front), (3, 0));
    assert!(bench.back.complete(command.tag, true, &mut bench.shared));
    assert!(!bench.back.complete(command.tag, true, &mut bench.shared), "once");
    assert_eq!((bench.shared.mapped, bench.shared.to_front), (0, 1));
    assert_eq!(bench.done(), [CompletedBlockRequest { id, succeeded: true }]);
    assert_eq!((bench.take(), bench.front.in_flight()), (BlockRequestOutcome::Idle, 0));
    bench.assert_mapped_and_answered();
}

#[test]
fn block_responses_follow_the_order_of_completion() {
    let mut bench = SplitBlockFixture::new();
    let ids: Vec<u16> = (0..4).map(|n| bench.submit(n * 88, 88).unwrap()).collect();
    let tags: Vec<u8> = (0..4).map(|_| bench.command().tag).collect();
    for at in [2, 0, 3, 1] {
        assert!(bench.back.complete(tags[at], at != 3, &mut bench.shared));
        assert_eq!(bench.done(), [CompletedBlockRequest { id: ids[at], succeeded: at != 3 }]);
        bench.assert_mapped_and_answered();
    }
}

#[test]
fn block_ring_indices_wrap_without_losing_requests() {
    let mut bench = SplitBlockFixture::new();
    for n in 0..1_000 {
        let id = bench.submit(n % 9_000, 1 + (n % 88) as u32).unwrap();
        let tag = bench.command().tag;
        bench.back.complete(tag, true, &mut bench.shared);
        assert_eq!(bench.done(), [CompletedBlockRequest { id, succeeded: true }], "{n}");
    }
    bench.assert_mapped_and_answered();
}

#[test]
fn block_request_of_invalid_length_or_to_full_ring_is_rejected() {
    let mut bench = SplitBlockFixture::new();
    assert_eq!(bench.submit(0, 0), Err(BlockSubmitError::Length));
    assert_eq!(bench.submit(0, 89), Err(BlockSubmitError::Length));
    let made = (0..).take_while(|_| bench.submit(0, 88).is_ok()).count();
    assert_eq!(made, SLOTS as usize / 12, "a full ring has a slot for every request and its segments");
    assert_eq!(bench.submit(0, 88), Err(BlockSubmitError::Full));
}

#[test]
fn invalid_block_request_is_answered_with_an_error() {
    let mut bench = SplitBlockFixture::new();
    let page = bench.shared.grant(3, true).unwrap();
    let read_only = bench.shared.grant(4, false).unwrap();
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
        assert_eq!(bench.take(), BlockRequestOutcome::Refused, "{slots:?}");
        let answer = bench.shared.ring.slots[refused * 2];
        assert_eq!(BlockResponse::parse(&answer), BlockResponse { id: 7, status: status::ERROR });
        assert_eq!(bench.shared.mapped, 0);
    }
    bench.write(&[BlockRequestHeader { operation: READ, segments: 0, id: 1, sector: 0 }.emit()]);
    assert_eq!(bench.take(), BlockRequestOutcome::Refused, "a request without a segment is refused");
    bench.write(&request(WRITE, 0, read_only, whole));
    assert!(bench.command().write, "the request after a refused one is served");
    assert!(!bench.back.is_broken());
    bench.assert_mapped_and_answered();
}

#[test]
fn block_request_with_an_unmappable_page_leaves_no_page_mapped() {
    let mut bench = SplitBlockFixture::new();
    let page = bench.shared.grant(0, true).unwrap();
    let header = BlockRequestHeader { operation: READ, segments: 3, id: 0, sector: 0 }.emit();
    let piece = |reference| BlockRequestSegment { reference, first: 0, last: 7 }.emit();
    bench.write(&[header, piece(page), piece(page), piece(9_999)]);
    assert_eq!((bench.take(), bench.shared.mapped), (BlockRequestOutcome::Refused, 0));
}

#[test]
fn write_to_a_read_only_disk_is_refused() {
    let mut bench = SplitBlockFixture::new();
    bench.back = BlockBackend::new(DISK, false);
    let page = bench.shared.grant(0, false).unwrap();
    bench.write(&request(WRITE, 0, page, (0, 7)));
    assert_eq!(bench.take(), BlockRequestOutcome::Refused);
}

#[test]
fn invalid_request_index_disables_the_block_ring() {
    for claim in [SLOTS + 1, u32::MAX, 1 << 31] {
        let mut bench = SplitBlockFixture::new();
        bench.shared.ring.requests = claim;
        assert_eq!(bench.take(), BlockRequestOutcome::Idle);
        assert!(bench.back.is_broken());
    }
    for segments in [2, SEGMENTS, SEGMENTS + 1, u8::MAX] {
        let mut bench = SplitBlockFixture::new();
        let header = BlockRequestHeader { operation: READ, segments, id: 0, sector: 0 }.emit();
        bench.write(&[header, header]);
        assert_eq!(bench.take(), BlockRequestOutcome::Idle, "the ring holds only part of the request");
        assert!(bench.back.is_broken());
    }
}

#[test]
fn guest_that_takes_no_disk_responses_blocks_only_itself() {
    let mut bench = SplitBlockFixture::new();
    let page = bench.shared.grant(0, true).unwrap();
    (0..SLOTS / 2).for_each(|_| bench.write(&request(READ, 0, page, (0, 7))));
    let mut taken = 0;
    while let BlockRequestOutcome::Command(command) = bench.take() {
        bench.back.complete(command.tag, true, &mut bench.shared);
        taken += 1;
    }
    assert_eq!(taken, SLOTS / 2);
    bench.assert_mapped_and_answered();
}

#[test]
fn block_response_to_an_unknown_request_is_ignored() {
    let mut bench = SplitBlockFixture::new();
    let id = bench.submit(0, 8).unwrap();
    for (at, wrong) in [u16::MAX, id + 1].into_iter().enumerate() {
        bench.shared.ring.slots[at] = BlockResponse { id: wrong, status: status::OKAY }.emit();
    }
    bench.shared.ring.responses = 2;
    assert_eq!((bench.done(), bench.front.in_flight()), (Vec::new(), 1));
}

/// Checks that random slots and indices of a guest's ring cause bounded work, and that only pages of pending requests
/// stay mapped.
#[test]
fn random_ring_contents_do_not_panic_the_block_back_end() {
    let mut state = 1u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    for _ in 0..300 {
        let mut bench = SplitBlockFixture::new();
        let page = bench.shared.grant(0, true).unwrap();
        for slot in &mut bench.shared.ring.slots {
            slot.iter_mut().for_each(|byte| *byte = noise() as u8);
            *slot = match noise() % 4 {
                0 => BlockRequestHeader { operation: READ, segments: (noise() % 4) as u8, id: 0, sector: 0 }
                    .emit(),
                1 => BlockRequestSegment { reference: page, first: 0, last: (noise() % 9) as u8 }.emit(),
                _ => *slot,
            };
        }
        bench.shared.ring.requests = noise() % (SLOTS + 8);
        for turn in 0.. {
            assert!(turn <= SLOTS);
            match bench.take() {
                BlockRequestOutcome::Command(command) if noise() % 2 == 0 => {
                    bench.back.complete(command.tag, true, &mut bench.shared);
                }
                BlockRequestOutcome::Idle => break,
                _ => {}
            }
            bench.assert_mapped_and_answered();
        }
    }
}
