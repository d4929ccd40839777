//! Queue of an interface: an AF_XDP socket, its four rings shared with the kernel, and the UMEM chunks that circulate
//! in the rings.
//!
//! ```text
//!            fill: chunks for frames            rx: frames that came
//!   ours ---------------------------> kernel ------------------------> ours
//!            tx: frames to be sent              completion: chunks whose frame has left
//!   ours ---------------------------> kernel ------------------------> ours
//! ```

use std::io;
use std::mem;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;
use rustix::net::xdp::{
    SocketAddrXdp, SocketAddrXdpFlags, XdpMmapOffsets, XdpRingOffset, XdpUmemReg, XdpUmemRegFlags,
};
use rustix::net::{
    AddressFamily, RecvFlags, SendAncillaryBuffer, SendFlags, SocketFlags, SocketType, bind, recv, sendmsg,
    socket_with, sockopt,
};

use super::entries::XdpDescriptor;
use super::memory::{CHUNK, ROOM, UmemChunkCopyError, UmemChunks, XdpMemoryMapping};
use super::ring::{BrokenXdpRing, RingConsumerSide, RingProducerSide, XdpRing, XdpRingLayout};
use crate::packet::UnsentFrameCounts;

/// Number of UMEM chunks for the received frames of a queue.
const RX_CHUNKS: u32 = 1024;
/// Number of UMEM chunks for sent frames, which only the first queue of an interface has.
const TX_CHUNKS: u32 = 512;
/// Number of AF_XDP ring entries per UMEM chunk: the kernel advances its index after it has passed a chunk on.
const SLACK: u32 = 2;
/// Number of entries of an unused AF_XDP ring, which the kernel requires nevertheless.
const FEW: u32 = 2;
/// Length of the shortest frame in bytes: an Ethernet header.
const SHORTEST: usize = 14;
/// Number of queued frames per wake-up of the kernel, and maximum number of wake-ups per flush: the kernel sends 32
/// frames per call.
const BURST: u32 = 32;
const CALLS: u32 = 4;
/// Size of an AF_XDP socket's send buffer in bytes; the kernel may grant less.
const BACKLOG: usize = 4 << 20;

/// Part of an AF_XDP queue that the queue's opener keeps: its socket. Memory and socket live until both parts are
/// dropped.
#[derive(Debug)]
pub(super) struct XdpSocket {
    fd: OwnedFd,
    _memory: [Arc<XdpMemoryMapping>; 5],
}

impl XdpSocket {
    /// Returns the number of received frames that were dropped: no free chunk, longer than a chunk, or ring full.
    pub(super) fn missed(&self) -> u64 {
        let counts = sockopt::xdp_statistics(&self.fd);
        counts.map_or(0, |counts| counts.rx_dropped + counts.rx_ring_full.unwrap_or(0))
    }
}

impl AsFd for XdpSocket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

/// Part of an AF_XDP queue that receives and sends frames.
#[derive(Debug)]
pub(super) struct XdpQueue {
    socket: Arc<XdpSocket>,
    chunks: UmemChunks,
    fill: XdpRing<u64, RingProducerSide>,
    rx: XdpRing<XdpDescriptor, RingConsumerSide>,
    sending: XdpSendState,
}

/// UMEM chunks and counts of the frames that a queue sends.
#[derive(Debug)]
struct XdpSendState {
    tx: XdpRing<XdpDescriptor, RingProducerSide>,
    completion: XdpRing<u64, RingConsumerSide>,
    /// Numbers of the UMEM chunks that hold no frame to send.
    free: Vec<u32>,
    /// Number of queued frames that the kernel was not notified of.
    pending: u32,
    /// True if the kernel has left frames in the transmit ring after a notification.
    left: bool,
}

/// Result of receiving a frame from an AF_XDP queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpReceiveResult {
    /// Length in bytes of the received frame.
    Frame(usize),
    /// The received frame exceeds the caller's buffer.
    TooLong,
}

