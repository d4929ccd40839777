//! Saves the state of one function's client for a successor process: keeps file descriptors, and records in the journal
//! the purpose of each.
//!
//! A descriptor is kept before its purpose is saved, and released after its removal is saved and valid. So a successor
//! finds each descriptor that the saved state names. It may also find a few others, and releases them.

use super::notes::note_function;
use crate::port::clients::journal::{
    ClientMessageProgress, FunctionJournal, NOT_KEPT, PortJournal, SavedClient, SavedDmaWindow, SavedEventfd,
};
use crate::port::clients::keeper::FdSaver;
use crate::port::clients::successor::ClientStateSaver;
use crate::port::engine::family::PortCard;
use crate::port::moments::pass_moment;
use crate::vault::PortFileDescriptorStore;
use host::memory::FileIdentity;
use host::worker::BlockingWorker;
use pcie::Function;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};
use std::sync::Arc;

/// File of guest memory that is kept for the successor process.
#[derive(Debug)]
struct GuestMemoryFile {
    identity: FileIdentity,
    number: u64,
    /// Number of DMA windows that are mapped from the file.
    windows: usize,
}

/// Saver of one function's client for the successor process: keeps file descriptors, and writes the journal.
#[derive(Debug)]
pub(in crate::port) struct JournalStateSaver {
    journal: FunctionJournal,
    function: Function,
    numbers: Arc<PortJournal>,
    vault: PortFileDescriptorStore,
    files: Vec<GuestMemoryFile>,
    /// Numbers of kept file descriptors that are no longer needed, and are released once the journal's next record is
    /// valid.
    stale: Vec<u64>,
    /// Worker thread that releases file descriptors to the keeper process, which may block.
    worker: BlockingWorker,
    /// Numbers under which a new client's socket, reply file and register pages will be kept; `None` once they are
    /// kept.
    coming: Option<[u64; 3]>,
    /// Numbers of kept file descriptors that belong to an incomplete message, and that the journal does not name yet.
    partial: Vec<u64>,
}

/// Returns the number under which a client's register pages are kept, given the number of its socket.
/// [`ClientStateSaver::begin`] takes three numbers in a row, and the journal records only two of them.
fn pages_of(stream: u64) -> u64 {
    if stream == 0 { 0 } else { stream + 2 }
}

impl JournalStateSaver {
    /// Opens the saver of a function's client. `worker` releases file descriptors, since the keeper process may block.
    pub(in crate::port) fn new(
        numbers: &Arc<PortJournal>,
        function: Function,
        vault: &PortFileDescriptorStore,
        worker: BlockingWorker,
    ) -> Self {
        let journal = numbers.function(function);
        let (numbers, vault) = (Arc::clone(numbers), vault.clone());
        let (files, stale, partial) = (Vec::new(), Vec::new(), Vec::new());
        Self { journal, function, numbers, vault, files, stale, worker, coming: None, partial }
    }

    /// Releases kept file descriptors that the saved state does not need.
    fn forget(&self, numbers: Vec<u64>) {
        let numbers: Vec<u64> = numbers.into_iter().filter(|number| *number != 0).collect();
        if !numbers.is_empty() {
            let vault = self.vault.clone();
            self.worker.run(move || numbers.into_iter().for_each(|number| vault.forget(number)));
        }
    }
}

impl ClientStateSaver for JournalStateSaver {
    fn progress(&self) -> ClientMessageProgress {
        self.journal.progress()
    }

    fn is_touched(&self) -> bool {
        self.journal.is_touched()
    }

    fn step(&mut self, progress: ClientMessageProgress) {
        pass_moment();
        self.journal.step(progress);
        pass_moment();
        if progress.stream != 0 {
            self.coming = None;
        }
        let stale = std::mem::take(&mut self.stale);
        self.forget(stale);
    }

    fn begin(&mut self) -> [u64; 3] {
        let numbers = [(); 3].map(|()| self.numbers.number());
        self.coming = Some(numbers);
        // A VF that an earlier configuration had may have left eventfds.
        for SavedEventfd { index, vector, .. } in self.journal.irqs() {
            self.journal.set_irq(SavedEventfd { index, vector, number: 0 });
        }
        self.journal.clear_windows();
        numbers
    }

