//! What a VF is told: by interrupts, by messages of the PF, by its mailbox that was switched off. Left out: the timer of an
//! owner who looks again and again, and moderation that adapts.

use super::Vf;
use super::mailbox::{self, Message};
use crate::hal::DmaHal;
use crate::ring::receive::RxRing;
use crate::vf::Event;
use ::avf::bits::dyn_ctl;
use ::avf::register as r;
use ::avf::virtchnl::reply::decode;
use ::avf::virtchnl::{self, Op};

/// An interval's unit, microseconds.
const ITR_US: u16 = 2;
/// The vector of the mailbox; queues have the others.
const MAILBOX_VECTOR: u16 = 0;

/// What a look at the link found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Link {
    /// Frames can move, at so many Mb/s.
    Up(u32),
    /// They cannot, for now.
    Down,
    /// The PF has reset the VF, or is about to: [`Vf::restart`].
    ResetNeeded,
}

impl Vf {
    /// Looks for what the PF says of its own accord. Answers the link's speed, Mb/s.
    pub fn look<H: DmaHal>(&mut self, hal: &mut H) -> Option<u32> {
        while let Some(message) = self.mailbox.receive(hal) {
            self.note(&message);
        }
        self.link
    }

    /// Whether frames can move, and whether the VF was reset, of which an owner need not have heard: to be asked every two
    /// seconds, as iavf does, and after an interrupt of the mailbox.
    pub fn check_link<H: DmaHal>(&mut self, hal: &mut H) -> Link {
        let link = self.look(hal);
        match link {
            _ if !self.running => Link::Down,
            _ if self.reset_impending || self.was_reset(hal) => Link::ResetNeeded,
            Some(mbps) => Link::Up(mbps),
            None => Link::Down,
        }
    }

    /// The same, and in case an interrupt was lost, has every queue's vector interrupt by software, as Linux does.
    pub fn watchdog<H: DmaHal>(&mut self, hal: &mut H) -> Link {
        let check = self.check_link(hal);
        if matches!(check, Link::Up(_)) {
            let trigger = dyn_ctl::INTENA | dyn_ctl::SWINT_TRIG | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT;
            (1..self.vectors() as u8).for_each(|vector| hal.write(r::dyn_ctl(vector), trigger));
        }
        check
    }

    /// Whether the PF has said that it is about to reset the VF.
    #[must_use]
    pub fn is_reset_impending(&self) -> bool {
        self.reset_impending
    }

    /// Whether queues were started, and not stopped.
    #[must_use]
    pub fn is_running(&self) -> bool {
        self.running
    }

    /// Whether the function was reset: its mailbox is off.
    pub fn was_reset<H: DmaHal>(&self, hal: &mut H) -> bool {
        !mailbox::is_on(hal)
    }

    /// What the PF says of its own accord.
    pub(super) fn note(&mut self, message: &Message) {
        match decode(&message.body).filter(|_| message.operation == Op::Event.number()) {
            Some(virtchnl::Event::Link { speed, up }) => self.link = up.then_some(speed),
            Some(virtchnl::Event::ResetImpending) => self.reset_impending = true,
            _ => {}
        }
    }

    /// Vectors in use: the mailbox's, and one of each queue pair.
    #[must_use]
    pub fn vectors(&self) -> u16 {
        self.pairs() + 1
    }

    /// Lets a vector interrupt again.
    pub fn enable_interrupt<H: DmaHal>(&self, hal: &mut H, vector: u8) {
        hal.write(r::dyn_ctl(vector), dyn_ctl::INTENA | dyn_ctl::ITR_NONE << dyn_ctl::ITR_SHIFT);
    }

    pub(super) fn start_interrupts<H: DmaHal>(&mut self, hal: &mut H) {
        let interval = u32::from(self.wishes.interval_us / ITR_US) & dyn_ctl::INTERVAL;
        self.heard = 0;
        for vector in 0..self.vectors() as u8 {
            if u16::from(vector) != MAILBOX_VECTOR && interval != 0 {
                (0..2).for_each(|itr| hal.write(r::itr(itr, vector), interval));
            }
            self.enable_interrupt(hal, vector);
        }
    }

    /// To be called when a vector's message arrives.
    pub fn handle_interrupt<H: DmaHal>(&mut self, hal: &mut H, vector: u16) -> Event {
        if vector >= self.vectors() {
            return Event::Unknown;
        }
        if vector != MAILBOX_VECTOR {
            self.heard |= 1 << vector;
            return Event::Received;
        }
        // Reading the causes clears them.
        hal.read(r::VFINT_ICR01);
        self.enable_interrupt(hal, vector as u8);
        Event::Mailbox
    }

    /// Every received frame was taken: buffers go back to the card, and the vectors that have interrupted may again.
    pub fn receive_done<H: DmaHal>(&mut self, hal: &mut H) {
        self.rx.iter_mut().for_each(|ring: &mut RxRing<_>| ring.refill(hal));
        for vector in (0..self.vectors() as u8).filter(|vector| self.heard >> vector & 1 == 1) {
            self.enable_interrupt(hal, vector);
        }
        self.heard = 0;
    }
}
