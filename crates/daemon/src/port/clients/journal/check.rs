//! Check of a journal with any contents, as the fuzz target of the journal and a property test call it.

use super::layout::{self, HEADER};
use super::memory::put;
use super::{ClientMessageProgress, PortJournal, SavedClient, SavedDmaWindow, SavedEventfd};
use host::dma::DmaPermissions;
use pcie::Function;
use std::os::fd::AsFd;

/// Functions of the checked journal.
const FUNCTIONS: [Function; 3] = [Function::Pf, Function::Vf(0), Function::Vf(1)];
/// Words at the beginning of the port's saved states that [`changed_word`] reaches: mark, length, and some bytes.
const WORDS_OF_STATE: u64 = 4;

/// Creates a journal with clients, replaces words in it, and adopts it as a successor process does. Each change has a
/// place (see `changed_word`) and the new word.
///
/// # Panics
/// If a journal that can be adopted loses or changes a client when the successor saves it again.
pub fn check_changed_journal(changes: impl IntoIterator<Item = (u16, u64)>) {
    let journal = sample();
    for (place, word) in changes {
        put(&journal.memory, changed_word(place), &[word]);
    }
    let Ok(adopted) = adopt(&journal) else { return };
    let _ = (adopted.attempt(), adopted.number());
    adopted.succeeded();
    let software = adopted.software();
    for function in FUNCTIONS {
        let mut own = adopted.function(function);
        let found = own.noted();
        let configuration = adopted.configuration(function);
        own.step(found.progress);
        assert_same(&read(&adopted, function), &found);
        assert_eq!(adopted.configuration(function), configuration);
        own.add_window(&window(0x77_0000));
        own.set_irq(SavedEventfd { index: 2, vector: 1, number: 55 });
        own.step(found.progress.without_held());
        let after = read(&adopted, function);
        assert_eq!(after.progress, found.progress.without_held());
        assert!(after.irqs.contains(&SavedEventfd { index: 2, vector: 1, number: 55 }));
        own.note_configuration(&[1; 64]);
        own.clear_windows();
        own.step(ClientMessageProgress::default());
        assert_eq!(read(&adopted, function).windows, []);
    }
    assert!(adopted.note_software(&software));
    assert_eq!(adopted.software(), software);
    let mut rest = adopted.rest();
    let _ = rest.read();
    assert!(rest.note(&[9; 40]) && rest.read() == Some(vec![9; 40]));
}

/// Returns the offset of a word of the journal: of its header, of the port's saved states, or of a function.
fn changed_word(place: u16) -> u64 {
    let place = u64::from(place);
    let port = layout::PortJournalOffsets::of(FUNCTIONS.len() - 1);
    let states = [HEADER.magic, port.software[0], port.software[1], port.rest];
    match place.checked_sub(8 + 3 * WORDS_OF_STATE) {
        None if place < 8 => states[0] + 8 * place,
        None => states[1 + ((place - 8) % 3) as usize] + 8 * ((place - 8) / 3),
        Some(place) => layout::FunctionJournalOffsets::at((place % 3) as usize).which + 8 * (place / 3),
    }
}

/// Returns a journal whose functions have a client with two windows, two eventfds and a configuration.
fn sample() -> PortJournal {
    let journal = PortJournal::new(FUNCTIONS.len() - 1).expect("there is memory for a journal");
    journal.note_software(&[1; 24]);
    journal.rest().note(&[2; 24]);
    for function in FUNCTIONS {
        let mut own = journal.function(function);
        for (number, iova) in [(1, 0), (2, 0x10_0000)] {
            own.add_window(&window(iova));
            own.set_irq(SavedEventfd { index: 2, vector: number, number: number.into() });
            own.step(ClientMessageProgress { stream: 7, replies: 8, ..ClientMessageProgress::default() });
        }
        own.note_configuration(&[3; 64]);
    }
    journal
}

fn window(iova: u64) -> SavedDmaWindow {
    SavedDmaWindow { iova, size: 0x1000, permissions: DmaPermissions::READ_WRITE, file: 5, offset: 0 }
}

fn adopt(journal: &PortJournal) -> Result<PortJournal, super::JournalError> {
    PortJournal::adopt(journal.as_fd().try_clone_to_owned().expect("a free descriptor"))
}

/// Returns the state of a function's client that a successor process reads.
fn read(journal: &PortJournal, function: Function) -> SavedClient {
    adopt(journal).expect("the journal was adopted before").function(function).noted()
}

fn assert_same(read: &SavedClient, saved: &SavedClient) {
    assert_eq!(
        (&read.progress, &read.windows, &read.irqs),
        (&saved.progress, &saved.windows, &saved.irqs),
        "a saved client changes"
    );
}
