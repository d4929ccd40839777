//! Tests of journals with changed words: they are refused, or read as one state.

use super::*;
use crate::port::clients::journal::check::check_changed_journal;
use crate::port::clients::journal::layout::COUNT_LIMIT;
use proptest::prelude::{Just, Strategy, any, prop_oneof, proptest};

/// Draws a word of a journal: a small number, an extreme one, or any.
fn word() -> impl Strategy<Value = u64> {
    // The check counts on from a word, and its own numbers must stay below the limit.
    prop_oneof![0..9_u64, Just(u64::MAX), Just(COUNT_LIMIT - 64), any::<u64>()]
}

proptest! {
    #[test]
    fn journal_with_changed_words_is_refused_or_kept_as_it_is_read(
        changes in proptest::collection::vec((prop_oneof![0..90_u16, any::<u16>()], word()), 0..6),
    ) {
        check_changed_journal(changes);
    }
}

#[test]
fn journal_with_a_number_beyond_all_counts_is_refused() {
    for place in [HEADER.next, HEADER.attempts, HEADER.software, HEADER.highest] {
        let (journal, _) = open();
        put(&journal.memory, place, &[u64::MAX]);
        let adopted = PortJournal::adopt(journal.as_fd().try_clone_to_owned().unwrap());
        assert!(matches!(adopted, Err(JournalError::Damaged)), "{place}");
    }
}

#[test]
fn function_with_a_commit_beyond_all_counts_has_no_client() {
    let (journal, mut function) = open();
    function.step(progress(0));
    let at = layout::FunctionJournalOffsets::at(4);
    at.progress.into_iter().for_each(|record| put(&journal.memory, record, &[u64::MAX]));
    assert_eq!(found(&journal).progress, ClientMessageProgress::default());
    journal.function(Function::Vf(3)).step(progress(5));
    assert_eq!(found(&journal).progress, progress(5));
}

/// Found by the fuzz target `journal`: the number beside a damaged commit applied, until the next commit erased it.
#[test]
fn eventfd_without_a_commit_is_no_eventfd_of_the_vector() {
    let (journal, mut function) = open();
    function.step(progress(0));
    let entry = layout::FunctionJournalOffsets::at(4).irqs + (2 * layout::IRQS_A_TYPE + 2) * layout::IRQ;
    put(&journal.memory, entry, &[u64::MAX, 7, 0, 8]);
    assert_eq!(found(&journal).irqs, []);
    let mut next = journal.function(Function::Vf(3));
    next.step(progress(0));
    assert_eq!(found(&journal).irqs, []);
}
