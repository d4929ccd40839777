//! Clients of a predecessor, served on: where each was in its stream, its memory and its interrupts.
//!
//! After a death in the middle of a round the card is a new one, and drivers have to start anew. They are told by a
//! message in their mailbox, and for as long as they have not set up the vector for it, by every vector they have: a
//! driver that is called for nothing looks around, and finds that its VF was reset ([`Kick`]).
//!
//! Left out: the card (`inheritance`).

use super::bus::{LiveBus, Reach};
use super::connection::Connection;
use super::hal::now;
use super::journal::{Irq, Progress, Window};
use super::keeping::Keeping;
use super::slot::Slot;
use super::{CONNECTIONS, Port};
use crate::vault::PortVault;
use host::dma::MapRegionError;
use host::eventfd::EventFd;
use host::memory::FileIdentity;
use host::poll::Poller;
use host::socket::{ReplyLog, Stream};
use i82576::Time;
use pcie::Function;
use std::io;
use std::os::fd::AsFd;
use std::time::Duration;
use vfio_user::decoder::{Partial, ProtocolError};
use vfio_user::outbox::Outbox;
use vfio_user::server::{Negotiated, Session};
use vfio_user::wire::{Capabilities, MAX_DMA_MAPS};

/// Why a client is not served on.
#[derive(Debug, thiserror::Error)]
pub(super) enum AdoptError {
    /// A descriptor was not kept, or is something else.
    #[error("the {0} was not kept")]
    Lost(&'static str),
    /// An earlier version of softiov has consumed a part of a message and not kept it.
    #[error("a part of a message is lost, which the version before did not keep")]
    Torn,
    /// The bytes that are held begin no message.
    #[error("the part of a message that is held: {0}")]
    Held(#[from] ProtocolError),
    /// The kernel.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Calls a driver that has to start anew: at once, and then ever less often until it does.
#[derive(Debug, Clone, Copy)]
pub(super) struct Kick {
    next: Time,
    wait: Duration,
}

const FIRST_KICK: Duration = Duration::from_millis(5);
const LAST_KICK: Duration = Duration::from_secs(3);

impl Kick {
    pub(super) fn new(now: Time) -> Self {
        Self { next: now, wait: FIRST_KICK }
    }

    /// Whether it is time for a call; `None` if there were enough.
    fn due(&mut self, now: Time) -> Option<bool> {
        if now < self.next {
            return Some(false);
        }
        self.next = now + self.wait;
        self.wait *= 2;
        (self.wait <= LAST_KICK).then_some(true)
    }
}

/// What a predecessor's client needs to be served on.
pub(super) struct Adopter<'a> {
    pub(super) vault: &'a PortVault,
    pub(super) poller: &'a Poller,
    pub(super) bus: &'a mut LiveBus,
}

impl Adopter<'_> {
    /// Goes on with a function's client, if it had one. Answers the socket of one that cannot be served on.
    pub(super) fn adopt(&mut self, index: usize, slot: &mut Slot) -> Option<Stream> {
        let progress = slot.keeping.journal.progress();
        if progress.stream == 0 {
            return None;
        }
        let stream = self.vault.copy(progress.stream).and_then(|fd| Stream::adopt(fd).ok());
        let Some(stream) = stream else {
            slot.keeping.end();
            return None;
        };
        let token = CONNECTIONS + index as u64;
        let connection = self.connection(&stream, &progress, &mut slot.keeping, slot.function);
        let added = connection.and_then(|mut connection| {
            connection.update_interest(self.poller, token)?;
            Ok(connection)
        });
        match added {
            Ok(connection) => {
                (slot.connection, slot.more) = (Some(connection), true);
                None
            }
            Err(error) => {
                tracing::error!(function = slot.name, %error, "a client cannot be served on");
                let reach = self.bus.reach_mut(slot.function);
                reach.errands.unmap(reach.memory.unmap_all());
                reach.eventfds.iter_mut().for_each(|eventfds| eventfds.fill_with(|| None));
                slot.keeping.end();
                Some(stream)
            }
        }
    }

    fn connection(
        &mut self,
        stream: &Stream,
        progress: &Progress,
        keeping: &mut Keeping,
        function: Function,
    ) -> Result<Connection, AdoptError> {
        if progress.torn {
            return Err(AdoptError::Torn);
        }
        let stream = Stream::adopt(stream.as_fd().try_clone_to_owned()?)?;
        finish_consuming(&stream, keeping)?;
        let file = self.vault.copy(progress.replies).ok_or(AdoptError::Lost("file of replies"))?;
        let (replies, owed, sent) = ReplyLog::adopt(file, progress.extent, progress.held)?;
        let held_fds =
            keeping.held_fds(stream.as_fd())?.ok_or(AdoptError::Lost("descriptor of a message"))?;
        let noted = keeping.journal.noted();
        let (vault, reach) = (self.vault, self.bus.reach_mut(function));
        let mut lost = (0_u32, None);
        for window in &noted.windows {
            if let Some(error) = map(vault, reach, window, keeping)? {
                lost = (lost.0 + 1, Some(error));
            }
        }
        // A client has up to thousands, so they are told together.
        if let (windows, Some(error)) = lost {
            tracing::warn!(?function, windows, %error, "windows of a client are lost");
        }
        for irq in &noted.irqs {
            connect(vault, reach, *irq)?;
        }
        let agreed = progress.agreed.map(|(minor, write_multiple)| Negotiated {
            minor,
            client: Capabilities::default(),
            write_multiple,
        });
        let windows = noted.windows.iter().map(|window| (window.iova, window.iova + (window.size - 1)));
        let mut session = Session::resume(MAX_DMA_MAPS, agreed, windows);
        let partial = Partial { kept: &replies.read_held()?, skipped: progress.skipped as usize };
        session.resume_partial(partial, held_fds.into_iter().map(|fd| reach.errands.keep(fd)))?;
        Ok(Connection::resume(stream, session, Outbox::resume(owed, sent), replies)?)
    }
}

/// Maps a window again. One that cannot be, because the client has shrunk its memory, is known and unreachable: answers
/// why.
fn map(
    vault: &PortVault,
    reach: &mut Reach,
    window: &Window,
    keeping: &mut Keeping,
) -> Result<Option<MapRegionError>, AdoptError> {
    let Window { iova, size, permissions, file, offset } = *window;
    let file = match file {
        0 => None,
        number => Some(vault.copy(number).ok_or(AdoptError::Lost("guest's memory"))?),
    };
    let admitted = reach.memory.admit(iova, size, permissions, file.as_ref().map(|_| offset));
    let (Ok(Some(region)), Some(file)) = (admitted, file) else { return Ok(None) };
    if let Ok(identity) = FileIdentity::of_memory(file.as_fd()) {
        keeping.mapped_again(window, identity);
    }
    match region.map(file) {
        Ok(region) => reach.memory.insert(region).map_err(|_| AdoptError::Lost("order of windows"))?,
        Err(error) => {
            let _ = reach.memory.admit(iova, size, permissions, None);
            return Ok(Some(error));
        }
    }
    Ok(None)
}

fn connect(vault: &PortVault, reach: &mut Reach, irq: Irq) -> Result<(), AdoptError> {
    let eventfd = vault.copy(irq.number).and_then(|fd| EventFd::adopt(fd).ok());
    let eventfd = eventfd.ok_or(AdoptError::Lost("guest's eventfd"))?;
    let eventfds = reach.eventfds.get_mut(irq.index as usize);
    if let Some(place) = eventfds.and_then(|eventfds| eventfds.get_mut(irq.vector as usize)) {
        *place = Some(eventfd);
    }
    Ok(())
}

/// Consumes the rest of what the predecessor was about to consume. The kernel has moved the peek offset back by what it has.
fn finish_consuming(stream: &Stream, keeping: &mut Keeping) -> Result<(), AdoptError> {
    let progress = keeping.journal.progress();
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
    keeping.step(Progress { consuming: 0, peeked: 0, ..progress });
    Ok(())
}

impl Port {
    /// Calls drivers that have to start anew. Answers when to do so again.
    pub(super) fn kick(&mut self) -> Option<Time> {
        let now = now();
        let mut next = None;
        for slot in &mut self.slots {
            let Some(kick) = &mut slot.kick else { continue };
            let active = slot.function.vf().is_some_and(|vf| self.card.is_active(vf));
            match kick.due(now).filter(|_| !active && slot.connection.is_some()) {
                Some(due) => {
                    next = next.into_iter().chain([kick.next]).min();
                    if due {
                        self.bus.signal_all(slot.function);
                    }
                }
                None => slot.kick = None,
            }
        }
        next
    }
}
