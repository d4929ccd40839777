//! Resumes clients of the previous host process: their position in the message stream, their memory and their
//! interrupts.
//!
//! After a crash in the middle of a round the card is a new one, and drivers have to restart (`calls`).
//! `inheritance` creates the card.

use crate::port::clients::connection::ClientConnection;
use crate::port::clients::journal::{ClientMessageProgress, SavedClient, SavedDmaWindow, SavedEventfd};
use crate::port::clients::slot::OfferedFunction;
use crate::port::clients::successor::ClientStateSaver;
use crate::port::clients::vfio::VfioUserConnection;
use crate::port::clients::vhost::VhostUserConnection;
use crate::port::clients::vhost::saved::{self as vhost, FrontEndRestoreError};
use crate::port::engine::bus::FunctionBus;
use host::dma::MapDmaRegionError;
use host::eventfd::EventFd;
use host::memory::FileIdentity;
use host::poll::Poller;
use host::socket::{ReplyLog, StreamSocket};
use i82576::Time;
use std::io;
use std::os::fd::AsFd;
use vfio_user::decoder::{ProtocolError, UnfinishedMessage};
use vfio_user::outbox::MessageOutbox;
use vfio_user::server::{NegotiatedVersion, ServerSession};
use vfio_user::wire::{MAX_DMA_MAPS, VersionCapabilities};

