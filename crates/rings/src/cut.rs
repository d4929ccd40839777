//! A large packet that is cut for one receiver: each segment gets headers of its own, and its payload straight from the sender's
//! buffers, where each byte is loaded once and summed as it is stored. A segment whose payload lies in two buffers, or that finds no
//! receive buffer ready, is copied to private memory and sent through the plane alone, in its turn.

use crate::buffers::{BufferChain, BufferCursor};
use crate::card::{PlainReceiver, QueueAndHash, RunProperties, RxFormat};
use crate::finished::{send_segment, spoil};
use crate::frames::{BurstMemory, SHORTEST};
use crate::packet::{PacketDropReason, PacketOffloads};
use crate::packets::PacketTransmitter;
use crate::places::FrameMemory;
use offload::checksum::PartialChecksum;
use offload::plain::PlainFrame;
use offload::segment::SegmentationState;
use pcie::burst::{BURST, HEADERS, LONGEST, SegmentPayloads};
use pcie::{Bus, HintedMemory};
use plane::frame::{AddressPair, HEADROOM};
use plane::{BurstTerms, FrameForwarder, PortIndex, TransmitQueueId};

/// A large packet whose segments are being cut and delivered to one port.
struct SegmentedPacket<'a, O> {
    sender: TransmitQueueId,
    orders: &'a O,
    /// Headers of the packet, and their number of bytes.
    headers: [u8; HEADERS],
    length: usize,
    cut: SegmentationState,
    cursor: BufferCursor,
    /// The port that gets all segments, and the segments' receive queue there.
    port: PortIndex,
    spread: QueueAndHash,
    terms: BurstTerms,
    told: RunProperties,
    /// True if all further segments are sent alone: a receive buffer is not in its owner's memory, so payloads would be
    /// copied in vain.
    alone: bool,
}

/// Sends the segments of a packet that are due, if one port gets all of them as plain frames. Returns the number of
/// segments that have left, and the number still to come. `None`, without any change, if the packet has to be copied as
/// a whole.
pub(crate) fn send_through<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    sender: TransmitQueueId,
    orders: &C::Orders,
    places: &mut FrameMemory,
    lane: &mut L,
) -> Option<(u32, u32)> {
    let FrameMemory { frames, buffers, .. } = places;
    let mut large = begin(card, sender, orders, buffers, frames, lane)?;
    card.cuts();
    let before = large.cut.count();
    while large.cut.count() > 0 && lane.is_due() {
        if large.alone || send_run(card, &mut large, buffers, frames, lane) == 0 {
            send_next_segment(card, &mut large, buffers, frames, lane);
        }
    }
    Some((before - large.cut.count(), large.cut.count()))
}

/// Reads the headers of a packet to segment. Returns `None` if the packet's segments cannot travel together.
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
    let longest = LONGEST.min(terms.longest as usize).min(lane.longest_taken(port, terms));
    let tag = terms.tag.filter(|_| verdict.strips());
    let told = RunProperties { tag, inexact: verdict.is_inexact(), from_uplink: false };
    let first = cut.chunk(0).filter(|_| cut.longest() <= longest)?.len();
    // A driver leaves the lengths of the packet's own headers to the card.
    let mut completed = headers;
    cut.clone().complete_headers(&mut completed[..length], first, PartialChecksum::default());
    let plain = PlainFrame::of(completed.first_chunk()?, length + first)
        .filter(|plain| plain.is_udp() == asked.udp)?;
    // Segments leave before later buffers are read, so all have to be readable now.
    let (addresses, lengths) = buffers.all();
    let (function, hint, bus) = card.source(sender);
    for (addresses, lengths) in addresses.chunks(BURST).zip(lengths.chunks(BURST)) {
        let space = HintedMemory { function, hint: &mut *hint };
        if bus.gather(space, addresses, lengths, &mut frames.heads) < addresses.len() {
            return None;
        }
    }
    let spread = if card.spreads(port) { card.spread(port, &plain) } else { (0, None) };
    let cursor = BufferCursor::default();
    Some(SegmentedPacket {
        sender,
        orders,
        headers,
        length,
        cut,
        cursor,
        port,
        spread,
        terms,
        told,
        alone: false,
    })
}