    fn arrived(&mut self) {
        if let Some([stream, replies, _]) = self.coming {
            self.step(ClientMessageProgress { stream, replies, ..ClientMessageProgress::default() });
        }
    }

    fn end(&mut self) {
        self.release_held();
        let ClientMessageProgress { stream, replies, .. } = self.journal.progress();
        for SavedEventfd { index, vector, .. } in self.journal.irqs() {
            self.eventfd(SavedEventfd { index, vector, number: 0 });
        }
        self.unmapped_all();
        self.stale.extend([stream, replies, pages_of(stream)]);
        self.stale.extend(self.coming.take().into_iter().flatten());
        self.step(ClientMessageProgress::default());
    }

    fn keeper(&self, count: usize) -> FdSaver {
        FdSaver {
            vault: self.vault.clone(),
            numbers: (0..count).map(|_| self.numbers.number()).collect(),
            files: self.files.iter().map(|file| (file.identity, file.number)).collect(),
        }
    }

    fn mapped(&mut self, window: &SavedDmaWindow, identity: Option<FileIdentity>) {
        pass_moment();
        // The journal has room for every window that a client may have, so adding one cannot fail.
        let _ = self.journal.add_window(window);
        if let Some(identity) = identity {
            self.mapped_again(window, identity);
        }
    }

    fn mapped_again(&mut self, window: &SavedDmaWindow, identity: FileIdentity) {
        match self.files.iter_mut().find(|file| file.number == window.file) {
            Some(file) => file.windows += 1,
            None => self.files.push(GuestMemoryFile { identity, number: window.file, windows: 1 }),
        }
    }

    fn unmapped(&mut self, iova: u64, size: u64) {
        pass_moment();
        for number in self.journal.remove_windows(iova, size) {
            if let Some(file) = self.files.iter_mut().find(|file| file.number == number) {
                file.windows -= 1;
            }
        }
        self.stale.extend(self.files.extract_if(.., |file| file.windows == 0).map(|file| file.number));
    }

    fn unmapped_all(&mut self) {
        pass_moment();
        self.journal.clear_windows();
        self.stale.extend(self.files.drain(..).map(|file| file.number));
    }

    fn eventfd(&mut self, irq: SavedEventfd) {
        pass_moment();
        self.stale.push(self.journal.irq_number(irq.index, irq.vector));
        self.journal.set_irq(irq);
    }

    fn partial_kept(&mut self, numbers: Vec<u64>) {
        self.partial.extend(numbers);
    }

    fn partial_fds(&self) -> usize {
        self.partial.len()
    }

    fn take_partial_fds(&mut self) -> Vec<u64> {
        std::mem::take(&mut self.partial)
    }

    fn release_held(&mut self) {
        let noted = self.journal.progress();
        let kept = noted.fds().chain(self.partial.drain(..)).filter(|number| *number != NOT_KEPT);
        self.stale.extend(kept);
    }

    fn note_configuration(&self, card: &mut dyn PortCard) {
        note_function(&self.numbers, &self.journal, self.function, card);
    }

    fn noted(&self) -> SavedClient {
        self.journal.noted()
    }

    fn kept(&self, number: u64) -> Option<OwnedFd> {
        self.vault.copy(number)
    }

    fn kept_pages(&self) -> Option<OwnedFd> {
        self.vault.copy(pages_of(self.journal.progress().stream))
    }

    fn held_fds(&self, other: BorrowedFd<'_>) -> io::Result<Option<Vec<OwnedFd>>> {
        let fd = |number| match number {
            NOT_KEPT => other.try_clone_to_owned().map(Some),
            number => Ok(self.vault.copy(number)),
        };
        self.journal.progress().fds().map(fd).collect()
    }

    fn needed(&self) -> Vec<u64> {
        let noted = self.journal.noted();
        let ClientMessageProgress { stream, replies, .. } = noted.progress;
        let windows = noted.windows.iter().map(|window| window.file);
        let irqs = noted.irqs.iter().map(|irq| irq.number);
        let own = [stream, replies, pages_of(stream)];
        let held = noted.progress.fds().filter(|number| *number != NOT_KEPT);
        own.into_iter().chain(windows).chain(irqs).chain(held).filter(|number| *number != 0).collect()
    }
}
