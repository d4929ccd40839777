//! Advanced receive descriptors, as the driver posts them (two addresses) and as the card writes them back.
//! `legacy` has the legacy format. Time stamps in buffers belong to later cards.

use super::{DD, SIZE, dword, from_dwords, from_qwords, qword};
use pcie::low::{low_byte, low_word};
use serde::{Deserialize, Serialize};

/// Receive descriptor as the driver posts it: addresses of a packet buffer and a header buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(rename = "Posted")]
pub struct PostedRxDescriptor {
    /// Address of the packet buffer, which receives the data.
    pub packet: u64,
    /// Address of the header buffer, if headers are split off; bit 0 must be clear.
    pub header: u64,
}

impl PostedRxDescriptor {
    /// Parses a posted receive descriptor.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        Self { packet: qword(raw, 0), header: qword(raw, 1) & !1 }
    }

    /// Returns the posted receive descriptor as the driver writes it.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; SIZE] {
        from_qwords([self.packet, self.header & !1])
    }
}

/// Packet types, bits of [`AdvancedRxWriteBack::packet_type`] (PKTTYPE, bits 15:4 of the first dword).
pub mod packet_type {
    /// Packet type bit: the packet has an IPv4 header.
    pub const IPV4: u16 = 0x001;
    /// Packet type bit: the packet has an IPv4 header with options.
    pub const IPV4_OPTIONS: u16 = 0x002;
    /// Packet type bit: the packet has an IPv6 header.
    pub const IPV6: u16 = 0x004;
    /// Packet type bit: the packet has an IPv6 header with extensions.
    pub const IPV6_EXTENSIONS: u16 = 0x008;
    /// Packet type bit: the packet has a TCP header.
    pub const TCP: u16 = 0x010;
    /// Packet type bit: the packet has a UDP header.
    pub const UDP: u16 = 0x020;
    /// Packet type bit: the packet has an SCTP header.
    pub const SCTP: u16 = 0x040;
    /// Packet type bit: the packet matches an EtherType filter: the filter's index is in bits 2:0, and there are no
    /// header bits.
    pub const ETHER_TYPE: u16 = 0x800;
}

/// Status and error bits of a receive descriptor, its third dword.
pub mod status {
    /// Receive status: the descriptor is the packet's last.
    pub const EOP: u32 = 1 << 1;
    /// Receive status: the packet was tagged, and the descriptor has the tag.
    pub const VP: u32 = 1 << 3;
    /// Receive status: the card has calculated the UDP checksum.
    pub const UDPCS: u32 = 1 << 4;
    /// Receive status: the card has calculated the TCP or UDP checksum.
    pub const L4CS: u32 = 1 << 5;
    /// Receive status: the card has calculated the IPv4 header checksum.
    pub const IPCS: u32 = 1 << 6;
    /// Receive status: the packet passed an inexact filter.
    pub const PIF: u32 = 1 << 7;
    /// Receive status: the frame had an outer tag, with two tags in use.
    pub const VEXT: u32 = 1 << 9;
    /// Receive status: the packet is the first fragment of a UDP datagram with a checksum.
    pub const UDPV: u32 = 1 << 10;
    /// Receive status: a filter has marked the frame for an immediate interrupt.
    pub const DYNINT: u32 = 1 << 11;
    /// Receive status: RXSTMPL and RXSTMPH have the frame's time of arrival.
    pub const TS: u32 = 1 << 16;
    /// Receive status: the headers exceed the header buffer. Independent of [`super::AdvancedRxWriteBack::split`].
    pub const HBO: u32 = 1 << 23;
    /// Receive error: the TCP or UDP checksum is wrong.
    pub const L4E: u32 = 1 << 29;
    /// Receive error: the IPv4 header checksum is wrong.
    pub const IPE: u32 = 1 << 30;
    /// Receive error: not all data reached memory: software must drop the packet.
    pub const RXE: u32 = 1 << 31;
}

