//! Advanced transmit descriptors: data descriptors with a buffer, and context descriptors with the offload
//! parameters of packets that refer to them. `legacy` has the legacy format. LinkSec, IPsec and launch time are not
//! supported.

use super::{DD, SIZE, dword, from_dwords, from_qwords, legacy, qword};
use pcie::low::{low_byte, low_dword, low_word};
use serde::{Deserialize, Serialize};

/// Parsed transmit descriptor of any type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AnyTxDescriptor {
    /// The transmit descriptor names a buffer of a packet.
    Data(AdvancedDataDescriptor),
    /// The transmit descriptor has offload parameters of later packets.
    Context(AdvancedContextDescriptor),
    /// The transmit descriptor names a buffer of a packet, in the legacy format.
    Legacy(legacy::LegacyTxDescriptor),
    /// The transmit descriptor is of a reserved type.
    Other,
}

/// Fields that both formats of data descriptors have in common.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TxBufferFields {
    /// Address of the packet's buffer.
    pub address: u64,
    /// Bytes of the packet in the buffer.
    pub length: u16,
    /// True if the descriptor has the last buffer of the packet.
    pub end_of_packet: bool,
    /// True to request a report: the card writes the descriptor back with DD.
    pub report_status: bool,
}

/// Descriptor type (DTYP) of a context descriptor.
const DTYP_CONTEXT: u32 = 2;
/// Descriptor type (DTYP) of a data descriptor.
pub(super) const DTYP_DATA: u32 = 3;
pub(super) const DTYP_SHIFT: u32 = 20;
pub(super) const DEXT: u32 = 1 << 29;

pub(super) const TSTAMP: u32 = 1 << 19;
pub(super) const EOP: u32 = 1 << 24;
const IFCS: u32 = 1 << 25;
pub(super) const RS: u32 = 1 << 27;
/// Bit of the second word of a data descriptor that requests a report.
pub const REPORT: u64 = RS as u64;
pub(super) const VLE: u32 = 1 << 30;
pub(super) const TSE: u32 = 1 << 31;

const CC: u32 = 1 << 7;
pub(super) const IXSM: u32 = 1 << 8;
pub(super) const TXSM: u32 = 1 << 9;
pub(super) const IDX_SHIFT: u32 = 4;
const PAYLEN_SHIFT: u32 = 14;

/// Advanced transmit data descriptor: a buffer of a packet, and the packet's offloads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "[u8; SIZE]", from = "[u8; SIZE]")]
#[serde(rename = "Data")]
pub struct AdvancedDataDescriptor {
    /// Address of the packet's buffer.
    pub address: u64,
    /// Bytes of the packet in the buffer.
    pub length: u16,
    /// True if the descriptor has the last buffer of the packet.
    pub end_of_packet: bool,
    /// True to request a report: the card writes the descriptor back with DD.
    pub report_status: bool,
    /// True to insert the context's VLAN tag. Applies in the packet's first descriptor.
    pub insert_vlan: bool,
    /// True if the card segments the packet's payload. Applies in the packet's first descriptor.
    pub segment: bool,
    /// True if the card must time-stamp the packet. Applies in the packet's first descriptor.
    pub time_stamp: bool,
    /// True to insert the IPv4 header checksum into the packet.
    pub insert_ip_checksum: bool,
    /// True to insert the TCP, UDP or SCTP checksum into the packet.
    pub insert_l4_checksum: bool,
    /// Index of the queue's offload context that the descriptor names, 0 or 1.
    pub context: u8,
    /// True to check the packet against its offload context.
    pub check_context: bool,
    /// Bytes of the packet; of its payload without headers, when it is to be segmented.
    pub payload_length: u32,
}

/// Transport protocol of the packets that use a context.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum L4PacketType {
    /// Transport protocol of the context: UDP, or "generic" in Linux.
    #[default]
    Udp,
    /// Transport protocol of the context: TCP.
    Tcp,
    /// Transport protocol of the context: SCTP.
    Sctp,
    /// Transport protocol of the context: the reserved value.
    Reserved,
}

