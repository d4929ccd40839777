//! Handles events of a VF: interrupts, messages of the PF, and resets, which are detected by the disabled mailbox.

use super::AvfDriver;
use super::mailbox::{self, MessageFromPf};
use crate::hal::DmaHal;
use crate::ring::receive::RxRing;
use crate::vf::VfInterruptCause;
use ::avf::bits::dyn_ctl;
use ::avf::register as r;
use ::avf::virtchnl::reply::decode;
use ::avf::virtchnl::{self, VirtchnlOpcode};

/// Microseconds per unit of an interrupt interval (ITR).
const ITR_US: u16 = 2;
/// Interrupt vector of the VF's mailbox. The higher vectors belong to queues.
const MAILBOX_VECTOR: u16 = 0;

/// Result of a check of the AVF's link by its driver.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AvfLinkStatus {
    /// The AVF's link is up, with its speed in Mb/s.
    Up(u32),
    /// The VF's link is down.
    Down,
    /// The PF has reset the VF, or announced it: call [`AvfDriver::restart`].
    ResetNeeded,
}

impl AvfDriver {
    /// Reads the PF's pending messages to the VF, and records their events. Returns the VF's link speed in Mb/s.
    pub fn look<H: DmaHal>(&mut self, hal: &mut H) -> Option<u32> {
        while let Some(message) = self.mailbox.receive(hal) {
            self.note(&message);
        }
        self.link
    }

    /// Returns the state of the link, and detects a reset without notice. Call it every two seconds, as iavf does,
    /// and after an interrupt of the mailbox.
    pub fn check_link<H: DmaHal>(&mut self, hal: &mut H) -> AvfLinkStatus {
        let link = self.look(hal);
        match link {
            _ if !self.running => AvfLinkStatus::Down,
            _ if self.reset_impending || self.was_reset(hal) => AvfLinkStatus::ResetNeeded,
            Some(mbps) => AvfLinkStatus::Up(mbps),
            None => AvfLinkStatus::Down,
        }
    }

    /// Checks the VF's link, and triggers every queue's vector by software in case an interrupt was lost, as Linux
    /// does.
    pub fn watchdog<H: DmaHal>(&mut self, hal: &mut H) -> AvfLinkStatus {
        let check = self.check_link(hal);
        if matches!(check, AvfLinkStatus::Up(_)) {
            let trigger = dyn_ctl::INTENA | dyn_ctl::SWINT_TRIG | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT;
            (1..self.vectors() as u8).for_each(|vector| hal.write(r::dyn_ctl(vector), trigger));
        }
        check
    }

    /// Returns true if the PF has announced a reset of the VF.
    #[must_use]
    pub fn is_reset_impending(&self) -> bool {
        self.reset_impending
    }

    /// Returns true if the VF's queues were started, and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Returns true if the VF was reset: a reset disables the mailbox.
    pub fn was_reset<H: DmaHal>(&self, hal: &mut H) -> bool {
        !mailbox::is_on(hal)
    }

    /// Records an event that a message of the PF reports: a change of the link, or an announced reset.
    pub(super) fn note(&mut self, message: &MessageFromPf) {
        match decode(&message.body).filter(|_| message.operation == VirtchnlOpcode::Event.number()) {
            Some(virtchnl::VirtchnlEvent::Link { speed, up }) => self.link = up.then_some(speed),
            Some(virtchnl::VirtchnlEvent::ResetImpending) => self.reset_impending = true,
            _ => {}
        }
    }

    /// Returns the number of vectors in use: one for the mailbox, and one per queue pair.
    #[must_use]
    pub fn vectors(&self) -> u16 {
        self.pairs() + 1
    }

    /// Unmasks an interrupt vector of the VF.
    pub fn enable_interrupt<H: DmaHal>(&self, hal: &mut H, vector: u8) {
        hal.write(r::dyn_ctl(vector), dyn_ctl::INTENA | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT);
    }

    pub(super) fn start_interrupts<H: DmaHal>(&mut self, hal: &mut H) {
        let interval = u32::from(self.wishes.interval_us / ITR_US) & dyn_ctl::INTERVAL;
        self.masked = 0;
        for vector in 0..self.vectors() as u8 {
            if u16::from(vector) != MAILBOX_VECTOR && interval != 0 {
                (0..2).for_each(|itr| hal.write(r::itr(itr, vector), interval));
            }
            self.enable_interrupt(hal, vector);
        }
    }

    /// Handles the interrupt message of an MSI-X vector.
    pub fn handle_interrupt<H: DmaHal>(&mut self, hal: &mut H, vector: u16) -> VfInterruptCause {
        if vector >= self.vectors() {
            return VfInterruptCause::Unknown;
        }
        if vector != MAILBOX_VECTOR {
            self.masked |= 1 << vector;
            return VfInterruptCause::Received;
        }
        // Reading the causes clears them.
        hal.read(r::VFINT_ICR01);
        self.enable_interrupt(hal, vector as u8);
        VfInterruptCause::Mailbox
    }

    /// Posts free buffers and unmasks the vectors that have interrupted. Call it when every received frame is
    /// taken.
    pub fn receive_done<H: DmaHal>(&mut self, hal: &mut H) {
        self.rx.iter_mut().for_each(|ring: &mut RxRing<_>| ring.refill(hal));
        for vector in (0..self.vectors() as u8).filter(|vector| self.masked >> vector & 1 == 1) {
            self.enable_interrupt(hal, vector);
        }
        self.masked = 0;
    }
}
