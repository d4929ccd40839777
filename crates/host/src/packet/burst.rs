//! Receives and sends bursts: one system call for up to 32 frames.
//!
//! Each frame follows a `struct virtio_net_hdr` (PACKET_VNET_HDR). A frame from another process of this machine may
//! lack its checksum, which no cable would carry: the header names its place, and it is filled in. The VLAN tag
//! comes beside the frame (PACKET_AUXDATA) and is inserted again.

use std::array;
use std::mem::{self, offset_of};
use std::os::fd::{AsFd, AsRawFd};
use std::ptr;

use rustix::io::Errno;

/// Number of frames in a burst of a packet socket.
const FRAMES: usize = 32;
/// Size in bytes of the buffer for one frame.
const PLACE: usize = 16 * 1024;
/// Longest frame in bytes that a burst holds, including the inserted VLAN tag.
pub const LONGEST: usize = PLACE - TAG;
/// Bytes of a VLAN tag, and its offset in a frame.
const TAG: usize = 4;
const ADDRESSES: usize = 12;
/// Bytes of `struct virtio_net_hdr`: flags and segmentation type, a byte each; then four 16-bit numbers, of which
/// the last two are the checksum's start and its offset from there.
const HEADER: usize = 10;
const NEEDS_CHECKSUM: u8 = 1;
const CHECKSUM: usize = 6;
/// Control buffer of one socket message, aligned for the kernel.
type ControlBuffer = [u64; 6];
/// Flag that keeps socket calls from blocking (MSG_DONTWAIT). glibc and musl declare flags with different types.
const DO_NOT_WAIT: libc::c_int = libc::MSG_DONTWAIT;

/// Packet that the socket has received.
#[derive(Debug, PartialEq, Eq)]
pub enum PacketReceiveResult<'a> {
    /// Received frame, with the checksum filled in and the VLAN tag inserted.
    Frame(&'a [u8]),
    /// Packet that is no frame: the kernel has merged several frames, or not segmented it yet. The kernel drops the packet
    /// if a virtio-net header has no word for its segmentation.
    Malformed,
}

/// Burst of frames that a packet socket has received.
#[derive(Debug)]
pub struct ReceiveBurst {
    memory: Box<[u8]>,
    /// Offset and length of each frame in its buffer; length 0 for a packet that is no frame.
    frames: [(usize, usize); FRAMES],
    next: usize,
    count: usize,
}

impl Default for ReceiveBurst {
    fn default() -> Self {
        Self { memory: vec![0; FRAMES * PLACE].into(), frames: [(0, 0); FRAMES], next: 0, count: 0 }
    }
}

