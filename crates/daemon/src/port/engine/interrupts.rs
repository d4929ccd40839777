//! Interrupts to the guest of a function that the port sends, beside those of the running card.

use super::PortEngine;
use pcie::Function;

impl PortEngine {
    /// Signals the eventfd of a function's interrupt vector, if it has one, at the client's request.
    pub(in crate::port) fn signal(&mut self, function: Function, index: u32, vector: u32) {
        self.bus.signal(function, index, vector);
    }

    /// Signals every eventfd of a function, whether or not the card has an interrupt pending.
    pub(in crate::port) fn signal_all(&mut self, function: Function) {
        self.bus.signal_all(function);
    }

    /// Sends the interrupts that a function's MSI-X vectors have missed for want of an eventfd, once each.
    pub(in crate::port) fn send_missed(&mut self, function: Function) {
        self.bus.send_missed(function);
    }

    /// Masks or unmasks the interrupt pin of a function.
    pub(in crate::port) fn mask_pin(&mut self, function: Function, masked: bool) {
        self.bus.mask_pin(function, masked);
    }
}
