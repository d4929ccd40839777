//! The receive packet buffer: frames for queues with too few descriptors wait here until software posts some. One buffer
//! of the size in RXPBS serves all queues and keeps frames in the order of their arrival. Frames are stored as they will
//! be delivered: queue, contents and descriptor are already decided.
//!
//! Silicon has one FIFO: a frame at its head that finds no descriptors stops all frames behind it. Here only frames of the
//! same queue wait behind each other. A queue may not hold more than remains free after its frame is added. A queue
//! without descriptors therefore leaves room for the others: `n` such queues hold at most `n` of `n + 1` equal parts.
//!
//! `wait` decides which frames wait, and `saved` has their saved form.

pub(crate) mod saved;
pub(crate) mod wait;

use crate::file::RegisterFile;
use crate::queue::receive::RxDescriptorFields;
use alloc::boxed::Box;
use alloc::vec;
use i82576::QueueIndex;
use i82576::ids::QUEUES;
use i82576::register::RXPBS;

/// Size of the receive packet buffer in bytes: RXPBS after power-on, which is also the most that software can use.
const BYTES: usize = 64 << 10;
/// Unit of a frame's room in the packet buffer, in bytes. The unit bounds the number of frames.
const BLOCK: usize = 64;
/// Maximum number of frames in the receive packet buffer.
const FRAMES: usize = BYTES / BLOCK;
/// Mask of the size field in RXPBS, in KB.
const SIZE: u32 = 0x7f;

/// A frame that waits in the packet buffer for receive descriptors: its queue and description, without its bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct WaitingFrame {
    /// Receive queue that the frame waits for.
    pub(crate) queue: QueueIndex,
    /// Length in bytes of the frame as it will be delivered.
    length: usize,
    /// Number of bytes of the frame check sequence at the frame's end.
    pub(crate) trailer: usize,
    /// True if the waiting frame came from the uplink.
    pub(crate) from_uplink: bool,
    /// True if the waiting frame is urgent: its interrupt ignores the throttle.
    pub(crate) urgent: bool,
    /// Fields of the frame's receive descriptor.
    pub(crate) description: RxDescriptorFields,
}

impl WaitingFrame {
    /// Returns the room in bytes that the waiting frame takes in the packet buffer.
    fn size(&self) -> usize {
        self.length.next_multiple_of(BLOCK)
    }
}

/// The receive packet buffer, in which frames wait for descriptors.
#[derive(Debug, Clone, Default)]
pub(crate) struct PacketBuffer {
    /// Bytes of the waiting frames in the packet buffer, each frame in whole blocks behind the one before.
    bytes: Box<[u8]>,
    /// Number of bytes of the packet buffer in use.
    used: usize,
    /// Frames that wait in the packet buffer, in the order of their arrival.
    frames: Box<[Option<WaitingFrame>]>,
    count: usize,
    /// Number of bytes that each queue's waiting frames occupy in the packet buffer.
    held: [usize; QUEUES],
}

impl PacketBuffer {
    /// Creates an empty packet buffer with all its memory: the frame path does not allocate.
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BYTES].into_boxed_slice(),
            used: 0,
            frames: vec![None; FRAMES].into_boxed_slice(),
            count: 0,
            held: [0; QUEUES],
        }
    }

    /// Returns true if no frame waits for descriptors.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Returns true if frames wait for descriptors of a queue.
    pub(crate) fn has(&self, queue: QueueIndex) -> bool {
        self.held[queue.index()] > 0
    }

    /// Returns the number of frames that wait for a queue, and their bytes.
    pub(crate) fn of(&self, queue: QueueIndex) -> (usize, usize) {
        let frames = self.frames[..self.count].iter().flatten().filter(|frame| frame.queue == queue);
        frames.fold((0, 0), |(frames, bytes), frame| (frames + 1, bytes + frame.length))
    }

    /// Puts a frame at the end of the packet buffer. Returns `false` if the frame does not fit: the buffer has the size
    /// in RXPBS, and one queue's frames may not occupy more bytes than would then be free.
    fn keep(&mut self, frame: WaitingFrame, bytes: &[u8], file: &RegisterFile) -> bool {
        let (most, size) = (BYTES.min((file.get(RXPBS) & SIZE) as usize * 1024), frame.size());
        let held = self.held[frame.queue.index()] + size;
        if self.used + size + held > most {
            return false;
        }
        self.push(frame, bytes);
        true
    }

    /// Puts a frame into the packet buffer behind the others. The caller has checked the room.
    fn push(&mut self, frame: WaitingFrame, bytes: &[u8]) {
        self.bytes[self.used..self.used + frame.length].copy_from_slice(bytes);
        self.frames[self.count] = Some(frame);
        self.count += 1;
        self.used += frame.size();
        self.held[frame.queue.index()] += frame.size();
    }

    /// Calls `stays` for each waiting frame in the order of arrival, and removes the frames for which it returns
    /// `false`.
    fn sift(&mut self, mut stays: impl FnMut(&WaitingFrame, &[u8]) -> bool) {
        let (count, mut from) = (self.count, 0);
        (self.count, self.used) = (0, 0);
        for place in 0..count {
            let Some(frame) = self.frames[place].take() else { continue };
            let size = frame.size();
            if stays(&frame, &self.bytes[from..from + frame.length]) {
                if from != self.used {
                    self.bytes.copy_within(from..from + size, self.used);
                }
                self.frames[self.count] = Some(frame);
                self.count += 1;
                self.used += size;
            } else {
                self.held[frame.queue.index()] -= size;
            }
            from += size;
        }
    }

    /// Drops the frames that wait for a queue, and returns their number.
    pub(crate) fn drop_of(&mut self, queue: QueueIndex) -> usize {
        let before = self.count;
        if self.has(queue) {
            self.sift(|frame, _| frame.queue != queue);
        }
        before - self.count
    }
}