/// Context descriptor: offload parameters of later packets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(into = "[u8; SIZE]", from = "[u8; SIZE]")]
#[serde(rename = "Context")]
pub struct AdvancedContextDescriptor {
    /// Number of bytes before the packet's IP header (0..=127).
    pub mac_length: u8,
    /// Number of bytes of the packet's IP header, options and extensions included (0..=511).
    pub ip_length: u16,
    /// Number of bytes of the packet's transport header.
    pub l4_length: u8,
    /// VLAN tag to insert into the packet: priority, DEI, id.
    pub vlan_tag: u16,
    /// True if the packet's IP header is version 4.
    pub ipv4: bool,
    /// Transport protocol of the packets that the context describes.
    pub l4: L4PacketType,
    /// Payload bytes of each segment into which the card divides a packet.
    pub mss: u16,
    /// Index of the queue's offload context that this descriptor sets.
    pub index: u8,
}

/// Returns the buffer of a descriptor, or `None` for a context or a reserved type.
#[must_use]
#[inline]
pub fn buffer(raw: &[u8; SIZE]) -> Option<TxBufferFields> {
    let command = dword(raw, 2);
    let data = command & DEXT == 0 || (command >> DTYP_SHIFT) & 0xf == DTYP_DATA;
    data.then(|| TxBufferFields {
        address: qword(raw, 0),
        length: low_word(command),
        end_of_packet: command & EOP != 0,
        report_status: command & RS != 0,
    })
}

/// Returns the bytes of a packet that is one descriptor without offloads, given the descriptor's second word, or `None`
/// for every other packet. This takes one test, whereas [`buffer`] and
/// [`RawDataDescriptor`](super::orders::RawDataDescriptor) take several.
#[must_use]
#[inline(always)]
pub fn plain_length(second: u64) -> Option<u32> {
    const KIND: u32 = DEXT | DTYP_DATA << DTYP_SHIFT | EOP;
    const LOOKED_AT: u32 = KIND | 0xf << DTYP_SHIFT | VLE | TSE | TSTAMP;
    let plain = second & (u64::from(LOOKED_AT) | u64::from(IXSM | TXSM) << 32) == u64::from(KIND);
    plain.then_some(low_word(low_dword(second)).into())
}

/// Returns the bytes of a packet that is one descriptor with checksum requests at most, given the descriptor's second
/// word, or `None` for every other packet.
#[must_use]
#[inline(always)]
pub fn summed_length(second: u64) -> Option<u32> {
    plain_length(second & !(u64::from(IXSM | TXSM) << 32))
}

/// Returns the report bit of a data descriptor's command, or 0 if it is not set.
#[must_use]
#[inline(always)]
pub fn report_of(raw: &[u8; SIZE]) -> u32 {
    dword(raw, 2) & RS
}

/// Returns a data descriptor marked as done if `report` is its report bit, else unchanged.
#[must_use]
#[inline(always)]
pub fn reported(raw: [u8; SIZE], report: u32) -> [u8; SIZE] {
    (u128::from_le_bytes(raw) | u128::from(report / RS * DD) << 96).to_le_bytes()
}

/// Parses a transmit descriptor of any type.
#[must_use]
#[inline]
pub fn parse(raw: &[u8; SIZE]) -> AnyTxDescriptor {
    let command = dword(raw, 2);
    match ((command >> DTYP_SHIFT) & 0xf, command & DEXT != 0) {
        (DTYP_DATA, true) => AnyTxDescriptor::Data(AdvancedDataDescriptor::parse(raw)),
        (DTYP_CONTEXT, true) => AnyTxDescriptor::Context(AdvancedContextDescriptor::parse(raw)),
        (_, false) => AnyTxDescriptor::Legacy(legacy::LegacyTxDescriptor::parse(raw)),
        _ => AnyTxDescriptor::Other,
    }
}

/// Converts a descriptor to the driver's format, and back, for saved states. A saved state can therefore hold only
/// values that a driver could write.
macro_rules! as_written {
    ($descriptor:ident) => {
        impl From<$descriptor> for [u8; SIZE] {
            fn from(descriptor: $descriptor) -> [u8; SIZE] {
                descriptor.emit()
            }
        }

        impl From<[u8; SIZE]> for $descriptor {
            fn from(raw: [u8; SIZE]) -> $descriptor {
                $descriptor::parse(&raw)
            }
        }
    };
}

