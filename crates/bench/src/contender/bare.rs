//! The bare path: two threads of this program, one of which only moves frames between two ports, with descriptors, a
//! look-up and a copy. Every card that copies frames between two guests does at least that, so this is the limit of the
//! card on this machine, including the cache lines that cross between the processors.
//!
//! A descriptor is a box: its owner has the buffer. So no thread reads memory that another writes, and no check is
//! needed.
//!
//! The path has no policy, offloads, memory of other processes or doorbells.

use super::work::Workload;
use super::{Contender, ContenderKind, ContenderMeasurement, WARM_UP};
use crate::machine::cycles;
use crate::machine::processors::ProcessorAssignment;
use anyhow::{Result, anyhow};
use host::memory::prefetch;
use i82576::MacAddress;
use rtrb::{Consumer, Producer, RingBuffer};
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

/// Name of the bare path in reports.
pub(super) const NAME: &str = "bare path";

/// Number of frames that a guest or the forwarder takes from a ring at once.
const BURST: usize = 32;
/// Distance in frames at which a buffer is prefetched, the same as in the card.
const AHEAD: usize = 4;
/// Granularity of the bare path's buffer sizes, in bytes.
const ROOM: usize = 2048;
/// Number of ports in the forwarder's table of addresses; two are used.
const PORTS: usize = 8;

/// Buffer that passes through a ring, with the length of the frame in it.
#[derive(Debug)]
struct BarePathBuffer {
    buffer: Box<[u8]>,
    length: usize,
}

/// Ends of a port's rings that one side, the guest or the forwarder, holds on the bare path.
#[derive(Debug)]
struct BarePathRings {
    /// Rings of frames: the one that the holder fills, and the one that the holder empties.
    frames: (Producer<BarePathBuffer>, Consumer<BarePathBuffer>),
    /// Rings of empty buffers: the one that the holder fills, and the one that the holder empties.
    empty: (Producer<BarePathBuffer>, Consumer<BarePathBuffer>),
}

/// Guest of the bare path, with its side of a port's rings.
#[derive(Debug)]
struct BarePathGuest {
    end: BarePathRings,
    /// Frame that the guest of the bare path sends repeatedly.
    frame: Vec<u8>,
    /// Buffers that the guest sends frames from, in turn, as a ring does. The buffer that came back last would still be
    /// in the cache.
    spare: VecDeque<BarePathBuffer>,
    /// Memory for a frame that the guest has received.
    place: Box<[u8]>,
}

/// Forwarder of the bare path between two ports, with its ends of the ports' rings.
#[derive(Debug)]
struct BarePathForwarder {
    ends: [BarePathRings; 2],
    addresses: [MacAddress; PORTS],
    /// Frames that are being forwarded, and the buffers to which they are copied.
    burst: Vec<BarePathBuffer>,
    room: Vec<BarePathBuffer>,
}

/// Bare path as a contender: its two guests and its forwarder, which pause between slices.
#[derive(Debug)]
pub(super) struct BarePathContender {
    guests: [BarePathGuest; 2],
    forwarder: BarePathForwarder,
    processors: ProcessorAssignment,
}

/// Creates both sides of a port with `descriptors` descriptors, for frames of `size` bytes. Also returns the guest's
/// spare buffers.
fn port(descriptors: usize, size: usize) -> (BarePathRings, BarePathRings, VecDeque<BarePathBuffer>) {
    let ring = || RingBuffer::new(descriptors);
    let ((to_card, sent), (to_guest, received)) = (ring(), ring());
    let ((done, free), (mut post, posted)) = (ring(), ring());
    let buffer =
        || BarePathBuffer { buffer: vec![0; size.next_multiple_of(ROOM)].into_boxed_slice(), length: 0 };
    for _ in 0..descriptors {
        // The push cannot fail, because the ring has room for all descriptors.
        let _ = post.push(buffer());
    }
    let guest = BarePathRings { frames: (to_card, received), empty: (post, free) };
    let card = BarePathRings { frames: (to_guest, sent), empty: (done, posted) };
    (guest, card, (0..descriptors).map(|_| buffer()).collect())
}

/// Takes up to `most` descriptors out of a ring of the bare path.
fn take(ring: &mut Consumer<BarePathBuffer>, most: usize, into: &mut impl Extend<BarePathBuffer>) {
    let count = ring.slots().min(most);
    into.extend(ring.read_chunk(count).into_iter().flatten());
}

/// Puts descriptors into a ring, which has room for all.
fn put(ring: &mut Producer<BarePathBuffer>, descriptors: impl ExactSizeIterator<Item = BarePathBuffer>) {
    if let Ok(room) = ring.write_chunk_uninit(descriptors.len()) {
        room.fill_from_iter(descriptors);
    }
}

