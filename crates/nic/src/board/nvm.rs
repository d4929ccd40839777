//! The NVM behind EERD and EEWR. Words are read and written at once, and writes last as long as the card. The chip's
//! serial protocol is not implemented: EECD grants a request and moves no bits.

use alloc::boxed::Box;
use i82576::bits::eerw;
use i82576::{MacAddress, nvm};
use serde::{Deserialize, Serialize};

/// Value of an erased NVM word, which reads beyond the last word return.
const ERASED: u16 = 0xffff;

/// Contents of the NVM, word by word.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(into = "NvmRows", from = "NvmRows")]
pub(crate) struct Nvm {
    words: Box<[u16; nvm::WORDS]>,
}

/// Saved form of the NVM's words, in rows of 32: the largest array that serde supports.
type NvmRows = [[u16; 32]; nvm::WORDS / 32];

impl From<Nvm> for NvmRows {
    fn from(nvm: Nvm) -> Self {
        let mut rows = [[0; 32]; nvm::WORDS / 32];
        rows.as_flattened_mut().copy_from_slice(&nvm.words[..]);
        rows
    }
}

impl From<NvmRows> for Nvm {
    fn from(rows: NvmRows) -> Self {
        let mut words = Box::new([0; nvm::WORDS]);
        words.copy_from_slice(rows.as_flattened());
        Self { words }
    }
}

impl Nvm {
    /// Creates the NVM with the factory's image for a port with the address `mac`, and I/O virtualization if `iov`.
    pub(crate) fn new(mac: MacAddress, iov: bool) -> Self {
        Self { words: Box::new(nvm::image(mac, iov)) }
    }

    /// Returns the port's MAC address in the NVM, which drivers may have changed.
    pub(crate) fn mac(&self) -> MacAddress {
        nvm::mac(&self.words)
    }

    /// Carries out a write of `value` to EERD: reads the NVM word that `value` selects. Returns the new value of EERD.
    pub(crate) fn read(&self, value: u32) -> u32 {
        let address = value & eerw::ADDRESS_MASK;
        if value & eerw::START == 0 {
            return address;
        }
        let word = self.words.get(at(value)).copied().unwrap_or(ERASED);
        address | eerw::DONE | u32::from(word) << eerw::DATA_SHIFT
    }

    /// Carries out a write of `value` to EEWR: writes the NVM word that `value` selects. Returns the new value of EEWR.
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