/// Binds a socket to a queue of an interface. The first queue also sends.
pub(super) fn open(interface: u32, queue: u32, zerocopy: bool) -> io::Result<XdpQueue> {
    let sends = queue == 0;
    let tx_chunks = if sends { TX_CHUNKS } else { 0 };
    let frames = XdpMemoryMapping::anonymous((RX_CHUNKS + tx_chunks) as usize * CHUNK)?;
    let (tx, completions) = if sends { (TX_CHUNKS * SLACK, TX_CHUNKS * SLACK) } else { (0, FEW) };
    let fd = socket(&frames, RX_CHUNKS * SLACK, completions)?;
    if sends {
        sockopt::set_xdp_tx_ring_size(&fd, tx)?;
        // A smaller send buffer works too.
        let _ = sockopt::set_socket_send_buffer_size(&fd, BACKLOG);
    }
    let queue_of = rings(fd, frames, (tx, completions))?;
    let copying = if zerocopy { SocketAddrXdpFlags::XDP_ZEROCOPY } else { SocketAddrXdpFlags::XDP_COPY };
    let flags = copying | SocketAddrXdpFlags::XDP_USE_NEED_WAKEUP;
    bind(&queue_of.socket, &SocketAddrXdp::new(flags, interface, queue))?;
    Ok(queue_of)
}

/// Returns true if an interface has this queue. Tries to bind the queue with minimal memory.
pub(super) fn exists(interface: u32, queue: u32) -> bool {
    let attempt = || {
        let frames = XdpMemoryMapping::anonymous(CHUNK)?;
        let fd = socket(&frames, FEW, FEW)?;
        bind(&fd, &SocketAddrXdp::new(SocketAddrXdpFlags::XDP_COPY, interface, queue))
            .map_err(io::Error::from)
    };
    !attempt().is_err_and(|error| is_beyond(&error))
}

/// Returns true for the kernel's error on a missing queue.
pub(super) fn is_beyond(error: &io::Error) -> bool {
    error.raw_os_error() == Some(libc::EINVAL)
}

/// Opens an AF_XDP socket with its UMEM, and sets the sizes of its rings except the transmit ring.
fn socket(frames: &XdpMemoryMapping, rx: u32, completions: u32) -> io::Result<OwnedFd> {
    let flags = SocketFlags::CLOEXEC | SocketFlags::NONBLOCK;
    let fd = socket_with(AddressFamily::XDP, SocketType::RAW, flags, None)?;
    let memory = XdpUmemReg {
        addr: frames.address(),
        len: frames.len() as u64,
        chunk_size: CHUNK as u32,
        headroom: 0,
        flags: XdpUmemRegFlags::empty(),
        tx_metadata_len: 0,
    };
    sockopt::set_xdp_umem_reg(&fd, memory)?;
    sockopt::set_xdp_umem_fill_ring_size(&fd, rx)?;
    sockopt::set_xdp_umem_completion_ring_size(&fd, completions)?;
    sockopt::set_xdp_rx_ring_size(&fd, rx)?;
    Ok(fd)
}