impl ReceiveBurst {
    /// Returns the next received frame of the burst, or `None` if every frame was taken.
    pub fn pop(&mut self) -> Option<PacketReceiveResult<'_>> {
        if self.next == self.count {
            return None;
        }
        let (begin, length) = self.frames[self.next];
        let begin = self.next * PLACE + begin;
        self.next += 1;
        Some(match length {
            0 => PacketReceiveResult::Malformed,
            _ => PacketReceiveResult::Frame(&self.memory[begin..begin + length]),
        })
    }

    /// Returns true if every received frame was taken.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.next == self.count
    }

    /// Discards the remaining received frames of the burst.
    pub fn clear(&mut self) {
        (self.next, self.count) = (0, 0);
    }

    /// Puts a packet that is no frame into an empty burst.
    pub(super) fn put_malformed(&mut self) {
        (self.frames[0], self.next, self.count) = ((0, 0), 0, 1);
    }

    pub(super) fn fill(&mut self, socket: impl AsFd) -> Result<(), Errno> {
        if !self.is_empty() {
            return Ok(());
        }
        self.clear();
        let mut headers = [[0_u8; HEADER]; FRAMES];
        let mut controls: [ControlBuffer; FRAMES] = [[0; 6]; FRAMES];
        let mut places = self.memory.chunks_exact_mut(PLACE);
        let mut vectors: [[libc::iovec; 2]; FRAMES] = array::from_fn(|n| {
            let place = places.next().unwrap_or_default().get_mut(TAG..).unwrap_or_default();
            [vector(headers[n].as_mut_ptr(), HEADER), vector(place.as_mut_ptr(), place.len())]
        });
        let mut messages: [libc::mmsghdr; FRAMES] = array::from_fn(|n| message(&mut vectors[n]));
        for (message, control) in messages.iter_mut().zip(&mut controls) {
            message.msg_hdr.msg_control = control.as_mut_ptr().cast();
            message.msg_hdr.msg_controllen = mem::size_of::<ControlBuffer>() as _;
        }
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: each message points to two vectors and a control buffer, and these to memory of their lengths;
        // all of it lives until the call returns, and no other code accesses it.
        let count = unsafe {
            libc::recvmmsg(fd, messages.as_mut_ptr(), FRAMES as u32, DO_NOT_WAIT as _, ptr::null_mut())
        };
        let count = match usize::try_from(count).map_err(|_| last_error()) {
            // The kernel cannot describe one packet by a virtio-net header, and has dropped it.
            Err(Errno::INVAL) => {
                self.put_malformed();
                return Ok(());
            }
            other => other?,
        };
        for (n, message) in messages[..count].iter().enumerate() {
            let length = (message.msg_len as usize).saturating_sub(HEADER);
            let cut = message.msg_hdr.msg_flags & libc::MSG_TRUNC != 0;
            let place = &mut self.memory[n * PLACE..][..PLACE];
            self.frames[n] = match headers[n] {
                // Several segments of one packet, merged.
                [_, segments, ..] if cut || segments != 0 => (0, 0),
                header => finish(place, length, &header, tag(&controls[n])),
            };
        }
        self.count = count;
        Ok(())
    }
}

/// Completes a received frame in a buffer with room for a VLAN tag before the frame: fills in the checksum and inserts
/// the tag. Returns the frame's offset and length.
fn finish(place: &mut [u8], length: usize, header: &[u8; HEADER], tag: Option<[u8; TAG]>) -> (usize, usize) {
    let frame = &mut place[TAG..TAG + length];
    if header[0] & NEEDS_CHECKSUM != 0 {
        let number = |at: usize| usize::from(u16::from_ne_bytes([header[at], header[at + 1]]));
        fill_checksum(frame, number(CHECKSUM), number(CHECKSUM + 2));
    }
    match tag {
        Some(tag) if length >= ADDRESSES => {
            place.copy_within(TAG..TAG + ADDRESSES, 0);
            place[ADDRESSES..ADDRESSES + TAG].copy_from_slice(&tag);
            (0, length + TAG)
        }
        _ => (TAG, length),
    }
}

/// Fills in a frame's Internet checksum (RFC 1071) over all bytes from `start` on. The checksum's field holds the
/// pseudo header's sum before.
fn fill_checksum(frame: &mut [u8], start: usize, offset: usize) {
    let Some(covered) = frame.get_mut(start..) else { return };
    let words =
        covered.chunks(2).map(|word| u64::from(word[0]) << 8 | word.get(1).map_or(0, |low| (*low).into()));
    let mut sum: u64 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    // In UDP zero means that there is no checksum.
    let checksum = if sum == 0xffff { 0xffff } else { !(sum as u16) };
    if let Some(field) = covered.get_mut(offset..).and_then(|rest| rest.first_chunk_mut::<2>()) {
        *field = checksum.to_be_bytes();
    }
}

