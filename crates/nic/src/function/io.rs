//! The PF's I/O BAR: IOADDR selects a register of BAR0, and IODATA accesses it (82576 datasheet, "I/O-mapped access to
//! internal registers and memories"). Firmware that cannot reach memory space uses it. This card has no flash behind it.

use crate::Nic;
use i82576::{Time, ids};
use pcie::Function;

/// Offset in the I/O BAR of the register's address.
const IOADDR: u64 = 0;
/// Offset in the I/O BAR of the register's value.
const IODATA: u64 = 4;

impl Nic {
    /// Reads the I/O BAR. Accesses other than whole dwords read all ones.
    pub fn io_read(&mut self, offset: u64, into: &mut [u8], now: Time) {
        into.fill(0xff);
        let Ok(dword) = <&mut [u8; 4]>::try_from(into) else { return };
        *dword = match offset {
            IOADDR => self.state.io_address.to_le_bytes(),
            IODATA => match self.io_register() {
                Some(register) => self.read(Function::Pf, register, now).to_le_bytes(),
                None => return,
            },
            _ => return,
        };
    }

    /// Writes the I/O BAR. Accesses other than whole dwords are ignored.
    pub fn io_write(&mut self, offset: u64, from: &[u8], now: Time) {
        let Ok(dword) = from.try_into().map(u32::from_le_bytes) else { return };
        match offset {
            IOADDR => self.state.io_address = dword,
            IODATA => {
                if let Some(register) = self.io_register() {
                    self.write(Function::Pf, register, dword, now);
                }
            }
            _ => {}
        }
    }

    /// Returns the BAR0 offset of the register that IOADDR selects, or `None` for an unaligned address or one beyond
    /// BAR0.
    fn io_register(&self) -> Option<u32> {
        (self.state.io_address.is_multiple_of(4) && (self.state.io_address as usize) < ids::PF_BAR0_SIZE)
            .then_some(self.state.io_address)
    }
}

#[cfg(test)]
mod tests {
    use crate::{Nic, NicConfig};
    use i82576::{MacAddress, Time, register as r};
    use pcie::Function;

    #[test]
    fn io_bar_iodata_accesses_the_register_named_by_ioaddr() {
        let mut nic = Nic::new(NicConfig { mac: MacAddress([2, 0, 0, 0, 0, 1]), iov: true, loopback: None });
        nic.io_write(0, &r::VET.to_le_bytes(), Time::ZERO);
        nic.io_write(4, &0x88a8_8100u32.to_le_bytes(), Time::ZERO);
        assert_eq!(nic.read(Function::Pf, r::VET, Time::ZERO), 0x88a8_8100);
        let mut word = [0; 4];
        nic.io_read(0, &mut word, Time::ZERO);
        assert_eq!(u32::from_le_bytes(word), r::VET);
        nic.io_read(4, &mut word, Time::ZERO);
        assert_eq!(u32::from_le_bytes(word), 0x88a8_8100);
    }

    #[test]
    fn invalid_io_bar_access_reads_ones_and_ignores_writes() {
        let mut nic = Nic::new(NicConfig { mac: MacAddress([2, 0, 0, 0, 0, 1]), iov: true, loopback: None });
        for address in [0x2_0000, 0x8_0000, 2, u32::MAX] {
            nic.io_write(0, &u32::to_le_bytes(address), Time::ZERO);
            nic.io_write(4, &[0; 4], Time::ZERO);
            let mut word = [0; 4];
            nic.io_read(4, &mut word, Time::ZERO);
            assert_eq!(word, [0xff; 4], "{address:#x}");
        }
        let mut short = [0; 2];
        nic.io_read(0, &mut short, Time::ZERO);
        assert_eq!(short, [0xff; 2]);
    }
}
