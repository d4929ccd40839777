//! From guests: a worker takes the requests of its interfaces in turn, a frame of each, maps the pages and copies
//! the headers; whoever looks at headers looks at the copy, and the copy is what is delivered. Pages are unmapped
//! and answered by the worker that has mapped them, when the frame has gone. Left out: limits on a guest's rate.

use super::packet::{BUFFER, Key, Piece};
use super::{Backend, Host, Vif};
use crate::message::{TxRequest, TxResponse, parse_segments, status, tx_flag};
use crate::{LONGEST, Offload, PAGE, PIECES};
use core::fmt::Debug;

/// Bytes of a frame that are copied to be looked at.
const HEADERS: usize = 128;

/// A request without an answer.
#[derive(Debug)]
pub(super) struct Pending<M> {
    vif: Vif,
    id: u16,
    /// Extra information came with it, whose slot is answered too.
    extra: bool,
    reference: u32,
    /// `None` if the page could not be mapped.
    mapping: Option<M>,
}

/// What a try to take a frame came to.
#[derive(Debug, PartialEq, Eq)]
pub enum Taken {
    /// A frame, and whose it is.
    Frame(Vif, Key),
    /// An interface was looked at and had none, or none that makes sense.
    Nothing,
    /// No interface of this worker has anything to send, or too many requests are without an answer.
    Idle,
}

/// A frame as its requests describe it.
struct Described {
    requests: [TxRequest; PIECES],
    count: usize,
    segment: Option<u16>,
}

/// Requests that cannot be told apart any more.
struct Nonsense;

impl<M: Copy + Debug> Backend<M> {
    /// A front end's event: it may have frames to send. Its interface goes to the end of its worker's line.
    pub fn event(&mut self, vif: Vif) {
        let Some(interface) = self.interfaces.get_mut(usize::from(vif.0)) else { return };
        if interface.target.is_some() {
            interface.heard = true;
        } else if !interface.broken && !core::mem::replace(&mut interface.in_line, true) {
            self.workers[interface.worker].line.push_back(vif);
        }
    }

    /// Whether a worker has frames to take or pages to release.
    #[must_use]
    pub fn may_transmit(&self, worker: usize) -> bool {
        let worker = &self.workers[worker];
        !worker.released.is_empty() || (!worker.line.is_empty() && worker.free.len() >= PIECES)
    }

    /// Takes the next frame of the first interface in line, which then goes to the end of the line. At most the
    /// pieces of one frame are looked at.
    pub fn take<H: Host<Mapping = M>>(&mut self, worker: usize, host: &mut H) -> Taken {
        if self.workers[worker].free.len() < PIECES {
            return Taken::Idle;
        }
        let Some(vif) = self.workers[worker].line.pop_front() else { return Taken::Idle };
        self.interface(vif).in_line = false;
        let described = match self.describe(vif, host) {
            Ok(Some(described)) => described,
            Ok(None) => {
                self.look_again(vif, host);
                return Taken::Nothing;
            }
            Err(Nonsense) => {
                let interface = self.interface(vif);
                interface.broken = true;
                interface.counters.malformed += 1;
                return Taken::Nothing;
            }
        };
        self.event(vif);
        self.map(vif, &described, host).map_or(Taken::Nothing, |key| Taken::Frame(vif, key))
    }

    /// Nothing was there: asks for an event, and looks once more.
    fn look_again<H: Host<Mapping = M>>(&mut self, vif: Vif, host: &mut H) {
        let page = &mut host.rings(vif).transmit;
        let ring = &self.interface(vif).transmit;
        ring.ask(page);
        if ring.pending(page) != Ok(0) {
            self.event(vif);
        }
    }

    /// Takes the requests of one frame from the ring. `None` if there is none.
    fn describe<H: Host<Mapping = M>>(
        &mut self,
        vif: Vif,
        host: &mut H,
    ) -> Result<Option<Described>, Nonsense> {
        let page = &host.rings(vif).transmit;
        let ring = &mut self.interface(vif).transmit;
        if ring.pending(page).map_err(|_| Nonsense)? == 0 {
            return Ok(None);
        }
        let mut found = Described { requests: [TxRequest::default(); PIECES], count: 0, segment: None };
        loop {
            let request = ring.take(page).map(|slot| TxRequest::parse(&slot)).ok_or(Nonsense)?;
            *found.requests.get_mut(found.count).ok_or(Nonsense)? = request;
            found.count += 1;
            if request.flags & tx_flag::EXTRA != 0 {
                let slot = ring.take(page).filter(|_| found.count == 1).ok_or(Nonsense)?;
                found.segment = Some(parse_segments(&slot).ok_or(Nonsense)?);
            }
            if request.flags & tx_flag::MORE == 0 {
                return Ok(Some(found));
            }
        }
    }

