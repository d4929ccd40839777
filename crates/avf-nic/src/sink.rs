//! Delivers frames into the receive queues of VFs and counts them. Descriptors are written back together, with one interrupt.
//! `rx_ring` has the queues, `scaling` the choice of a queue, `tables` the switch's tables.

use crate::card::Nic;
use crate::contents::FrameContentFields;
use crate::function::VfHardware;
use crate::rx_ring::{ReceiveError, ReceiveQueue};
use crate::scratch::PollScratchMemory;
use crate::tables::{strips_tags, told_of_tag};
use crate::work::FramePathState;
use alloc::vec::Vec;
use avf::descriptor::rx::{DestinationAddressKind, RxWriteBack};
use avf::ids::{FCS, MAX_VFS};
use offload::crc::frame_check_sequence;
use pcie::{Bus, Function as BusFunction};
use plane::frame::{AddressPair, Frame};
use plane::{DeliveryError, DeliveryFlags, FrameSink, PortIndex};
use rings::FrameReceiver;

impl<B: Bus> FrameSink for FramePathState<'_, B> {
    type Findings = Option<FrameContentFields>;

    #[inline(always)]
    fn deliver(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        findings: &mut Option<FrameContentFields>,
    ) -> Result<usize, DeliveryError> {
        if self.scratch.away.have(port) {
            let trunk = self.scratch.away.trunk.as_deref_mut();
            return Err(trunk.map_or(DeliveryError::Disabled, |trunk| trunk.cross(port, frame, about, None)));
        }
        rings::deliver(self, port, frame, about, findings)
    }
}

impl<B: Bus> FrameReceiver for FramePathState<'_, B> {
    type Contents = FrameContentFields;

    fn look(&mut self, frame: &mut Frame<'_>, _about: DeliveryFlags) -> FrameContentFields {
        let seal = frame.seal();
        FrameContentFields::of(frame.untagged(), seal)
    }

    fn put(
        &mut self,
        port: PortIndex,
        frame: &mut Frame<'_>,
        about: DeliveryFlags,
        contents: FrameContentFields,
    ) -> Result<usize, DeliveryError> {
        let (vf, Self { functions, scratch: PollScratchMemory { checked, reached, .. }, bus }) =
            (port.get(), self);
        let function = functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let function = function.ok_or(DeliveryError::Disabled)?;
        let (hash, queue) = function.scaling.spread(frame.untagged(), contents);
        let tags = function.filters.tags;
        let ring = function.rx.get(usize::from(queue));
        if about.leave_room(frame) && ring.is_some_and(ReceiveQueue::has_only_reserve) {
            function.statistics.rx_discards += 1;
            return Err(DeliveryError::Dropped);
        }
        let fcs = ring.is_some_and(ReceiveQueue::keeps_check_sequence);
        let said = RxWriteBack {
            packet_type: contents.packet_type(),
            checksums: contents.checksums(),
            hash,
            tag: told_of_tag(tags, frame.tag),
            loopback: !about.from_uplink,
            end_of_packet: true,
            cast: cast(frame.ends()),
            fcs,
            ..RxWriteBack::default()
        };
        let bytes = frame.delivered(!strips_tags(tags));
        let length = bytes.len();
        let with_check = if fcs { append_check_sequence(bytes, checked) } else { bytes };
        *reached |= 1 << (vf % MAX_VFS as u8);
        match function.put((BusFunction::Vf(vf), queue), with_check, said, *bus) {
            Ok(()) => Ok(length),
            Err(ReceiveError::NoFunction | ReceiveError::NotRunning) => Err(DeliveryError::Disabled),
            Err(ReceiveError::TooLong | ReceiveError::NoBuffer) => Err(DeliveryError::Dropped),
            Err(ReceiveError::Fault) => Err(DeliveryError::Fault),
        }
    }
}

impl<B: Bus> FramePathState<'_, B> {
    /// Writes back the descriptors of all VFs with filled queues, and raises their interrupts.
    pub(crate) fn give_back(&mut self) {
        let mut reached = core::mem::take(&mut self.scratch.reached);
        while reached != 0 {
            let vf = reached.trailing_zeros() as u8;
            reached &= reached - 1;
            if let Some(function) = self.functions.get_mut(usize::from(vf)) {
                function.give_back(BusFunction::Vf(vf), self.bus);
            }
        }
    }
}

