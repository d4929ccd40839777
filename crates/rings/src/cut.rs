//! Segments a large packet for one receiver: each segment gets headers of its own, and its payload straight from the
//! sender's buffers, where each byte is loaded once and summed as it is stored. A segment that finds no receive buffer
//! ready, or whose payload lies in more buffers than a burst has pieces, is copied to private memory and sent through
//! the plane alone, in its turn.

use crate::buffers::{BufferChain, BufferCursor};
use crate::card::{FrameRunProperties, PlainReceiver, QueueAndHash, RxFormat};
use crate::finished::{send_segment, spoil};
use crate::frames::{BurstMemory, SHORTEST};
use crate::packet::{PacketDropReason, PacketOffloads};
use crate::packets::PacketTransmitter;
use crate::places::FrameMemory;
use offload::checksum::PartialChecksum;
use offload::plain::{PlainFrame, PlainFrameKind};
use offload::segment::SegmentationState;
use offload::template::SegmentTemplate;
use pcie::burst::{BURST, HEADERS, LONGEST, SegmentPayloads};
use pcie::low::low_dword;
use pcie::{Bus, HintedMemory};
use plane::frame::{AddressPair, HEADROOM};
use plane::{FrameForwarder, PortBurstSettings, PortIndex, TransmitQueueId};
use units::WorkCost;

/// A large packet whose segments are being made and delivered to one port.
struct SegmentedPacket<'a, O> {
    sender: TransmitQueueId,
    orders: &'a O,
    /// Headers of the large packet, followed by unused bytes.
    headers: [u8; HEADERS],
    /// Number of bytes in the headers of the large packet.
    length: usize,
    cut: SegmentationState,
    template: SegmentTemplate,
    cursor: BufferCursor,
    /// Port that gets all segments of the packet.
    port: PortIndex,
    /// Receive queue of the segments at the port, and their hash.
    spread: QueueAndHash,
    terms: PortBurstSettings,
    told: FrameRunProperties,
    /// True if all further segments are sent alone: a receive buffer is not in its owner's memory, so payloads would be
    /// copied in vain.
    alone: bool,
}

/// Sends the segments of a packet that are due, if one port gets all of them as plain frames. Returns the number of
/// segments that have left, and of those still to come. Returns `None`, without any change, if the packet has to be
/// copied as a whole.
pub(crate) fn send_through<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    places: &mut FrameMemory,
    lane: &mut L,
) -> Option<(u32, u32)> {
    let FrameMemory { frames, buffers, .. } = places;
    let mut large = begin(card, sender, orders, buffers, frames, lane)?;
    card.count_large(sender, None);
    let before = large.cut.count();
    while large.cut.count() > 0 && lane.is_due() {
        if large.alone || send_run(card, &mut large, buffers, frames, lane) == 0 {
            send_next_segment(card, &mut large, buffers, frames, lane);
        }
    }
    Some((before - large.cut.count(), large.cut.count()))
}

/// Reads the headers of a packet to segment. Returns `None` if the packet's segments cannot be sent in bursts.
fn begin<'a, C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &'a C::Orders,
    buffers: &BufferChain,
    frames: &mut BurstMemory,
    lane: &mut L,
) -> Option<SegmentedPacket<'a, C::Orders>> {
    let terms = lane.burst_terms().filter(|_| card.judges() && !card.is_careful())?;
    if lane.tag_types().1.is_some() || card.asked_tag(sender, orders).is_some() {
        return None;
    }
    let request = orders.request();
    let (asked, length) = (request.plain()?, request.payload_start());
    if length > HEADERS || buffers.bytes() <= length {
        return None;
    }
    let mut headers = [0; HEADERS];
    let (function, _, bus) = card.source(sender);
    buffers.read(function, bus, &mut headers[..length]).ok()?;
    let cut = orders.cut(&headers[..length], buffers.bytes(), card.flag_masks())?;
    let verdict = lane.judge(AddressPair::of(&headers), terms);
    let port = verdict.port()?;
    if card.takes_uncut(port, request.ipv4) && orders.may_leave_uncut() {
        return None;
    }
    let longest = LONGEST.min(terms.longest as usize).min(lane.longest_taken(port, terms));
    let tag = terms.tag.filter(|_| verdict.strips());
    let told = FrameRunProperties { tag, inexact: verdict.is_inexact(), from_uplink: false };
    let first = cut.chunk(0).filter(|_| cut.longest() <= longest)?.len();
    let mut completed = headers;
    let (plain, found) = first_segment(&cut, &mut completed, first)?;
    if plain.is_udp() != asked.udp {
        return None;
    }
    let template = SegmentTemplate::of(&cut, &headers[..length], found)?;
    // Segments leave before later buffers are read, so all have to be readable now.
    if !are_readable(card, sender, buffers, frames) {
        return None;
    }
    let spread = if card.spreads(port) { card.spread(port, &plain) } else { (0, None) };
    let cursor = BufferCursor::default();
    Some(SegmentedPacket {
        sender,
        orders,
        headers,
        length,
        cut,
        template,
        cursor,
        port,
        spread,
        terms,
        told,
        alone: false,
    })
}

