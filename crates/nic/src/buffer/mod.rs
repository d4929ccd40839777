//! The receive packet buffer: frames for queues that have too few descriptors wait here until software gives some. It is one
//! place for all queues, as large as RXPBS says, and frames stay in the order in which they came. They are kept as they will
//! be delivered: nothing about them is decided a second time.
//!
//! Silicon has one FIFO: a frame at its head that finds no descriptors stops all behind it. Here only frames of the same
//! queue wait behind each other. So that a queue that gets no descriptors leaves room for the others, no queue may have
//! more than is free afterwards: of `n` queues that stand still each has an `n + 1`th part of the buffer, and as much is left.
//!
//! Left out: which frames wait (`wait`), and the form in which they are saved (`saved`).

pub(crate) mod saved;
pub(crate) mod wait;

use crate::file::RegisterFile;
use crate::queue::receive::Description;
use alloc::boxed::Box;
use alloc::vec;
use i82576::Queue;
use i82576::ids::QUEUES;
use i82576::register::RXPBS;

/// Bytes that the buffer is made with: what RXPBS says after power-on.
const BYTES: usize = 64 << 10;
/// A frame takes whole blocks of so many bytes.
const BLOCK: usize = 64;
/// Frames that there is room for.
const FRAMES: usize = BYTES / BLOCK;
/// The bits of RXPBS that are a size in KB.
const SIZE: u32 = 0x7f;

/// What there is to know of a frame that waits.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Waiting {
    /// The queue that it waits for.
    pub(crate) queue: Queue,
    /// Its bytes as they will be delivered.
    length: usize,
    /// Of these, bytes of the check sequence.
    pub(crate) trailer: usize,
    /// It has come from the uplink.
    pub(crate) from_uplink: bool,
    /// It is to interrupt at once.
    pub(crate) urgent: bool,
    /// What its descriptor will say.
    pub(crate) description: Description,
}

impl Waiting {
    /// Bytes that it takes in the buffer.
    fn size(&self) -> usize {
        self.length.next_multiple_of(BLOCK)
    }
}

/// The buffer.
#[derive(Debug, Clone, Default)]
pub(crate) struct PacketBuffer {
    /// The frames' bytes, one behind the other, in whole blocks each.
    bytes: Box<[u8]>,
    /// Bytes in use.
    used: usize,
    /// The frames, in the order in which they came.
    frames: Box<[Option<Waiting>]>,
    count: usize,
    /// Bytes of each queue.
    held: [usize; QUEUES],
}

impl PacketBuffer {
    /// An empty buffer with all the memory that it will ever need.
    pub(crate) fn new() -> Self {
        Self {
            bytes: vec![0; BYTES].into_boxed_slice(),
            used: 0,
            frames: vec![None; FRAMES].into_boxed_slice(),
            count: 0,
            held: [0; QUEUES],
        }
    }

    /// Nothing waits.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.count == 0
    }

    /// Whether frames wait for a queue.
    pub(crate) fn has(&self, queue: Queue) -> bool {
        self.held[queue.index()] > 0
    }

    /// Frames that wait for a queue, and their bytes.
    pub(crate) fn of(&self, queue: Queue) -> (usize, usize) {
        let frames = self.frames[..self.count].iter().flatten().filter(|frame| frame.queue == queue);
        frames.fold((0, 0), |(frames, bytes), frame| (frames + 1, bytes + frame.length))
    }

    /// Puts a frame behind the others; `false` if there is no room for it. Of the buffer the port has as much as RXPBS says.
    fn keep(&mut self, frame: Waiting, bytes: &[u8], file: &RegisterFile) -> bool {
        let (most, size) = (BYTES.min((file.get(RXPBS) & SIZE) as usize * 1024), frame.size());
        let held = self.held[frame.queue.index()] + size;
        if self.used + size + held > most {
            return false;
        }
        self.push(frame, bytes);
        true
    }

    /// Puts a frame behind the others, which leave room for it.
    fn push(&mut self, frame: Waiting, bytes: &[u8]) {
        self.bytes[self.used..self.used + frame.length].copy_from_slice(bytes);
        self.frames[self.count] = Some(frame);
        self.count += 1;
        self.used += frame.size();
        self.held[frame.queue.index()] += frame.size();
    }

    /// Goes through all frames, in the order in which they came. Those that need not stay make room.
    fn sift(&mut self, mut stays: impl FnMut(&Waiting, &[u8]) -> bool) {
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

    /// Drops what waits for a queue; answers how many frames.
    pub(crate) fn drop_of(&mut self, queue: Queue) -> usize {
        let before = self.count;
        if self.has(queue) {
            self.sift(|frame, _| frame.queue != queue);
        }
        before - self.count
    }
}
