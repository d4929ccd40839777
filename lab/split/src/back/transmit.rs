//! Path of frames from guests. A worker thread takes the requests of its interfaces in turn, one frame of each, maps
//! the pages and copies the headers. Decisions use the copy of the headers, and the copy is delivered, so a guest
//! cannot change the headers afterwards. The worker that mapped a page unmaps it and responds once the frame is sent.

use super::packet::{BUFFER, FrameHandle, MappedFramePiece};
use super::{NetworkBackend, NetworkBackendHal, VifIndex};
use crate::message::{TxRequest, TxResponse, parse_segments, status, tx_flag};
use crate::{MAX_FRAME, PAGE, PIECES, PendingOffloads};
use core::fmt::Debug;

/// Bytes at the start of a frame that the back end copies, to inspect the headers.
const HEADERS: usize = 128;

/// Transmit request of a guest without a response.
#[derive(Debug)]
pub(super) struct PendingTransmitRequest<M> {
    vif: VifIndex,
    id: u16,
    /// True if the transmit request came with a slot of extra information, which needs a response too.
    extra: bool,
    reference: u32,
    /// Mapping of the request's page; `None` if the page could not be mapped.
    mapping: Option<M>,
}

/// Outcome of taking a frame from a guest.
#[derive(Debug, PartialEq, Eq)]
pub enum TransmitPollOutcome {
    /// A frame of this interface was taken from its ring.
    Frame(VifIndex, FrameHandle),
    /// The polled interface had no frame, or a malformed one.
    Nothing,
    /// No interface of this worker thread has a frame to send, or too many requests have no response.
    Idle,
}

/// Transmit requests of one frame, as read from the ring.
struct FrameRequests {
    requests: [TxRequest; PIECES],
    count: usize,
    segment: Option<u16>,
}

/// Error of transmit requests that do not delimit a frame, so the ring is unusable.
struct MalformedTransmitRequests;

impl<M: Copy + Debug> NetworkBackend<M> {
    /// Handles an event of a front end: appends the interface to the ready queue of the interface's worker.
    pub fn event(&mut self, vif: VifIndex) {
        let Some(interface) = self.interfaces.get_mut(usize::from(vif.0)) else { return };
        if interface.target.is_some() {
            interface.event_arrived = true;
        } else if !interface.broken && !core::mem::replace(&mut interface.is_ready, true) {
            self.workers[interface.worker].ready.push_back(vif);
        }
    }

    /// Returns `true` if a worker thread has frames to take from guests or pages to release.
    #[must_use]
    pub fn may_transmit(&self, worker: usize) -> bool {
        let worker = &self.workers[worker];
        !worker.released.is_empty() || (!worker.ready.is_empty() && worker.free.len() >= PIECES)
    }