/// Returns true if the card can read all buffers of a packet.
fn are_readable<C: PacketTransmitter>(
    card: &mut C,
    sender: TransmitQueueId,
    buffers: &BufferChain,
    frames: &mut BurstMemory,
) -> bool {
    let (addresses, lengths) = buffers.all();
    let (function, hint, bus) = card.source(sender);
    addresses.chunks(BURST).zip(lengths.chunks(BURST)).all(|(addresses, lengths)| {
        let space = HintedMemory { function, hint: &mut *hint };
        bus.gather(space, addresses, lengths, &mut frames.heads) == addresses.len()
    })
}

/// Completes the headers of a packet's first segment, which has `payload` bytes of payload. Returns the segment's first
/// bytes and its properties, or `None` if it is not plain.
fn first_segment<'a>(
    cut: &SegmentationState,
    headers: &'a mut [u8; HEADERS],
    payload: usize,
) -> Option<(PlainFrame<'a>, PlainFrameKind)> {
    // A driver leaves the lengths of the packet's own headers to the card.
    let (mut cut, length) = (cut.clone(), cut.chunk(0)?.start);
    cut.complete_headers(&mut headers[..length], payload, PartialChecksum::default());
    let plain = PlainFrame::of(headers.first_chunk()?, length + payload)?;
    Some((plain, plain.find_sealed(&cut.sealed()?)?))
}

/// Delivers the next segments of a packet to the port, at most a burst. Returns the number of delivered segments.
fn send_run<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    large: &mut SegmentedPacket<'_, C::Orders>,
    buffers: &BufferChain,
    frames: &mut BurstMemory,
    lane: &mut L,
) -> usize {
    let (function, hint, _) = card.source(large.sender);
    let mut hint = *hint;
    let from = HintedMemory { function, hint: &mut hint };
    let Some(mut receiver) = card.receiver(large.port, large.spread.0, large.told) else { return 0 };
    let ready = receiver.ready().min(BURST);
    receiver.posted.addresses(&receiver.ring, &mut frames.targets[..ready]);
    let count = find_payloads(large, (ready, receiver.longest), buffers, frames);
    let count = lane.admits(&frames.padded[..count], large.terms);
    let sent = receiver.fill_cut(from, frames, count, large);
    let SegmentedPacket { sender, cut, port, spread: (queue, _), terms, alone, .. } = large;
    *alone = sent < count;
    *card.source(*sender).1 = hint;
    if sent > 0 {
        cut.pass(low_dword(sent as u64));
        let lengths = &frames.padded[..sent];
        let bytes = lengths.iter().map(|length| u64::from(*length)).sum();
        card.received(*port, *queue, sent, bytes);
        lane.count_run(Some(*port), lengths, bytes, *terms);
    }
    sent
}

/// Finds the pieces of the payloads of the next segments, one segment for each of `targets`: a piece for each buffer of
/// the sender that holds a part of a payload. The first piece of a segment follows the segment's headers in the receive
/// buffer, and each other piece the piece before it. Ends before the first segment that has to be sent alone or is
/// longer than `longest`, or when a burst has no room for more pieces. Returns the number of segments.
fn find_payloads<O>(
    large: &mut SegmentedPacket<'_, O>,
    (ready, longest): (usize, usize),
    buffers: &BufferChain,
    frames: &mut BurstMemory,
) -> usize {
    let BurstMemory { sources, lengths, padded, targets, piece_ends, piece_targets, .. } = frames;
    let first = large.cut.chunk(0).unwrap_or_default().start;
    // The next burst begins its search where this one does, or later.
    let Some((mut address, mut left)) = large.cursor.seek(buffers, first) else { return 0 };
    let (mut cursor, mut used) = (large.cursor, 0);
    let segments = padded.iter_mut().zip(piece_ends).zip(targets).take(ready);
    for (ahead, ((whole, end), target)) in (0..).zip(segments) {
        let Some(chunk) = large.cut.chunk(ahead) else { return ahead as usize };
        *whole = low_dword((large.length + chunk.len()) as u64);
        if *whole < SHORTEST || *whole as usize > longest {
            return ahead as usize;
        }
        let (mut at, mut place) = (chunk.start, target.wrapping_add(large.length as u64));
        while at < chunk.end {
            if left == 0 {
                let Some(found) = cursor.seek(buffers, at) else { return ahead as usize };
                (address, left) = found;
            }
            if used == BURST {
                return ahead as usize;
            }
            let length = left.min(chunk.end - at);
            (sources[used], piece_targets[used], lengths[used]) = (address, place, low_dword(length as u64));
            (at, used, left) = (at + length, used + 1, left - length);
            address = address.wrapping_add(length as u64);
            place = place.wrapping_add(length as u64);
        }
        *end = used;
    }
    ready.min(BURST)
}

