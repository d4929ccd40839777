//! Migration logs: whatever guests do, each page of guest memory that the card changes is marked. The card runs over the DMA tables
//! of a live port.

use crate::bursts::action;
use crate::conversation::{ConversationAction, GuestConversation, VFS};
use crate::machine::{MEMORY, TestMachine};
use host::dma::{DmaLimits, DmaPermissions, DmaTable, FrameCopyList, PayloadCopyList};
use host::memory::{MappedFile, MemoryProtection};
use host::shared::SharedMemory;
use pcie::burst::{FrameCopyBatch, HEAD, HEADERS, HeadCompleter, SegmentPayloads};
use pcie::{Bus, DmaFault, Function, HintedMemory, Iova};
use proptest::collection::vec;
use proptest::prelude::{ProptestConfig, any};
use proptest::{prop_oneof, proptest};
use std::os::fd::AsFd;
use units::Time;

const PAGE: usize = 4096;
/// Size of a log in bytes: a bit for each page of a guest's memory, rounded up.
const LOG: u64 = (MEMORY / PAGE / 8 + 1) as u64;
/// Address at which guest memory continues in another DMA region: within the receive buffers.
const BORDER: u64 = 0x8_5000;

/// Memory of a guest behind a DMA table with a migration log.
struct LoggedMemory {
    table: DmaTable,
    log: MappedFile,
    /// Contents of the memory after the last poll.
    known: Vec<u8>,
}

impl LoggedMemory {
    fn new() -> Self {
        let (mut table, memory) = (DmaTable::new(DmaLimits::default()), shared(MEMORY as u64));
        for (first, end) in [(0, BORDER), (BORDER, MEMORY as u64)] {
            let pending = table.admit(first, end - first, DmaPermissions::READ_WRITE, Some(first)).unwrap();
            let fd = memory.as_fd().try_clone_to_owned().unwrap();
            table.insert(pending.unwrap().map(fd).unwrap()).unwrap();
        }
        let file = shared(LOG);
        let log = MappedFile::map(file.as_fd(), 0, LOG, MemoryProtection::ReadWrite).unwrap();
        let fd = file.as_fd().try_clone_to_owned().unwrap();
        drop(table.set_log(table.admit_log(LOG, 0).unwrap().map(fd).unwrap()));
        drop(table.enable_log(true));
        Self { table, log, known: vec![0; MEMORY] }
    }

    /// Takes over the pages that the guest has changed, and clears the log.
    fn enter(&mut self, memory: &[u8]) {
        let pages = memory.chunks(PAGE).zip(self.known.chunks_mut(PAGE)).enumerate();
        for (page, (now, known)) in pages.filter(|(_, (now, known))| now != &&**known) {
            self.table.write((page * PAGE) as u64, now).unwrap();
            known.copy_from_slice(now);
        }
        self.log.write(0, &[0; LOG as usize]).unwrap();
    }

    /// Returns the guest's memory to the driver, and asserts that each page that the card has changed is marked.
    fn leave(&mut self, memory: &mut [u8]) {
        let mut marks = [0; LOG as usize];
        self.log.read(0, &mut marks).unwrap();
        self.table.read(0, memory).unwrap();
        for (page, (now, known)) in memory.chunks(PAGE).zip(self.known.chunks_mut(PAGE)).enumerate() {
            if now != known {
                assert!(marks[page / 8] >> (page % 8) & 1 != 0, "page {page} is changed and not marked");
                known.copy_from_slice(now);
            }
        }
    }
}

fn shared(bytes: u64) -> SharedMemory {
    SharedMemory::new(bytes).unwrap()
}

/// Bus to the logged memories of all guests.
struct LoggedBus(Vec<LoggedMemory>);

impl LoggedBus {
    fn of(&self, function: Function) -> &DmaTable {
        let Function::Vf(n) = function else { panic!("only VFs have memory") };
        &self.0[usize::from(n)].table
    }

