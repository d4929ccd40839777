//! Notes and descriptors that one function's client leaves for a successor of this process. `succession` stores
//! them.

use super::journal::{Irq, Noted, Progress, Window};
use super::keeper::Keeper;
use crate::port::engine::family::Family;
use host::memory::FileIdentity;
use std::fmt::Debug;
use std::io;
use std::os::fd::{BorrowedFd, OwnedFd};

/// Notes for the successor that may resume a function's client. Windows and eventfds become valid with the next
/// [`Successor::step`].
pub(in crate::port) trait Successor: Debug + Send {
    /// Returns the progress of the client, as noted last.
    fn progress(&self) -> Progress;

    /// Returns whether windows or eventfds were noted since the last step.
    fn is_touched(&self) -> bool;

    /// Notes the progress of the client. Everything noted so far becomes valid.
    fn step(&mut self, progress: Progress);

    /// Begins with a new client. Returns the numbers under which to keep its socket, its reply file and its pages,
    /// if it may map any.
    fn begin(&mut self) -> [u64; 3];

    /// Notes the new client, after its descriptors are kept.
    fn arrived(&mut self);

    /// Forgets the client, and releases all descriptors that it has passed.
    fn end(&mut self);

    /// Returns a keeper for an errand, with numbers for `count` descriptors.
    fn keeper(&self, count: usize) -> Keeper;

    /// Releases descriptors that no note needs.
    fn forget(&self, numbers: Vec<u64>);

    /// Notes a window, and the identity of its file, if it has one.
    fn mapped(&mut self, window: &Window, identity: Option<FileIdentity>);

    /// Counts a predecessor's window that was mapped again.
    fn mapped_again(&mut self, window: &Window, identity: FileIdentity);

    /// Notes that the windows in these bytes were unmapped.
    fn unmapped(&mut self, iova: u64, size: u64);

    /// Notes that all windows were unmapped.
    fn unmapped_all(&mut self);

    /// Notes that a vector has another eventfd, or none (number 0).
    fn eventfd(&mut self, irq: Irq);

    /// Adds descriptors of an incomplete message, kept under these numbers.
    fn partial_kept(&mut self, numbers: Vec<u64>);

    /// Returns how many descriptors of the incomplete message are kept and not noted yet.
    fn partial_fds(&self) -> usize;

    /// Returns the numbers of those descriptors, which the next step notes.
    fn take_partial_fds(&mut self) -> Vec<u64>;

    /// Releases the descriptors of the incomplete message once the next step is valid.
    fn release_held(&mut self);

    /// Notes the function's configuration, which the client has changed.
    fn note_configuration(&self, card: &mut dyn Family);

    /// Returns a predecessor's notes on the client.
    fn noted(&self) -> Noted;

    /// Returns a copy of a descriptor that a predecessor has kept.
    fn kept(&self, number: u64) -> Option<OwnedFd>;

    /// Returns the memory of the pages that the predecessor's client may have mapped.
    fn kept_pages(&self) -> Option<OwnedFd>;

    /// Returns the noted descriptors of an incomplete message, or `None` if one is lost. A copy of `other` stands
    /// for each descriptor that was not kept, since no message can use either.
    fn held_fds(&self, other: BorrowedFd<'_>) -> io::Result<Option<Vec<OwnedFd>>>;

    /// Returns the numbers of the descriptors that the notes need.
    fn needed(&self) -> Vec<u64>;
}
