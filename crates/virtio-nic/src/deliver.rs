//! Delivers frames into a device's receive rings, and returns the filled buffers to its driver.

use crate::device::VirtioDevice;
use crate::merge::merge;
use crate::moderation::InterruptIntervals;
use crate::receive::{FrameMissReason, ReceivedHeaders, VirtioRxFormat};
use pcie::burst::BURST;
use pcie::{Bus, Function, HintedMemory};
use plane::PortIndex;
use rings::PlainReceiver;
use units::Time;
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, NetHeaderFormat, flag};

impl VirtioDevice {
    /// Returns a live receive ring in the form in which crate `rings` fills it with bursts of frames.
    #[inline(always)]
    pub(crate) fn receiver<'a, B: Bus>(
        &'a mut self,
        port: PortIndex,
        pair: u8,
        bus: &'a mut B,
    ) -> Option<PlainReceiver<'a, B, VirtioRxFormat>> {
        let size = NetHeaderFormat::of(self.accepted).size();
        self.receive.get_mut(usize::from(pair))?.receiver(port, size, bus)
    }

    /// Writes the headers of the frames that crate `rings` has put into buffers of a receive ring.
    #[inline]
    pub(crate) fn received<B: Bus>(
        &mut self,
        port: PortIndex,
        pair: u8,
        headers: &mut ReceivedHeaders,
        bus: &mut B,
    ) {
        let (size, flags) = (NetHeaderFormat::of(self.accepted).size(), known_flags(self.accepted));
        let Some(receive) = self.receive.get_mut(usize::from(pair)) else { return };
        let Some(posted) = &mut receive.posted else { return };
        let mut targets = [0; BURST];
        let count = posted.take_filled((size, flags), headers, &mut targets);
        let to = HintedMemory { function: Function::Vf(port.get()), hint: &mut receive.ring.buffers };
        self.filled |= 1 << pair;
        if bus.scatter(to, &headers[..count], size, &targets[..count]) < count {
            self.fail(2 * u32::from(pair));
        }
    }

    /// Puts a frame with its header into a receive ring. [`VirtioDevice::give_back`] returns the buffers to the driver.
    pub(crate) fn put<B: Bus>(
        &mut self,
        port: PortIndex,
        pair: u8,
        (header, frame): (NetHeader, &[u8]),
        bus: &mut B,
    ) -> Result<(), FrameMissReason> {
        let accepted = self.accepted;
        let pair = self.served_pair(port, pair, bus);
        let header = NetHeader { flags: header.flags & known_flags(accepted), ..header };
        let Some(receive) = self.receive.get_mut(usize::from(pair)).filter(|receive| receive.ring.is_live())
        else {
            return Err(FrameMissReason::Disabled);
        };
        let put = merge(receive, &mut self.pieces, (port, accepted), (header, frame), bus);
        match put {
            Ok(()) => self.filled |= 1 << pair,
            Err(FrameMissReason::Fault) => self.fail(2 * u32::from(pair)),
            Err(FrameMissReason::NoBuffer | FrameMissReason::Disabled) => {}
        }
        put
    }

    /// Returns true if the receive ring of a frame chosen for `pair` has no more buffers than a flood of broadcasts has to leave
    /// free.
    pub(crate) fn has_only_reserve<B: Bus>(&mut self, port: PortIndex, pair: u8, bus: &mut B) -> bool {
        let pair = self.served_pair(port, pair, bus);
        let receive = self.receive.get_mut(usize::from(pair));
        receive.is_some_and(|receive| receive.has_only_reserve(port, bus))
    }

    /// Returns the queue pair that receives a frame chosen for `pair`: the first pair until the driver has posted a
    /// buffer to `pair`. Cloud Hypervisor enables all pairs of a device, also for a driver that uses one.
    fn served_pair<B: Bus>(&mut self, port: PortIndex, pair: u8, bus: &mut B) -> u8 {
        let receive =
            self.receive.get_mut(usize::from(pair)).filter(|receive| pair > 0 && !receive.is_served);
        // A malformed ring is stopped by the frame that goes there.
        let unserved = receive.is_some_and(|receive| receive.fetch(port, bus) == Ok(false));
        if unserved { 0 } else { pair }
    }

    /// Returns the filled buffers of all receive rings to the driver, and interrupts the driver if it has requested
    /// that.
    pub(crate) fn give_back<B: Bus>(
        &mut self,
        port: PortIndex,
        moderation: (Time, InterruptIntervals),
        bus: &mut B,
    ) {
        let mut filled = core::mem::take(&mut self.filled);
        while filled != 0 {
            let pair = filled.trailing_zeros();
            filled &= filled - 1;
            let given = self.receive.get_mut(pair as usize).map(|receive| receive.give_back(port, bus));
            match given {
                Some(Ok(true)) => self.interrupt((port, 2 * pair), moderation, bus),
                Some(Err(_)) => self.fail(2 * pair),
                Some(Ok(false)) | None => {}
            }
        }
    }
}

/// Returns the flags that a received header may have. They are zero for a driver that has not accepted GUEST_CSUM (VIRTIO 1.2,
/// 5.1.6.4.1).
fn known_flags(accepted: VirtioFeatures) -> u8 {
    if accepted.contains(VirtioFeatures::GUEST_CSUM) { flag::NEEDS_CSUM | flag::DATA_VALID } else { 0 }
}