/// Maps a socket's rings, and gives the kernel the chunks for received frames.
fn rings(fd: OwnedFd, frames: Arc<XdpMemoryMapping>, (tx, completions): (u32, u32)) -> io::Result<XdpQueue> {
    let XdpMmapOffsets { rx: rx_at, tx: tx_at, fr: fill_at, cr: completion_at } =
        sockopt::xdp_mmap_offsets(&fd)?;
    let (fill, fill_layout) = map::<u64>(&fd, libc::XDP_UMEM_PGOFF_FILL_RING, &fill_at, RX_CHUNKS * SLACK)?;
    let (completion, completion_layout) =
        map::<u64>(&fd, libc::XDP_UMEM_PGOFF_COMPLETION_RING, &completion_at, completions)?;
    let (rx, rx_layout) =
        map::<XdpDescriptor>(&fd, libc::XDP_PGOFF_RX_RING as u64, &rx_at, RX_CHUNKS * SLACK)?;
    let (sent, sent_layout) = match tx {
        // A private ring: this queue sends nothing.
        0 => own::<XdpDescriptor>()?,
        size => map::<XdpDescriptor>(&fd, libc::XDP_PGOFF_TX_RING as u64, &tx_at, size)?,
    };
    let odd = || io::Error::from(Errno::PROTO);
    let mut queue = XdpQueue {
        chunks: UmemChunks::new(frames.clone()),
        fill: XdpRing::new(fill.clone(), fill_layout).ok_or_else(odd)?,
        rx: XdpRing::new(rx.clone(), rx_layout).ok_or_else(odd)?,
        sending: XdpSendState {
            tx: XdpRing::new(sent.clone(), sent_layout).ok_or_else(odd)?,
            completion: XdpRing::new(completion.clone(), completion_layout).ok_or_else(odd)?,
            free: (RX_CHUNKS..frames.len() as u32 / CHUNK as u32).collect(),
            pending: 0,
            left: false,
        },
        socket: Arc::new(XdpSocket { fd, _memory: [frames, fill, completion, rx, sent] }),
    };
    let given = (0..RX_CHUNKS).all(|chunk| queue.fill.push(UmemChunks::address(chunk)));
    debug_assert!(given, "the ring has room for all chunks");
    queue.fill.publish();
    Ok(queue)
}

fn map<T>(
    fd: &OwnedFd,
    from: u64,
    at: &XdpRingOffset,
    size: u32,
) -> io::Result<(Arc<XdpMemoryMapping>, XdpRingLayout)> {
    let at_flags = at.flags.ok_or(Errno::PROTO)?;
    let layout = XdpRingLayout {
        producer: at.producer as usize,
        consumer: at.consumer as usize,
        entries: at.desc as usize,
        flags: at_flags as usize,
        size,
    };
    Ok((XdpMemoryMapping::of_socket(fd, from, layout.len::<T>())?, layout))
}

fn own<T>() -> io::Result<(Arc<XdpMemoryMapping>, XdpRingLayout)> {
    let layout = XdpRingLayout { producer: 0, consumer: 4, flags: 8, entries: 16, size: 1 };
    Ok((XdpMemoryMapping::anonymous(layout.len::<T>())?, layout))
}

impl XdpQueue {
    /// Returns the part of the AF_XDP queue that its opener keeps.
    pub(super) fn socket(&self) -> Arc<XdpSocket> {
        self.socket.clone()
    }

    /// Receives the next frame of the queue, if a frame is pending.
    pub(super) fn receive(&mut self, into: &mut [u8]) -> Result<Option<XdpReceiveResult>, BrokenXdpRing> {
        let Some(frame) = self.next()? else { return Ok(None) };
        let chunk = self.chunks.of(frame.address).filter(|chunk| *chunk < RX_CHUNKS).ok_or(BrokenXdpRing)?;
        let arrived = match self.chunks.copy_out(frame.address, frame.len, into) {
            Ok(length) => XdpReceiveResult::Frame(length),
            Err(UmemChunkCopyError::TooLong) => XdpReceiveResult::TooLong,
            Err(UmemChunkCopyError::Outside) => return Err(BrokenXdpRing),
        };
        if !self.fill.push(UmemChunks::address(chunk)) {
            return Err(BrokenXdpRing);
        }
        Ok(Some(arrived))
    }

    /// Returns the next received frame's descriptor. At the end of a burst, returns the burst's chunks and ring entries
    /// to the kernel.
    fn next(&mut self) -> Result<Option<XdpDescriptor>, BrokenXdpRing> {
        if let Some(frame) = self.rx.pop() {
            return Ok(Some(frame));
        }
        self.rx.release();
        self.fill.publish();
        self.fill.room()?;
        if self.rx.available()? == 0 {
            // A driver that had run out of chunks waits for a notification of new ones.
            if self.fill.wants_waking() {
                let _ = recv(&self.socket, &mut [0_u8; 0], RecvFlags::DONTWAIT);
            }
            return Ok(None);
        }
        Ok(self.rx.pop())
    }

