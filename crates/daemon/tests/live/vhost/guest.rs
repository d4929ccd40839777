//! Guest of a test with a driver for one queue pair, of split rings unless a test says otherwise.

use super::front_end::{FEATURES, VhostTestFrontEnd};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::numbers::NumberedGuest;
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
pub(crate) const BUFFER: u64 = 2048;
/// Bytes of the virtio-net header at the start of each packet buffer.
const HEADER: usize = 12;
/// Index of the receive ring of the first queue pair.
pub(crate) const RECEIVE: u32 = 0;
/// Index of the transmit ring of the first queue pair.
pub(crate) const TRANSMIT: u32 = 1;

/// Ring of a driver, of either format.
pub(crate) trait DriverRing {
    /// Features that the driver accepts for its rings, beside [`FEATURES`].
    const ACCEPTED: u64;

    /// Creates an empty ring in guest memory.
    fn new(ram: &mut GuestRam) -> Self;

    /// Returns the addresses of the ring's parts.
    fn addresses(&self) -> RingAddresses;

    /// Returns the eventfds by which driver and device notify each other: first the driver's, then the device's.
    fn eventfds(&self) -> [&EventFd; 2];

    /// Returns the position that QEMU sends for the ring after a crash of its back end.
    fn base_after_crash(&self, ram: &GuestRam) -> u32;

    /// Uses a transmit ring as QEMU does when its back end has gone. QEMU leaves a split ring usable.
    fn lose_device(&mut self, _ram: &GuestRam) {}

    /// Returns the guest address of the next buffer to make available.
    fn next_buffer(&self) -> u64;

    /// Makes the next buffer available with `length` bytes, and notifies the device.
    fn offer(&mut self, ram: &GuestRam, length: u32, flags: u16);

    /// Takes the next used buffer with the bytes that the device wrote.
    fn take(&mut self, ram: &GuestRam) -> Option<Vec<u8>>;
}

/// Split ring of a driver in which descriptor n always points to buffer n.
pub(crate) struct DriverSplitRing {
    pub(crate) addresses: RingAddresses,
    pub(crate) buffers: u64,
    pub(crate) available: u16,
    used: u16,
    pub(crate) kick: EventFd,
    pub(crate) call: EventFd,
}

impl DriverRing for DriverSplitRing {
    const ACCEPTED: u64 = 0;

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

    fn addresses(&self) -> RingAddresses {
        self.addresses
    }

    fn eventfds(&self) -> [&EventFd; 2] {
        [&self.kick, &self.call]
    }

    fn base_after_crash(&self, ram: &GuestRam) -> u32 {
        self.used_index(ram).into()
    }

    fn next_buffer(&self) -> u64 {
        self.buffers + BUFFER * u64::from(self.available % RING)
    }

    fn offer(&mut self, ram: &GuestRam, length: u32, flags: u16) {
        let (slot, address) = (self.available % RING, self.next_buffer());
        let descriptor = SplitDescriptor { address, length, flags, next: 0 };
        ram.write(self.addresses.descriptors + 16 * u64::from(slot), &descriptor.emit());
        ram.write(self.addresses.driver + 4 + 2 * u64::from(slot), &slot.to_le_bytes());
        self.available = self.available.wrapping_add(1);
        fence(Ordering::SeqCst);
        ram.write(self.addresses.driver + 2, &self.available.to_le_bytes());
        fence(Ordering::SeqCst);
        self.kick.signal();
    }

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

impl DriverSplitRing {
    /// Returns the index of the next used element, as the device has published it.
    pub(crate) fn used_index(&self, ram: &GuestRam) -> u16 {
        let mut index = [0; 2];
        ram.read(self.addresses.device + 2, &mut index);
        fence(Ordering::SeqCst);
        u16::from_le_bytes(index)
    }
}

/// VMM of a guest, as its driver sees it.
pub(crate) trait GuestVmm {
    fn ram(&self) -> &GuestRam;

    fn ram_mut(&mut self) -> &mut GuestRam;

