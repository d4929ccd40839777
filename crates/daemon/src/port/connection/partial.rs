//! The first part of a message that has not come whole.
//!
//! A stream may be cut anywhere, and the kernel charges a client some 3 KB for each piece that lies in the socket, however
//! short: a message in many pieces would fill the socket before it is whole, and the client could not send the rest. So when
//! nothing more is there, the part that has come is held in the file of replies and consumed, in one step. Its descriptors
//! are kept before. A successor finds the part there, and the rest in the socket.
//!
//! A client that stops in the middle of a message is shown, and cut off after [`PATIENCE`].

use super::{Connection, Over, Visit};
use crate::port::device::FunctionDevice;
use crate::port::hal::now;
use crate::port::journal::Progress;
use i82576::Time;
use std::fmt;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use vfio_user::decoder::Partial;
use vfio_user::wire::MAX_MESSAGE_FDS;

/// The longest silence in the middle of a message. QEMU and Cloud Hypervisor send a message with one call, so only one that is
/// stopped while its socket is full comes near it.
const PATIENCE: Duration = Duration::from_secs(30);
/// The silence in the middle of a message from which on it is shown.
const SHOWN: Duration = Duration::from_secs(1);

/// A message that a client has begun and not ended.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct Half {
    received: usize,
    /// The size of the message, if its header has come.
    size: Option<u32>,
    silent: Duration,
}

impl Half {
    /// Returns whether the client has been silent long enough for the status to tell of it.
    pub(in crate::port) fn is_shown(&self) -> bool {
        self.silent >= SHOWN
    }

    /// Returns whether the client is to be cut off.
    pub(in crate::port) fn is_overdue(&self) -> bool {
        self.silent >= PATIENCE
    }
}

impl fmt::Display for Half {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { received, size, silent } = self;
        let (seconds, most) = (silent.as_secs(), PATIENCE.as_secs());
        write!(f, "it has sent {received} ")?;
        if let Some(size) = size {
            write!(f, "of {size} ")?;
        }
        write!(f, "bytes of a message and nothing more for {seconds} s (at most {most} s are waited for)")
    }
}

impl Connection {
    /// Returns the message in the middle of which the client is silent.
    pub(in crate::port) fn half(&self, now: Time) -> Option<Half> {
        let since = self.since.filter(|_| !self.waiting)?;
        let partial = self.session.partial();
        Some(Half { received: partial.received(), size: partial.size(), silent: now.since(since) })
    }

    /// Returns when the client is to be cut off, if it sends nothing until then.
    pub(in crate::port) fn deadline(&self) -> Option<Time> {
        self.since.filter(|_| !self.waiting).map(|since| since + PATIENCE)
    }

    /// Takes what has come of a message that is not whole out of the socket. Every whole message is handled and every reply
    /// sent.
    pub(super) fn take_partial(
        &mut self,
        device: &mut FunctionDevice<'_>,
        buffer: &mut [u8],
    ) -> Result<Visit, Over> {
        if self.left == 0 {
            return Ok(Visit::Done);
        }
        self.since = Some(now());
        let taken = self.keep_fds(device).and_then(|kept| match kept {
            true => self.hold(device, buffer).map(|()| Visit::Done),
            false => Ok(Visit::Waiting),
        });
        taken.map_err(|error| Over::Failed(error.to_string()))
    }

    /// Has the descriptors kept that came with the message. Returns `false` if that is yet to be done.
    fn keep_fds(&mut self, device: &mut FunctionDevice<'_>) -> io::Result<bool> {
        let noted = device.keeping.journal.progress().fds().count();
        let wanted = self.copies.len().min(MAX_MESSAGE_FDS - noted);
        let kept = device.keeping.partial_fds();
        if kept >= wanted {
            return Ok(true);
        }
        let copies = self.copies.range(kept..wanted).map(|(_, fd)| fd.as_fd().try_clone_to_owned());
        let copies = copies.collect::<io::Result<Vec<_>>>()?;
        let keeper = device.keeping.keeper_of(copies.len());
        let errands = device.errands();
        errands.keep_partial(copies.into_iter().map(|fd| errands.keep(fd)).collect(), keeper);
        self.waiting = true;
        Ok(false)
    }

    /// Holds the part in the file of replies, notes that with the descriptors, and consumes it.
    fn hold(&mut self, device: &mut FunctionDevice<'_>, buffer: &mut [u8]) -> io::Result<()> {
        let Partial { kept, skipped } = self.session.partial();
        let held = self.replies.held().length as usize;
        self.replies.hold(&kept[held..])?;
        let before = device.keeping.journal.progress();
        let mut fds = before.fds;
        let new = device.keeping.take_partial_fds();
        fds.iter_mut().skip(before.fds().count()).zip(new).for_each(|(place, number)| *place = number);
        let (extent, held, skipped) = (self.replies.extent(), self.replies.held(), skipped as u64);
        let left = self.left;
        self.step(left, Progress { extent, held, skipped, fds, ..before }, device, buffer)?;
        self.taken += left;
        Ok(())
    }
}
