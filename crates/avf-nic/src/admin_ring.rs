//! Five registers of an admin queue's ring: base (two), length, head, tail. Only a write of the tail hands descriptors
//! to the card: Linux writes LEN with ENABLE before the base, while the tail is still an old one.

use avf::admin::SIZE;
use avf::bits::{AQ_INDEX, aqlen};
use avf::table::MailboxRegister;
use serde::{Deserialize, Serialize};

/// Registers of the ring of an admin queue: base address, length, head and tail.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
#[serde(rename = "Ring")]
pub(crate) struct AdminRing {
    low: u32,
    high: u32,
    pub(crate) length: u32,
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl AdminRing {
    pub(crate) fn get(&self, field: MailboxRegister) -> u32 {
        match field {
            MailboxRegister::BaseLow => self.low,
            MailboxRegister::BaseHigh => self.high,
            MailboxRegister::Length => self.length,
            MailboxRegister::Head => self.head,
            MailboxRegister::Tail => self.tail,
        }
    }

    /// Writes a register for software. A write of the head, or one that enables the ring, leaves the ring empty until
    /// the tail is written. A write of the length of an enabled ring only changes the error bits, which drivers clear
    /// like this: it sets up no ring.
    pub(crate) fn set(&mut self, field: MailboxRegister, value: u32) {
        match field {
            MailboxRegister::BaseLow => self.low = value,
            MailboxRegister::BaseHigh => self.high = value,
            MailboxRegister::Length if self.is_on() && value & aqlen::ENABLE != 0 => {
                self.length = self.length & !aqlen::ERRORS | value & aqlen::ERRORS;
            }
            MailboxRegister::Length => {
                self.length = value & (aqlen::ENABLE | aqlen::ERRORS | aqlen::LENGTH);
                self.empty();
            }
            MailboxRegister::Head => {
                self.head = value & AQ_INDEX;
                self.empty();
            }
            MailboxRegister::Tail => self.tail = value & AQ_INDEX,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.length & aqlen::ENABLE != 0
    }

    fn empty(&mut self) {
        self.tail = self.head;
    }

    /// Returns the length of the admin queue's ring in descriptors.
    fn slots(&self) -> u32 {
        self.length & aqlen::LENGTH
    }

    /// Returns the bus address of the descriptor at the head. Returns `None` if the ring is empty or failed, or the
    /// head or tail is beyond its end.
    pub(crate) fn next(&self) -> Option<u64> {
        let slots = self.slots();
        let ready = self.is_on()
            && self.length & aqlen::CRIT == 0
            && self.head != self.tail
            && self.head < slots
            && self.tail < slots;
        let base = u64::from(self.high) << 32 | u64::from(self.low);
        ready.then(|| base.wrapping_add(u64::from(self.head) * SIZE as u64))
    }

    /// Returns `true` if every register of the ring has a value that software can write.
    pub(crate) fn is_sound(&self) -> bool {
        self.length & !(aqlen::ENABLE | aqlen::ERRORS | aqlen::LENGTH) == 0
            && (self.head | self.tail) & !AQ_INDEX == 0
    }

    /// Moves the head of the admin queue's ring past a completed descriptor.
    pub(crate) fn advance(&mut self) {
        self.head = (self.head + 1) % self.slots().max(1);
    }

    /// Stops the admin queue's ring after a memory fault (LEN.CRIT), until the driver sets the ring up again.
    pub(crate) fn fail(&mut self) {
        self.length |= aqlen::CRIT;
    }
}
