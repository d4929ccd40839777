//! Packed ring of a test's driver.

use super::guest::{BUFFER, DriverRing, RING};
use crate::support::ram::GuestRam;
use host::eventfd::EventFd;
use std::sync::atomic::{Ordering, fence};
use vhost_user::features::device;
use virtio::descriptor::{PackedDescriptor, flag};
use virtio::layout::RingAddresses;
use virtio::packed::PackedPosition;

/// Bytes of an event suppression structure.
const EVENT: u64 = 4;
/// Offset of the length in a packed descriptor.
const LENGTH: u64 = 8;
/// Offset of the flags in a packed descriptor.
const FLAGS: u64 = 14;

/// Packed ring of a driver in which the descriptor in slot n always points to buffer n. The device returns buffers in
/// order.
pub(crate) struct DriverPackedRing {
    addresses: RingAddresses,
    buffers: u64,
    available: PackedPosition,
    used: PackedPosition,
    /// Number of buffers that the device has.
    outstanding: u16,
    /// Position at which QEMU starts the ring: the first one, or behind the buffer that QEMU has returned.
    start: PackedPosition,
    kick: EventFd,
    call: EventFd,
}

impl DriverPackedRing {
    /// Returns the number of buffers that the device has not returned.
    pub(crate) fn outstanding(&self) -> u16 {
        self.outstanding
    }

    /// Creates the ring anew at the same addresses, as a driver does after a reset of its device: with zeros.
    pub(crate) fn create_again(&mut self, ram: &GuestRam) {
        ram.write(self.addresses.descriptors, &[0; 16 * RING as usize]);
        ram.write(self.addresses.driver, &[0; EVENT as usize]);
        ram.write(self.addresses.device, &[0; EVENT as usize]);
        (self.available, self.used, self.outstanding) = (PackedPosition::START, PackedPosition::START, 0);
        self.start = PackedPosition::START;
    }

    fn slot(&self, position: PackedPosition) -> u64 {
        self.addresses.descriptors + 16 * u64::from(position.index())
    }
}

impl DriverRing for DriverPackedRing {
    const ACCEPTED: u64 = device::RING_PACKED;

    fn new(ram: &mut GuestRam) -> Self {
        let mut area = |bytes: u64| ram.allocate(bytes, 4096).unwrap();
        let size = u64::from(RING);
        let addresses =
            RingAddresses { descriptors: area(16 * size), driver: area(EVENT), device: area(EVENT) };
        let (available, used) = (PackedPosition::START, PackedPosition::START);
        let (kick, call) = (EventFd::new().unwrap(), EventFd::new().unwrap());
        Self {
            addresses,
            buffers: area(BUFFER * size),
            available,
            used,
            outstanding: 0,
            start: used,
            kick,
            call,
        }
    }

    fn addresses(&self) -> RingAddresses {
        self.addresses
    }

    fn eventfds(&self) -> [&EventFd; 2] {
        [&self.kick, &self.call]
    }

    /// Returns the position at which the ring was started, whatever the device has used since then.
    fn base_after_crash(&self, _: &GuestRam) -> u32 {
        self.start.vhost_base()
    }

    fn lose_device(&mut self, ram: &GuestRam) {
        /// Offset of the flags in an event suppression structure; and the flags by which QEMU asks for no notifications.
        const DISABLE: (u64, [u8; 2]) = (2, [1, 0]);
        ram.write(self.addresses.device + DISABLE.0, &DISABLE.1);
        let (slot, mut flags) = (self.slot(self.start), [0; 2]);
        ram.read(slot + FLAGS, &mut flags);
        // QEMU loses count with the first buffer.
        if self.start == PackedPosition::START && self.start.is_available(u16::from_le_bytes(flags)) {
            ram.write(slot + LENGTH, &[0; 4]);
            fence(Ordering::SeqCst);
            ram.write(slot + FLAGS, &self.start.used_flags().to_le_bytes());
            self.start = self.start.after(1, RING);
        }
    }

    fn next_buffer(&self) -> u64 {
        self.buffers + BUFFER * u64::from(self.available.index())
    }

    fn offer(&mut self, ram: &GuestRam, length: u32, flags: u16) {
        let (slot, id) = (self.slot(self.available), self.available.index());
        let flags = flags | self.available.available_flags();
        let raw = PackedDescriptor { address: self.next_buffer(), length, id, flags }.emit();
        ram.write(slot, &raw[..FLAGS as usize]);
        fence(Ordering::SeqCst);
        ram.write(slot + FLAGS, &raw[FLAGS as usize..]);
        self.available = self.available.after(1, RING);
        self.outstanding += 1;
        fence(Ordering::SeqCst);
        self.kick.signal();
    }

    fn take(&mut self, ram: &GuestRam) -> Option<Vec<u8>> {
        let mut raw = [0; 16];
        ram.read(self.slot(self.used) + FLAGS, &mut raw[FLAGS as usize..]);
        fence(Ordering::SeqCst);
        let flags = u16::from_le_bytes([raw[14], raw[15]]);
        if self.outstanding == 0 || flags & (flag::AVAIL | flag::USED) != self.used.used_flags() {
            return None;
        }
        ram.read(self.slot(self.used), &mut raw);
        let used = PackedDescriptor::parse(&raw);
        assert_eq!(used.id, self.used.index(), "buffers are returned in order, each once");
        let mut bytes = vec![0; (used.length as usize).min(BUFFER as usize)];
        ram.read(self.buffers + BUFFER * u64::from(used.id), &mut bytes);
        self.used = self.used.after(1, RING);
        self.outstanding -= 1;
        Some(bytes)
    }
}
