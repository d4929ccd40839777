//! State and file descriptors of one function's client, which this process leaves for a successor process after an
//! upgrade or a crash. `succession` stores them.

use super::journal::{ClientMessageProgress, SavedClient, SavedDmaWindow, SavedEventfd};
use super::keeper::FdSaver;
use crate::port::engine::family::PortCard;
use host::memory::FileIdentity;
use std::fmt::Debug;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Saver of a client's state, from which the successor process resumes the client. DMA windows and eventfds become
/// valid with the next commit ([`ClientStateSaver::step`]).
pub(in crate::port) trait ClientStateSaver: Debug + Send {
    /// Returns the progress of the client that was saved last.
    fn progress(&self) -> ClientMessageProgress;

    /// Returns true if DMA windows or eventfds were saved since the last journal commit.
    fn is_touched(&self) -> bool;

    /// Commits the client's progress for the successor process. Everything saved so far becomes valid at once.
    fn step(&mut self, progress: ClientMessageProgress);

    /// Begins the saved state of a new client. Returns the numbers under which to keep the client's socket, its file
    /// ([`ClientMessageProgress::replies`]), and its register pages if the client may map any.
    fn begin(&mut self) -> [u64; 3];

    /// Records that the new client's file descriptors are kept.
    fn arrived(&mut self);

    /// Removes the client's saved state, and releases all file descriptors that the client has passed.
    fn end(&mut self);

    /// Returns a saver for `count` file descriptors of a blocking call.
    fn keeper(&self, count: usize) -> FdSaver;

    /// Saves a mapped DMA window, and the identity of its file, if the window has a file.
    fn mapped(&mut self, window: &SavedDmaWindow, identity: Option<FileIdentity>);

    /// Counts a DMA window as mapped again. The previous host process had mapped the window.
    fn mapped_again(&mut self, window: &SavedDmaWindow, identity: FileIdentity);

    /// Saves that the DMA windows were unmapped that begin in the `size` bytes from `iova` on.
    fn unmapped(&mut self, iova: u64, size: u64);

    /// Saves that all DMA windows of the client were unmapped.
    fn unmapped_all(&mut self);

    /// Saves the number under which an interrupt vector's new eventfd is kept, or 0 for none.
    fn eventfd(&mut self, irq: SavedEventfd);

    /// Adds kept file descriptors of an incomplete message to those that the next journal commit saves.
    fn partial_kept(&mut self, numbers: Vec<u64>);

    /// Returns the number of the incomplete message's kept file descriptors that no journal commit has saved yet.
    fn partial_fds(&self) -> usize;

    /// Takes the numbers of the incomplete message's kept file descriptors, for the next journal commit.
    fn take_partial_fds(&mut self) -> Vec<u64>;

    /// Releases the file descriptors of the incomplete message with the next journal commit.
    fn release_held(&mut self);

    /// Saves the function's PCI configuration, which the client has changed.
    fn note_configuration(&self, card: &mut dyn PortCard);

    /// Returns the state of the client that the previous host process saved.
    fn noted(&self) -> SavedClient;

    /// Returns a copy of a file descriptor that the previous host process has kept.
    fn kept(&self, number: u64) -> Option<OwnedFd>;

    /// Returns the memory of the register pages that the previous host process's client may have mapped.
    fn kept_pages(&self) -> Option<OwnedFd>;

    /// Returns the kept file descriptors of an incomplete message, or `None` if one is lost. Returns a copy of `other`
    /// in place of each descriptor that was not kept, because no message can use such a descriptor.
    fn held_fds(&self, other: BorrowedFd<'_>) -> io::Result<Option<Vec<OwnedFd>>>;

    /// Returns the numbers of the kept file descriptors that the client's saved state needs.
    fn needed(&self) -> Vec<u64>;
}