as_written!(AdvancedDataDescriptor);
as_written!(AdvancedContextDescriptor);

impl AdvancedDataDescriptor {
    #[inline]
    pub(super) fn parse(raw: &[u8; SIZE]) -> Self {
        let (command, status) = (dword(raw, 2), dword(raw, 3));
        Self {
            address: qword(raw, 0),
            length: low_word(command),
            end_of_packet: command & EOP != 0,
            report_status: command & RS != 0,
            insert_vlan: command & VLE != 0,
            segment: command & TSE != 0,
            time_stamp: command & TSTAMP != 0,
            insert_ip_checksum: status & IXSM != 0,
            insert_l4_checksum: status & TXSM != 0,
            context: low_byte((status >> IDX_SHIFT) & 7),
            check_context: status & CC != 0,
            payload_length: status >> PAYLEN_SHIFT,
        }
    }

    /// Returns the data descriptor as the driver writes it; the card always inserts the frame check sequence.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; SIZE] {
        let flag = |on: bool, bit: u32| if on { bit } else { 0 };
        let command = u32::from(self.length)
            | DTYP_DATA << DTYP_SHIFT
            | DEXT
            | IFCS
            | flag(self.end_of_packet, EOP)
            | flag(self.report_status, RS)
            | flag(self.insert_vlan, VLE)
            | flag(self.segment, TSE)
            | flag(self.time_stamp, TSTAMP);
        let status = flag(self.check_context, CC)
            | flag(self.insert_ip_checksum, IXSM)
            | flag(self.insert_l4_checksum, TXSM)
            | u32::from(self.context & 7) << IDX_SHIFT
            | self.payload_length << PAYLEN_SHIFT;
        from_qwords([self.address, u64::from(command) | u64::from(status) << 32])
    }
}

impl AdvancedContextDescriptor {
    #[inline]
    fn parse(raw: &[u8; SIZE]) -> Self {
        let (lengths, command, sizes) = (dword(raw, 0), dword(raw, 2), dword(raw, 3));
        Self {
            ip_length: low_word(lengths & 0x1ff),
            mac_length: low_byte((lengths >> 9) & 0x7f),
            vlan_tag: low_word(lengths >> 16),
            ipv4: command & (1 << 10) != 0,
            l4: match (command >> 11) & 3 {
                0 => L4PacketType::Udp,
                1 => L4PacketType::Tcp,
                2 => L4PacketType::Sctp,
                _ => L4PacketType::Reserved,
            },
            index: low_byte((sizes >> IDX_SHIFT) & 7),
            l4_length: low_byte(sizes >> 8),
            mss: low_word(sizes >> 16),
        }
    }

    /// Returns the context descriptor as the driver writes it.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; SIZE] {
        let lengths = u32::from(self.ip_length & 0x1ff)
            | u32::from(self.mac_length & 0x7f) << 9
            | u32::from(self.vlan_tag) << 16;
        let l4 = match self.l4 {
            L4PacketType::Udp => 0,
            L4PacketType::Tcp => 1,
            L4PacketType::Sctp => 2,
            L4PacketType::Reserved => 3,
        };
        let command = DTYP_CONTEXT << DTYP_SHIFT | DEXT | u32::from(self.ipv4) << 10 | l4 << 11;
        let sizes = u32::from(self.index & 7) << IDX_SHIFT
            | u32::from(self.l4_length) << 8
            | u32::from(self.mss) << 16;
        from_dwords([lengths, 0, command, sizes])
    }
}

#[cfg(test)]
mod tests {
    use super::summed_length;
    use super::{
        AdvancedContextDescriptor, AdvancedDataDescriptor, AnyTxDescriptor, L4PacketType, RS, buffer, legacy,
        parse, plain_length, qword, report_of,
    };
    use crate::descriptor::orders::RawDataDescriptor;

