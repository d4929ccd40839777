//! What a function's client has handed over, kept for a successor: descriptors in the vault, and what they are for in the
//! journal.
//!
//! A descriptor is kept before what it is for is noted, and given up after the note that it is not needed counts. So a
//! successor finds each descriptor that a note names, and at most some that none names, which it gives up.

use super::bus::LiveBus;
use super::family::Family;
use super::inheritance::note_function;
use super::journal::{FunctionJournal, Irq, Journal, NOT_KEPT, Progress, Window};
use super::pages::SharedPages;
use crate::vault::PortVault;
use host::eventfd::{self, EventFd};
use host::memory::{self, FileIdentity};
use host::worker::Worker;
use pcie::Function;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
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
    function: Function,
    numbers: Arc<Journal>,
    vault: PortVault,
    files: Vec<File>,
    /// Numbers that are needed no more as soon as the next step counts.
    stale: Vec<u64>,
    /// Who gives them up, since a keeper may take its time.
    worker: Worker,
    /// The numbers of a client's socket, its file of replies and its pages, until they are kept.
    coming: Option<[u64; 3]>,
    /// The numbers of descriptors of a message that has not come whole, kept and not noted yet.
    partial: Vec<u64>,
}

/// Keeps what an errand brings, in the errand's thread.
#[derive(Debug)]
pub(super) struct Keeper {
    vault: PortVault,
    /// Numbers that are free.
    numbers: Vec<u64>,
    /// Files that are kept already.
    files: Vec<(FileIdentity, u64)>,
}

impl Keeper {
    /// Keeps a descriptor under a number.
    pub(super) fn keep(&self, number: u64, fd: BorrowedFd<'_>) {
        self.vault.keep(number, fd);
    }

    /// Keeps eventfds under a number each.
    pub(super) fn keep_all(&self, eventfds: Vec<EventFd>) -> Vec<(EventFd, u64)> {
        let kept: Vec<_> = eventfds.into_iter().zip(self.numbers.iter().copied()).collect();
        kept.iter().for_each(|(eventfd, number)| self.keep(*number, eventfd.as_fd()));
        kept
    }

    /// Keeps those of these descriptors that a message can be served with, each under a number, or under [`NOT_KEPT`].
    pub(super) fn keep_useful(&self, fds: &[OwnedFd]) -> Vec<u64> {
        let keep = |(fd, number): (&OwnedFd, &u64)| {
            let fd = fd.as_fd();
            if !memory::is_memory(fd) && !eventfd::is_eventfd(fd) {
                return NOT_KEPT;
            }
            self.keep(*number, fd);
            *number
        };
        fds.iter().zip(&self.numbers).map(keep).collect()
    }

    /// Keeps a file of guest memory, if it is not kept already.
    pub(super) fn keep_file(&self, identity: &FileIdentity, fd: BorrowedFd<'_>) -> Kept {
        if let Some((_, number)) = self.files.iter().find(|(known, _)| known == identity) {
            return Kept { number: *number, new: false };
        }
        let number = self.numbers.first().copied().unwrap_or_default();
        self.keep(number, fd);
        Kept { number, new: true }
    }

    /// Gives a file up again, if it was kept for nothing else.
    pub(super) fn take_back(&self, kept: Kept) {
        if kept.new {
            self.vault.forget(kept.number);
        }
    }
}

/// A file that is kept.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kept {
    pub(super) number: u64,
    /// It was not kept before.
    new: bool,
}

/// The number of a client's pages, by that of its socket: the journal gives numbers in order, and names no others.
fn pages_of(stream: u64) -> u64 {
    if stream == 0 { 0 } else { stream + 2 }
}

impl Keeping {
    pub(super) fn new(numbers: &Arc<Journal>, function: Function, vault: &PortVault, bus: &LiveBus) -> Self {
        let journal = numbers.function(function);
        let worker = bus.reach(function).errands.worker().clone();
        let (numbers, vault) = (Arc::clone(numbers), vault.clone());
        let (files, stale, partial) = (Vec::new(), Vec::new(), Vec::new());
        Self { journal, function, numbers, vault, files, stale, worker, coming: None, partial }
    }

    /// What an errand needs to keep one file.
    pub(super) fn keeper(&self) -> Keeper {
        self.keeper_of(1)
    }

    /// What an errand needs to keep so many descriptors.
    pub(super) fn keeper_of(&self, count: usize) -> Keeper {
        Keeper {
            vault: self.vault.clone(),
            numbers: (0..count).map(|_| self.numbers.number()).collect(),
            files: self.files.iter().map(|file| (file.identity, file.number)).collect(),
        }
    }

    /// A client has come, whose socket, file of replies and pages, if it may map any, will be kept under these numbers.
    pub(super) fn begin(&mut self) -> [u64; 3] {
        let numbers = [(); 3].map(|()| self.numbers.number());
        self.coming = Some(numbers);
        numbers
    }

