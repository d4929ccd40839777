//! Legacy descriptors, which old and small drivers use (iPXE does): transmit (DEXT clear), and what the card
//! writes back to a receive queue of descriptor type 0. A posted receive descriptor is a packet address in
//! either format. Left out: the status bits that only half-duplex links know.

use super::tx::Data;
use super::{DD, SIZE, dword, from_dwords, qword};
use serde::{Deserialize, Serialize};

const EOP: u32 = 1 << 24;
const IFCS: u32 = 1 << 25;
const IC: u32 = 1 << 26;
const RS: u32 = 1 << 27;
const VLE: u32 = 1 << 30;

/// A checksum to insert: the sum of everything from one byte on, put where another says.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct Checksum {
    /// First byte that is summed (CSS).
    pub start: u8,
    /// Where the sum goes (CSO).
    pub field: u8,
}

/// A transmit descriptor. Tag and checksum count in the packet's first descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Transmit {
    /// Where the buffer is.
    pub address: u64,
    /// Bytes of the buffer.
    pub length: u16,
    /// Last buffer of the packet.
    pub end_of_packet: bool,
    /// Tell when it is done: write DD back.
    pub report_status: bool,
    /// The checksum to insert, if any.
    pub checksum: Option<Checksum>,
    /// The VLAN tag to insert, if any.
    pub vlan_tag: Option<u16>,
}

impl Transmit {
    /// Reads a descriptor whose DEXT is clear.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        let (command, status) = (dword(raw, 2), dword(raw, 3));
        let checksum = Checksum { start: (status >> 8) as u8, field: (command >> 16) as u8 };
        Self {
            address: qword(raw, 0),
            length: command as u16,
            end_of_packet: command & EOP != 0,
            report_status: command & RS != 0,
            checksum: (command & IC != 0).then_some(checksum),
            vlan_tag: (command & VLE != 0).then_some((status >> 16) as u16),
        }
    }

    /// The descriptor as the driver writes it; the frame check sequence is always the card's to insert.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let Checksum { start, field } = self.checksum.unwrap_or_default();
        let command = u32::from(self.length)
            | u32::from(field) << 16
            | IFCS
            | flag(self.end_of_packet, EOP)
            | flag(self.report_status, RS)
            | flag(self.checksum.is_some(), IC)
            | flag(self.vlan_tag.is_some(), VLE);
        let status = u32::from(start) << 8 | u32::from(self.vlan_tag.unwrap_or(0)) << 16;
        from_dwords([self.address as u32, (self.address >> 32) as u32, command, status])
    }

    /// What an advanced data descriptor would say of the same buffer.
    #[must_use]
    pub fn as_data(&self) -> Data {
        Data {
            address: self.address,
            length: self.length,
            end_of_packet: self.end_of_packet,
            report_status: self.report_status,
            insert_vlan: self.vlan_tag.is_some(),
            ..Data::default()
        }
    }
}

/// What the card writes back to a receive descriptor. Status and errors are those of
/// [`status`](super::rx::status), as far as the format has room for them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct WriteBack {
    /// The packet buffer, as it was posted.
    pub address: u64,
    /// Bytes in the buffer.
    pub length: u16,
    /// The packet checksum: the sum of the frame from RXCSUM.PCSS on.
    pub checksum: u16,
    /// Status (bits 7:0) and errors (bits 31:24). DD included.
    pub status: u32,
    /// The stripped VLAN tag, if [`VP`](super::rx::status::VP).
    pub vlan_tag: u16,
}

impl WriteBack {
    /// Reads a written-back descriptor; `None` while the card has not given it back.
    #[must_use]
    pub fn parse(raw: &[u8; SIZE]) -> Option<Self> {
        let (sizes, rest) = (dword(raw, 2), dword(raw, 3));
        (rest & DD != 0).then_some(Self {
            address: qword(raw, 0),
            length: sizes as u16,
            checksum: (sizes >> 16) as u16,
            status: rest & 0xff | (rest & 0xff00) << 16,
            vlan_tag: (rest >> 16) as u16,
        })
    }

    /// The descriptor as the card writes it, DD set.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let sizes = u32::from(self.length) | u32::from(self.checksum) << 16;
        let rest = self.status & 0xff | self.status >> 24 << 8 | u32::from(self.vlan_tag) << 16;
        from_dwords([self.address as u32, (self.address >> 32) as u32, sizes, rest | DD])
    }
}

#[cfg(test)]
mod tests {
    use super::super::rx::status;
    use super::{Checksum, DD, Transmit, WriteBack};
    use crate::descriptor::tx;

    #[test]
    fn a_transmit_descriptor_as_ipxe_writes_it() {
        // 60 bytes at 0x1234_5000: EOP, IFCS, RS.
        let raw = (0x1234_5000u128 | 0x0b00_003cu128 << 64).to_le_bytes();
        let tx::Transmit::Legacy(descriptor) = tx::parse(&raw) else { panic!("not a legacy descriptor") };
        assert_eq!((descriptor.address, descriptor.length), (0x1234_5000, 60));
        assert!(descriptor.end_of_packet && descriptor.report_status);
        assert_eq!((descriptor.checksum, descriptor.vlan_tag), (None, None));
        assert_eq!(descriptor.emit(), raw);
    }

    #[test]
    fn checksum_and_tag_are_where_the_datasheet_has_them() {
        let descriptor = Transmit {
            checksum: Some(Checksum { start: 0x22, field: 0x32 }),
            vlan_tag: Some(0x6064),
            ..Transmit::default()
        };
        let raw = u128::from_le_bytes(descriptor.emit());
        assert_eq!(raw >> 64, 0x6064_2200_4632_0000);
        assert_eq!(tx::parse(&descriptor.emit()), tx::Transmit::Legacy(descriptor));
    }

    #[test]
    fn a_written_back_descriptor_keeps_its_address_and_folds_the_errors() {
        let back = WriteBack {
            address: 0xffff_ffff_8000_0000,
            length: 60,
            checksum: 0xbeef,
            status: DD | status::EOP | status::VP | status::IPE | status::RXE,
            vlan_tag: 5,
        };
        let raw = u128::from_le_bytes(back.emit());
        assert_eq!(raw >> 64, 0x0005_c00b_beef_003c);
        assert_eq!(WriteBack::parse(&back.emit()), Some(back));
        assert_eq!(WriteBack::parse(&[0; 16]), None);
    }
}
