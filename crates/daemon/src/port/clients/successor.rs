//! What one function's client leaves for a successor of this process. Left out: where it is kept (`succession`).

use super::journal::{Irq, Noted, Progress, Window};
use super::keeper::Keeper;
use crate::port::engine::family::Family;
use host::memory::FileIdentity;
use std::fmt::Debug;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// The successor that may serve a function's client on, as the client's session knows it. Windows and eventfds count with the
/// next [`Successor::step`].
pub(in crate::port) trait Successor: Debug + Send {
    /// Returns how far the client has been served, as noted last.
    fn progress(&self) -> Progress;

    /// Returns whether windows or eventfds were noted since the last step.
    fn is_touched(&self) -> bool;

    /// Notes how far the client has been served. Everything noted so far counts.
    fn step(&mut self, progress: Progress);

    /// Begins with a new client. Returns the numbers under which its socket, its file of replies and its pages, if it may map
    /// any, are to be kept.
    fn begin(&mut self) -> [u64; 3];

    /// Notes the new client: its descriptors are kept.
    fn arrived(&mut self);

    /// Forgets the client, and gives up all that it has handed over.
    fn end(&mut self);

    /// Returns what an errand needs to keep `count` descriptors.
    fn keeper(&self, count: usize) -> Keeper;

    /// Gives up descriptors that no note needs.
    fn forget(&self, numbers: Vec<u64>);

    /// Notes a window, onto the file of this identity if it is onto any.
    fn mapped(&mut self, window: &Window, identity: Option<FileIdentity>);

    /// Takes note of a predecessor's window that was mapped again.
    fn mapped_again(&mut self, window: &Window, identity: FileIdentity);

    /// Notes that the windows in these bytes were unmapped.
    fn unmapped(&mut self, iova: u64, size: u64);

    /// Notes that all windows were unmapped.
    fn unmapped_all(&mut self);

    /// Notes that a vector has another eventfd, or none (number 0).
    fn eventfd(&mut self, irq: Irq);

    /// Adds descriptors of a message that has not come whole, which are kept under these numbers.
    fn partial_kept(&mut self, numbers: Vec<u64>);

    /// Returns how many descriptors of that message are kept and not noted yet.
    fn partial_fds(&self) -> usize;

    /// Returns their numbers, which the next step notes.
    fn take_partial_fds(&mut self) -> Vec<u64>;

    /// Gives up the descriptors of that message as soon as the next step counts.
    fn release_held(&mut self);

    /// Notes the function's configuration, which the client has changed.
    fn note_configuration(&self, card: &mut dyn Family);

    /// Returns what a predecessor has noted of the client.
    fn noted(&self) -> Noted;

    /// Returns a copy of a descriptor that a predecessor has kept.
    fn kept(&self, number: u64) -> Option<OwnedFd>;

    /// Returns the memory of the pages that the predecessor's client may have mapped.
    fn kept_pages(&self) -> Option<OwnedFd>;

    /// Returns the descriptors of the message that has not come whole, as a predecessor has noted it, or `None` if one is lost.
    /// In the place of one that was not kept is a copy of `other`, which is of no use either.
    fn held_fds(&self, other: BorrowedFd<'_>) -> io::Result<Option<Vec<OwnedFd>>>;

    /// Returns the numbers of the descriptors that the notes need.
    fn needed(&self) -> Vec<u64>;
}