    /// Notifies the device of new entries in a ring, if the ring's own eventfd is not the one that the VMM has sent.
    fn kick(&self, _ring: u32) {}
}

impl GuestVmm for VhostTestFrontEnd {
    fn ram(&self) -> &GuestRam {
        &self.ram
    }

    fn ram_mut(&mut self) -> &mut GuestRam {
        &mut self.ram
    }
}

/// Guest with a started driver behind a front end.
pub(crate) struct VirtioGuest<R = DriverSplitRing, V = VhostTestFrontEnd> {
    pub(crate) front: V,
    pub(crate) receive: R,
    pub(crate) transmit: R,
    mac: [u8; 6],
}

impl VirtioGuest {
    /// Boots a guest on a VF of the first port: its driver starts one queue pair.
    pub(crate) fn boot(live: &LiveHost, vf: u8) -> Self {
        Self::boot_on(StreamSocket::connect(&live.socket(vf)).unwrap(), vf)
    }

    /// Boots a guest over a connection between the host and the guest's VMM.
    pub(crate) fn boot_on(stream: StreamSocket, vf: u8) -> Self {
        Self::boot_with_rings(stream, vf)
    }

    /// Runs `send`, which sends at most `frames` frames, if the transmit ring has room for them. The host takes no frame of a VF in
    /// quarantine, and may be late on a busy machine.
    pub(crate) fn if_room(&mut self, frames: u16, send: impl FnOnce(&mut Self)) {
        let pending = self.transmit.available.wrapping_sub(self.transmit.used_index(&self.front.ram));
        if pending + frames <= RING {
            send(self);
        }
    }
}

impl<R: DriverRing> VirtioGuest<R> {
    /// Boots a guest whose driver uses rings of a format.
    pub(crate) fn boot_with_rings(stream: StreamSocket, vf: u8) -> Self {
        Self::boot_with_features(stream, vf, 0)
    }

    /// Boots a guest whose driver accepts these features too.
    pub(crate) fn boot_with_features(stream: StreamSocket, vf: u8, features: u64) -> Self {
        let mut front = VhostTestFrontEnd::over(stream);
        front.negotiate_features(FEATURES | R::ACCEPTED | features);
        let mut guest = Self::behind(front, vf);
        let first = guest.receive.base_after_crash(&guest.front.ram);
        guest.start(first, first);
        guest.post_many();
        guest
    }

    /// Shares memory, and starts both rings at these positions.
    pub(crate) fn start(&mut self, receive: u32, transmit: u32) {
        self.front.share_memory();
        for (ring, base, of) in [(RECEIVE, receive, &self.receive), (TRANSMIT, transmit, &self.transmit)] {
            let size = (u32::from(RING), base);
            let [kick, call] = of.eventfds();
            self.front.start_ring(ring, size, of.addresses(), (kick, call));
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
        self.transmit.lose_device(&ram);
        self.front = VhostTestFrontEnd::over_with(stream, ram);
        self.front.negotiate_features(FEATURES | R::ACCEPTED);
        let positions = [&self.receive, &self.transmit].map(|ring| ring.base_after_crash(&self.front.ram));
        self.start(positions[0], positions[1]);
    }
}

impl<R: DriverRing, V: GuestVmm> VirtioGuest<R, V> {
    /// Creates the guest of a VMM, with rings that the VMM has not started yet.
    pub(crate) fn behind(mut front: V, vf: u8) -> Self {
        let (receive, transmit) = (R::new(front.ram_mut()), R::new(front.ram_mut()));
        Self { front, receive, transmit, mac: [2, 0, 0, 0, 7, vf] }
    }

    /// Posts buffers for half of the receive ring.
    pub(crate) fn post_many(&mut self) {
        (0..RING / 2).for_each(|_| self.post());
    }

    /// Makes the next receive buffer available.
    pub(crate) fn post(&mut self) {
        self.receive.offer(self.front.ram(), BUFFER as u32, flag::WRITE);
        self.front.kick(RECEIVE);
    }

    /// Sends a broadcast frame with a payload.
    pub(crate) fn send(&mut self, payload: &[u8]) {
        self.send_to([0xff; 6], payload);
    }

