//! A ring of the admin queues as its five registers: base, length, head, tail. Only a write of the tail hands descriptors to
//! the card: a driver that sets the ring up writes the other registers while the tail is still an old one. Left out: what is
//! in it.

use avf::admin::SIZE;
use avf::bits::{AQ_INDEX, aqlen};
use avf::table::Field;
use serde::{Deserialize, Serialize};

/// The registers of a ring.
#[derive(Debug, Clone, Copy, Default, Serialize, Deserialize)]
pub(crate) struct Ring {
    low: u32,
    high: u32,
    pub(crate) length: u32,
    pub(crate) head: u32,
    pub(crate) tail: u32,
}

impl Ring {
    pub(crate) fn get(&self, field: Field) -> u32 {
        match field {
            Field::BaseLow => self.low,
            Field::BaseHigh => self.high,
            Field::Length => self.length,
            Field::Head => self.head,
            Field::Tail => self.tail,
        }
    }

    /// Writes a register as software does. Moving the head or enabling the ring empties it until the tail is written. A
    /// write of the length of an enabled ring changes error bits only.
    pub(crate) fn set(&mut self, field: Field, value: u32) {
        match field {
            Field::BaseLow => self.low = value,
            Field::BaseHigh => self.high = value,
            Field::Length if self.is_on() && value & aqlen::ENABLE != 0 => {
                self.length = self.length & !aqlen::ERRORS | value & aqlen::ERRORS;
            }
            Field::Length => {
                self.length = value & (aqlen::ENABLE | aqlen::ERRORS | aqlen::LENGTH);
                self.empty();
            }
            Field::Head => {
                self.head = value & AQ_INDEX;
                self.empty();
            }
            Field::Tail => self.tail = value & AQ_INDEX,
        }
    }

    pub(crate) fn is_on(&self) -> bool {
        self.length & aqlen::ENABLE != 0
    }

    fn empty(&mut self) {
        self.tail = self.head;
    }

    /// Descriptors.
    fn slots(&self) -> u32 {
        self.length & aqlen::LENGTH
    }

    /// Where the descriptor at the head is, if there is one between head and tail. Indices beyond the ring are none.
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

    /// Whether the registers hold what can be written into them.
    pub(crate) fn is_sound(&self) -> bool {
        self.length & !(aqlen::ENABLE | aqlen::ERRORS | aqlen::LENGTH) == 0
            && (self.head | self.tail) & !AQ_INDEX == 0
    }

    /// The descriptor at the head is served.
    pub(crate) fn advance(&mut self) {
        self.head = (self.head + 1) % self.slots().max(1);
    }

    /// Memory could not be reached: nothing more is served until the ring is set up anew.
    pub(crate) fn fail(&mut self) {
        self.length |= aqlen::CRIT;
    }
}