/// Returns the sum of a segment's payload, from the lengths and the sums of its pieces. A separate function, since most
/// payloads have one piece.
#[inline(never)]
fn sum_of_pieces(lengths: &[u32], sums: &[u64]) -> PartialChecksum {
    let (mut all, mut before) = (PartialChecksum::default(), 0);
    for (length, sum) in lengths.iter().zip(sums) {
        all = all.sum(PartialChecksum::default().words(*sum).behind(before));
        before += *length as usize;
    }
    all
}

impl<B: Bus, S: RxFormat> PlainReceiver<'_, B, S> {
    /// Puts the first `count` segments of a burst into receive buffers, which are ready. Returns the number of delivered
    /// segments. Source addresses, lengths and sums are those of pieces of payloads, padded lengths those of segments.
    #[inline(never)]
    fn fill_cut<O>(
        self,
        from: HintedMemory<'_>,
        frames: &mut BurstMemory,
        count: usize,
        large: &SegmentedPacket<'_, O>,
    ) -> usize {
        let SegmentedPacket { headers, length, cut, template, spread: (_, hash), .. } = large;
        let Self { posted, ring, function, bus, format, .. } = self;
        let BurstMemory {
            sources,
            lengths,
            padded,
            targets,
            piece_ends,
            piece_targets,
            sums,
            headers: completed,
            kinds,
            ..
        } = frames;
        let ends = &piece_ends[..count];
        let pieces = ends.last().copied().unwrap_or(0);
        let (sources, lengths, sums) = (&sources[..pieces], &lengths[..pieces], &mut sums[..pieces]);
        let to = HintedMemory { function, hint: &mut posted.buffers };
        let payloads = SegmentPayloads { sources, lengths, targets: &piece_targets[..pieces], sums };
        let copied = bus.copy(from, to, payloads);
        let (mut plain, mut piece) = (0, 0);
        for (at, end) in ends.iter().enumerate().take_while(|(_, end)| **end <= copied) {
            completed[at] = *headers;
            let Some(head) = completed[at].first_chunk_mut() else { break };
            let sum = match &sums[piece..*end] {
                [sum] => PartialChecksum::default().words(*sum),
                sums => sum_of_pieces(&lengths[piece..*end], sums),
            };
            let payload = padded[at] as usize - length;
            let Some(found) = template.complete((cut, low_dword(at as u64)), head, payload, sum) else {
                break;
            };
            kinds[at] = found;
            (plain, piece) = (plain + 1, *end);
        }
        let to = HintedMemory { function, hint: &mut posted.buffers };
        let sent = bus.scatter(to, &completed[..plain], *length, &targets[..plain]).min(plain);
        let words = kinds.iter().zip(padded).map(|(found, whole)| format.words(*found, *hash, *whole));
        posted.fill_run(&ring, sent, words.take(sent));
        sent
    }
}

/// Copies the next segment to private memory and sends it alone.
#[cold]
fn send_next_segment<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    large: &mut SegmentedPacket<'_, C::Orders>,
    buffers: &BufferChain,
    frames: &mut BurstMemory,
    lane: &mut L,
) {
    let SegmentedPacket { sender, orders, headers, length, cut, cursor, .. } = large;
    let chunk = cut.chunk(0).unwrap_or_default();
    let total = *length + chunk.len();
    let (function, _, bus) = card.source(*sender);
    let segment = frames.staging.get_mut(HEADROOM..HEADROOM + total);
    let read = segment.and_then(|segment| {
        segment[..*length].copy_from_slice(&headers[..*length]);
        cursor.read(buffers, chunk, (function, bus), &mut segment[*length..]).ok()?;
        Some(segment)
    });
    // All buffers were readable when the packet was begun, and nothing has changed since.
    let Some(segment) = read else {
        cut.pass(1);
        return spoil(card, *sender, PacketDropReason::Fault, lane);
    };
    cut.complete(segment);
    lane.charge(WorkCost::of_segment(total));
    send_segment(card, *sender, *orders, (&mut frames.staging, total, cut.sealed()), lane);
}
