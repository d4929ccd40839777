//! Guest of a test with a driver for one queue pair of split rings.

use super::front_end::VhostTestFrontEnd;
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::ram::GuestRam;
use host::eventfd::EventFd;
use host::socket::StreamSocket;
use std::path::Path;
use std::sync::atomic::{Ordering, fence};
use virtio::descriptor::{SplitDescriptor, flag};
use virtio::layout::RingAddresses;

/// Entries of each ring of a guest.
pub(crate) const RING: u16 = 64;
/// Bytes of each packet buffer of a guest.
const BUFFER: u64 = 2048;
/// Bytes of the virtio-net header at the start of each packet buffer.
const HEADER: usize = 12;
/// Index of the receive ring of the first queue pair.
pub(crate) const RECEIVE: u32 = 0;
/// Index of the transmit ring of the first queue pair.
pub(crate) const TRANSMIT: u32 = 1;

/// Split ring of a driver in which descriptor n always points to buffer n.
pub(crate) struct DriverSplitRing {
    pub(crate) addresses: RingAddresses,
    pub(crate) buffers: u64,
    available: u16,
    used: u16,
    pub(crate) kick: EventFd,
    pub(crate) call: EventFd,
}

impl DriverSplitRing {
    fn new(ram: &mut GuestRam) -> Self {
        let mut area = |bytes: u64| ram.allocate(bytes, 4096).unwrap();
        let size = u64::from(RING);
        let addresses = RingAddresses {
            descriptors: area(16 * size),
            driver: area(6 + 2 * size),
            device: area(6 + 8 * size),
        };
        let (kick, call) = (EventFd::new().unwrap(), EventFd::new().unwrap());
        Self { addresses, buffers: area(BUFFER * size), available: 0, used: 0, kick, call }
    }

    /// Makes the next buffer available with `length` bytes, and notifies the device.
    fn offer(&mut self, ram: &GuestRam, length: u32, flags: u16) {
        let slot = self.available % RING;
        let address = self.buffers + BUFFER * u64::from(slot);
        let descriptor = SplitDescriptor { address, length, flags, next: 0 };
        ram.write(self.addresses.descriptors + 16 * u64::from(slot), &descriptor.emit());
        ram.write(self.addresses.driver + 4 + 2 * u64::from(slot), &slot.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        fence(Ordering::SeqCst);
        ram.write(self.addresses.driver + 2, &self.available.to_le_bytes());
        fence(Ordering::SeqCst);
        self.kick.signal();
    }

    /// Returns the index of the next used element, as the device has published it.
    pub(crate) fn used_index(&self, ram: &GuestRam) -> u16 {
        let mut index = [0; 2];
        ram.read(self.addresses.device + 2, &mut index);
        fence(Ordering::SeqCst);
        u16::from_le_bytes(index)
    }

    /// Takes the next used buffer with the bytes that the device wrote.
    fn take(&mut self, ram: &GuestRam) -> Option<Vec<u8>> {
        if self.used_index(ram) == self.used {
            return None;
        }
        let mut element = [0; 8];
        ram.read(self.addresses.device + 4 + 8 * u64::from(self.used % RING), &mut element);
        let word =
            |at: usize| u32::from_le_bytes([element[at], element[at + 1], element[at + 2], element[at + 3]]);
        let mut bytes = vec![0; (word(4) as usize).min(BUFFER as usize)];
        ram.read(self.buffers + BUFFER * u64::from(word(0)), &mut bytes);
        self.used = self.used.wrapping_add(1);
        Some(bytes)
    }
}

/// Guest with a started driver behind a front end.
pub(crate) struct VirtioGuest {
    pub(crate) front: VhostTestFrontEnd,
    pub(crate) receive: DriverSplitRing,
    pub(crate) transmit: DriverSplitRing,
    mac: [u8; 6],
}

impl VirtioGuest {
    /// Boots a guest on a VF of the first port: its driver starts one queue pair.
    pub(crate) fn boot(live: &LiveHost, vf: u8) -> Self {
        Self::boot_on(StreamSocket::connect(&live.socket(vf)).unwrap(), vf)
    }

    /// Boots a guest over a connection between the host and the guest's VMM.
    pub(crate) fn boot_on(stream: StreamSocket, vf: u8) -> Self {
        let mut front = VhostTestFrontEnd::over(stream);
        front.negotiate();
        let (receive, transmit) =
            (DriverSplitRing::new(&mut front.ram), DriverSplitRing::new(&mut front.ram));
        let mut guest = Self { front, receive, transmit, mac: [2, 0, 0, 0, 7, vf] };
        guest.start(0, 0);
        for _ in 0..RING / 2 {
            guest.post();
        }
        guest
    }

    /// Shares memory, and starts both rings at these positions.
    fn start(&mut self, receive: u32, transmit: u32) {
        self.front.share_memory();
        for (ring, base, of) in [(RECEIVE, receive, &self.receive), (TRANSMIT, transmit, &self.transmit)] {
            let size = (u32::from(RING), base);
            self.front.start_ring(ring, size, of.addresses, (&of.kick, &of.call));
        }
    }

    /// Connects again after the host has closed the connection, as QEMU does: memory and rings stay, and the rings
    /// continue at their used index.
    pub(crate) fn reconnect(&mut self, path: &Path) {
        self.reconnect_on(StreamSocket::connect(path).unwrap());
    }

    /// Starts the rings over another connection, as [`Self::reconnect`] does.
    pub(crate) fn reconnect_on(&mut self, stream: StreamSocket) {
        let ram = std::mem::replace(&mut self.front.ram, GuestRam::new());
        self.front = VhostTestFrontEnd::over_with(stream, ram);
        self.front.negotiate();
        let positions = [&self.receive, &self.transmit].map(|ring| ring.used_index(&self.front.ram));
        self.start(positions[0].into(), positions[1].into());
    }

    fn post(&mut self) {
        self.receive.offer(&self.front.ram, BUFFER as u32, flag::WRITE);
    }

    /// Sends a broadcast frame with a payload.
    pub(crate) fn send(&mut self, payload: &[u8]) {
        let packet = [&[0; HEADER][..], &[0xff; 6], &self.mac, &[0x88, 0xb5], payload].concat();
        let slot = u64::from(self.transmit.available % RING);
        self.front.ram.write(self.transmit.buffers + BUFFER * slot, &packet);
        self.transmit.offer(&self.front.ram, packet.len() as u32, 0);
    }

    /// Takes the frames that have arrived, and returns their payloads. Payloads of short frames include padding.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        while let Some(packet) = self.receive.take(&self.front.ram) {
            payloads.push(packet[HEADER + 14..].to_vec());
            self.post();
        }
        while self.transmit.take(&self.front.ram).is_some() {}
        payloads
    }

    /// Waits until a frame with this payload has arrived.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, payload: &[u8]) {
        eventually("the frame arrives", || self.take().iter().any(|arrived| arrived.starts_with(payload)));
    }
}

/// Checks that two guests exchange frames in both directions.
#[track_caller]
pub(crate) fn exchange(a: &mut VirtioGuest, b: &mut VirtioGuest) {
    for number in 0..5 {
        a.send(&[number; 100]);
        b.wait_for(&[number; 100]);
        b.send(&[0x80 | number; 200]);
        a.wait_for(&[0x80 | number; 200]);
    }
}
