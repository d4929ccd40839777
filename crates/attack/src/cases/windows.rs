//! Cases on DMA windows and interrupts of the vfio-user protocol: files and ranges that no VMM sends.

use super::remedies::{INTERRUPT_FILES, INTERRUPTS, MAPPING, MEMORY_FILES, WINDOWS};
use crate::case::Attack::Socket;
use crate::case::AttackCase;
use crate::case::row;
use crate::family::AttackedFamily::I82576;
use crate::field::Field::{U32, U64};
use crate::socket::AttachedFile::{self, Eventfd, Folder, Memory, Null, Pipe};
use crate::socket::ExpectedAnswer::{Accepted, Refused};
use crate::socket::SocketStep::{Expect, Greet, Message, Repeat};

const DMA_MAP: u32 = 2;
const DMA_UNMAP: u32 = 3;
const SET_IRQS: u32 = 8;
/// Number of the interrupt type MSI-X, and flags of SET_IRQS.
const MSIX: u32 = 2;
const EVENTFDS: u32 = 1 << 2 | 1 << 5;
const TRIGGER_ALL: u32 = 1 | 1 << 5;
/// Both permissions of a DMA window.
const READ_WRITE: u32 = 3;
const NO_FILE: &[AttachedFile] = &[];

pub(super) const CASES: &[AttackCase] = &[
    row(
        "window-of-no-bytes",
        I82576,
        "A DMA window of no bytes is refused",
        WINDOWS,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(4096), U64(0)], &[Memory]),
            Expect(Refused),
        ]),
    ),
    row(
        "window-that-wraps-the-address-space",
        I82576,
        "A DMA window beyond the end of the address space is refused",
        WINDOWS,
        Socket(&[
            Greet,
            Message(
                DMA_MAP,
                0,
                &[U32(32), U32(READ_WRITE), U64(0), U64(u64::MAX - 4095), U64(8192)],
                &[Memory],
            ),
            Expect(Refused),
        ]),
    ),
    row(
        "windows-that-overlap-by-a-page",
        I82576,
        "A DMA window that overlaps another one is refused, and the first one stays",
        WINDOWS,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(8192)], &[Memory]),
            Expect(Accepted),
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(4096), U64(8192)], &[Memory]),
            Expect(Refused),
            Message(DMA_UNMAP, 0, &[U32(24), U32(0), U64(0), U64(8192)], NO_FILE),
            Expect(Accepted),
        ]),
    ),
    row(
        "window-beyond-its-file",
        I82576,
        "A DMA window of which the file has only a part is refused: an access would end the host",
        MAPPING,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(1 << 30)], &[Memory]),
            Expect(Refused),
        ]),
    ),
    row(
        "window-of-a-pipe",
        I82576,
        "Memory is shared by memory files only: a pipe is refused",
        MEMORY_FILES,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(4096)], &[Pipe]),
            Expect(Refused),
        ]),
    ),
    row(
        "window-of-a-device",
        I82576,
        "Memory is shared by memory files only: a character device is refused",
        MEMORY_FILES,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(4096)], &[Null]),
            Expect(Refused),
        ]),
    ),
    row(
        "window-of-a-folder",
        I82576,
        "Memory is shared by memory files only: a folder is refused",
        MEMORY_FILES,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(4096)], &[Folder]),
            Expect(Refused),
        ]),
    ),
    row(
        "unmap-of-half-a-window",
        I82576,
        "Half a DMA window cannot be unmapped: the other half would stay reachable by mistake",
        WINDOWS,
        Socket(&[
            Greet,
            Message(DMA_MAP, 0, &[U32(32), U32(READ_WRITE), U64(0), U64(0), U64(8192)], &[Memory]),
            Expect(Accepted),
            Message(DMA_UNMAP, 0, &[U32(24), U32(0), U64(0), U64(4096)], NO_FILE),
            Expect(Refused),
        ]),
    ),
    row(
        "interrupts-beyond-the-vectors",
        I82576,
        "Vectors that the function does not have get no eventfd",
        INTERRUPTS,
        Socket(&[
            Greet,
            Message(
                SET_IRQS,
                0,
                &[U32(20), U32(EVENTFDS), U32(MSIX), U32(u32::MAX), U32(2)],
                &[Eventfd, Eventfd],
            ),
            Expect(Refused),
        ]),
    ),
    row(
        "interrupt-that-is-a-pipe",
        I82576,
        "An interrupt is an eventfd only: a write to a full pipe would block the port",
        INTERRUPT_FILES,
        Socket(&[
            Greet,
            Message(SET_IRQS, 0, &[U32(20), U32(EVENTFDS), U32(MSIX), U32(0), U32(1)], &[Pipe]),
            Expect(Refused),
        ]),
    ),
    row(
        "more-eventfds-than-vectors",
        I82576,
        "SET_IRQS with another number of eventfds than vectors is refused, and they are closed",
        INTERRUPTS,
        Socket(&[
            Greet,
            Repeat(
                20,
                &[
                    Message(SET_IRQS, 0, &[U32(20), U32(EVENTFDS), U32(MSIX), U32(0), U32(1)], &[Eventfd; 3]),
                    Expect(Refused),
                ],
            ),
        ]),
    ),
    row(
        "interrupts-of-an-unknown-type",
        I82576,
        "Interrupts of a type that does not exist cannot be disabled",
        INTERRUPTS,
        Socket(&[
            Greet,
            Message(SET_IRQS, 0, &[U32(20), U32(TRIGGER_ALL), U32(77), U32(0), U32(0)], NO_FILE),
            Expect(Refused),
        ]),
    ),
];
