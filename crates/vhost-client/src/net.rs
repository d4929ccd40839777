//! Driver of a virtio network function with one queue pair, attached over vhost-user.

use crate::VhostClientError;
use crate::connection::BackendConnection;
use crate::frame::ReceivedVirtioFrame;
use crate::interrupts::InterruptState;
use crate::memory::{FrontendMemory, user_address};
use crate::receive::{BURST, ReceiveRing};
use crate::startup::{RingEventfds, connect, start};
use crate::transmit::TransmitRing;
use host::driver_thread::{DriverThread, SystemThread};
use host::memory::MappedFile;
use host::shared::SharedMemory;
use std::os::fd::BorrowedFd;
use std::path::Path;
use vhost_user::message::{FrontendRequest, MemoryRegion};
use virtio::driver::{DriverRing, DriverRingError, InterruptRequest};
use virtio::layout::RingFeatures;
use virtio::net::{NetHeader, NetHeaderFormat, receive_queue, transmit_queue};
use virtio::{MemoryFault, VirtioFeatures};

/// Features with which the device segments packets.
const SEGMENTS: VirtioFeatures = VirtioFeatures::HOST_TSO4.with(VirtioFeatures::HOST_TSO6);

/// Configuration of a virtio network driver.
#[derive(Debug, Clone, Copy)]
pub struct VirtioNetConfig {
    /// Features that the driver accepts; the back end must offer all of them. `VERSION_1` is implied.
    pub features: VirtioFeatures,
    /// Number of descriptors of each ring.
    pub descriptors: u16,
}

/// Virtio network function with its driver. Dropping this value closes the connection.
#[derive(Debug)]
pub struct VirtioNet<T = SystemThread> {
    connection: BackendConnection<T>,
    memory: FrontendMemory,
    accepted: VirtioFeatures,
    receive: ReceiveRing,
    transmit: TransmitRing,
    /// Positions at which the receive ring and the transmit ring have started last, as in `SET_VRING_BASE`.
    bases: [u32; 2],
    /// Eventfds of the receive ring and of the transmit ring.
    eventfds: [RingEventfds; 2],
    /// State of a driver that sleeps until an interrupt; `None` if the driver polls.
    interrupts: Option<InterruptState>,
    /// Number of kicks that the driver has sent and not reported.
    kicks: u64,
    /// Error after which the driver has stopped.
    broken: Option<DriverRingError>,
}

impl VirtioNet {
    /// Attaches to the virtio function behind a socket: negotiates features, shares memory, starts the rings and posts
    /// receive buffers.
    ///
    /// # Errors
    /// [`VhostClientError`]; `NotOffered` if the back end lacks a feature of the configuration.
    pub fn attach(socket: &Path, config: &VirtioNetConfig) -> Result<Self, VhostClientError> {
        Self::attach_on(SystemThread, socket, config)
    }
}

impl<T: DriverThread + Clone> VirtioNet<T> {
    /// Attaches to the function as [`VirtioNet::attach`] does. Requests wait as `thread` does.
    ///
    /// # Errors
    /// [`VhostClientError`]; `NotOffered` if the back end lacks a feature of the configuration.
    pub fn attach_on(thread: T, socket: &Path, config: &VirtioNetConfig) -> Result<Self, VhostClientError> {
        let accepted = config.features.with(VirtioFeatures::VERSION_1);
        let (size, segments) = (config.descriptors, accepted.intersects(SEGMENTS));
        let bytes = 2 * FrontendMemory::ring_bytes(size)
            + ReceiveRing::bytes(size)
            + TransmitRing::bytes(size, segments)
            + 4096;
        let mut memory = FrontendMemory::new(bytes)?;
        let is_packed = accepted.contains(VirtioFeatures::RING_PACKED);
        let mut ring = || {
            let addresses = memory.allocate_ring(size)?;
            let ring = DriverRing::new(is_packed, size, addresses, RingFeatures::of(accepted))?;
            ring.request_interrupts(&mut &memory, InterruptRequest::None)?;
            Ok::<_, VhostClientError>(ring)
        };
        let (receive, transmit) = (ring()?, ring()?);
        let bases = [receive.first_base(), transmit.first_base()];
        let rings = [(&receive, bases[0]), (&transmit, bases[1])];
        let (connection, eventfds) = connect(socket, thread, accepted, &memory, rings)?;
        let receive = ReceiveRing::new(receive, &mut memory, NetHeaderFormat::of(accepted).size())?;
        let transmit = TransmitRing::new(transmit, &mut memory, segments)?;
        let mut this = Self {
            connection,
            memory,
            accepted,
            receive,
            transmit,
            bases,
            eventfds,
            interrupts: None,
            kicks: 0,
            broken: None,
        };
        this.post_buffers();
        this.broken.map_or(Ok(this), |error| Err(error.into()))
    }