impl BarePathGuest {
    /// Sends a burst of frames and takes arrived frames out of the ring. Returns the number of arrived frames.
    fn exchange(&mut self) -> u64 {
        let Self { end, frame, spare, place } = self;
        take(&mut end.empty.1, BURST, spare);
        let burst = spare.len().min(BURST);
        put(
            &mut end.frames.0,
            spare.drain(..burst).map(|mut descriptor| {
                descriptor.buffer[..frame.len()].copy_from_slice(frame);
                descriptor.length = frame.len();
                descriptor
            }),
        );
        let Ok(frames) = end.frames.1.read_chunk(end.frames.1.slots().min(BURST)) else { return 0 };
        let count = frames.len();
        let taken = frames.into_iter().inspect(|descriptor| {
            place[..descriptor.length].copy_from_slice(&descriptor.buffer[..descriptor.length]);
        });
        put(&mut end.empty.0, taken);
        count as u64
    }
}

impl BarePathForwarder {
    /// Forwards a burst that a port has sent.
    fn forward(&mut self, from: usize) {
        let Self { ends, addresses, burst, room } = self;
        let [one, other] = ends;
        let (own, far) = if from == 0 { (one, other) } else { (other, one) };
        let most = far.empty.1.slots().min(BURST);
        take(&mut own.frames.1, most, burst);
        take(&mut far.empty.1, burst.len(), room);
        for at in 0..burst.len() {
            if let Some(next) = burst.get(at + AHEAD) {
                prefetch(&next.buffer[..next.length], false);
                prefetch(&room[at + AHEAD].buffer[..next.length], true);
            }
            let BarePathBuffer { buffer, length } = &burst[at];
            let knows = addresses.iter().position(|address| buffer.starts_with(&address.0));
            if knows == Some(1 - from) {
                room[at].buffer[..*length].copy_from_slice(&buffer[..*length]);
                room[at].length = *length;
            }
        }
        put(&mut far.frames.0, room.drain(..));
        put(&mut own.empty.0, burst.drain(..));
    }
}

impl BarePathContender {
    /// Creates guests and forwarder of the bare path for the frame size and ring size of a workload.
    pub(super) fn new(processors: ProcessorAssignment, work: Workload) -> Self {
        let address = |port: usize| MacAddress([2, 0, 0, 0, 0x30, port as u8]);
        let sides = [0, 1].map(|own| {
            let (end, card, spare) = port(work.descriptors().into(), work.size());
            let frame = Workload::Frames(work.size()).frame(address(own), address(1 - own));
            let place = frame.clone().into_boxed_slice();
            (BarePathGuest { end, frame, spare, place }, card)
        });
        let [(one, near), (other, far)] = sides;
        let (burst, room) = (Vec::with_capacity(BURST), Vec::with_capacity(BURST));
        let addresses = std::array::from_fn(address);
        let forwarder = BarePathForwarder { ends: [near, far], addresses, burst, room };
        Self { guests: [one, other], forwarder, processors }
    }

    /// Runs the guests' and the forwarder's thread of the bare path for `length`. Returns the number of arrived frames,
    /// and the exact time.
    fn exchange(&mut self, length: Duration) -> Result<(u64, Duration)> {
        let Self { guests, forwarder, processors } = self;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let forwards = scope.spawn(|| {
                ProcessorAssignment::held(processors.forwarder, || {
                    while !over.load(Ordering::Relaxed) {
                        (0..2).for_each(|port| forwarder.forward(port));
                    }
                })
            });
            let exchanged = ProcessorAssignment::held(processors.generator, || {
                let (begun, mut arrived) = (Instant::now(), 0);
                while begun.elapsed() < length {
                    arrived += guests.iter_mut().map(BarePathGuest::exchange).sum::<u64>();
                }
                (arrived, begun.elapsed())
            });
            over.store(true, Ordering::Relaxed);
            forwards.join().map_err(|_| anyhow!("the forwarder's thread panicked"))??;
            Ok(exchanged?)
        })
    }
}

impl Contender for BarePathContender {
    fn name(&self) -> &str {
        NAME
    }

    fn mode(&self) -> ContenderKind {
        ContenderKind::Raw
    }

    fn slice(&mut self, length: Duration) -> Result<ContenderMeasurement> {
        self.exchange(WARM_UP)?;
        let (frames, took) = self.exchange(length)?;
        // The forwarder's thread never pauses, so all its time counts.
        Ok(ContenderMeasurement::new(frames, took, cycles::of_time(took)))
    }
}
