//! Delivers a frame outside of a burst into a receive ring: into one buffer, or into several if the driver merges them
//! (VIRTIO 1.2, 5.1.6.4).

use crate::receive::{FrameMissReason, MOST_MERGED, ReceiveRing};
use pcie::{Bus, DmaFault, Function, Iova};
use plane::PortIndex;
use units::ExcessPieces;
use virtio::VirtioFeatures;
use virtio::chain::{ChainBuffer, MAX_CHAIN};
use virtio::net::{NetHeader, NetHeaderFormat};

/// Offset of the number of merged buffers in the header, in bytes.
const BUFFERS: usize = 10;
/// Maximum number of memory pieces (descriptors) in all receive buffers of one frame.
const MOST_PLACES: usize = MAX_CHAIN;

/// Receive buffers that one frame occupies.
struct TakenBuffers {
    count: usize,
    /// Number of these buffers that belong to the burst fetched last; they are the last ones.
    in_burst: usize,
    /// Number of memory pieces (descriptors) of the frame's receive buffers.
    places: usize,
    /// Number of these pieces that the frame was written to. Each is an access, which the sender does not pay for.
    written: usize,
    /// Maximum of `written`.
    limit: usize,
    /// Addresses of the two bytes in the header that hold the number of buffers.
    number: [Iova; 2],
}

/// Puts a frame with its header into the next buffer, or into several if the driver merges them. Fills no buffer if too
/// few are posted, or if they have more pieces than the frame needs and the VF cannot pay for.
pub(crate) fn merge<B: Bus>(
    receive: &mut ReceiveRing,
    pieces: &mut ExcessPieces,
    (port, accepted): (PortIndex, VirtioFeatures),
    (header, frame): (NetHeader, &[u8]),
    bus: &mut B,
) -> Result<(), FrameMissReason> {
    let size = NetHeaderFormat::of(accepted).size();
    let merges = accepted.contains(VirtioFeatures::MRG_RXBUF);
    receive.make_room(MOST_MERGED, port, bus).map_err(|_| FrameMissReason::Fault)?;
    let raw = NetHeader { buffers: 1, ..header }.emit();
    let parts = [&raw[..size], frame];
    let (mut at, end) = (0, size + frame.len());
    let limit = pieces.limit(end);
    let mut taken = TakenBuffers { count: 0, in_burst: 0, places: 0, written: 0, limit, number: [0; 2] };
    let mut filled = Ok(1);
    while at < end && filled.is_ok_and(|bytes| bytes > 0) {
        filled = fill_next(receive, (port, bus), parts, at, (merges, &mut taken));
        at += filled.unwrap_or_default();
    }
    pieces.add(taken.written, end);
    pieces.add_list(taken.places);
    if filled? == 0 {
        receive.withdraw(&taken);
        return Err(FrameMissReason::NoBuffer);
    }
    if taken.count > 1 {
        for (byte, address) in (taken.count as u16).to_le_bytes().iter().zip(taken.number) {
            let written = bus.dma_write(Function::Vf(port.get()), address, &[*byte]);
            written.map_err(|_| FrameMissReason::Fault)?;
        }
    }
    Ok(())
}

/// Writes header and frame from byte `at` on into the next receive buffer. Returns the number of bytes written: 0 if no
/// buffer is posted, if the driver does not merge buffers and this one is too short, or if the frame's buffers have too
/// many pieces. Part of the frame may then be in the memory of a buffer that stays posted.
fn fill_next<B: Bus>(
    receive: &mut ReceiveRing,
    (port, bus): (PortIndex, &mut B),
    parts: [&[u8]; 2],
    at: usize,
    (merges, taken): (bool, &mut TakenBuffers),
) -> Result<usize, FrameMissReason> {
    if taken.count == MOST_MERGED {
        return Ok(0);
    }
    // A fetch forgets the burst before it, even if it finds nothing.
    if receive.posted.as_ref().is_none_or(|posted| posted.first().is_none()) {
        taken.in_burst = 0;
    }
    if !receive.fetch(port, bus).map_err(|_| FrameMissReason::Fault)? {
        return Ok(0);
    }
    let Some(posted) = &mut receive.posted else { return Ok(0) };
    posted.withdraw_offer();
    let Some((chain, places)) = posted.first() else { return Ok(0) };
    let (room, left) = (chain.writable_bytes() as usize, parts[0].len() + parts[1].len() - at);
    // A driver posts no buffer that is malformed, or without room for a header (5.1.6.3.1).
    if chain.fault().is_some() || chain.readable_bytes() > 0 || room < parts[0].len() {
        return Err(FrameMissReason::Fault);
    }
    taken.places += places.len();
    if (room < left && !merges) || taken.places > MOST_PLACES {
        return Ok(0);
    }
    let bytes = room.min(left);
    let written = write(places, parts, (at..at + bytes, taken.limit - taken.written), |address, piece| {
        bus.dma_write(Function::Vf(port.get()), address, piece)
    });
    let Some(written) = written.map_err(|_| FrameMissReason::Fault)? else {
        taken.written = taken.limit;
        return Ok(0);
    };
    taken.written += written;
    if at == 0 {
        taken.number = [BUFFERS, BUFFERS + 1].map(|at| address_of(places, at));
    }
    posted.fill(bytes);
    posted.taken[taken.count] = chain;
    (taken.count, taken.in_burst) = (taken.count + 1, taken.in_burst + 1);
    Ok(bytes)
}

/// Writes a range of the bytes of header and frame into the memory pieces of a buffer, from the first piece on. Returns the number
/// of pieces that the bytes occupy, or `None` if they need more than `limit`.
fn write(
    places: &[ChainBuffer],
    [header, frame]: [&[u8]; 2],
    (range, limit): (core::ops::Range<usize>, usize),
    mut store: impl FnMut(Iova, &[u8]) -> Result<(), DmaFault>,
) -> Result<Option<usize>, DmaFault> {
    let (mut at, mut written) = (range.start, 0);
    for place in places {
        written += 1;
        if written > limit {
            return Ok(None);
        }
        let end = range.end.min(at + place.length as usize);
        let within = |part: &[u8], start: usize| {
            let (from, to) = (at.max(start), end.min(start + part.len()));
            (from < to).then(|| (from - start, to - start))
        };
        for (part, start) in [(header, 0), (frame, header.len())] {
            if let Some((from, to)) = within(part, start) {
                let offset = (start + from - at) as u64;
                store(place.address + offset, part.get(from..to).unwrap_or_default())?;
            }
        }
        at = end;
        if at == range.end {
            break;
        }
    }
    Ok(Some(written))
}

/// Returns the guest address of a byte, counted from the start of a buffer that consists of several memory pieces.
fn address_of(places: &[ChainBuffer], mut byte: usize) -> Iova {
    for place in places {
        if byte < place.length as usize {
            return place.address + byte as u64;
        }
        byte -= place.length as usize;
    }
    0
}

impl ReceiveRing {
    /// Returns the buffers that a frame occupied to the unfilled ones, so that the next frame uses them.
    fn withdraw(&mut self, taken: &TakenBuffers) {
        let Self { ring, posted, .. } = self;
        let (Some(queue), Some(posted)) = (&mut ring.queue, posted) else { return };
        if posted.take_back(taken.count, taken.in_burst) {
            return;
        }
        // The first of them were in an earlier burst, which is forgotten, as is the last burst. The ring has all of them still.
        queue.unfetch(posted.forget());
        queue.unfetch(&posted.taken[..taken.count - taken.in_burst]);
    }
}
