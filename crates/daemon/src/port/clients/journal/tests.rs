//! Tests of the journal of clients: a process may end between any two stores to the journal. Its successor process
//! finds the state before the current commit or after the commit.

mod damage;

use super::function::SavedClient;
use super::*;
use crate::port::engine::ring_records::RECORDS;
use host::dma::DmaPermissions;
use host::socket::{IncompleteMessageRange, UnsentReplyRange};
use pcie::Function;
use vfio_user::wire::MAX_MESSAGE_FDS;

fn open() -> (PortJournal, FunctionJournal) {
    let journal = PortJournal::new(8).unwrap();
    let function = journal.function(Function::Vf(3));
    (journal, function)
}

fn window(iova: u64, file: u64) -> SavedDmaWindow {
    SavedDmaWindow { iova, size: 0x1000, permissions: DmaPermissions::READ_WRITE, file, offset: iova * 2 }
}

fn progress(consuming: u64) -> ClientMessageProgress {
    let mut fds = [0; MAX_MESSAGE_FDS];
    fds[..3].copy_from_slice(&[9, NOT_KEPT, 10]);
    ClientMessageProgress {
        stream: 7,
        replies: 8,
        extent: UnsentReplyRange { begin: 4096, end: 5000 },
        consuming,
        peeked: consuming + 5,
        held: IncompleteMessageRange { begin: 8192, length: 20 },
        skipped: 3,
        fds,
        agreed: Some((1, true)),
        torn: false,
    }
}

/// Returns the saved state of VF 3's client that the successor process finds in the journal.
fn found(journal: &PortJournal) -> SavedClient {
    let copy = journal.as_fd().try_clone_to_owned().unwrap();
    PortJournal::adopt(copy).unwrap().function(Function::Vf(3)).noted()
}

#[test]
fn journal_gives_next_process_the_committed_client_progress() {
    let (journal, mut function) = open();
    assert_eq!(found(&journal).progress, ClientMessageProgress::default());
    function.step(progress(99));
    assert_eq!(found(&journal).progress, progress(99));
    assert_eq!(
        PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap())
            .unwrap()
            .function(Function::Vf(2))
            .progress(),
        ClientMessageProgress::default()
    );
}

#[test]
fn journal_drops_file_descriptors_of_an_earlier_message() {
    let (journal, mut function) = open();
    let full = ClientMessageProgress { fds: [4; MAX_MESSAGE_FDS], ..progress(0) };
    for step in [full, full, full.without_held(), progress(1), full.without_held(), progress(2)] {
        function.step(step);
        assert_eq!(found(&journal).progress, step);
    }
}

#[test]
fn journal_of_an_earlier_version_is_read_or_reported_torn() {
    let (journal, _) = open();
    let at = layout::FunctionJournalOffsets::at(4);
    for (handled, flags, torn) in [(0, 0, false), (0, 1, true), (40, 0, true)] {
        let earlier = [9, 0, 7, 8, 4096, 5000, handled, 0x1122, 0x3344, flags, 1 << 16 | 3];
        put(&journal.memory, at.progress[0], &earlier);
        put(&journal.memory, at.which, &[0]);
        let expected = ClientMessageProgress { torn, ..progress(0).without_held() };
        assert_eq!(found(&journal).progress, ClientMessageProgress { peeked: 0, ..expected });
    }
}

#[test]
fn dma_windows_and_eventfds_become_valid_at_journal_commit() {
    let (journal, mut function) = open();
    function.step(progress(0));
    assert!(function.add_window(&window(0x1000, 5)));
    function.set_irq(SavedEventfd { index: 2, vector: 1, number: 11 });
    assert!(
        found(&journal).windows.is_empty() && found(&journal).irqs.is_empty(),
        "the message is not handled"
    );
    function.step(progress(0));
    assert_eq!(found(&journal).windows, [window(0x1000, 5)]);
    assert_eq!(found(&journal).irqs, [SavedEventfd { index: 2, vector: 1, number: 11 }]);

    function.remove_windows(0x1000, 0x1000);
    function.set_irq(SavedEventfd { index: 2, vector: 1, number: 0 });
    assert_eq!((found(&journal).windows.len(), found(&journal).irqs.len()), (1, 1));
    function.step(progress(0));
    assert_eq!((found(&journal).windows.len(), found(&journal).irqs.len()), (0, 0));
}

