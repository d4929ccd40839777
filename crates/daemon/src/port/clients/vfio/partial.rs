//! Holds the received part of an incomplete message in the reply file, so that the socket has room for the rest.

use super::VfioUserConnection;
use crate::port::clients::connection::{ClientServiceOutcome, DisconnectReason, VisitResult};
use crate::port::clients::device::VfioFunction;
use crate::port::clients::journal::ClientMessageProgress;
use std::io;
use std::os::fd::AsFd;
use vfio_user::decoder::UnfinishedMessage;
use vfio_user::wire::MAX_MESSAGE_FDS;

impl VfioUserConnection {
    /// Takes the first part of an incomplete message out of the socket, after all whole messages are answered.
    pub(super) fn hold_part(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> VisitResult {
        if self.left == 0 {
            return Ok(ClientServiceOutcome::Done);
        }
        self.since = Some(device.now);
        let taken = self.keep_fds(device).and_then(|kept| match kept {
            true => self.write_part(device, buffer).map(|()| ClientServiceOutcome::Done),
            false => Ok(ClientServiceOutcome::Waiting),
        });
        taken.map_err(DisconnectReason::failed)
    }

    /// Keeps the incomplete message's file descriptors for a successor process. Returns `false` until all are kept.
    fn keep_fds(&mut self, device: &mut VfioFunction<'_>) -> io::Result<bool> {
        let noted = device.own.successor.progress().fds().count();
        let wanted = self.copies.len().min(MAX_MESSAGE_FDS - noted);
        let kept = device.own.successor.partial_fds();
        if kept >= wanted {
            return Ok(true);
        }
        let copies = self.copies.range(kept..wanted).map(|(_, fd)| fd.as_fd().try_clone_to_owned());
        let copies = copies.collect::<io::Result<Vec<_>>>()?;
        let keeper = device.own.successor.keeper(copies.len());
        let errands = device.errands();
        errands.keep_partial(copies.into_iter().map(|fd| errands.keep(fd)).collect(), keeper);
        self.waiting = true;
        Ok(false)
    }

    /// Moves the received part of an incomplete message to the reply file, and saves the message's file descriptors.
    fn write_part(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> io::Result<()> {
        let UnfinishedMessage { kept, skipped } = self.session.partial();
        let held = self.replies.held().length as usize;
        self.replies.hold(&kept[held..])?;
        let before = device.own.successor.progress();
        let mut fds = before.fds;
        let new = device.own.successor.take_partial_fds();
        fds.iter_mut().skip(before.fds().count()).zip(new).for_each(|(place, number)| *place = number);
        let (extent, held, skipped) = (self.replies.extent(), self.replies.held(), skipped as u64);
        let left = self.left;
        self.step(left, ClientMessageProgress { extent, held, skipped, fds, ..before }, device, buffer)?;
        self.taken += left;
        Ok(())
    }
}