    /// Maps a frame's pages and copies its headers. What makes no sense is answered with an error.
    fn map<H: Host<Mapping = M>>(&mut self, vif: Vif, described: &Described, host: &mut H) -> Option<Key> {
        let requests = &described.requests[..described.count];
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
            let pending = Pending { vif, id: request.id, extra, reference: request.reference, mapping };
            let worker = &mut self.workers[owner];
            // There is a slot for every piece, or nothing was taken.
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
        let blank = requests[0].flags & tx_flag::BLANK != 0;
        packet.offload = Offload { blank, segment: described.segment };
        if mapped && self.copy_headers(&key, host) {
            self.interface(vif).counters.transmitted += 1;
            return Some(key);
        }
        self.interface(vif).counters.malformed += 1;
        self.discard(key);
        None
    }

    /// Copies the beginning of the first piece; a page that was read to its end is not needed any more.
    fn copy_headers<H: Host<Mapping = M>>(&mut self, key: &Key, host: &mut H) -> bool {
        let packet = self.packets.at_mut(key);
        let first = packet.pieces[0];
        let length = usize::from(first.size).min(HEADERS);
        let worker = &mut self.workers[packet.worker];
        let Some(Pending { vif, mapping: Some(mapping), .. }) = worker.pending[usize::from(first.slot)]
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

    /// The beginning of a frame: all of one from a card, at least the headers of one from a guest.
    #[must_use]
    pub fn head(&self, key: &Key) -> &[u8] {
        let packet = self.packets.at(key);
        &packet.buffer[..packet.head]
    }

    /// What is left to be done to a frame.
    #[must_use]
    pub fn offload(&self, key: &Key) -> Offload {
        self.packets.at(key).offload
    }

    /// Copies a whole frame to the front of `into`, which should have room for [`LONGEST`] bytes: its length, or
    /// `None` if it cannot be read.
    pub fn gather<H: Host<Mapping = M>>(&self, key: &Key, host: &mut H, into: &mut [u8]) -> Option<usize> {
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

    /// A copy of a frame, to go another way too; `None` if it is longer than [`BUFFER`] or too many frames are
    /// under way.
    pub fn duplicate<H: Host<Mapping = M>>(&mut self, key: &Key, host: &mut H) -> Option<Key> {
        let mut buffer = [0; BUFFER];
        let length = self.gather(key, host, &mut buffer)?;
        let offload = self.offload(key);
        let copy = self.packets.take()?;
        let packet = self.packets.at_mut(&copy);
        (*packet.buffer, packet.head, packet.offload) = (buffer, length, offload);
        Some(copy)
    }

    /// A frame has gone, or goes nowhere: its pages are left to their worker.
    pub fn discard(&mut self, key: Key) {
        let packet = self.packets.at(&key);
        let released = &mut self.workers[packet.worker].released;
        released.extend(packet.pieces[..packet.count].iter().map(|piece| piece.slot));
        self.packets.put(key);
    }

    /// Unmaps and answers up to `limit` requests whose pages nobody needs any more: how many there were.
    pub fn release<H: Host<Mapping = M>>(&mut self, worker: usize, host: &mut H, limit: usize) -> usize {
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

    /// The grant behind a piece.
    pub(super) fn granted(&self, worker: usize, piece: Piece) -> Option<super::Granted> {
        let pending = self.workers[worker].pending[usize::from(piece.slot)].as_ref()?;
        Some(super::Granted { vif: pending.vif, reference: pending.reference, offset: piece.offset })
    }
}

/// Where a frame's bytes are, if its requests make sense: each piece in a page, none empty, together as long as
/// the first says.
fn pieces(requests: &[TxRequest]) -> Option<[Piece; PIECES]> {
    let mut pieces = [Piece::default(); PIECES];
    let rest: usize = requests[1..].iter().map(|request| usize::from(request.size)).sum();
    let total = usize::from(requests[0].size);
    let first = total.checked_sub(rest).filter(|_| (14..=LONGEST).contains(&total))?;
    for (at, request) in requests.iter().enumerate() {
        let size = if at == 0 { first } else { usize::from(request.size) };
        if size == 0 || usize::from(request.offset) + size > PAGE || (at == 0 && size < 14) {
            return None;
        }
        pieces[at] = Piece { slot: 0, offset: request.offset, size: size as u16 };
    }
    Some(pieces)
}