#[test]
fn journal_returns_the_last_eventfd_of_an_interrupt_vector() {
    let (journal, mut function) = open();
    let set = |function: &mut FunctionJournal, number| {
        function.set_irq(SavedEventfd { index: 0, vector: 0, number });
    };
    let numbers = |journal| found(journal).irqs.iter().map(|irq| irq.number).collect::<Vec<_>>();
    for number in 1..20 {
        set(&mut function, 100 + number);
        set(&mut function, number);
        assert_eq!(numbers(&journal), if number == 1 { vec![] } else { vec![number - 1] });
        function.step(progress(0));
        assert_eq!(numbers(&journal), [number]);
    }
    set(&mut function, 0);
    function.step(progress(0));
    assert!(numbers(&journal).is_empty());
}

#[test]
fn removed_dma_windows_free_their_journal_entries() {
    let (journal, mut function) = open();
    for iova in 1..=1000 {
        assert!(function.add_window(&window(iova << 12, 5)));
    }
    function.step(progress(0));
    assert_eq!(found(&journal).windows.len(), 1000);
    function.clear_windows();
    assert_eq!(found(&journal).windows.len(), 1000);
    function.step(progress(0));
    assert!(found(&journal).windows.is_empty());
    assert!(function.add_window(&window(0x5000, 6)));
    function.step(progress(0));
    assert_eq!(found(&journal).windows, [window(0x5000, 6)]);
}

/// Returns the number of the journal's entries that the last commit says are in use.
fn entries_in_use(journal: &PortJournal) -> u64 {
    let at = layout::FunctionJournalOffsets::at(4);
    get(&journal.memory, at.progress[(get(&journal.memory, at.which) % 2) as usize] + 8)
}

#[test]
fn removal_of_all_dma_windows_leaves_no_entry_in_use() {
    let (journal, mut function) = open();
    for iova in 1..=100 {
        assert!(function.add_window(&window(iova << 12, 5)));
    }
    function.remove_windows(0x5000, 0x3000);
    function.step(progress(0));
    assert_eq!((found(&journal).windows.len(), entries_in_use(&journal)), (97, 100));
    function.clear_windows();
    // The process dies here: the windows are still valid.
    assert_eq!((found(&journal).windows.len(), entries_in_use(&journal)), (97, 100));
    function.step(progress(1));
    assert_eq!((found(&journal).windows.len(), entries_in_use(&journal)), (0, 0));
    // The successor process begins with the first entry, which still has the words of an earlier window.
    let copy = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap()).unwrap();
    let mut next = copy.function(Function::Vf(3));
    assert!(next.add_window(&window(0x9000, 6)));
    assert!(found(&journal).windows.is_empty());
    next.step(progress(2));
    assert_eq!((found(&journal).windows, entries_in_use(&journal)), (vec![window(0x9000, 6)], 1));
}

#[test]
fn removal_of_all_dma_windows_commits_with_later_ones() {
    let (journal, mut function) = open();
    for iova in 1..=100 {
        assert!(function.add_window(&window(iova << 12, 5)));
    }
    function.step(progress(0));
    function.clear_windows();
    assert!(function.add_window(&window(0x5000, 6)));
    assert!(function.add_window(&window(0x200_0000, 6)));
    let before = found(&journal).windows;
    assert_eq!(before, (1..=100).map(|iova| window(iova << 12, 5)).collect::<Vec<_>>());
    function.step(progress(0));
    assert_eq!(found(&journal).windows, [window(0x5000, 6), window(0x200_0000, 6)]);
    function.clear_windows();
    function.clear_windows();
    function.step(progress(0));
    assert_eq!((found(&journal).windows.len(), entries_in_use(&journal)), (0, 0));
    assert!(function.add_window(&window(0x5000, 6)));
    function.step(progress(0));
    function.remove_windows(0, 1 << 20);
    function.step(progress(0));
    assert_eq!((found(&journal).windows.len(), entries_in_use(&journal)), (0, 0));
}

#[test]
fn dma_window_beyond_the_journals_limit_is_refused() {
    let (journal, mut function) = open();
    let all = layout::MOST_WINDOWS;
    assert!((0..all).all(|n| function.add_window(&window(n << 12, 0))));
    assert!(!function.add_window(&window(all << 12, 0)));
    function.step(progress(0));
    function.remove_windows(0x3000, 0x2000);
    function.step(progress(0));
    assert!(function.add_window(&window(all << 12, 0)));
    function.step(progress(0));
    assert_eq!(found(&journal).windows.len() as u64, all - 1);
}

