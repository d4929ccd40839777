//! The NVM behind EERD and EEWR: a word is read or written at once. What was written stays until the card
//! goes. Left out: the chip's serial protocol; EECD grants its request and moves no bits.

use alloc::boxed::Box;
use i82576::bits::eerw;
use i82576::{MacAddress, nvm};
use serde::{Deserialize, Serialize};

/// What a word reads as beyond the last.
const NOTHING: u16 = 0xffff;

/// The words.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "Rows", from = "Rows")]
pub(crate) struct Nvm {
    words: Box<[u16; nvm::WORDS]>,
}

/// The words as they are saved: rows of as many as an array can have.
type Rows = [[u16; 32]; nvm::WORDS / 32];

impl From<Nvm> for Rows {
    fn from(nvm: Nvm) -> Self {
        let mut rows = [[0; 32]; nvm::WORDS / 32];
        rows.as_flattened_mut().copy_from_slice(&nvm.words[..]);
        rows
    }
}

impl From<Rows> for Nvm {
    fn from(rows: Rows) -> Self {
        let mut words = Box::new([0; nvm::WORDS]);
        words.copy_from_slice(rows.as_flattened());
        Self { words }
    }
}

impl Nvm {
    /// As the factory made it.
    pub(crate) fn new(mac: MacAddress, iov: bool) -> Self {
        Self { words: Box::new(nvm::image(mac, iov)) }
    }

    /// The port's address as the words have it now.
    pub(crate) fn mac(&self) -> MacAddress {
        nvm::mac(&self.words)
    }

    /// EERD after `value` was written to it.
    pub(crate) fn read(&self, value: u32) -> u32 {
        let address = value & eerw::ADDRESS_MASK;
        if value & eerw::START == 0 {
            return address;
        }
        let word = self.words.get(at(value)).copied().unwrap_or(NOTHING);
        address | eerw::DONE | u32::from(word) << eerw::DATA_SHIFT
    }

    /// EEWR after `value` was written to it.
    pub(crate) fn write(&mut self, value: u32) -> u32 {
        if value & eerw::START == 0 {
            return value & !eerw::DONE;
        }
        if let Some(word) = self.words.get_mut(at(value)) {
            *word = (value >> eerw::DATA_SHIFT) as u16;
        }
        value & !eerw::START | eerw::DONE
    }
}

fn at(value: u32) -> usize {
    ((value & eerw::ADDRESS_MASK) >> eerw::ADDRESS_SHIFT) as usize
}
