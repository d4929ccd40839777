//! Time stamps of packets: SYSTIM when a packet crosses the wire, which is the time of the poll that moves it.
//! A stamp stays until its high half is read, and meanwhile no other is taken. Sent packets are stamped for the PF
//! only: the card has one stamp, and a VF could keep the PF from it. `steering` decides which packets are stamped.
//!
//! RXSATRL and RXSATRH, which name a stamped packet's source, are not implemented.

use crate::work::FramePathState;
use i82576::Time;
use i82576::bits::tsync;
use i82576::register as r;

impl<B> FramePathState<'_, B> {
    /// Stamps a packet that has left and whose descriptor requests a time stamp.
    #[cold]
    pub(crate) fn stamp_sent(&mut self, now: Time) {
        if self.file.get(r::TSYNCTXCTL) & tsync::ENABLE != 0 {
            self.stamp(r::TSYNCTXCTL, r::TXSTMPL, now);
        }
    }

    /// Stamps a packet that has arrived with the current time. Returns true if the stamp register was free.
    #[cold]
    pub(crate) fn stamp_received(&mut self, now: Time) -> bool {
        self.stamp(r::TSYNCRXCTL, r::RXSTMPL, now)
    }

    fn stamp(&mut self, control: u32, low: u32, now: Time) -> bool {
        let free = self.file.get(control) & tsync::VALID == 0;
        if free {
            let count = self.clock.at(now);
            self.file.set(low, count as u32);
            self.file.set(low + 4, (count >> 32) as u32);
            self.file.update(control, 0, tsync::VALID);
        }
        free
    }
}