    /// Attaches to the function again after the end of its back end, as QEMU does: with the same memory and rings, each of which
    /// starts where it has started last. The driver continues where it was, and a driver that [sleeps](Self::sleep_until_interrupts)
    /// sleeps on: the guest does not learn of the reconnection. The new back end sends an interrupt for what the former one
    /// has received without one.
    ///
    /// # Errors
    /// [`VhostClientError`]; `NotOffered` if the new back end lacks a feature that the driver has accepted.
    pub fn reconnect(&mut self, socket: &Path) -> Result<(), VhostClientError> {
        let [receive, transmit] = self.bases;
        let rings = [(&self.receive.ring, receive), (&self.transmit.ring, transmit)];
        let thread = self.connection.thread.clone();
        (self.connection, self.eventfds) = connect(socket, thread, self.accepted, &self.memory, rings)?;
        Ok(())
    }

    /// Stops the rings, and starts them where they were, as a VMM does that pauses its guest. The driver does not learn of it. The
    /// back end sends an interrupt for what it has received meanwhile.
    ///
    /// # Errors
    /// [`VhostClientError`]: [`VirtioNet::reconnect`] starts the rings again.
    pub fn pause(&mut self) -> Result<(), VhostClientError> {
        let numbers = [receive_queue(0), transmit_queue(0)];
        for (base, number) in self.bases.iter_mut().zip(numbers) {
            *base = self.connection.stop_ring(number)?;
        }
        let rings = [&self.receive.ring, &self.transmit.ring];
        for (eventfds, ((ring, number), base)) in
            self.eventfds.iter_mut().zip(rings.into_iter().zip(numbers).zip(self.bases))
        {
            *eventfds = start(&mut self.connection, number, ring, base)?;
        }
        Ok(())
    }

    /// Shares `size` bytes of a file with the back end as a second region of memory, at a guest address. The regions before are
    /// replaced, so the rings must be idle, or their guest be hostile.
    ///
    /// # Errors
    /// [`VhostClientError`].
    pub fn share_file(
        &mut self,
        file: BorrowedFd<'_>,
        guest_address: u64,
        size: u64,
    ) -> Result<(), VhostClientError> {
        let (own, fd) = self.memory.region()?;
        let fds = vec![fd, file.try_clone_to_owned()?];
        let regions = vec![own, region(guest_address, size)];
        self.connection.confirmed(&FrontendRequest::SetMemTable(regions), fds)
    }

    /// Shares `size` bytes of a file as the only region of memory, at a guest address: the rings are in no memory, as a hostile VMM
    /// may have it.
    ///
    /// # Errors
    /// [`VhostClientError`].
    pub fn share_only(
        &mut self,
        file: BorrowedFd<'_>,
        guest_address: u64,
        size: u64,
    ) -> Result<(), VhostClientError> {
        let regions = vec![region(guest_address, size)];
        self.connection.confirmed(&FrontendRequest::SetMemTable(regions), vec![file.try_clone_to_owned()?])
    }

    /// Makes the driver sleep until an interrupt whenever it has found its receive ring empty: it requests an interrupt for
    /// the next frame, and does not look at the ring before. The transmit ring requests none: the driver collects sent
    /// packets when it needs their buffers.
    pub fn sleep_until_interrupts(&mut self) {
        self.interrupts.get_or_insert_default();
    }

    /// Returns the features that the driver has accepted.
    #[must_use]
    pub fn accepted(&self) -> VirtioFeatures {
        self.accepted
    }

    /// Returns the number of kicks that the driver has sent since the last call, of both rings.
    pub fn take_kicks(&mut self) -> u64 {
        std::mem::take(&mut self.kicks)
    }

    /// Returns the number of interrupts (vhost-user calls) that the device has sent since the last call of this function.
    pub fn take_calls(&mut self) -> u64 {
        let [receive, transmit] = &self.eventfds;
        let received = match &mut self.interrupts {
            Some(state) => state.take_calls(),
            None => receive.call.drain(),
        };
        received + transmit.call.drain()
    }

    /// Wakes a driver that [sleeps](Self::sleep_until_interrupts), as a timer does: it looks at its receive ring at the next
    /// opportunity, without an interrupt.
    pub fn wake(&mut self) {
        if let Some(state) = &mut self.interrupts {
            state.asleep = false;
        }
    }

    /// Returns true if the back end has closed the connection. [`VirtioNet::reconnect`] connects to the next one.
    ///
    /// # Errors
    /// [`VhostClientError::System`].
    pub fn is_gone(&mut self) -> Result<bool, VhostClientError> {
        self.connection.is_closed()
    }

