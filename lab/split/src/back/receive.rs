//! Path of frames to guests. A frame is queued at the worker thread of its interface if the guest has posted the pages
//! it needs. The worker copies queued frames into those pages, in order.

use super::packet::{BUFFER, FrameHandle};
use super::{GrantedAddress, NetworkBackend, NetworkBackendHal, VifIndex, VifState};
use crate::message::{RxRequest, RxResponse, emit_segments, rx_flag, status};
use crate::{PAGE, PendingOffloads, slots};
use core::fmt::Debug;

impl<M: Copy + Debug> NetworkBackend<M> {
    /// Allocates an empty frame of the back end's store. Returns `None` if all frames of the store are in use.
    pub fn allocate(&mut self) -> Option<FrameHandle> {
        self.packets.take()
    }

    /// Returns the buffer of an allocated frame, for the caller to fill.
    pub fn buffer(&mut self, key: &FrameHandle) -> &mut [u8; BUFFER] {
        &mut self.packets.at_mut(key).buffer
    }

    /// Sets length and offloads of an allocated frame, after the caller has filled the frame's buffer.
    pub fn set_filled(&mut self, key: &FrameHandle, length: usize, offload: PendingOffloads) {
        let packet = self.packets.at_mut(key);
        (packet.head, packet.offload) = (length.min(BUFFER), offload);
    }