#[test]
fn next_process_adds_and_removes_dma_windows_in_the_journal() {
    let (journal, mut function) = open();
    assert!(function.add_window(&window(0x1000, 5)));
    function.step(progress(0));
    let copy = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap()).unwrap();
    let mut next = copy.function(Function::Vf(3));
    assert!(next.add_window(&window(0x2000, 5)));
    next.remove_windows(0x1000, 0x1000);
    next.step(progress(5));
    assert_eq!(found(&journal).windows, [window(0x2000, 5)]);
    assert!(copy.number() < journal.number(), "numbers are never used twice");
}

#[test]
fn uncommitted_journal_changes_never_become_valid_later() {
    let (journal, mut function) = open();
    assert!(function.add_window(&window(0x1000, 5)));
    function.set_irq(SavedEventfd { index: 2, vector: 0, number: 11 });
    function.step(progress(0));
    // The process dies within a message that would have replaced one window and changed eventfds.
    function.remove_windows(0x1000, 0x1000);
    assert!(function.add_window(&window(0x2000, 6)));
    function.set_irq(SavedEventfd { index: 2, vector: 0, number: 12 });
    function.set_irq(SavedEventfd { index: 2, vector: 1, number: 13 });
    let before = found(&journal);
    assert_eq!((&before.windows[..], before.irqs.len()), (&[window(0x1000, 5)][..], 1));

    let copy = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap()).unwrap();
    let mut next = copy.function(Function::Vf(3));
    next.step(progress(0));
    next.step(progress(0));
    let after = found(&journal);
    assert_eq!((after.windows, after.irqs), (before.windows, before.irqs));
}

#[test]
fn saved_state_of_an_idle_port_is_valid_until_a_change() {
    let journal = PortJournal::new(8).unwrap();
    let mut rest = journal.rest();
    assert_eq!(rest.read(), None);
    assert!(rest.note(b"everything"));
    assert_eq!(journal.rest().read().as_deref(), Some(b"everything".as_slice()));
    rest.disturb();
    assert_eq!(journal.rest().read(), None);
    assert!(!rest.note(&vec![0; 8 << 20]) && !journal.rest().is_valid());
}

#[test]
fn driver_state_too_long_for_the_journal_is_refused() {
    let journal = PortJournal::new(8).unwrap();
    assert_eq!(journal.software(), b"");
    assert!(journal.note_software(b"old"));
    assert!(journal.note_software(b"newer"));
    assert_eq!(journal.software(), b"newer");
    assert!(!journal.note_software(&vec![0; 1 << 20]));
    assert_eq!(journal.software(), b"newer");
}

/// A VF may have a pending packet of 256 KB and eight pending messages, and a list of all VLANs, in force and
/// configured.
#[test]
fn journal_of_64_vfs_has_room_for_all_pending_requests() {
    let journal = PortJournal::new(64).unwrap();
    let rest = vec![1; 64 * ((256 << 10) + 8 * 4096 + (64 << 10))];
    assert!(journal.rest().note(&rest));
    let software = vec![2; 64 * 2 * 4096 * 3 + (128 << 10)];
    assert!(journal.note_software(b"old") && journal.note_software(&software));
    journal.function(Function::Vf(63)).step(progress(63));
    let found = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap()).unwrap();
    assert!(found.rest().read() == Some(rest) && found.software() == software);
    assert_eq!(found.function(Function::Vf(63)).progress().consuming, 63);
}

#[test]
fn each_vf_has_its_own_part_of_the_journal() {
    let journal = PortJournal::new(64).unwrap();
    for n in 0..64 {
        journal.function(Function::Vf(n)).step(progress(n.into()));
    }
    let found = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap()).unwrap();
    let consuming: Vec<u64> = (0..64).map(|n| found.function(Function::Vf(n)).progress().consuming).collect();
    assert_eq!(consuming, (0..64).collect::<Vec<_>>());
    assert!(found.check_room(64).is_ok());
    assert_eq!(found.function(Function::Pf).progress(), ClientMessageProgress::default());
}