/// Description of a received frame for its receive descriptors.
#[derive(Debug, Clone, Copy, Default)]
pub struct RxDescriptorFields {
    /// Descriptor fields of the frame: packet type, checksums, tag, hash, kind of destination, loopback. The ring sets
    /// length and end of packet.
    pub said: RxWriteBack,
}

impl VfHardware {
    /// Puts a frame into a receive queue of a VF and counts it. [`FramePathState::give_back`] notifies the driver.
    pub(crate) fn put<B: Bus>(
        &mut self,
        (own, queue): (BusFunction, u8),
        frame: &[u8],
        said: RxWriteBack,
        bus: &mut B,
    ) -> Result<(), ReceiveError> {
        let ring = self.rx.get_mut(usize::from(queue)).ok_or(ReceiveError::NotRunning)?;
        if let Err(missed) = ring.fill(own, frame, said, (&mut self.pieces, bus)) {
            return Err(self.count_missed(missed));
        }
        self.rx_filled |= 1 << queue;
        let statistics = &mut self.statistics;
        statistics.rx_bytes += frame.len().saturating_sub(if said.fcs { FCS } else { 0 }) as u64;
        *match said.cast {
            DestinationAddressKind::Unicast => &mut statistics.rx_unicast,
            DestinationAddressKind::Multicast => &mut statistics.rx_multicast,
            DestinationAddressKind::Broadcast => &mut statistics.rx_broadcast,
        } += 1;
        Ok(())
    }

    /// Counts the unicast frames of a burst that was put into a receive queue.
    #[inline]
    pub(crate) fn received(&mut self, queue: u8, frames: usize, bytes: u64) {
        if let Some(ring) = self.rx.get_mut(usize::from(queue)) {
            ring.advance(frames);
            self.rx_filled |= 1 << queue;
            self.statistics.rx_bytes += bytes;
            self.statistics.rx_unicast += frames as u64;
        }
    }

    #[cold]
    fn count_missed(&mut self, missed: ReceiveError) -> ReceiveError {
        self.statistics.rx_discards += 1;
        self.counters.dma_faults += u64::from(missed == ReceiveError::Fault);
        missed
    }

    /// Writes back the descriptors of the VFs' filled receive queues, and raises their interrupts.
    fn give_back<B: Bus>(&mut self, own: BusFunction, bus: &mut B) {
        let mut filled = core::mem::take(&mut self.rx_filled);
        while filled != 0 {
            let queue = filled.trailing_zeros() as usize;
            filled &= filled - 1;
            let given = self.rx[queue].give_back(own, bus);
            self.counters.dma_faults += u64::from(given.is_err());
            if let (Ok(true), Some(cause)) = (given, self.rx_causes[queue]) {
                self.interrupts.raise(cause.vector, cause.itr);
            }
        }
    }
}

impl Nic {
    /// Puts a frame into a receive queue of a VF, counts it, and raises the interrupt. Only tests and a fuzz target
    /// call it; frames of the plane pass [`FrameSink::deliver`].
    ///
    /// # Errors
    /// [`ReceiveError`]: the frame was dropped.
    pub fn receive<B: Bus>(
        &mut self,
        vf: u8,
        queue: u8,
        frame: &[u8],
        arrival: &RxDescriptorFields,
        bus: &mut B,
    ) -> Result<(), ReceiveError> {
        let function = self.functions.get_mut(usize::from(vf)).filter(|function| function.master);
        let function = function.ok_or(ReceiveError::NoFunction)?;
        let own = BusFunction::Vf(vf);
        let said = RxWriteBack { end_of_packet: true, ..arrival.said };
        let put = function.put((own, queue), frame, said, bus);
        function.give_back(own, bus);
        put
    }
}

/// Returns the kind of a frame's destination: one station, a group or all stations.
#[inline]
fn cast(ends: AddressPair) -> DestinationAddressKind {
    match ends.is_to_group() {
        false => DestinationAddressKind::Unicast,
        true if ends.destination().is_broadcast() => DestinationAddressKind::Broadcast,
        true => DestinationAddressKind::Multicast,
    }
}

/// Returns a frame with its check sequence, in the memory of `place`.
#[cold]
fn append_check_sequence<'a>(frame: &[u8], place: &'a mut Vec<u8>) -> &'a [u8] {
    place.clear();
    place.extend_from_slice(frame);
    place.extend_from_slice(&frame_check_sequence(frame).to_le_bytes());
    place
}
