//! Saves a front end's connection for the successor process of a planned hand-over, and continues the connection there.
//!
//! A front end is saved when the port pauses, since the positions of its rings change with every frame. The bytes of its
//! session are in memory of their own. The journal has the numbers of that memory, of the socket, and of the files and
//! eventfds. It has them only during the pause: a process that has crashed has no front end to continue, since its rings
//! have moved on.

use super::apply::with_nic;
use super::hand_over::FrontEndHandOver;
use super::kicks::KickEventfds;
use super::{VhostUserConnection, offer};
use crate::port::clients::connection::DisconnectReason;
use crate::port::clients::device::VfioFunction;
use crate::port::clients::holdings::ClientResources;
use crate::port::clients::journal::{ClientMessageProgress, SavedDmaWindow, SavedEventfd};
use crate::port::tokens::RINGS;
use crate::state::{self, SavedPausedPacket, SavedStateError, VhostClientState};
use host::eventfd::EventFd;
use host::memory::FileIdentity;
use host::shared::{SharedMemory, SharedMemoryError};
use host::socket::{SocketReceiveResult, StreamSocket};
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use vfio_user::wire::pci_irq;
use vhost_user::backend::{BackendProgress, BackendSession, SessionRestoreError, SessionSaveError};
use virtio_nic::KnownGuest;

/// Interrupt type under whose vectors the journal has the eventfds by which the guest kicks its rings. The function has no
/// interrupts of this type.
pub(in crate::port) const KICKS: u32 = pci_irq::MSI;