/// Delivers the next segments of a packet to the port, at most a burst. Returns the number of delivered segments.
fn send_run<C: PacketTransmitter, L: FrameForwarder>(
    card: &mut C,
    large: &mut SegmentedPacket<'_, C::Orders>,
    buffers: &BufferChain,
    frames: &mut BurstMemory,
    lane: &mut L,
) -> usize {
    let count = find_payloads(large, buffers, frames);
    let SegmentedPacket {
        sender, headers, length, cut, port, spread: (queue, hash), terms, told, alone, ..
    } = large;
    let count = lane.admits(&frames.padded[..count], *terms);
    let (function, hint, _) = card.source(*sender);
    let mut hint = *hint;
    let from = HintedMemory { function, hint: &mut hint };
    let Some(receiver) = card.receiver(*port, *queue, *told) else { return 0 };
    let (tried, sent) = receiver.fill_cut(from, frames, count, (&headers[..*length], cut, *hash));
    *alone = sent < tried;
    *card.source(*sender).1 = hint;
    if sent > 0 {
        cut.pass(sent as u32);
        let lengths = &frames.padded[..sent];
        let bytes = lengths.iter().map(|length| u64::from(*length)).sum();
        card.received(*port, *queue, sent, bytes);
        lane.count_run(*port, lengths, bytes, *terms);
    }
    sent
}

/// Finds the payloads of the next segments: at most a burst, and up to one that has to be sent alone. Returns the
/// number of segments.
fn find_payloads<O>(
    large: &mut SegmentedPacket<'_, O>,
    buffers: &BufferChain,
    frames: &mut BurstMemory,
) -> usize {
    let BurstMemory { sources, lengths, padded, .. } = frames;
    let slots = sources.iter_mut().zip(lengths).zip(padded);
    let mut cursor = large.cursor;
    for (ahead, ((source, length), whole)) in slots.enumerate() {
        let found = large.cut.chunk(ahead as u32).and_then(|chunk| {
            let (address, left) = cursor.seek(buffers, chunk.start)?;
            (chunk.len() <= left).then_some((address, chunk.len() as u32))
        });
        let long_enough = |(_, payload): &(_, u32)| payload + large.length as u32 >= SHORTEST;
        let Some((address, payload)) = found.filter(long_enough) else { return ahead };
        (*source, *length, *whole) = (address, payload, payload + large.length as u32);
    }
    BURST
}

impl<B: Bus, S: RxFormat> PlainReceiver<'_, B, S> {
    /// Puts the first `count` segments of a burst into receive buffers that are ready. Returns the number of segments
    /// that have a buffer, and of those that were delivered. Source addresses and lengths are those of payloads, padded
    /// lengths those of segments.
    #[inline(never)]
    fn fill_cut(
        mut self,
        from: HintedMemory<'_>,
        frames: &mut BurstMemory,
        count: usize,
        (headers, cut, hash): (&[u8], &SegmentationState, Option<u32>),
    ) -> (usize, usize) {
        let ready = self.ready();
        let Self { posted, ring, longest, function, bus, format, .. } = self;
        let BurstMemory { sources, lengths, padded, targets, sums, headers: completed, kinds, .. } = frames;
        let fits = padded[..count.min(ready)].iter().take_while(|whole| **whole as usize <= longest).count();
        let behind = headers.len() as u64;
        let targets = &mut targets[..fits];
        posted.addresses(&ring, targets);
        targets.iter_mut().for_each(|target| *target = target.wrapping_add(behind));
        let (sources, lengths, sums) = (&sources[..fits], &lengths[..fits], &mut sums[..fits]);
        let to = HintedMemory { function, hint: &mut posted.buffers };
        let copied = bus.copy(from, to, SegmentPayloads { sources, lengths, targets: &*targets, sums });
        targets.iter_mut().for_each(|target| *target = target.wrapping_sub(behind));
        let (mut cut, mut plain) = (cut.clone(), 0);
        for (at, payload) in lengths[..copied.min(fits)].iter().enumerate() {
            completed[at][..headers.len()].copy_from_slice(headers);
            let segment = &mut completed[at][..headers.len()];
            cut.complete_headers(segment, *payload as usize, PartialChecksum::default().words(sums[at]));
            // The headers of UDP are shorter than the bytes that are examined; those behind them do not count.
            let found =
                completed[at].first_chunk().and_then(|head| PlainFrame::of(head, padded[at] as usize));
            let found = found.zip(cut.sealed()).and_then(|(found, sealed)| found.find_sealed(&sealed));
            let Some(found) = found else { break };
            kinds[at] = found;
            plain += 1;
        }
        let to = HintedMemory { function, hint: &mut posted.buffers };
        let sent = bus.scatter(to, &completed[..plain], headers.len(), &targets[..plain]).min(plain);
        let words = kinds.iter().zip(padded).map(|(found, whole)| format.words(*found, hash, *whole));
        match ring.size() {
            32 => posted.fill_with::<4, _>(sent, words.take(sent)),
            _ => posted.fill_with::<2, _>(sent, words.take(sent)),
        }
        (fits, sent)
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
    send_segment(card, *sender, *orders, (&mut frames.staging, total, cut.sealed()), lane);
}