/// Returns the VLAN tag that the kernel has removed from a frame.
fn tag(control: &ControlBuffer) -> Option<[u8; TAG]> {
    let mut flat = [0_u8; mem::size_of::<ControlBuffer>()];
    for (to, word) in flat.chunks_exact_mut(8).zip(control) {
        to.copy_from_slice(&word.to_ne_bytes());
    }
    let number = |at: usize| flat[at..].first_chunk().map(|bytes| i32::from_ne_bytes(*bytes));
    let kind =
        (number(offset_of!(libc::cmsghdr, cmsg_level))?, number(offset_of!(libc::cmsghdr, cmsg_type))?);
    if kind != (libc::SOL_PACKET, libc::PACKET_AUXDATA) {
        return None;
    }
    let data = flat.get(mem::size_of::<libc::cmsghdr>()..)?;
    let half = |at: usize| data.get(at..)?.first_chunk().map(|bytes| u16::from_ne_bytes(*bytes));
    let status = data.first_chunk().map(|bytes| u32::from_ne_bytes(*bytes))?;
    if status & libc::TP_STATUS_VLAN_VALID == 0 {
        return None;
    }
    let protocol = match status & libc::TP_STATUS_VLAN_TPID_VALID {
        0 => libc::ETH_P_8021Q as u16,
        _ => half(offset_of!(libc::tpacket_auxdata, tp_vlan_tpid))?,
    };
    let [a, b] = protocol.to_be_bytes();
    let [c, d] = half(offset_of!(libc::tpacket_auxdata, tp_vlan_tci))?.to_be_bytes();
    Some([a, b, c, d])
}

/// Burst of frames that a packet socket is to send.
#[derive(Debug)]
pub struct SendBurst {
    memory: Box<[u8]>,
    lengths: [usize; FRAMES],
    count: usize,
}

/// Numbers of frames that were not sent, by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UnsentFrameCounts {
    /// Number of frames longer than the interface's MTU.
    pub too_long: u64,
    /// Number of frames that the kernel had no buffer for, or refused.
    pub no_room: u64,
    /// Number of frames for an interface that is down or deleted.
    pub no_link: u64,
}

impl Default for SendBurst {
    fn default() -> Self {
        Self { memory: vec![0; FRAMES * PLACE].into(), lengths: [0; FRAMES], count: 0 }
    }
}

impl SendBurst {
    /// Adds a frame of at most [`LONGEST`] bytes to the burst. Returns false if it is longer. A full burst must be
    /// sent first.
    ///
    /// # Panics
    /// The burst is full.
    pub fn push(&mut self, frame: &[u8]) -> bool {
        if frame.len() > LONGEST {
            return false;
        }
        self.memory[self.count * PLACE..][..frame.len()].copy_from_slice(frame);
        self.lengths[self.count] = frame.len();
        self.count += 1;
        true
    }

    /// Returns true if the burst has no room for another frame.
    #[must_use]
    pub fn is_full(&self) -> bool {
        self.count == FRAMES
    }

    /// Returns true if the burst has no frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Discards the frames that the burst was to send.
    pub fn clear(&mut self) {
        self.count = 0;
    }