/// Reason why a front end cannot continue with the successor process.
#[derive(Debug, thiserror::Error)]
enum FrontEndSaveError {
    /// The front end waits for a blocking call, or has replies to read.
    #[error("its last request is not finished")]
    Busy,
    /// The session cannot be saved now.
    #[error(transparent)]
    Session(#[from] SessionSaveError),
    /// The saved state cannot be encoded.
    #[error(transparent)]
    State(#[from] SavedStateError),
    /// The kernel refuses memory for the saved state.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// A file of guest memory cannot be identified.
    #[error("a file of guest memory: {0}")]
    File(#[from] io::Error),
}

/// Reason why the saved state of a front end is of no use.
#[derive(Debug, thiserror::Error)]
pub(in crate::port) enum FrontEndRestoreError {
    /// The memory of the saved state is lost.
    #[error(transparent)]
    Memory(#[from] SharedMemoryError),
    /// The saved state is damaged, or of a later version.
    #[error(transparent)]
    State(#[from] SavedStateError),
    /// The session in the saved state is invalid.
    #[error(transparent)]
    Session(#[from] SessionRestoreError),
}

impl VhostUserConnection {
    /// Continues the connection that the previous process has saved in the memory `saved`. Its first visit starts the rings.
    pub(in crate::port) fn inherit(
        stream: StreamSocket,
        saved: OwnedFd,
        kicks: Vec<(u32, EventFd)>,
    ) -> Result<Self, FrontEndRestoreError> {
        let saved: VhostClientState = state::read(&load(saved)?)?;
        let session = BackendSession::restore(offer::of_every_function(), &saved.session)?;
        let mut eventfds = KickEventfds::new();
        kicks.into_iter().for_each(|(ring, eventfd)| eventfds.set(ring, Some(eventfd)));
        let hand_over = FrontEndHandOver::Inherited(saved);
        Ok(Self { session, kicks: eventfds, hand_over, ..Self::new(stream) })
    }

    /// Ends the hand-over of an inherited connection before the first ring starts: from now on the saved positions are wrong.
    pub(super) fn begin_inherited(&mut self, device: &mut VfioFunction<'_>) {
        let FrontEndHandOver::Inherited(saved) = &mut self.hand_over else { return };
        let saved = std::mem::take(saved);
        self.end_hand_over(device.own);
        let function = device.function;
        let address = saved.address.filter(|address| device.engine.may_keep_address(function, *address));
        with_nic(device, |nic, vf| {
            saved.positions.iter().for_each(|(ring, position)| nic.continue_ring(vf, *ring, *position));
            nic.continue_guest(vf, KnownGuest { address, has_arrived: saved.has_arrived });
            if let Some(paused) = saved.paused {
                // The card counts a packet that it refuses.
                nic.continue_packet(vf, &paused.into());
            }
        });
    }

    /// Releases what was saved for a successor process.
    pub(super) fn end_hand_over(&mut self, own: &mut ClientResources) {
        if !matches!(self.hand_over, FrontEndHandOver::None) {
            self.hand_over = FrontEndHandOver::None;
            own.successor.end();
        }
    }

    /// Saves the connection for the successor process. A front end that cannot be saved connects to the successor again.
    pub(super) fn save(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) {
        // What the previous process has saved is still right: no ring has started.
        if matches!(self.hand_over, FrontEndHandOver::Inherited(_)) {
            return;
        }
        self.finish_message(device, buffer);
        self.forget_stopped(device);
        self.hand_over = FrontEndHandOver::Saved;
        if let Err(error) = self.try_save(device) {
            tracing::info!(function = ?device.function, %error, "a vhost-user client has to connect again after the upgrade");
            self.end_hand_over(device.own);
        }
    }

    /// Finishes the message that the front end has begun, and what the last visit has left of others: a visit ends when the
    /// function's account is used up. Begins no further message, so the work is bounded by the length of a message and the number
    /// of rings. Returns true if a blocking call has to end before, or the socket has no room for a reply.
    pub(super) fn finish_message(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> bool {
        if self.failed.is_some() || matches!(self.hand_over, FrontEndHandOver::Inherited(_)) {
            return false;
        }
        while !self.waiting {
            match self.session.step(&mut self.outbox) {
                Ok(BackendProgress::Handled) => {}
                Ok(BackendProgress::Event(event)) => self.apply_charged(event, device),
                Ok(BackendProgress::Task(task)) => self.begin(task, device),
                Ok(BackendProgress::Waiting) => self.waiting = true,
                Ok(BackendProgress::Starved) if self.receive_rest(device, buffer) => {}
                Ok(BackendProgress::Starved | BackendProgress::Blocked) | Err(_) => break,
            }
        }
        // A socket that accepts no reply keeps the connection from being saved. One that has failed never accepts it.
        let waits_for_room = self.send().is_ok() && self.outbox.pending() > 0;
        self.waiting || waits_for_room
    }

    /// Receives a part of the message that the session has in part. Returns false if the socket has none, or if there is no such
    /// message.
    fn receive_rest(&mut self, device: &mut VfioFunction<'_>, buffer: &mut [u8]) -> bool {
        if self.session.partial().0 == 0 {
            return false;
        }
        let room = self.session.room().min(buffer.len());
        let received = match self.stream.recv(&mut buffer[..room], &mut self.fds) {
            Ok(SocketReceiveResult::Bytes(_)) if self.fds.truncated() => Err(DisconnectReason::lost_fds()),
            Ok(SocketReceiveResult::Bytes(count)) => self.push(&buffer[..count], device),
            // The next visit finds the end again.
            Ok(SocketReceiveResult::WouldBlock | SocketReceiveResult::Closed) | Err(_) => return false,
        };
        self.failed = received.err();
        self.failed.is_none()
    }

    fn try_save(&self, device: &mut VfioFunction<'_>) -> Result<(), FrontEndSaveError> {
        if self.waiting || self.failed.is_some() || self.outbox.pending() > 0 {
            return Err(FrontEndSaveError::Busy);
        }
        if device.engine.reach(device.function).memory().has_log() {
            return Err(SessionSaveError::MigrationLog.into());
        }
        let session = self.session.save()?;
        let known = with_nic(device, |nic, vf| {
            let position = |ring| Some((ring, nic.ring_position(vf, ring)?));
            let positions = (0..RINGS).filter_map(position).collect();
            (positions, nic.known_guest(vf), nic.paused_packet(vf).map(SavedPausedPacket::from))
        });
        let (positions, KnownGuest { address, has_arrived }, paused) = known.unwrap_or_default();
        let state = VhostClientState { session, positions, address, has_arrived, paused };
        let file = store(&state.encode()?)?;
        let [stream, replies, _] = device.own.successor.begin();
        let keeper = device.own.successor.keeper(0);
        keeper.keep(stream, self.stream.as_fd());
        keeper.keep(replies, file.as_fd());
        self.keep_memory(device)?;
        self.keep_eventfds(device);
        device.own.successor.step(ClientMessageProgress {
            stream,
            replies,
            torn: true,
            ..ClientMessageProgress::default()
        });
        Ok(())
    }

    fn keep_memory(&self, device: &mut VfioFunction<'_>) -> io::Result<()> {
        let (reach, successor) = (device.engine.reach(device.function), &mut device.own.successor);
        for region in reach.memory().regions() {
            let Some((file, offset)) = region.file else { continue };
            let identity = FileIdentity::of_memory(file).map_err(io::Error::from)?;
            let kept = successor.keeper(1).keep_file(&identity, file);
            let size = region.last - region.iova + 1;
            let window = SavedDmaWindow {
                iova: region.iova,
                size,
                permissions: region.permissions,
                file: kept.number,
                offset,
            };
            successor.mapped(&window, Some(identity));
        }
        Ok(())
    }

    fn keep_eventfds(&self, device: &mut VfioFunction<'_>) {
        let (reach, successor) = (device.engine.reach(device.function), &mut device.own.successor);
        let calls = reach.eventfds(pci_irq::MSIX).map(|(ring, eventfd)| (pci_irq::MSIX, ring, eventfd));
        let kicks = self.kicks.eventfds().map(|(ring, eventfd)| (KICKS, ring, eventfd));
        for (index, vector, eventfd) in calls.chain(kicks) {
            let number = successor.keeper(1).keep_one(eventfd.as_fd());
            successor.eventfd(SavedEventfd { index, vector, number });
        }
    }
}

/// Stores bytes in memory that the successor process reads.
pub(in crate::port) fn store(bytes: &[u8]) -> Result<SharedMemory, SharedMemoryError> {
    let memory = SharedMemory::new(bytes.len() as u64)?;
    // The bytes fill the memory.
    let _ = memory.memory().write(0, bytes);
    Ok(memory)
}

/// Returns the encoded state of a front end that the previous process has saved in the memory.
pub(in crate::port) fn load(fd: OwnedFd) -> Result<Vec<u8>, SharedMemoryError> {
    let memory = SharedMemory::adopt(fd)?;
    let mut bytes = vec![0; memory.memory().len() as usize];
    // The bytes fill the memory.
    let _ = memory.memory().read(0, &mut bytes);
    Ok(bytes)
}
