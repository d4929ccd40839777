//! Interrupts of the VF by three vectors, as igbvf uses them: transmit, receive, mailbox. EIAC and EIAM cover all
//! of them, so an interrupt clears its cause and masks itself; its handler unmasks it in EIMS.
//!
//! The bus delivers the MSI-X messages.

use super::{RxCounters, Vf};
use crate::hal::{DmaHal, Hal};
use crate::moderation::{ReceivedBufferTotals, register_value};
use i82576::bits::ivar;
use i82576::register::vf;

/// MSI-X vector for transmitted frames.
pub const TRANSMIT_VECTOR: u16 = 0;
/// MSI-X vector for received frames.
pub const RECEIVE_VECTOR: u16 = 1;
/// MSI-X vector for mailbox messages from the PF.
pub const MAILBOX_VECTOR: u16 = 2;
const ALL_VECTORS: u32 = 0b111;

/// Cause of a VF's interrupt, which determines the owner's next call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VfInterruptCause {
    /// The VF has sent frames, and this number of transmit descriptors was reclaimed. The owner need not call anything.
    Transmitted(usize),
    /// Frames may be pending: call [`Vf::receive`] until there is none, then [`Vf::receive_done`].
    Received,
    /// The PF has written to the mailbox: call [`Vf::check_link`].
    Mailbox,
    /// The VF has no interrupt vector with this number.
    Unknown,
}

impl Vf {
    /// Handles the interrupt message of an MSI-X vector.
    pub fn handle_interrupt<H: DmaHal>(&mut self, hal: &mut H, vector: u16) -> VfInterruptCause {
        match vector {
            TRANSMIT_VECTOR => {
                let freed = self.tx.clean(hal);
                self.unmask(hal, TRANSMIT_VECTOR);
                VfInterruptCause::Transmitted(freed)
            }
            RECEIVE_VECTOR => VfInterruptCause::Received,
            MAILBOX_VECTOR => {
                self.link.look_again();
                self.unmask(hal, MAILBOX_VECTOR);
                VfInterruptCause::Mailbox
            }
            _ => VfInterruptCause::Unknown,
        }
    }

    /// Posts free buffers and unmasks the receive vector. Call it when every received frame is taken.
    pub fn receive_done<H: DmaHal>(&mut self, hal: &mut H) {
        self.rx.refill(hal);
        self.moderate(hal);
        self.unmask(hal, RECEIVE_VECTOR);
    }

    /// Adjusts the interval between receive interrupts to the packet rate, if the policy requires it. The rate counts
    /// filled buffers, since buffers overflow; a long frame takes several.
    pub(super) fn moderate<H: Hal>(&mut self, hal: &mut H) {
        let RxCounters { buffers, bytes, .. } = self.rx.counters();
        if let Some(interval) = self.throttle.sample(hal.now(), ReceivedBufferTotals { buffers, bytes }) {
            hal.write(vf::VTEITR + 4 * u32::from(RECEIVE_VECTOR), register_value(interval));
        }
    }

    pub(super) fn start_interrupts<H: Hal>(&self, hal: &mut H) {
        let entry = |vector: u16| u32::from(ivar::VALID) | u32::from(vector);
        hal.write(vf::VTIVAR, entry(RECEIVE_VECTOR) | entry(TRANSMIT_VECTOR) << 8);
        hal.write(vf::VTIVAR_MISC, entry(MAILBOX_VECTOR));
        let receive = self.throttle.interval_us();
        let transmit = self.transmit_interval_us.unwrap_or(receive);
        for (vector, interval) in [(TRANSMIT_VECTOR, transmit), (RECEIVE_VECTOR, receive)] {
            hal.write(vf::VTEITR + 4 * u32::from(vector), register_value(interval));
        }
        // Causes from before the reset would interrupt at once.
        hal.read(vf::VTEICR);
        hal.write(vf::VTEIAC, ALL_VECTORS);
        hal.write(vf::VTEIAM, ALL_VECTORS);
        hal.write(vf::VTEIMS, ALL_VECTORS);
    }

    pub(super) fn stop_interrupts<H: Hal>(&self, hal: &mut H) {
        hal.write(vf::VTEIMC, ALL_VECTORS);
        hal.write(vf::VTEIAC, 0);
    }

    fn unmask<H: Hal>(&self, hal: &mut H, vector: u16) {
        if self.running {
            hal.write(vf::VTEIMS, 1 << vector);
        }
    }
}
