//! Polls transmit rings. The driver of a ring that the card has visited sends no notifications, also when the ring is empty,
//! until the card's caller is about to sleep ([`Nic::arm_rings`]) or the ring was empty for long. So a driver that keeps
//! sending notifies the card rarely, however often its ring is empty for a moment.

use crate::card::Nic;
use crate::device::VirtioDevice;
use pcie::Bus;
use plane::PortIndex;

/// Maximum number of looks at an empty ring in successive visits, before its driver has to notify the card again. It bounds
/// what idle rings cost a card that is busy with others.
const MOST_LOOKS: u8 = 64;

impl Nic {
    /// Returns true if the card polls a transmit ring: a packet in the ring may come without notification.
    #[must_use]
    pub fn polls_rings(&self) -> bool {
        self.devices.iter().any(|device| device.polled != 0)
    }

    /// Looks for a packet in the rings that the card polls. Returns true if there is one, which the next call of
    /// [`Nic::visit_ready`] sends.
    pub fn look_at_rings<B: Bus>(&mut self, bus: &mut B) -> bool {
        let mut devices = self.devices.iter_mut().enumerate();
        devices.any(|(vf, device)| {
            device.look_at_rings(PortIndex::of_field(vf as u32), bus);
            device.polled & device.ready != 0
        })
    }

    /// Asks the drivers of all polled rings for a notification of their next packet. Returns true if a ring has a packet
    /// already, which the next call of [`Nic::visit_ready`] sends. A caller that sleeps without this call misses packets.
    pub fn arm_rings<B: Bus>(&mut self, bus: &mut B) -> bool {
        let mut more = false;
        for (vf, device) in self.devices.iter_mut().enumerate() {
            while device.polled != 0 {
                more |= device.arm(device.polled.trailing_zeros(), PortIndex::of_field(vf as u32), bus);
            }
        }
        more
    }
}

impl VirtioDevice {
    /// Marks the polled rings that have a packet as ready.
    fn look_at_rings<B: Bus>(&mut self, port: PortIndex, bus: &mut B) {
        let mut polled = self.polled & !self.ready;
        while polled != 0 {
            let queue = polled.trailing_zeros();
            polled &= polled - 1;
            // The visit of a malformed ring finds the fault and stops the ring.
            let has_packet = self.transmit[queue as usize].has_chain(port, bus).unwrap_or(true);
            self.ready |= u16::from(has_packet) << queue;
        }
    }

    /// Marks the polled rings that have a packet as ready, before a visit to the ready rings. Rings that were empty for
    /// long are polled no more.
    #[inline]
    pub(crate) fn continue_polls<B: Bus>(&mut self, port: PortIndex, bus: &mut B) {
        if self.polled == 0 {
            return;
        }
        self.look_at_rings(port, bus);
        let mut empty = self.polled & !self.ready;
        self.polled = empty;
        while empty != 0 {
            let queue = empty.trailing_zeros();
            empty &= empty - 1;
            let ring = &mut self.transmit[queue as usize];
            ring.looks += 1;
            if ring.looks >= MOST_LOOKS {
                self.arm(queue, port, bus);
            }
        }
    }

    /// Begins to poll a ring that is empty.
    #[inline]
    pub(crate) fn begin_poll(&mut self, queue: u8) {
        self.polled |= 1 << queue;
        if let Some(ring) = self.transmit.get_mut(usize::from(queue)) {
            ring.looks = 0;
        }
    }

    /// Asks the driver of a polled ring for a notification of its next packet. Returns true if the ring has one already.
    fn arm<B: Bus>(&mut self, queue: u32, port: PortIndex, bus: &mut B) -> bool {
        self.polled &= !(1 << queue);
        let has_packet = self.transmit[queue as usize].arm(port, bus).unwrap_or(true);
        self.ready |= u16::from(has_packet) << queue;
        has_packet
    }
}