    /// Returns the guest's Ethernet address.
    pub(crate) fn mac(&self) -> [u8; 6] {
        self.mac
    }

    /// Sends a frame with a payload to an address.
    pub(crate) fn send_to(&mut self, destination: [u8; 6], payload: &[u8]) {
        self.send_from(self.mac, destination, payload);
    }

    /// Sends a frame with a source address of choice.
    pub(crate) fn send_from(&mut self, source: [u8; 6], destination: [u8; 6], payload: &[u8]) {
        self.send_packet(&[&[0; HEADER][..], &destination, &source, &[0x88, 0xb5], payload].concat());
    }

    /// Sends a frame.
    pub(crate) fn send_frame(&mut self, frame: &[u8]) {
        self.send_packet(&[&[0; HEADER][..], frame].concat());
    }

    /// Sends a packet of TCP over IPv4 that the device has to cut into `count` segments of `mss` bytes of payload.
    pub(crate) fn send_segmented(&mut self, destination: [u8; 6], count: u16, mss: u16) {
        /// Bytes of the Ethernet header, and of it with the headers of IPv4 and TCP.
        const BEFORE: [u16; 2] = [14, 54];
        let [mss_low, mss_high] = mss.to_le_bytes();
        // The checksum of TCP is 16 bytes behind the header's start (virtio 1.2, 5.1.6).
        let header = [1, 1, BEFORE[1] as u8, 0, mss_low, mss_high, 34, 0, 16, 0, 0, 0];
        let [high, low] = (BEFORE[1] - BEFORE[0] + count * mss).to_be_bytes();
        let ip = [0x45, 0, high, low, 0, 1, 0, 0, 64, 6, 0, 0, 10, 0, 0, 1, 10, 0, 0, 2];
        // Linux puts the sum of the pseudo header into the checksum field: addresses, protocol and length.
        let [sum_high, sum_low] = (0x1409 + 20 + count * mss).to_be_bytes();
        let tcp = [0, 80, 0, 81, 0, 0, 0, 1, 0, 0, 0, 1, 0x50, 0x10, 1, 0, sum_high, sum_low, 0, 0];
        let payload = vec![7; (count * mss).into()];
        self.send_packet(&[&header[..], &destination, &self.mac, &[8, 0], &ip, &tcp, &payload].concat());
    }

    /// Sends a packet behind its virtio-net header.
    fn send_packet(&mut self, packet: &[u8]) {
        self.front.ram().write(self.transmit.next_buffer(), packet);
        self.transmit.offer(self.front.ram(), packet.len() as u32, 0);
        self.front.kick(TRANSMIT);
    }

    /// Takes the frames that have arrived, and returns their payloads. Payloads of short frames include padding.
    pub(crate) fn take(&mut self) -> Vec<Vec<u8>> {
        let mut payloads = Vec::new();
        while let Some(packet) = self.receive.take(self.front.ram()) {
            payloads.push(packet[HEADER + 14..].to_vec());
            self.post();
        }
        while self.transmit.take(self.front.ram()).is_some() {}
        payloads
    }

    /// Waits until a frame with this payload has arrived.
    #[track_caller]
    pub(crate) fn wait_for(&mut self, payload: &[u8]) {
        eventually("the frame arrives", || self.take().iter().any(|arrived| arrived.starts_with(payload)));
    }
}

impl NumberedGuest for VirtioGuest {
    fn send(&mut self, payload: &[u8]) {
        Self::send(self, payload);
    }

    fn take(&mut self) -> Vec<Vec<u8>> {
        Self::take(self)
    }
}

/// Checks that two guests exchange frames in both directions.
#[track_caller]
pub(crate) fn exchange(
    a: &mut VirtioGuest<impl DriverRing, impl GuestVmm>,
    b: &mut VirtioGuest<impl DriverRing, impl GuestVmm>,
) {
    for number in 0..5 {
        a.send(&[number; 100]);
        b.wait_for(&[number; 100]);
        b.send(&[0x80 | number; 200]);
        a.wait_for(&[0x80 | number; 200]);
    }
}