    /// Queues a frame to send. The next flush sends it at the latest. Returns false if the frame does not fit a chunk,
    /// or no chunk or ring entry is free.
    pub(super) fn push(&mut self, frame: &[u8]) -> Result<bool, BrokenXdpRing> {
        let sending = &mut self.sending;
        if sending.free.is_empty() {
            sending.reclaim()?;
        }
        // The kernel would refuse such a descriptor and keep its chunk.
        if !(SHORTEST..=ROOM).contains(&frame.len()) {
            return Ok(false);
        }
        let Some(chunk) = sending.free.pop() else { return Ok(false) };
        let descriptor =
            XdpDescriptor { address: UmemChunks::address(chunk), len: frame.len() as u32, options: 0 };
        let taken = self.chunks.copy_in(chunk, frame) && sending.tx.push(descriptor);
        if taken {
            sending.pending += 1;
        } else {
            sending.free.push(chunk);
            sending.tx.room()?;
        }
        Ok(taken)
    }

    /// Returns true if enough frames are queued to notify the kernel.
    pub(super) fn is_burst(&self) -> bool {
        self.sending.pending >= BURST
    }

    /// Returns true if the kernel has left frames in the transmit ring and must be notified again.
    pub(super) fn has_left(&self) -> bool {
        self.sending.left
    }

    /// Returns the number of queued frames that the kernel has not read.
    pub(super) fn unsent(&mut self) -> u32 {
        self.sending.tx.unread().unwrap_or_default()
    }

    /// Sends the queued frames. Those that the kernel does not accept remain in the ring for a later flush.
    pub(super) fn flush(&mut self) -> Result<UnsentFrameCounts, BrokenXdpRing> {
        let sending = &mut self.sending;
        let (pending, mut lost) = (mem::take(&mut sending.pending), UnsentFrameCounts::default());
        if pending == 0 && !sending.left {
            return Ok(lost);
        }
        sending.tx.publish();
        for _ in 0..CALLS {
            if !sending.tx.wants_waking() {
                break;
            }
            match kick(&self.socket) {
                Err(Errno::AGAIN | Errno::INTR) => {}
                // The kernel has dropped the next frame: the interface has no carrier, or its queue is full.
                Err(Errno::BUSY) => lost.no_room += 1,
                // If the interface is down or deleted, no frame leaves the ring. The kernel must be notified again when the
                // interface is up: a ring that is full by then takes no frame that would cause a notification.
                Ok(()) | Err(_) => break,
            }
        }
        sending.left = sending.tx.unread()? > 0;
        sending.reclaim()?;
        Ok(lost)
    }
}

impl XdpSendState {
    /// Takes back the UMEM chunks of sent frames from the kernel.
    fn reclaim(&mut self) -> Result<(), BrokenXdpRing> {
        if self.completion.available()? == 0 {
            return Ok(());
        }
        while let Some(address) = self.completion.pop() {
            let chunk = u32::try_from(address / CHUNK as u64).ok();
            let ours = chunk.filter(|chunk| (RX_CHUNKS..RX_CHUNKS + TX_CHUNKS).contains(chunk));
            // A chunk beyond their number was returned twice.
            self.free.push(ours.filter(|_| self.free.len() < TX_CHUNKS as usize).ok_or(BrokenXdpRing)?);
        }
        self.completion.release();
        Ok(())
    }
}

/// Notifies the kernel of queued frames, by an empty message: a call that a port's seccomp list permits.
fn kick(socket: &XdpSocket) -> Result<(), Errno> {
    sendmsg(socket, &[], &mut SendAncillaryBuffer::default(), SendFlags::DONTWAIT).map(drop)
}
