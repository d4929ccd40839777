//! Time stamps of packets: the clock at the moment a packet crossed the wire, which is that of the poll that moved it.
//! A stamp stays until its high half is read, and meanwhile no other is taken. Sent packets are stamped for the PF
//! only: there is one stamp, and a VF could keep the PF from it. Left out: which packets (`steering`), and
//! RXSATRL and RXSATRH, by which software would know the packet again.

use crate::work::Work;
use i82576::Time;
use i82576::bits::tsync;
use i82576::register as r;

impl<B> Work<'_, B> {
    /// A packet that asks for a stamp has left.
    #[cold]
    pub(crate) fn stamp_sent(&mut self, now: Time) {
        if self.file.get(r::TSYNCTXCTL) & tsync::ENABLE != 0 {
            self.stamp(r::TSYNCTXCTL, r::TXSTMPL, now);
        }
    }

    /// A packet to be stamped has come; answers whether its stamp was taken.
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