/// Reason why a client of the previous host process cannot be resumed.
#[derive(Debug, thiserror::Error)]
pub(super) enum ClientAdoptError {
    /// A file descriptor of the client was not kept, or is of the wrong kind.
    #[error("cannot resume the client: the previous host process did not save the {0}")]
    Lost(&'static str),
    /// An earlier version of softiov has consumed part of a message without keeping it.
    #[error(
        "part of a client's message is lost: the previous host process, an earlier version of softiov, did not save it"
    )]
    Torn,
    /// The saved bytes of a client's incomplete message are not the beginning of a valid message.
    #[error("the saved part of a client's message is invalid: {0}")]
    Held(#[from] ProtocolError),
    /// The saved state of a vhost-user client is of no use.
    #[error("the saved session of the client: {0}")]
    FrontEnd(#[from] FrontEndRestoreError),
    /// Guest memory of a vhost-user client cannot be mapped again.
    #[error("the guest's memory: {0}")]
    Memory(#[from] MapDmaRegionError),
    /// A system call for the client fails.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Resources with which a port resumes a client of the previous host process.
pub(super) struct ClientAdopter<'a> {
    pub(super) poller: &'a Poller,
    pub(super) reach: &'a mut FunctionBus,
    /// True if the function's clients speak vhost-user, false if they speak vfio-user.
    pub(super) is_virtio: bool,
    pub(super) now: Time,
}

impl ClientAdopter<'_> {
    /// Resumes a function's client, if the previous host process had one. Returns the socket of a client that cannot be
    /// resumed.
    pub(super) fn adopt(&mut self, place: usize, slot: &mut OfferedFunction) -> Option<StreamSocket> {
        let successor = &mut *slot.own.successor;
        let progress = successor.progress();
        if progress.stream == 0 {
            return None;
        }
        let stream = successor.kept(progress.stream).and_then(|fd| StreamSocket::adopt(fd).ok());
        let Some(stream) = stream else {
            successor.end();
            return None;
        };
        let connection = self.connection(&stream, &progress, slot);
        let added = connection.and_then(|mut connection| {
            connection.watch(self.poller, place)?;
            Ok(connection)
        });
        match added {
            Ok(connection) => {
                slot.resume(connection);
                None
            }
            Err(error) => {
                tracing::error!(
                    function = slot.name,
                    %error,
                    "cannot resume the connection of a client of the previous host process"
                );
                self.reach.unmap_all();
                self.reach.clear_eventfds();
                slot.own.successor.end();
                Some(stream)
            }
        }
    }

    fn connection(
        &mut self,
        stream: &StreamSocket,
        progress: &ClientMessageProgress,
        slot: &mut OfferedFunction,
    ) -> Result<Box<dyn ClientConnection>, ClientAdoptError> {
        let stream = StreamSocket::adopt(stream.as_fd().try_clone_to_owned()?)?;
        let noted = slot.own.successor.noted();
        Ok(match self.is_virtio {
            true => Box::new(self.front_end(stream, &noted, slot)?),
            false => Box::new(self.vfio_user(stream, progress, &noted, slot)?),
        })
    }

    fn front_end(
        &mut self,
        stream: StreamSocket,
        noted: &SavedClient,
        slot: &mut OfferedFunction,
    ) -> Result<VhostUserConnection, ClientAdoptError> {
        let successor = &mut *slot.own.successor;
        for window in &noted.windows {
            // The rings need all memory, and a new connection brings it.
            map(self.reach, window, successor)?.map_or(Ok(()), Err)?;
        }
        let mut kicks = Vec::new();
        for irq in &noted.irqs {
            match irq.index {
                vhost::KICKS => kicks.push((irq.vector, eventfd(*irq, successor)?)),
                _ => connect(self.reach, *irq, successor)?,
            }
        }
        let saved = successor.kept(noted.progress.replies);
        let saved = saved.ok_or(ClientAdoptError::Lost("state of the client's session"))?;
        Ok(VhostUserConnection::inherit(stream, saved, kicks)?)
    }

    fn vfio_user(
        &mut self,
        stream: StreamSocket,
        progress: &ClientMessageProgress,
        noted: &SavedClient,
        slot: &mut OfferedFunction,
    ) -> Result<VfioUserConnection, ClientAdoptError> {
        if progress.torn {
            return Err(ClientAdoptError::Torn);
        }
        let (function, successor) = (slot.function, &mut *slot.own.successor);
        finish_consuming(&stream, successor)?;
        let file =
            successor.kept(progress.replies).ok_or(ClientAdoptError::Lost("file of pending replies"))?;
        let (replies, owed, sent) = ReplyLog::adopt(file, progress.extent, progress.held)?;
        let held_fds =
            successor.held_fds(stream.as_fd())?.ok_or(ClientAdoptError::Lost("descriptor of a message"))?;
        let mut lost = (0_u32, None);
        for window in &noted.windows {
            if let Some(error) = map(self.reach, window, successor)? {
                lost = (lost.0 + 1, Some(error));
            }
        }
        // A client may have thousands of windows, so one line reports them all.
        if let (windows, Some(error)) = lost {
            tracing::warn!(?function, windows, %error, "cannot map guest memory of a resumed client again");
        }
        for irq in &noted.irqs {
            connect(self.reach, *irq, successor)?;
        }
        self.reach.assume_missed();
        let agreed = progress.agreed.map(|(minor, write_multiple)| NegotiatedVersion {
            minor,
            client: VersionCapabilities::default(),
            write_multiple,
        });
        let windows = noted.windows.iter().map(|window| (window.iova, window.iova + (window.size - 1)));
        let mut session = ServerSession::resume(MAX_DMA_MAPS, agreed, windows);
        let partial = UnfinishedMessage { kept: &replies.read_held()?, skipped: progress.skipped as usize };
        session.resume_partial(partial, held_fds.into_iter().map(|fd| slot.own.errands.keep(fd)))?;
        Ok(VfioUserConnection::inherit(
            stream,
            session,
            MessageOutbox::resume(owed, sent),
            replies,
            self.now,
        )?)
    }
}

/// Maps a DMA window of the previous host process's client again. If the client has shrunk its memory since, records
/// the window as unreachable and returns the error.
fn map(
    reach: &mut FunctionBus,
    window: &SavedDmaWindow,
    successor: &mut dyn ClientStateSaver,
) -> Result<Option<MapDmaRegionError>, ClientAdoptError> {
    let SavedDmaWindow { iova, size, permissions, file, offset } = *window;
    let file = match file {
        0 => None,
        number => Some(successor.kept(number).ok_or(ClientAdoptError::Lost("guest's memory"))?),
    };
    if let Some(Ok(identity)) = file.as_ref().map(|file| FileIdentity::of_memory(file.as_fd())) {
        successor.mapped_again(window, identity);
    }
    let admitted = reach.memory_mut().admit(iova, size, permissions, file.as_ref().map(|_| offset));
    let region = match admitted {
        Ok(region) => region,
        Err(error) => return Ok(Some(error)),
    };
    let (Some(region), Some(file)) = (region, file) else { return Ok(None) };
    match region.map(file) {
        Ok(region) => {
            reach
                .memory_mut()
                .insert(region)
                .map_err(|_| ClientAdoptError::Lost("order of the DMA windows"))?;
        }
        Err(error) => {
            let _ = reach.memory_mut().admit(iova, size, permissions, None);
            return Ok(Some(error));
        }
    }
    Ok(None)
}

fn connect(
    reach: &mut FunctionBus,
    irq: SavedEventfd,
    successor: &dyn ClientStateSaver,
) -> Result<(), ClientAdoptError> {
    reach.set_eventfd(irq.index, irq.vector, Some(eventfd(irq, successor)?));
    Ok(())
}

fn eventfd(irq: SavedEventfd, successor: &dyn ClientStateSaver) -> Result<EventFd, ClientAdoptError> {
    let eventfd = successor.kept(irq.number).and_then(|fd| EventFd::adopt(fd).ok());
    eventfd.ok_or(ClientAdoptError::Lost("guest's eventfd"))
}

/// Consumes the bytes that the previous host process had begun to consume from the client's socket. The socket's peek
/// offset tells how many bytes are left, since the kernel lowers it by each consumed byte.
fn finish_consuming(
    stream: &StreamSocket,
    successor: &mut dyn ClientStateSaver,
) -> Result<(), ClientAdoptError> {
    let progress = successor.progress();
    if progress.consuming == 0 {
        return Ok(());
    }
    let consumed = progress.peeked.checked_sub(stream.peek_offset()? as u64);
    let rest = consumed.and_then(|consumed| progress.consuming.checked_sub(consumed));
    let mut rest = vec![0; rest.ok_or_else(|| io::Error::from(io::ErrorKind::InvalidData))? as usize];
    let mut at = 0;
    while at < rest.len() {
        match stream.consume(&mut rest[at..])? {
            0 => return Err(io::Error::from(io::ErrorKind::UnexpectedEof).into()),
            consumed => at += consumed,
        }
    }
    successor.step(ClientMessageProgress { consuming: 0, peeked: 0, ..progress });
    Ok(())
}