/// RSS types of a receive descriptor, the low four bits of the first dword.
pub mod rss_type {
    /// RSS type: the packet was not hashed.
    pub const NONE: u8 = 0;
    /// RSS type: the hash covers TCP over IPv4.
    pub const TCP_IPV4: u8 = 1;
    /// RSS type: the hash covers the IPv4 addresses.
    pub const IPV4: u8 = 2;
    /// RSS type: the hash covers TCP over IPv6.
    pub const TCP_IPV6: u8 = 3;
    /// RSS type: the hash covers IPv6 with extensions.
    pub const IPV6_EX: u8 = 4;
    /// RSS type: the hash covers the IPv6 addresses.
    pub const IPV6: u8 = 5;
    /// RSS type: the hash covers TCP over IPv6 with extensions.
    pub const TCP_IPV6_EX: u8 = 6;
    /// RSS type: the hash covers UDP over IPv4.
    pub const UDP_IPV4: u8 = 7;
    /// RSS type: the hash covers UDP over IPv6.
    pub const UDP_IPV6: u8 = 8;
    /// RSS type: the hash covers UDP over IPv6 with extensions.
    pub const UDP_IPV6_EX: u8 = 9;
}

/// Advanced receive descriptor that the card has written back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct AdvancedRxWriteBack {
    /// Fields that the RSS hash covers (see [`super::rx::rss_type`]).
    pub rss_type: u8,
    /// Headers that the card recognized in the packet (see [`packet_type`]).
    pub packet_type: u16,
    /// Bytes of the recognized headers if `split`, else bytes in the header buffer. Headers that exceed the header
    /// buffer ([`status::HBO`]) count whole.
    pub header_length: u16,
    /// True if the card recognized the packet's headers (SPH).
    pub split: bool,
    /// RSS hash, or fragment checksum and IP identification.
    pub hash: u32,
    /// Status and errors, see [`status`]. DD included.
    pub status: u32,
    /// Bytes of the packet in the packet buffer.
    pub length: u16,
    /// VLAN tag that the card stripped, if [`status::VP`] is set.
    pub vlan_tag: u16,
}

impl AdvancedRxWriteBack {
    /// Parses an advanced receive descriptor that was written back. Returns `None` until the card has completed it.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; SIZE]) -> Option<Self> {
        let (info, status, sizes) = (dword(raw, 0), dword(raw, 2), dword(raw, 3));
        (status & DD != 0).then_some(Self {
            rss_type: low_byte(info & 0xf),
            packet_type: low_word((info >> 4) & 0xfff),
            header_length: low_word((info >> 21) & 0x3ff),
            split: info & (1 << 31) != 0,
            hash: dword(raw, 1),
            status,
            length: low_word(sizes),
            vlan_tag: low_word(sizes >> 16),
        })
    }

    /// Returns the advanced receive descriptor as the card writes it, with DD set.
    #[must_use]
    #[inline(always)]
    pub fn emit(&self) -> [u8; SIZE] {
        let info = u32::from(self.rss_type & 0xf)
            | u32::from(self.packet_type & 0xfff) << 4
            | u32::from(self.header_length & 0x3ff) << 21
            | u32::from(self.split) << 31;
        let sizes = u32::from(self.length) | u32::from(self.vlan_tag) << 16;
        from_dwords([info, self.hash, self.status | DD, sizes])
    }

    /// Returns true if the receive descriptor is the last of its packet.
    #[must_use]
    pub fn end_of_packet(&self) -> bool {
        self.status & status::EOP != 0
    }
}

#[cfg(test)]
mod tests {
    use super::{AdvancedRxWriteBack, PostedRxDescriptor, packet_type, status};

    #[test]
    fn posted_receive_descriptor_is_not_done() {
        let posted = PostedRxDescriptor { packet: 0xffff_ffff_ffff_fffe, header: 0xffff_ffff_ffff_fffe };
        assert_eq!(PostedRxDescriptor::parse(&posted.emit()), posted);
        assert_eq!(AdvancedRxWriteBack::parse(&posted.emit()), None);
    }

    #[test]
    fn receive_write_back_is_parsed_as_written() {
        let back = AdvancedRxWriteBack {
            rss_type: 1,
            packet_type: packet_type::IPV4 | packet_type::TCP,
            header_length: 0x2a,
            split: true,
            hash: 0xdead_beef,
            status: status::EOP | status::L4CS | status::IPCS | super::DD,
            length: 1500,
            vlan_tag: 100,
        };
        assert_eq!(AdvancedRxWriteBack::parse(&back.emit()), Some(back));
        assert!(back.end_of_packet());
    }
}
