//! Steps that several tables share: messages of a VMM that brings up a window or a ring.

use crate::field::Field::{self, U32, U64};
use crate::socket::AttachedFile::{self, Eventfd, UnsealedMemory};
use crate::socket::ExpectedAnswer::Accepted;
use crate::socket::SocketStep::{self, Expect, Greet, Message, Steps};

pub(super) const NO_FILE: &[AttachedFile] = &[];
/// Numbers of vfio-user commands and regions.
pub(super) const DMA_MAP: u32 = 2;
pub(super) const READ: u32 = 9;
pub(super) const WRITE: u32 = 10;
pub(super) const BAR0: u32 = 0;
pub(super) const CONFIG: u32 = 7;

/// Read of 4 bytes of configuration space, which each client may do.
pub(super) const PLAIN_READ: &[Field] = &[U64(0), U32(CONFIG), U32(4)];
/// Window of a megabyte at address 0.
pub(super) const MAP: SocketStep = Steps(&[
    Message(DMA_MAP, 0, &[U32(32), U32(3), U64(0), U64(0), U64(1 << 20)], &[UnsealedMemory]),
    Expect(Accepted),
]);
/// Transmit ring of the 82576 at address 0, whose tail asks for 7 descriptors, with bus mastering.
pub(super) const TRANSMIT: SocketStep = Steps(&[
    Message(WRITE, 0, &[U64(4), U32(CONFIG), U32(4), U32(6)], NO_FILE),
    Expect(Accepted),
    Message(WRITE, 0, &[U64(0x3808), U32(BAR0), U32(4), U32(128)], NO_FILE),
    Expect(Accepted),
    Message(WRITE, 0, &[U64(0x3828), U32(BAR0), U32(4), U32(1 << 25)], NO_FILE),
    Expect(Accepted),
]);
pub(super) const DOORBELL: &[Field] = &[U64(0x3818), U32(BAR0), U32(4), U32(7)];
/// Virtio front end with a megabyte of memory at address 0, and a transmit ring of 8 descriptors at 0, 0x1000 and 0x2000.
pub(super) const VIRTIO_RING: SocketStep = Steps(&[
    Greet,
    Message(2, 8, &[U64(1 << 32 | 1 << 30)], NO_FILE),
    Expect(Accepted),
    Message(5, 8, &[U32(1), U32(0), U64(0), U64(1 << 20), U64(0), U64(0)], &[UnsealedMemory]),
    Expect(Accepted),
    Message(8, 8, &[U32(1), U32(8)], NO_FILE),
    Expect(Accepted),
    Message(9, 8, &[U32(1), U32(0), U64(0), U64(0x2000), U64(0x1000), U64(0)], NO_FILE),
    Expect(Accepted),
    Message(10, 8, &[U32(1), U32(0)], NO_FILE),
    Expect(Accepted),
    Message(12, 8, &[U64(1)], &[Eventfd]),
    Expect(Accepted),
    Message(18, 8, &[U32(1), U32(1)], NO_FILE),
    Expect(Accepted),
]);