    /// Sends the frames of the burst. Returns the numbers of those that were not sent, and true if the kernel has reported a received
    /// packet that it cannot describe.
    pub(super) fn send(&mut self, socket: impl AsFd) -> (UnsentFrameCounts, bool) {
        let count = mem::take(&mut self.count);
        let (mut sent, mut lost) = (0, UnsentFrameCounts::default());
        // Frame at which the kernel has reported an invalid packet first.
        let (mut refused, mut is_received) = (None, false);
        while sent < count {
            match self.send_from(&socket, sent, count) {
                Ok(taken) => sent += taken,
                Err(Errno::INTR) => {}
                // The error may be that of a received packet, which the kernel reports to the socket's next call.
                Err(Errno::INVAL) if refused.is_none() => (refused, is_received) = (Some(sent), true),
                Err(Errno::NETDOWN | Errno::NXIO | Errno::NODEV) => {
                    (lost.no_link, sent) = (lost.no_link + (count - sent) as u64, count);
                }
                Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM) => {
                    (lost.no_room, sent) = (lost.no_room + (count - sent) as u64, count);
                }
                // This frame cannot be sent; later ones may be.
                Err(Errno::MSGSIZE) => (sent, lost.too_long) = (sent + 1, lost.too_long + 1),
                Err(error) => {
                    // A frame that is refused again is the cause itself.
                    is_received &= error != Errno::INVAL || refused != Some(sent);
                    (sent, lost.no_room) = (sent + 1, lost.no_room + 1);
                }
            }
        }
        (lost, is_received)
    }

    /// Sends the frames `begin` to `end` that the kernel accepts in one call, and returns their number (at least one).
    fn send_from(&mut self, socket: impl AsFd, begin: usize, end: usize) -> Result<usize, Errno> {
        let mut header = [0_u8; HEADER];
        let header = header.as_mut_ptr();
        let mut places = self.memory.chunks_exact_mut(PLACE);
        let mut vectors: [[libc::iovec; 2]; FRAMES] = array::from_fn(|n| {
            let place = places.next().unwrap_or_default();
            [vector(header, HEADER), vector(place.as_mut_ptr(), self.lengths[n])]
        });
        let mut messages: [libc::mmsghdr; FRAMES] = array::from_fn(|n| message(&mut vectors[n]));
        let messages = &mut messages[begin..end];
        let fd = socket.as_fd().as_raw_fd();
        // SAFETY: each message points to two vectors, and these to memory of their lengths, which the kernel reads;
        // all of it lives until the call returns.
        let sent =
            unsafe { libc::sendmmsg(fd, messages.as_mut_ptr(), messages.len() as u32, DO_NOT_WAIT as _) };
        usize::try_from(sent).map_err(|_| last_error())
    }
}

fn vector(begin: *mut u8, length: usize) -> libc::iovec {
    libc::iovec { iov_base: begin.cast(), iov_len: length }
}

fn message(vectors: &mut [libc::iovec; 2]) -> libc::mmsghdr {
    // SAFETY: all-zero is a valid `mmsghdr`: no address, no vectors, no control buffer.
    let mut message: libc::mmsghdr = unsafe { mem::zeroed() };
    message.msg_hdr.msg_iov = vectors.as_mut_ptr();
    message.msg_hdr.msg_iovlen = 2;
    message
}

fn last_error() -> Errno {
    Errno::from_io_error(&std::io::Error::last_os_error()).unwrap_or(Errno::IO)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_checksum_of_a_frame_is_written_at_its_given_offset() {
        // UDP from 10.0.0.1 to 10.0.0.2, ports 1 and 2, four bytes: the field holds the pseudo header's sum.
        let pseudo: u16 = 0x0a00 + 0x0001 + 0x0a00 + 0x0002 + 17 + 12;
        let mut frame = vec![0xee; 4];
        frame.extend([0, 1, 0, 2, 0, 12, 0, 0, b'a', b'b', b'c', b'd']);
        frame[10..12].copy_from_slice(&pseudo.to_be_bytes());
        fill_checksum(&mut frame, 4, 6);
        let mut sum = u32::from(pseudo);
        sum +=
            frame[4..].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum::<u32>();
        sum = (sum & 0xffff) + (sum >> 16);
        assert_eq!(sum, 0xffff, "a receiver's sum of everything");
        // A header that points beyond the frame changes nothing.
        for (start, offset) in [(16, 0), (17, 0), (4, 11), (4, 60_000), (60_000, 6)] {
            let before = frame.clone();
            fill_checksum(&mut frame, start, offset);
            assert_eq!(frame, before, "{start} {offset}");
        }
    }

    #[test]
    fn received_vlan_tag_is_inserted_after_the_mac_addresses() {
        let mut place: Vec<u8> = (0..40).collect();
        let (begin, length) = finish(&mut place, 30, &[0; HEADER], Some([0x81, 0, 0, 5]));
        let expected: Vec<u8> = (4..16).chain([0x81, 0, 0, 5]).chain(16..34).collect();
        assert_eq!(place[begin..begin + length], expected);
        let mut place: Vec<u8> = (0..40).collect();
        assert_eq!(finish(&mut place, 30, &[0; HEADER], None), (TAG, 30));
    }
}