    /// Collects sent packets, and returns the number of descriptors of packets that the device has not sent yet.
    pub fn unsent(&mut self) -> u16 {
        let collected = self.transmit.reclaim(&self.memory);
        self.checked(collected);
        self.transmit.ring.size() - self.transmit.ring.free()
    }

    /// Returns the memory of the guest.
    #[must_use]
    pub fn memory(&self) -> &MappedFile {
        self.memory.mapped()
    }

    /// Returns the guest's memory with its file.
    #[must_use]
    pub fn shared_memory(&self) -> &SharedMemory {
        self.memory.shared()
    }

    /// Returns the error after which the driver has stopped, if it has.
    #[must_use]
    pub fn broken(&self) -> Option<&DriverRingError> {
        self.broken.as_ref()
    }

    /// Queues a packet with the offloads of its header. Returns false if the ring is full, or the packet is too long.
    /// [`VirtioNet::flush`] makes it available.
    #[inline]
    pub fn transmit(&mut self, packet: &[u8], header: &NetHeader) -> bool {
        let raw = header.emit();
        let header = &raw[..NetHeaderFormat::of(self.accepted).size()];
        let added = self.transmit.add(&self.memory, header, packet);
        self.checked(added).unwrap_or(false)
    }

    /// Makes queued packets available, and kicks the device if it sleeps.
    #[inline]
    pub fn flush(&mut self) {
        let published = self.transmit.ring.publish(&mut &self.memory);
        self.checked(published.map_err(DriverRingError::from));
        let wanted = self.transmit.ring.needs_kick(&mut &self.memory);
        self.kick_if(wanted, 1);
    }

    /// Passes received frames to `take`, at most `most` and 32, and posts their buffers again. Returns the number of
    /// frames. A driver that [sleeps](Self::sleep_until_interrupts) has none before its next interrupt.
    #[inline]
    pub fn receive_burst(&mut self, most: usize, take: impl FnMut(ReceivedVirtioFrame<'_>)) -> usize {
        if self.interrupts.is_some() { self.receive_awake(most, take) } else { self.take_frames(most, take) }
    }

    /// Receives frames, unless the driver sleeps, and lets the driver sleep when its ring is empty.
    #[inline(never)]
    fn receive_awake(&mut self, most: usize, mut take: impl FnMut(ReceivedVirtioFrame<'_>)) -> usize {
        if let Some(state) = self.interrupts.as_mut().filter(|state| state.asleep) {
            if !state.wakes(&self.eventfds[0].call) {
                return 0;
            }
            self.request(InterruptRequest::None);
        }
        let most = most.min(BURST);
        let count = self.take_frames(most, &mut take);
        if count == most {
            return count;
        }
        self.request(InterruptRequest::Next);
        // A frame that arrived before the request causes no interrupt.
        let late = self.take_frames(most - count, &mut take);
        if late > 0 {
            self.request(InterruptRequest::None);
        } else if let Some(state) = &mut self.interrupts {
            state.asleep = true;
        }
        count + late
    }

    /// Requests interrupts of the receive ring.
    fn request(&mut self, request: InterruptRequest) {
        let requested = self.receive.ring.request_interrupts(&mut &self.memory, request);
        self.checked(requested.map_err(DriverRingError::from));
    }

    #[inline]
    fn take_frames(&mut self, most: usize, take: impl FnMut(ReceivedVirtioFrame<'_>)) -> usize {
        let taken = self.receive.take(&self.memory, most, take);
        let count = self.checked(taken).unwrap_or(0);
        if count > 0 {
            self.post_buffers();
        }
        count
    }

    fn post_buffers(&mut self) {
        let posted = self.receive.post(&self.memory);
        self.checked(posted);
        let wanted = self.receive.ring.needs_kick(&mut &self.memory);
        self.kick_if(wanted, 0);
    }

    #[inline]
    fn kick_if(&mut self, wanted: Result<bool, MemoryFault>, ring: usize) {
        if self.checked(wanted.map_err(DriverRingError::from)) == Some(true) {
            self.kicks += 1;
            self.eventfds[ring].kick.signal();
        }
    }

    /// Returns the value of a result, and keeps its error.
    #[inline]
    fn checked<R>(&mut self, result: Result<R, DriverRingError>) -> Option<R> {
        match result {
            Ok(value) => Some(value),
            Err(error) => {
                self.broken.get_or_insert(error);
                None
            }
        }
    }
}

/// Returns the region of the first `size` bytes of a file at a guest address.
fn region(guest_address: u64, size: u64) -> MemoryRegion {
    MemoryRegion { guest_address, size, user_address: user_address(guest_address), file_offset: 0 }
}