    /// Takes the next frame of the first ready interface, which then goes to the end of the queue. Reads at
    /// most the requests of one frame.
    pub fn take<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        worker: usize,
        host: &mut H,
    ) -> TransmitPollOutcome {
        if self.workers[worker].free.len() < PIECES {
            return TransmitPollOutcome::Idle;
        }
        let Some(vif) = self.workers[worker].ready.pop_front() else { return TransmitPollOutcome::Idle };
        self.interface(vif).is_ready = false;
        let frame = match self.describe(vif, host) {
            Ok(Some(frame)) => frame,
            Ok(None) => {
                self.recheck(vif, host);
                return TransmitPollOutcome::Nothing;
            }
            Err(MalformedTransmitRequests) => {
                let interface = self.interface(vif);
                interface.broken = true;
                interface.counters.malformed += 1;
                return TransmitPollOutcome::Nothing;
            }
        };
        self.event(vif);
        self.map(vif, &frame, host)
            .map_or(TransmitPollOutcome::Nothing, |key| TransmitPollOutcome::Frame(vif, key))
    }

    /// Requests an event from an empty transmit ring and checks the ring once more, so that no request is missed.
    fn recheck<H: NetworkBackendHal<Mapping = M>>(&mut self, vif: VifIndex, host: &mut H) {
        let page = &mut host.rings(vif).transmit;
        let ring = &self.interface(vif).transmit;
        ring.arm_event(page);
        if ring.pending(page) != Ok(0) {
            self.event(vif);
        }
    }

    /// Takes the requests of one frame from the transmit ring. Returns `None` if there is none.
    fn describe<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        vif: VifIndex,
        host: &mut H,
    ) -> Result<Option<FrameRequests>, MalformedTransmitRequests> {
        let page = &host.rings(vif).transmit;
        let ring = &mut self.interface(vif).transmit;
        if ring.pending(page).map_err(|_| MalformedTransmitRequests)? == 0 {
            return Ok(None);
        }
        let mut found = FrameRequests { requests: [TxRequest::default(); PIECES], count: 0, segment: None };
        loop {
            let request =
                ring.take(page).map(|slot| TxRequest::parse(&slot)).ok_or(MalformedTransmitRequests)?;
            *found.requests.get_mut(found.count).ok_or(MalformedTransmitRequests)? = request;
            found.count += 1;
            if request.flags & tx_flag::EXTRA != 0 {
                let slot = ring.take(page).filter(|_| found.count == 1).ok_or(MalformedTransmitRequests)?;
                found.segment = Some(parse_segments(&slot).ok_or(MalformedTransmitRequests)?);
            }
            if request.flags & tx_flag::MORE == 0 {
                return Ok(Some(found));
            }
        }
    }

    /// Maps a frame's pages and copies its headers. Responds to a malformed frame with an error.
    fn map<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        vif: VifIndex,
        frame: &FrameRequests,
        host: &mut H,
    ) -> Option<FrameHandle> {
        let requests = &frame.requests[..frame.count];
        let key = pieces(requests).and_then(|pieces| {
            let key = self.packets.take()?;
            self.packets.at_mut(&key).pieces = pieces;
            Some(key)
        });
        let interface = self.interface(vif);
        interface.unanswered += requests.len() as u32;
        let owner = interface.worker;
        let mut mapped = key.is_some();
        for (at, request) in requests.iter().enumerate() {
            let mapping = if mapped { host.map(vif, request.reference).ok() } else { None };
            mapped &= mapping.is_some();
            let extra = request.flags & tx_flag::EXTRA != 0;
            let pending =
                PendingTransmitRequest { vif, id: request.id, extra, reference: request.reference, mapping };
            let worker = &mut self.workers[owner];
            // A slot is free for every piece: `take` checked before it took the frame.
            let slot = worker.free.pop().unwrap_or_default();
            worker.pending[usize::from(slot)] = Some(pending);
            match &key {
                Some(key) => self.packets.at_mut(key).pieces[at].slot = slot,
                None => worker.released.push_back(slot),
            }
        }
        let counters = &mut self.interface(vif).counters;
        let Some(key) = key else {
            counters.malformed += 1;
            return None;
        };
        let packet = self.packets.at_mut(&key);
        (packet.worker, packet.count) = (owner, requests.len());
        let csum_blank = requests[0].flags & tx_flag::CSUM_BLANK != 0;
        packet.offload = PendingOffloads { csum_blank, segment: frame.segment };
        if mapped && self.copy_headers(&key, host) {
            self.interface(vif).counters.transmitted += 1;
            return Some(key);
        }
        self.interface(vif).counters.malformed += 1;
        self.discard(key);
        None
    }

    /// Copies the headers from a frame's first piece. Releases the piece's page at once if no payload follows in it.
    fn copy_headers<H: NetworkBackendHal<Mapping = M>>(&mut self, key: &FrameHandle, host: &mut H) -> bool {
        let packet = self.packets.at_mut(key);
        let first = packet.pieces[0];
        let length = usize::from(first.size).min(HEADERS);
        let worker = &mut self.workers[packet.worker];
        let Some(PendingTransmitRequest { vif, mapping: Some(mapping), .. }) =
            worker.pending[usize::from(first.slot)]
        else {
            return false;
        };
        if host.read(vif, mapping, first.offset, &mut packet.buffer[..length]).is_err() {
            return false;
        }
        packet.head = length;
        if length == usize::from(first.size) {
            worker.released.push_back(first.slot);
            packet.pieces.copy_within(1.., 0);
            packet.count -= 1;
        } else {
            packet.pieces[0].offset += length as u16;
            packet.pieces[0].size -= length as u16;
        }
        true
    }

    /// Returns the buffered start of a frame: a whole frame from a card, at least the headers of a frame from a guest.
    #[must_use]
    pub fn head(&self, key: &FrameHandle) -> &[u8] {
        let packet = self.packets.at(key);
        &packet.buffer[..packet.head]
    }

    /// Returns the offloads that a frame still needs.
    #[must_use]
    pub fn offload(&self, key: &FrameHandle) -> PendingOffloads {
        self.packets.at(key).offload
    }

    /// Copies a whole frame to the front of `into`, which needs room for [`MAX_FRAME`] bytes. Returns the frame's
    /// length, or `None` if the frame cannot be read.
    pub fn gather<H: NetworkBackendHal<Mapping = M>>(
        &self,
        key: &FrameHandle,
        host: &mut H,
        into: &mut [u8],
    ) -> Option<usize> {
        let packet = self.packets.at(key);
        into.get_mut(..packet.head)?.copy_from_slice(&packet.buffer[..packet.head]);
        let mut length = packet.head;
        for piece in &packet.pieces[..packet.count] {
            let pending = self.workers[packet.worker].pending[usize::from(piece.slot)].as_ref()?;
            let end = length + usize::from(piece.size);
            host.read(pending.vif, pending.mapping?, piece.offset, into.get_mut(length..end)?).ok()?;
            length = end;
        }
        Some(length)
    }

    /// Copies a flooded frame for a further destination. Returns `None` if the frame is longer than [`BUFFER`] or too
    /// many frames are in flight.
    pub fn duplicate<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        key: &FrameHandle,
        host: &mut H,
    ) -> Option<FrameHandle> {
        let mut buffer = [0; BUFFER];
        let length = self.gather(key, host, &mut buffer)?;
        let offload = self.offload(key);
        let copy = self.packets.take()?;
        let packet = self.packets.at_mut(&copy);
        (*packet.buffer, packet.head, packet.offload) = (buffer, length, offload);
        Some(copy)
    }

    /// Frees a frame that was sent or dropped. The worker that mapped the frame's pages releases them later.
    pub fn discard(&mut self, key: FrameHandle) {
        let packet = self.packets.at(&key);
        let released = &mut self.workers[packet.worker].released;
        released.extend(packet.pieces[..packet.count].iter().map(|piece| piece.slot));
        self.packets.put(key);
    }

    /// Unmaps the pages of up to `limit` transmit requests whose frames are freed, and responds to these requests.
    /// Returns their number.
    pub fn release<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        worker: usize,
        host: &mut H,
        limit: usize,
    ) -> usize {
        let count = self.workers[worker].released.len().min(limit);
        for _ in 0..count {
            let worker = &mut self.workers[worker];
            let Some(slot) = worker.released.pop_front() else { break };
            worker.free.push(slot);
            let Some(pending) = worker.pending[usize::from(slot)].take() else { continue };
            let status = if pending.mapping.is_some() { status::OKAY } else { status::ERROR };
            if let Some(mapping) = pending.mapping {
                host.unmap(pending.vif, mapping);
            }
            let interface = self.interface(pending.vif);
            interface.unanswered -= 1;
            let ring = &mut interface.transmit;
            let page = &mut host.rings(pending.vif).transmit;
            ring.put(page, &TxResponse { id: pending.id, status }.emit());
            if pending.extra {
                ring.put(page, &TxResponse { id: 0, status: status::NULL }.emit());
            }
            if ring.publish(page) {
                host.notify(pending.vif);
            }
        }
        count
    }

    /// Returns the granted address of a frame's piece, or `None` if the piece's transmit request is no longer pending.
    pub(super) fn granted(&self, worker: usize, piece: MappedFramePiece) -> Option<super::GrantedAddress> {
        let pending = self.workers[worker].pending[usize::from(piece.slot)].as_ref()?;
        Some(super::GrantedAddress { vif: pending.vif, reference: pending.reference, offset: piece.offset })
    }
}

/// Returns the pieces of a frame if its transmit requests are valid: each piece is within a page, none is empty, and
/// their lengths add up to the announced one.
fn pieces(requests: &[TxRequest]) -> Option<[MappedFramePiece; PIECES]> {
    let mut pieces = [MappedFramePiece::default(); PIECES];
    let rest: usize = requests[1..].iter().map(|request| usize::from(request.size)).sum();
    let total = usize::from(requests[0].size);
    let first = total.checked_sub(rest).filter(|_| (14..=MAX_FRAME).contains(&total))?;
    for (at, request) in requests.iter().enumerate() {
        let size = if at == 0 { first } else { usize::from(request.size) };
        if size == 0 || usize::from(request.offset) + size > PAGE || (at == 0 && size < 14) {
            return None;
        }
        pieces[at] = MappedFramePiece { slot: 0, offset: request.offset, size: size as u16 };
    }
    Some(pieces)
}