    /// The pages that the predecessor's client may have mapped.
    pub(super) fn pages(
        &self,
        function: Function,
        card: &mut dyn Family,
        exactly: bool,
    ) -> Option<SharedPages> {
        let fd = self.vault.copy(pages_of(self.journal.progress().stream))?;
        SharedPages::adopt(fd, function.vf()?, card, exactly)
    }

    /// What was to be kept is: a client that has come is noted.
    pub(super) fn arrived(&mut self) {
        if let Some([stream, replies, _]) = self.coming.take() {
            self.journal.clear_windows();
            self.step(Progress { stream, replies, ..Progress::default() });
        }
    }

    /// Descriptors of a message that has not come whole are kept.
    pub(super) fn partial_kept(&mut self, numbers: Vec<u64>) {
        self.partial.extend(numbers);
    }

    /// Returns how many of those are kept and not noted yet.
    pub(super) fn partial_fds(&self) -> usize {
        self.partial.len()
    }

    /// Returns their numbers, which the next step notes.
    pub(super) fn take_partial_fds(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.partial)
    }

    /// The descriptors of the message that had not come whole are needed no more as soon as the next step counts.
    pub(super) fn release_held(&mut self) {
        let noted = self.journal.progress();
        let kept = noted.fds().chain(self.partial.drain(..)).filter(|number| *number != NOT_KEPT);
        self.stale.extend(kept);
    }

    /// The descriptors of the message that has not come whole, as a predecessor has noted it. In the place of one that was not
    /// kept is `other`, which is of no use either.
    pub(super) fn held_fds(&self, other: BorrowedFd<'_>) -> io::Result<Option<Vec<OwnedFd>>> {
        let fd = |number| match number {
            NOT_KEPT => other.try_clone_to_owned().map(Some),
            number => Ok(self.vault.copy(number)),
        };
        self.journal.progress().fds().map(fd).collect()
    }

    /// The client is gone, and with it all that it has handed over.
    pub(super) fn end(&mut self) {
        self.release_held();
        let Progress { stream, replies, .. } = self.journal.progress();
        for Irq { index, vector, .. } in self.journal.noted().irqs {
            self.eventfd(Irq { index, vector, number: 0 });
        }
        self.unmapped_all();
        self.stale.extend([stream, replies, pages_of(stream)]);
        self.stale.extend(self.coming.take().into_iter().flatten());
        self.step(Progress::default());
    }

    /// The numbers that the notes need.
    pub(super) fn needed(&self) -> Vec<u64> {
        let noted = self.journal.noted();
        let Progress { stream, replies, .. } = noted.progress;
        let windows = noted.windows.iter().map(|window| window.file);
        let irqs = noted.irqs.iter().map(|irq| irq.number);
        let own = [stream, replies, pages_of(stream)];
        let held = noted.progress.fds().filter(|number| *number != NOT_KEPT);
        own.into_iter().chain(windows).chain(irqs).chain(held).filter(|number| *number != 0).collect()
    }

    /// Everything noted so far counts.
    pub(super) fn step(&mut self, progress: Progress) {
        self.journal.step(progress);
        let stale = std::mem::take(&mut self.stale);
        self.forget(stale);
    }

    /// Has numbers given up that no note needs.
    pub(super) fn forget(&self, numbers: Vec<u64>) {
        let numbers: Vec<u64> = numbers.into_iter().filter(|number| *number != 0).collect();
        if !numbers.is_empty() {
            let vault = self.vault.clone();
            self.worker.run(move || numbers.into_iter().for_each(|number| vault.forget(number)));
        }
    }

    /// A window was mapped, onto the file of this identity if it is onto any.
    pub(super) fn mapped(&mut self, window: &Window, identity: Option<FileIdentity>) {
        // The room is as large as what a client may have.
        let _ = self.journal.add_window(window);
        if let Some(identity) = identity {
            self.mapped_again(window, identity);
        }
    }

    /// A predecessor's window was mapped again.
    pub(super) fn mapped_again(&mut self, window: &Window, identity: FileIdentity) {
        match self.files.iter_mut().find(|file| file.number == window.file) {
            Some(file) => file.windows += 1,
            None => self.files.push(File { identity, number: window.file, windows: 1 }),
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

    /// A vector has another eventfd, or none (number 0).
    pub(super) fn eventfd(&mut self, irq: Irq) {
        self.stale.push(self.journal.irq_number(irq.index, irq.vector));
        self.journal.set_irq(irq);
    }

    /// Notes what of the port's software the client has changed: the configuration of its function.
    pub(super) fn note_software(&self, card: &mut dyn Family) {
        note_function(&self.numbers, &self.journal, self.function, card);
    }
}
