//! Legacy descriptors, which small drivers such as iPXE's use: transmit (DEXT clear), and the write-back of a
//! receive queue of descriptor type 0. A posted receive descriptor holds a packet address in either format. Status
//! bits of half-duplex links are omitted.

use super::tx::AdvancedDataDescriptor;
use super::{DD, SIZE, dword, from_qwords, qword};
use pcie::low::{low_byte, low_word};
use serde::{Deserialize, Serialize};

const EOP: u32 = 1 << 24;
const IFCS: u32 = 1 << 25;
const IC: u32 = 1 << 26;
const RS: u32 = 1 << 27;
const VLE: u32 = 1 << 30;

/// Checksum that a legacy descriptor inserts: the sum of all bytes from `start`, stored at `field`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Checksum")]
pub struct LegacyChecksumInsertion {
    /// Offset of the first byte that the legacy checksum sums (CSS).
    pub start: u8,
    /// Offset in the packet where the card stores the legacy checksum (CSO).
    pub field: u8,
}

/// Legacy transmit descriptor. Tag and checksum apply in the packet's first descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LegacyTxDescriptor {
    /// DMA address of the transmit buffer.
    pub address: u64,
    /// Bytes of the packet in the transmit buffer.
    pub length: u16,
    /// True if the descriptor has the last buffer of the packet.
    pub end_of_packet: bool,
    /// True to request a report: the card writes the descriptor back with DD.
    pub report_status: bool,
    /// Checksum that the card inserts into the packet, if any.
    pub checksum: Option<LegacyChecksumInsertion>,
    /// VLAN tag that the card inserts into the packet, if any.
    pub vlan_tag: Option<u16>,
}

impl LegacyTxDescriptor {
    /// Parses a legacy transmit descriptor (DEXT is clear).
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        let (command, status) = (dword(raw, 2), dword(raw, 3));
        let checksum =
            LegacyChecksumInsertion { start: low_byte(status >> 8), field: low_byte(command >> 16) };
        Self {
            address: qword(raw, 0),
            length: low_word(command),
            end_of_packet: command & EOP != 0,
            report_status: command & RS != 0,
            checksum: (command & IC != 0).then_some(checksum),
            vlan_tag: (command & VLE != 0).then_some(low_word(status >> 16)),
        }
    }

    /// Returns the legacy transmit descriptor as the driver writes it; the card always inserts the frame check
    /// sequence.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let LegacyChecksumInsertion { start, field } = self.checksum.unwrap_or_default();
        let command = u32::from(self.length)
            | u32::from(field) << 16
            | IFCS
            | flag(self.end_of_packet, EOP)
            | flag(self.report_status, RS)
            | flag(self.checksum.is_some(), IC)
            | flag(self.vlan_tag.is_some(), VLE);
        let status = u32::from(start) << 8 | u32::from(self.vlan_tag.unwrap_or(0)) << 16;
        from_qwords([self.address, u64::from(command) | u64::from(status) << 32])
    }

    /// Returns the advanced data descriptor with the same meaning as the legacy one.
    #[must_use]
    pub fn as_data(&self) -> AdvancedDataDescriptor {
        AdvancedDataDescriptor {
            address: self.address,
            length: self.length,
            end_of_packet: self.end_of_packet,
            report_status: self.report_status,
            insert_vlan: self.vlan_tag.is_some(),
            ..AdvancedDataDescriptor::default()
        }
    }
}

/// Legacy receive descriptor that the card has written back. Status and errors are those bits of
/// [`status`](super::rx::status) that fit the format.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct LegacyRxWriteBack {
    /// Address of the packet buffer, as the driver posted it.
    pub address: u64,
    /// Bytes of the packet in the receive buffer.
    pub length: u16,
    /// Packet checksum: the sum of the frame from RXCSUM.PCSS on.
    pub checksum: u16,
    /// Status (bits 7:0) and errors (bits 31:24) of the legacy receive descriptor. DD included.
    pub status: u32,
    /// VLAN tag that the card stripped, if [`VP`](super::rx::status::VP) is set.
    pub vlan_tag: u16,
}

impl LegacyRxWriteBack {
    /// Parses a legacy receive descriptor that was written back. Returns `None` until the card has completed it.
    #[must_use]
    pub fn parse(raw: &[u8; SIZE]) -> Option<Self> {
        let (sizes, rest) = (dword(raw, 2), dword(raw, 3));
        (rest & DD != 0).then_some(Self {
            address: qword(raw, 0),
            length: low_word(sizes),
            checksum: low_word(sizes >> 16),
            status: rest & 0xff | (rest & 0xff00) << 16,
            vlan_tag: low_word(rest >> 16),
        })
    }

    /// Returns the legacy receive descriptor as the card writes it, with DD set.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        let sizes = u32::from(self.length) | u32::from(self.checksum) << 16;
        let rest = self.status & 0xff | self.status >> 24 << 8 | u32::from(self.vlan_tag) << 16;
        from_qwords([self.address, u64::from(sizes) | u64::from(rest | DD) << 32])
    }
}

#[cfg(test)]
mod tests {
    use super::super::rx::status;
    use super::{DD, LegacyChecksumInsertion, LegacyRxWriteBack, LegacyTxDescriptor};
    use crate::descriptor::tx;

    #[test]
    fn legacy_transmit_descriptor_of_ipxe_is_parsed() {
        // 60 bytes at 0x1234_5000: EOP, IFCS, RS.
        let raw = (0x1234_5000u128 | 0x0b00_003cu128 << 64).to_le_bytes();
        let tx::AnyTxDescriptor::Legacy(descriptor) = tx::parse(&raw) else {
            panic!("not a legacy descriptor")
        };
        assert_eq!((descriptor.address, descriptor.length), (0x1234_5000, 60));
        assert!(descriptor.end_of_packet && descriptor.report_status);
        assert_eq!((descriptor.checksum, descriptor.vlan_tag), (None, None));
        assert_eq!(descriptor.emit(), raw);
    }

    #[test]
    fn legacy_checksum_and_tag_have_the_datasheets_positions() {
        let descriptor = LegacyTxDescriptor {
            checksum: Some(LegacyChecksumInsertion { start: 0x22, field: 0x32 }),
            vlan_tag: Some(0x6064),
            ..LegacyTxDescriptor::default()
        };
        let raw = u128::from_le_bytes(descriptor.emit());
        assert_eq!(raw >> 64, 0x6064_2200_4632_0000);
        assert_eq!(tx::parse(&descriptor.emit()), tx::AnyTxDescriptor::Legacy(descriptor));
    }

    #[test]
    fn legacy_write_back_keeps_the_address_and_error_bits() {
        let back = LegacyRxWriteBack {
            address: 0xffff_ffff_8000_0000,
            length: 60,
            checksum: 0xbeef,
            status: DD | status::EOP | status::VP | status::IPE | status::RXE,
            vlan_tag: 5,
        };
        let raw = u128::from_le_bytes(back.emit());
        assert_eq!(raw >> 64, 0x0005_c00b_beef_003c);
        assert_eq!(LegacyRxWriteBack::parse(&back.emit()), Some(back));
        assert_eq!(LegacyRxWriteBack::parse(&[0; 16]), None);
    }
}