    /// Queues a frame for a guest. Returns `false` if the frame was dropped: too few posted pages are unreserved, or
    /// the interface does not exist.
    pub fn deliver<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        key: FrameHandle,
        to: VifIndex,
        host: &mut H,
    ) -> bool {
        let packet = self.packets.at_mut(&key);
        packet.to = to;
        let needed = slots(packet.length(), packet.offload);
        let Some(interface) = self.interfaces.get_mut(usize::from(to.0)) else {
            self.discard(key);
            return false;
        };
        let posted = interface.receive.pending(&host.rings(to).receive).unwrap_or(0);
        if interface.broken || posted.saturating_sub(interface.promised) < needed {
            interface.counters.no_room += 1;
            self.discard(key);
            return false;
        }
        interface.promised += needed;
        if interface.target.is_some() {
            interface.waiting.push_back(key);
        } else {
            interface.queued += 1;
            self.workers[interface.worker].queue.push_back(key);
        }
        true
    }

    /// Returns `true` if a back-end worker thread has frames to copy to guests.
    #[must_use]
    pub fn may_receive(&self, worker: usize) -> bool {
        !self.workers[worker].queue.is_empty()
    }

    /// Copies up to `limit` frames of a worker thread to their guests, and returns their number. A guest that requested
    /// an event gets it now, or later if it received only few frames.
    pub fn receive<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        worker: usize,
        host: &mut H,
        limit: usize,
    ) -> usize {
        let count = self.workers[worker].queue.len().min(limit);
        for _ in 0..count {
            let Some(key) = self.workers[worker].queue.pop_front() else { break };
            let to = self.packets.at(&key).to;
            let copied = self.copy(&key, host);
            let interface = self.interface(to);
            interface.queued -= 1;
            interface.unnotified += 1;
            if copied {
                interface.counters.received += 1;
            } else {
                interface.counters.unwritable += 1;
            }
            if !core::mem::replace(&mut interface.to_publish, true) {
                self.workers[worker].to_publish.push(to);
            }
            self.discard(key);
        }
        while let Some(vif) = self.workers[worker].to_publish.pop() {
            self.publish(worker, vif, host);
        }
        count
    }

    /// Publishes responses to a guest. A guest that requested an event gets it now, or is put on the list of guests
    /// with a delayed event.
    fn publish<H: NetworkBackendHal<Mapping = M>>(&mut self, worker: usize, vif: VifIndex, host: &mut H) {
        let batch = self.batch;
        let interface = self.interface(vif);
        interface.to_publish = false;
        interface.event_due |= interface.receive.publish(&mut host.rings(vif).receive);
        if !interface.event_due {
            // The guest polls and needs no event.
            interface.unnotified = 0;
        } else if interface.unnotified >= batch {
            Self::notify(interface, vif, host);
        } else if !core::mem::replace(&mut interface.event_withheld, true) {
            self.workers[worker].withheld.push(vif);
        }
    }

    fn notify<H: NetworkBackendHal<Mapping = M>>(interface: &mut VifState, vif: VifIndex, host: &mut H) {
        (interface.event_due, interface.unnotified) = (false, 0);
        host.notify(vif);
    }

    /// Returns `true` if guests of a worker thread have frames for which they got no event yet.
    #[must_use]
    pub fn has_withheld_events(&self, worker: usize) -> bool {
        !self.workers[worker].withheld.is_empty()
    }

    /// Sends the delayed events of a worker thread: notifies each guest of received frames for which the guest got no
    /// event.
    pub fn notify_withheld<H: NetworkBackendHal<Mapping = M>>(&mut self, worker: usize, host: &mut H) {
        while let Some(vif) = self.workers[worker].withheld.pop() {
            let interface = self.interface(vif);
            interface.event_withheld = false;
            // An event may have become due and been sent since.
            if interface.event_due {
                Self::notify(interface, vif, host);
            }
        }
    }

    /// Copies a frame into posted pages of its guest. A page that cannot be written gets a response with an
    /// error.
    fn copy<H: NetworkBackendHal<Mapping = M>>(&mut self, key: &FrameHandle, host: &mut H) -> bool {
        let packet = self.packets.at(key);
        let (to, offload, length) = (packet.to, packet.offload, packet.length());
        self.interface(to).promised -= slots(length, offload);
        let mut cursor = CopyPosition::default();
        let mut good = true;
        let mut left = length;
        while left > 0 {
            let first = left == length;
            let size = left.min(PAGE);
            left -= size;
            let Some(request) = self.take_posted(to, host) else { return false };
            let place = GrantedAddress { vif: to, reference: request.reference, offset: 0 };
            let copied = self.fill(key, &mut cursor, (place, size), host);
            good &= copied;
            let status = if copied { size as i16 } else { status::ERROR };
            let mut flags = if left > 0 { rx_flag::MORE } else { 0 };
            if first {
                flags |= if offload.csum_blank { rx_flag::CSUM_BLANK } else { 0 };
                flags |= if offload.segment.is_some() { rx_flag::EXTRA } else { 0 };
            }
            self.answer(to, host, &RxResponse { id: request.id, offset: 0, flags, status }.emit());
            if let Some(segment) = offload.segment.filter(|_| first) {
                if self.take_posted(to, host).is_none() {
                    return false;
                }
                self.answer(to, host, &emit_segments(segment));
            }
        }
        good
    }

    /// Takes the guest's next posted page. A guest that withdraws posted pages has an invalid ring.
    fn take_posted<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        to: VifIndex,
        host: &mut H,
    ) -> Option<RxRequest> {
        let interface = self.interface(to);
        let slot = interface.receive.take(&host.rings(to).receive);
        interface.broken |= slot.is_none();
        slot.map(|slot| RxRequest::parse(&slot))
    }

    fn answer<H: NetworkBackendHal<Mapping = M>>(
        &mut self,
        to: VifIndex,
        host: &mut H,
        response: &crate::ring::RingSlot,
    ) {
        self.interface(to).receive.put(&mut host.rings(to).receive, response);
    }

    /// Copies the next bytes of a frame to a granted page: first buffered bytes, then bytes in the sender's granted
    /// pages.
    fn fill<H: NetworkBackendHal<Mapping = M>>(
        &self,
        key: &FrameHandle,
        cursor: &mut CopyPosition,
        (mut to, mut left): (GrantedAddress, usize),
        host: &mut H,
    ) -> bool {
        let packet = self.packets.at(key);
        if cursor.head < packet.head {
            let bytes = &packet.buffer[cursor.head..packet.head.min(cursor.head + left)];
            cursor.head += bytes.len();
            left -= bytes.len();
            if host.copy_to(to, bytes).is_err() {
                return false;
            }
            to.offset += bytes.len() as u16;
        }
        while left > 0 {
            let piece = packet.pieces[cursor.piece];
            let size = left.min(usize::from(piece.size) - cursor.within);
            let Some(mut from) = self.granted(packet.worker, piece) else { return false };
            from.offset += cursor.within as u16;
            cursor.within += size;
            if cursor.within == usize::from(piece.size) {
                (cursor.piece, cursor.within) = (cursor.piece + 1, 0);
            }
            left -= size;
            if host.copy(from, to, size).is_err() {
                return false;
            }
            to.offset += size as u16;
        }
        true
    }
}

/// Position in a stored frame of the next byte to copy.
#[derive(Debug, Default)]
struct CopyPosition {
    head: usize,
    piece: usize,
    within: usize,
}
