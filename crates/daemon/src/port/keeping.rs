//! What a function's client has handed over, kept for a successor: descriptors in the vault, and what they are for in the
//! journal.
//!
//! A descriptor is kept before what it is for is noted, and given up after the note that it is not needed counts. So a
//! successor finds each descriptor that a note names, and at most some that none names, which it gives up.

use super::journal::{FunctionJournal, Irq, Journal, Progress, Window};
use crate::vault::PortVault;
use host::memory::FileIdentity;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

/// A file of guest memory.
#[derive(Debug)]
struct File {
    identity: FileIdentity,
    number: u64,
    /// Windows onto it.
    windows: usize,
}

/// What is kept of one function's client.
#[derive(Debug)]
pub(super) struct Keeping {
    pub(super) journal: FunctionJournal,
    numbers: Arc<Journal>,
    vault: PortVault,
    files: Vec<File>,
    /// Numbers that are needed no more as soon as the next step counts.
    stale: Vec<u64>,
}

impl Keeping {
    pub(super) fn new(numbers: &Arc<Journal>, place: usize, vault: &PortVault) -> Self {
        let journal = numbers.function(place);
        let (numbers, vault) = (Arc::clone(numbers), vault.clone());
        Self { journal, numbers, vault, files: Vec::new(), stale: Vec::new() }
    }

    /// A client has come.
    pub(super) fn begin(&mut self, stream: impl AsFd, replies: impl AsFd) {
        let progress = Progress {
            stream: self.keep(stream.as_fd()),
            replies: self.keep(replies.as_fd()),
            ..Progress::default()
        };
        self.journal.clear_windows();
        self.step(progress);
    }

    /// The client is gone, and with it all that it has handed over.
    pub(super) fn end(&mut self) {
        let Progress { stream, replies, .. } = self.journal.progress();
        self.unmapped_all();
        self.stale.extend([stream, replies].iter().filter(|number| **number != 0));
        self.step(Progress::default());
    }

    /// Everything noted so far counts.
    pub(super) fn step(&mut self, progress: Progress) {
        self.journal.step(progress);
        for number in self.stale.drain(..) {
            self.vault.forget(number);
        }
    }

    /// A window was mapped.
    pub(super) fn mapped(&mut self, mut window: Window, file: Option<BorrowedFd<'_>>) {
        window.file = file.map_or(0, |file| self.file(file));
        // The room is as large as what a client may have.
        let _ = self.journal.add_window(&window);
    }

    /// A predecessor's window was mapped again.
    pub(super) fn mapped_again(&mut self, window: &Window, file: BorrowedFd<'_>) {
        if let Ok(identity) = FileIdentity::of_memory(file) {
            match self.files.iter_mut().find(|file| file.number == window.file) {
                Some(file) => file.windows += 1,
                None => self.files.push(File { identity, number: window.file, windows: 1 }),
            }
        }
    }

    /// Windows were unmapped.
    pub(super) fn unmapped(&mut self, iova: u64, size: u64) {
        for number in self.journal.remove_windows(iova, size) {
            if let Some(file) = self.files.iter_mut().find(|file| file.number == number) {
                file.windows -= 1;
            }
        }
        self.stale.extend(self.files.extract_if(.., |file| file.windows == 0).map(|file| file.number));
    }

    /// All windows were unmapped.
    pub(super) fn unmapped_all(&mut self) {
        self.journal.clear_windows();
        self.stale.extend(self.files.drain(..).map(|file| file.number));
    }

    /// A vector has another eventfd, or none.
    pub(super) fn eventfd(&mut self, index: u32, vector: u32, eventfd: Option<BorrowedFd<'_>>) {
        let before = self.journal.irq_number(index, vector);
        let number = eventfd.map_or(0, |eventfd| self.keep(eventfd));
        self.journal.set_irq(Irq { index, vector, number });
        self.stale.extend(Some(before).filter(|number| *number != 0));
    }

    /// The number of a file of guest memory, which has one more window now.
    fn file(&mut self, file: BorrowedFd<'_>) -> u64 {
        let Ok(identity) = FileIdentity::of_memory(file) else { return 0 };
        if let Some(known) = self.files.iter_mut().find(|known| known.identity == identity) {
            known.windows += 1;
            return known.number;
        }
        let number = self.keep(file);
        self.files.push(File { identity, number, windows: 1 });
        number
    }

    fn keep(&self, fd: BorrowedFd<'_>) -> u64 {
        let number = self.numbers.number();
        self.vault.keep(number, fd);
        number
    }
}
