//! The card's rings for bursts of plain frames (crate `rings`). All other frames pass `transmit` and `receive`.

use crate::packet::request;
use crate::plain::{self, Described};
use crate::ports::told_of_tag;
use crate::scratch::Scratch;
use crate::work::Work;
use alloc::boxed::Box;
use avf::descriptor::rx::PlainWords;
use avf::descriptor::tx::{Ip, L4, SIZE};
use avf::ids::MAX_PAIRS;
use offload::insert::insert;
use offload::plain::{Insertion, Plain};
use pcie::Function::Vf;
use pcie::{Bus, Function, Hint, Space};
use plane::frame::Sealed;
use plane::switch::Reason;
use plane::{Port, Sender};
use rings::{Misfit, Places, Receiver, Spread, Terms};

impl<B: Bus> rings::Card for Work<'_, B> {
    type Bus = B;
    type TxFormat = plain::Data;
    type RxFormat = Described;

    fn places(&mut self) -> &mut Option<Box<Places>> {
        &mut self.scratch.places
    }

    fn is_careful(&self) -> bool {
        self.scratch.careful
    }

    fn judges(&self) -> bool {
        !self.scratch.careful
    }

    /// Reads up to `most` descriptors that come next in a transmit queue. Returns none while a packet waits between two
    /// segments, or if the descriptors cannot be read: `take` then finds the fault.
    fn next(&mut self, sender: Sender, most: usize) -> &[[u8; SIZE]] {
        let Self { functions, scratch: Scratch { plain, .. }, bus } = self;
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue));
        let function = functions.get_mut(usize::from(vf)).filter(|function| function.held.is_empty());
        let Some(ring) = function.and_then(|function| function.tx.get_mut(queue)) else { return &[] };
        let (at, left) = ring.ready();
        let raw = plain.place(left.min(most), at);
        let space = Space { function: Vf(vf), hint: &mut ring.hint };
        if raw.is_empty() || bus.read_descriptors(space, at, raw.as_flattened_mut()).is_err() {
            return &[];
        }
        raw
    }

    /// Gives back the first `count` descriptors that were read, whose frames have left, and raises the queue's
    /// interrupt.
    fn pass(&mut self, sender: Sender, count: usize) {
        let Self { functions, scratch: Scratch { plain, .. }, bus } = self;
        let (vf, queue) = (sender.port.get(), sender.queue);
        let Some(function) = functions.get_mut(usize::from(vf)).filter(|_| count > 0) else { return };
        let Some(ring) = function.tx.get_mut(usize::from(queue)) else { return };
        if ring.pass(plain, count, Vf(vf), *bus).is_err() {
            return function.stop_sending(queue);
        }
        function.raise_sent(queue);
    }

    fn source(&mut self, sender: Sender) -> (Function, &mut Hint, &mut B) {
        let (vf, queue) = (sender.port.get(), usize::from(sender.queue) % MAX_PAIRS);
        let function = &mut self.functions[usize::from(vf)];
        (Vf(vf), &mut function.tx[queue].buffers, self.bus)
    }

    fn insertion(&self, _sender: Sender, at: usize) -> Option<Insertion> {
        request(&self.scratch.plain.data(at)?).plain()
    }

    fn insert(&self, _sender: Sender, at: usize, frame: &mut [u8]) -> Result<Option<Sealed>, Misfit> {
        let asked = self.scratch.plain.data(at).filter(|data| (data.ip, data.l4) != (Ip::None, L4::None));
        asked.map_or(Ok(None), |data| insert(frame, &request(&data)).map_err(|_| Misfit))
    }

    #[cold]
    fn refused(&mut self, sender: Sender, _reason: Reason) {
        if let Some(function) = self.functions.get_mut(usize::from(sender.port.get())) {
            function.statistics.tx_discards += 1;
        }
    }

    #[inline]
    fn spreads(&self, port: Port) -> bool {
        let function = self.functions.get(usize::from(port.get()));
        function.is_some_and(|function| function.scaling.hashes())
    }

    #[inline(always)]
    fn spread(&mut self, port: Port, frame: &Plain<'_>) -> Spread {
        let function = self.functions.get_mut(usize::from(port.get()));
        let (hash, queue) = function.map_or((None, 0), |function| function.scaling.spread_plain(frame));
        (queue, hash)
    }

    #[inline(always)]
    fn receiver(&mut self, port: Port, queue: u8, terms: Terms) -> Option<Receiver<'_, B, Described>> {
        let function = self.functions.get_mut(usize::from(port.get()));
        let function = function.filter(|function| function.master)?;
        let tag = told_of_tag(function.filters.tags, terms.tag);
        let format = |form| Described::new(PlainWords::new(form, tag, !terms.from_uplink));
        function.rx.get_mut(usize::from(queue))?.receiver(Vf(port.get()), self.bus, (tag, format))
    }

    #[inline]
    fn received(&mut self, port: Port, queue: u8, frames: usize, bytes: u64) {
        self.scratch.reached |= port.only().bits();
        if let Some(function) = self.functions.get_mut(usize::from(port.get())) {
            function.received(queue, frames, bytes);
        }
    }
}