/// Earlier versions of softiov created journals for eight VFs for every family. An 82576 has at most eight VFs.
#[test]
fn journal_made_for_eight_vfs_refuses_more_vfs() {
    let journal = PortJournal::new(8).unwrap();
    assert_eq!(journal.memory.memory().len(), (8 + 9 * 5) << 20);
    let found = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap()).unwrap();
    assert!(found.check_room(8).is_ok());
    let refused = found.check_room(9).unwrap_err().to_string();
    assert!(refused.contains("room for 8 VFs") && refused.contains("restart the host"), "{refused}");
}

#[test]
fn memory_without_a_journal_header_is_refused() {
    for (length, magic) in [
        (4096, MAGIC),
        (layout::size(8) + 1, MAGIC),
        (layout::size(65), MAGIC),
        (layout::size(0), MAGIC),
        (layout::size(8), 0),
    ] {
        let memory = SharedMemory::new(length).unwrap();
        put(&memory, HEADER.magic, &[magic]);
        let found = PortJournal::adopt(memory.as_fd().try_clone_to_owned().unwrap());
        assert!(matches!(found, Err(JournalError::Version)), "{length}");
    }
}

/// Returns the saved PCI configuration of VF 3 that the successor process finds in the journal.
fn configuration(journal: &PortJournal) -> Option<Vec<u8>> {
    let copy = journal.as_fd().try_clone_to_owned().unwrap();
    PortJournal::adopt(copy).unwrap().configuration(Function::Vf(3))
}

#[test]
fn driver_state_save_invalidates_saved_pci_configuration() {
    let (journal, function) = open();
    assert!(!function.note_configuration(b"early"), "there is no software yet");
    for round in 0_u8..5 {
        assert!(journal.note_software(b"whole"));
        assert_eq!(configuration(&journal), None);
        for change in 0..3 {
            assert!(function.note_configuration(&[round, change]));
            assert_eq!(configuration(&journal), Some(vec![round, change]));
        }
        assert!(!function.note_configuration(&[0; 1536]), "there is no room");
        assert_eq!(configuration(&journal), Some(vec![round, 2]));
        assert_eq!(journal.configuration(Function::Vf(2)), None);
        assert_eq!(journal.software(), b"whole");
    }
}

#[test]
fn driver_state_of_an_old_version_invalidates_pci_config() {
    let (journal, function) = open();
    for _ in 0..4 {
        assert!(journal.note_software(b"new"));
        assert!(function.note_configuration(b"new"));
        // An earlier version writes only the word that selects one of the two places.
        let place = 1 - get(&journal.memory, HEADER.software) % 2;
        put(&journal.memory, layout::PortJournalOffsets::of(8).software[place as usize], &[0]);
        put(&journal.memory, HEADER.software, &[place]);
        assert_eq!((journal.software(), configuration(&journal)), (Vec::new(), None));
        assert!(!function.note_configuration(b"new"), "that software does not have this function");
    }
}

#[test]
fn journal_parts_of_any_number_of_vfs_have_no_common_byte() {
    use super::layout::{
        FunctionJournalOffsets, HEADER, IRQ, IRQ_TYPES, IRQS_A_TYPE, MOST_WINDOWS, NOTE, WINDOW,
    };
    for vfs in 1..=pcie::MAX_VFS {
        let port = layout::PortJournalOffsets::of(vfs);
        let mut parts = vec![(HEADER.magic, 40), (port.rest, port.rest_room)];
        parts.extend(port.software.map(|at| (at, port.software_room)));
        for place in 0..=vfs {
            let at = FunctionJournalOffsets::at(place);
            parts.extend([(at.which, 8), (at.noted, 8), (at.irqs, IRQ * IRQS_A_TYPE * IRQ_TYPES)]);
            parts.extend(at.progress.map(|at| (at, 256)));
            parts.extend(at.notes.map(|at| (at, NOTE)));
            parts.extend([(at.windows, WINDOW * MOST_WINDOWS), (at.records, RECORDS)]);
        }
        parts.sort_unstable();
        for pair in parts.windows(2) {
            assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{vfs} VFs: {pair:?}");
        }
        let (last, bytes) = parts[parts.len() - 1];
        assert!(last + bytes <= layout::size(vfs) && layout::vfs(layout::size(vfs)) == Some(vfs));
    }
}

#[test]
fn next_driver_state_number_is_new_and_changes_the_copy() {
    for (before, highest) in (0..1024).flat_map(|before| (0..1024).map(move |highest| (before, highest))) {
        let next = configuration::next_software(before, highest);
        assert!(next > highest && next >= 2 && next % 2 != before % 2, "{before} {highest}");
    }
}