    #[test]
    fn data_descriptor_of_linux_is_parsed() {
        // 66 bytes at 0x1234_5000: ADVTXD_DTYP_DATA | DEXT | IFCS | EOP | RS, TXSM, PAYLEN 66.
        let raw = (0x1234_5000u128) | (0x2b30_0042u128) << 64 | (0x0010_8200u128) << 96;
        let AnyTxDescriptor::Data(data) = parse(&raw.to_le_bytes()) else { panic!("not a data descriptor") };
        assert_eq!((data.address, data.length, data.payload_length), (0x1234_5000, 66, 66));
        assert!(data.end_of_packet && data.report_status && data.insert_l4_checksum && !data.segment);
        assert_eq!(data.emit(), raw.to_le_bytes());
    }

    #[test]
    fn offload_context_descriptor_is_parsed_as_written() {
        let context = AdvancedContextDescriptor {
            mac_length: 14,
            ip_length: 20,
            l4_length: 32,
            vlan_tag: 0x2064,
            ipv4: true,
            l4: L4PacketType::Tcp,
            mss: 1448,
            index: 1,
        };
        assert_eq!(parse(&context.emit()), AnyTxDescriptor::Context(context));
    }

    #[test]
    fn tx_buffer_address_is_parsed_in_legacy_and_advanced_format() {
        let data = AdvancedDataDescriptor {
            address: 0x1234_5678_9abc,
            length: 66,
            end_of_packet: true,
            ..AdvancedDataDescriptor::default()
        };
        let legacy = legacy::LegacyTxDescriptor {
            address: data.address,
            length: 66,
            ..legacy::LegacyTxDescriptor::default()
        };
        let (one, two) = (buffer(&data.emit()).unwrap(), buffer(&legacy.emit()).unwrap());
        assert_eq!((one.address, one.length, two.address, two.length), (data.address, 66, data.address, 66));
        assert_eq!((one.end_of_packet, two.end_of_packet, one.report_status), (true, false, false));
        assert!(
            buffer(&AdvancedDataDescriptor { report_status: true, ..data }.emit()).unwrap().report_status
        );
    }

    #[test]
    fn default_transmit_descriptor_is_a_packet_without_offloads() {
        let asks =
            |o: RawDataDescriptor| o.insert_vlan() || o.segment() || o.time_stamp() || o.insert_checksum();
        let usual = AdvancedDataDescriptor {
            address: 0x1234_5000,
            length: 66,
            end_of_packet: true,
            ..AdvancedDataDescriptor::default()
        };
        // Every descriptor that differs from the usual one in at most two bits.
        for (one, two) in (0..64).flat_map(|one| (0..64).map(move |two| (one, two))) {
            let flipped = u128::from(1u64 << one ^ 1 << two) << 64;
            let raw = (u128::from_le_bytes(usual.emit()) ^ flipped).to_le_bytes();
            let quiet = RawDataDescriptor::of(&raw).is_some_and(|orders| !asks(orders));
            let expected = buffer(&raw).filter(|buffer| buffer.end_of_packet && quiet);
            let length = expected.map(|buffer| buffer.length.into());
            assert_eq!(plain_length(qword(&raw, 1)), length, "bits {one} and {two}");
            let summed = |o: RawDataDescriptor| !o.insert_vlan() && !o.segment() && !o.time_stamp();
            let summed =
                RawDataDescriptor::of(&raw).filter(|orders| summed(*orders)).and_then(|_| buffer(&raw));
            let summed = summed.filter(|buffer| buffer.end_of_packet).map(|buffer| buffer.length.into());
            assert_eq!(summed_length(qword(&raw, 1)), summed, "bits {one} and {two}");
            assert!(expected.is_none_or(|buffer| u32::from(buffer.report_status) * RS == report_of(&raw)));
        }
        assert!(plain_length(qword(&usual.emit(), 1)).is_some());
    }

    #[test]
    fn transmit_descriptor_of_a_reserved_type_parses_as_other() {
        assert_eq!(parse(&[0xff; 16]), AnyTxDescriptor::Other);
        let mut raw = AdvancedDataDescriptor::default().emit();
        raw[10] |= 0x40;
        assert_eq!(parse(&raw), AnyTxDescriptor::Other);
        assert_eq!((buffer(&raw), buffer(&AdvancedContextDescriptor::default().emit())), (None, None));
    }
}