    /// Polls the card of a machine once over the logged memories.
    fn poll(&mut self, machine: &mut TestMachine, now: u64, budget: usize) -> bool {
        let memories = machine.bus.memories.iter();
        self.0.iter_mut().zip(memories).for_each(|(logged, memory)| logged.enter(memory));
        let TestMachine { nic, plane, wire, mirrors, .. } = machine;
        plane.now = Time::from_nanos(now);
        (plane.uplink.link, plane.uplink.receives) = (true, true);
        if nic.take_changed().is_some() {
            nic.apply_policy(plane, mirrors);
        }
        let arrived = nic.arrive(plane, budget, self, wire);
        let more = nic.visit_ready(plane, budget, self, wire);
        let memories = machine.bus.memories.iter_mut();
        self.0.iter_mut().zip(memories).for_each(|(logged, memory)| logged.leave(memory));
        arrived || more
    }
}

fn fault(function: Function) -> impl Fn(host::dma::DmaFault) -> DmaFault {
    move |fault| DmaFault { function, iova: fault.iova }
}

impl Bus for LoggedBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.of(function).read(iova, into).map_err(fault(function))
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.of(function).write(iova, from).map_err(fault(function))
    }

    fn read_descriptors(
        &mut self,
        HintedMemory { function, hint }: HintedMemory<'_>,
        iova: Iova,
        into: &mut [u8],
    ) -> Result<(), DmaFault> {
        self.of(function).read_by(&mut hint.0, iova, into).map_err(fault(function))
    }

    fn write_descriptors(
        &mut self,
        HintedMemory { function, hint }: HintedMemory<'_>,
        iova: Iova,
        from: &[u8],
        size: usize,
    ) -> Result<(), DmaFault> {
        self.of(function).write_descriptors_by(&mut hint.0, iova, from, size).map_err(fault(function))
    }

    fn gather(
        &mut self,
        from: HintedMemory<'_>,
        sources: &[Iova],
        lengths: &[u32],
        heads: &mut [[u8; HEAD]],
    ) -> usize {
        self.of(from.function).gather(&mut from.hint.0, sources, lengths, heads)
    }

    fn carry(
        &mut self,
        from: HintedMemory<'_>,
        to: HintedMemory<'_>,
        run: FrameCopyBatch<'_>,
        complete: Option<&mut HeadCompleter<'_>>,
    ) -> usize {
        let FrameCopyBatch { heads, sources, lengths, targets, sums } = run;
        let run = FrameCopyList { heads, sources, lengths, targets, sums };
        let target = (self.of(to.function), &mut to.hint.0);
        self.of(from.function).carry(&mut from.hint.0, target, run, complete)
    }

    fn copy(&mut self, from: HintedMemory<'_>, to: HintedMemory<'_>, payloads: SegmentPayloads<'_>) -> usize {
        let SegmentPayloads { sources, lengths, targets, sums } = payloads;
        let payloads = PayloadCopyList { sources, lengths, targets, sums };
        self.of(from.function).copy(&mut from.hint.0, self.of(to.function), &mut to.hint.0, payloads)
    }

    fn scatter(
        &mut self,
        to: HintedMemory<'_>,
        headers: &[[u8; HEADERS]],
        length: usize,
        targets: &[Iova],
    ) -> usize {
        self.of(to.function).scatter(&mut to.hint.0, headers, length, targets)
    }

    fn msix(&mut self, _: Function, _: u16) {}
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]
    #[test]
    fn each_page_that_the_card_changes_is_marked(
        guests in any::<[u16; VFS as usize]>(),
        bursts in any::<bool>(),
        // Half of the buffers begin with a header at the end of a page.
        shift in (0..256_u64, prop_oneof![0..4_096_u64, 0xfa8..0xfc0_u64]),
        actions in vec(action(), 1..60),
    ) {
        // Rings and frames cross pages. Else the mark of a header or an index would stand for the rest of its page.
        let mut conversation = GuestConversation::shifted(guests, [16 * shift.0, shift.1]);
        if !bursts {
            conversation.machine.nic.take_no_shortcuts();
        }
        let mut bus = LoggedBus((0..VFS).map(|_| LoggedMemory::new()).collect());
        let mut now = 0;
        for action in actions {
            if let ConversationAction::Poll(later, budget) = action {
                now += later;
                bus.poll(&mut conversation.machine, now, budget.into());
            } else {
                conversation.perform(&action);
            }
        }
        bus.poll(&mut conversation.machine, now + (1 << 40), 64);
    }
}
