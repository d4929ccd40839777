//! Tracks the offsets of the frame's headers at each point of the filter, and compiles tests of their protocols.
//! `vlan`, `mpls`, `pppoes` and `geneve` move the offsets for the rest of the text, even after `or`.

use crate::error::{FilterError, refuse};
use crate::node::{
    ComparisonRelation, ComputedNumber, FieldSize, FilterNode, FrameField, FrameOffset, OffsetSlot,
};

/// Maximum number of slots for offsets that depend on the frame; each `geneve` takes three.
pub(crate) const SLOTS: usize = 15;

/// Ethernet types of protocols (IANA).
pub(crate) mod ethernet {
    pub(crate) const IP: u32 = 0x0800;
    pub(crate) const ARP: u32 = 0x0806;
    pub(crate) const MOPDL: u32 = 0x6001;
    pub(crate) const MOPRC: u32 = 0x6002;
    pub(crate) const DECNET: u32 = 0x6003;
    pub(crate) const LAT: u32 = 0x6004;
    pub(crate) const SCA: u32 = 0x6007;
    pub(crate) const RARP: u32 = 0x8035;
    pub(crate) const ATALK: u32 = 0x809b;
    pub(crate) const AARP: u32 = 0x80f3;
    pub(crate) const IPX: u32 = 0x8137;
    pub(crate) const IPV6: u32 = 0x86dd;
    pub(crate) const MPLS: u32 = 0x8847;
    pub(crate) const PPPOE_DISCOVERY: u32 = 0x8863;
    pub(crate) const PPPOE_SESSION: u32 = 0x8864;
    pub(crate) const LOOPBACK: u32 = 0x9000;
    /// Ethernet types of VLAN tags: 802.1Q, 802.1ad, and the older type for two tags.
    pub(crate) const TAGS: [u32; 3] = [0x8100, 0x88a8, 0x9100];
    /// Largest value of the Ethernet type field that is a length (IEEE 802.3).
    pub(crate) const MAX_LENGTH: u32 = 1500;
}

/// Service access points of 802.2. A filter may name them in place of an Ethernet type.
pub(crate) mod sap {
    pub(crate) const IP: u32 = 0x06;
    pub(crate) const SPANNING_TREE: u32 = 0x42;
    pub(crate) const SNAP: u32 = 0xaa;
    pub(crate) const IPX: u32 = 0xe0;
    pub(crate) const NETBEUI: u32 = 0xf0;
    pub(crate) const ISO: u32 = 0xfe;
}

/// PPP protocol number of MPLS (RFC 3032).
const PPP_MPLS: u32 = 0x0281;

/// Innermost link layer at a point of the filter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkLayer {
    Ethernet,
    /// The innermost link layer is PPP, after `pppoes`.
    Ppp,
}

/// Offsets of a frame's headers at a point of the filter.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LayerOffsets {
    pub(crate) link: LinkLayer,
    /// Offset of the link-layer header.
    pub(crate) header: FrameOffset,
    /// Offset of the link-layer field with the type of the payload.
    pub(crate) link_type: FrameOffset,
    /// Offset of the payload of the frame's link-layer header.
    pub(crate) payload: FrameOffset,
    /// True if MPLS labels precede the network header, or surround a tunnel.
    pub(crate) is_labelled: bool,
    /// Bytes of MPLS labels before the network header.
    pub(crate) label_bytes: u32,
    /// Bytes of the 802.2 header before the network header, in frames that have one.
    pub(crate) llc_bytes: u32,
    /// Slots with the offsets of link header and payload in the Geneve packet that the filter has entered; `None`
    /// without such a packet, and after `pppoes` in it.
    pub(crate) geneve: Option<(OffsetSlot, OffsetSlot)>,
    /// Number of slots that the filter uses so far.
    pub(crate) slots: OffsetSlot,
}

impl LayerOffsets {
    /// Offsets of the headers in an Ethernet frame.
    pub(crate) const ETHERNET: Self = Self {
        link: LinkLayer::Ethernet,
        header: FrameOffset::at(0),
        link_type: FrameOffset::at(12),
        payload: FrameOffset::at(14),
        is_labelled: false,
        label_bytes: 0,
        llc_bytes: 3,
        geneve: None,
        slots: 0,
    };

    /// Returns the offset of the network header in the frame.
    pub(crate) fn network(&self) -> FrameOffset {
        self.payload.plus(self.label_bytes)
    }

    /// Returns a field of the frame's network header, at an offset in that header.
    pub(crate) fn network_field(&self, offset: u32, size: FieldSize) -> ComputedNumber {
        ComputedNumber::field(self.network().plus(offset), size)
    }

    /// Returns a field at an offset behind the IPv4 header.
    pub(crate) fn behind_ipv4(&self, offset: u32, size: FieldSize) -> ComputedNumber {
        let network = self.network();
        ComputedNumber::Field(FrameField {
            offset: network.plus(offset),
            ipv4: Some(network),
            index: None,
            size,
        })
    }

    /// Returns a field at an offset behind an IPv6 header without extension headers.
    pub(crate) fn behind_ipv6(&self, offset: u32, size: FieldSize) -> ComputedNumber {
        self.network_field(40 + offset, size)
    }

    /// Compiles a test of the link layer's payload type: an Ethernet type, or for numbers up to 1500 an access point of
    /// 802.2.
    pub(crate) fn has_type(&self, protocol: u32) -> Result<FilterNode, FilterError> {
        if self.is_labelled {
            return self.has_type_behind_labels(protocol);
        }
        let link_type = ComputedNumber::field(self.link_type, FieldSize::Half);
        Ok(match (self.link, protocol) {
            (LinkLayer::Ppp, _) => link_type.equals(ppp_protocol(protocol)),
            (LinkLayer::Ethernet, sap::IP | sap::NETBEUI | sap::ISO) => {
                self.is_length().and(self.llc_field(0, FieldSize::Half).equals(protocol << 8 | protocol))
            }
            (LinkLayer::Ethernet, sap::IPX) => {
                let in_llc = self.llc_field(0, FieldSize::Byte).equals(sap::IPX);
                let raw = self.llc_field(0, FieldSize::Half).equals(0xffff);
                let llc = self.is_length().and(self.has_snap([0; 3], ethernet::IPX).or(in_llc.or(raw)));
                link_type.equals(ethernet::IPX).or(llc)
            }
            (LinkLayer::Ethernet, ethernet::ATALK | ethernet::AARP) => {
                let organization = if protocol == ethernet::ATALK { [8, 0, 7] } else { [0; 3] };
                let llc = self.is_length().and(self.has_snap(organization, protocol));
                link_type.equals(protocol).or(llc)
            }
            (LinkLayer::Ethernet, 0..=ethernet::MAX_LENGTH) => self
                .is_length()
                .and(ComputedNumber::field(self.link_type.plus(2), FieldSize::Byte).equals(protocol)),
            (LinkLayer::Ethernet, _) => link_type.equals(protocol),
        })
    }

    /// Compiles a test of the payload type behind MPLS labels, where only the version of an IP header shows the
    /// protocol.
    fn has_type_behind_labels(&self, protocol: u32) -> Result<FilterNode, FilterError> {
        let version = match protocol {
            ethernet::IP => 0x40,
            ethernet::IPV6 => 0x60,
            _ => refuse!("behind mpls only ip and ip6 can be tested"),
        };
        let is_last_label = ComputedNumber::field(self.network().plus(2_u32.wrapping_neg()), FieldSize::Byte)
            .equals_under(1, 1);
        Ok(is_last_label.and(self.network_field(0, FieldSize::Byte).equals_under(0xf0, version)))
    }

    /// Compiles a test for an MPLS label behind the link-layer header.
    pub(crate) fn has_mpls(&self) -> Result<FilterNode, FilterError> {
        self.has_type(if self.link == LinkLayer::Ppp { PPP_MPLS } else { ethernet::MPLS })
    }

    /// Compiles a test that the frame has a length in place of an Ethernet type.
    pub(crate) fn is_length(&self) -> FilterNode {
        let link_type = ComputedNumber::field(self.link_type, FieldSize::Half);
        link_type.compare(ComparisonRelation::Greater, ComputedNumber::Number(ethernet::MAX_LENGTH)).negated()
    }

    /// Returns a field of the 802.2 header, at an offset in that header.
    pub(crate) fn llc_field(&self, offset: u32, size: FieldSize) -> ComputedNumber {
        ComputedNumber::field(self.payload.plus(offset), size)
    }

    fn has_snap(&self, [a, b, c]: [u32; 3], protocol: u32) -> FilterNode {
        let end = self.llc_field(4, FieldSize::Word).equals(b << 24 | c << 16 | protocol);
        end.and(self.llc_field(0, FieldSize::Word).equals(sap::SNAP << 24 | sap::SNAP << 16 | 0x0300 | a))
    }

    /// Restricts a test of the link-layer header to packets with such a header: a Geneve tunnel may carry packets
    /// without one.
    pub(crate) fn with_link_header(&self, node: FilterNode) -> FilterNode {
        match self.geneve {
            Some((header, payload)) => FilterNode::Differ(header, payload).and(node),
            None => node,
        }
    }
}

/// Returns the PPP number of a protocol, or the protocol itself if PPP has none.
fn ppp_protocol(protocol: u32) -> u32 {
    match protocol {
        ethernet::IP => 0x0021,
        ethernet::IPV6 => 0x0057,
        ethernet::DECNET => 0x0027,
        ethernet::ATALK => 0x0029,
        // Xerox NS.
        0x0600 => 0x0025,
        sap::ISO => 0x0023,
        sap::SPANNING_TREE => 0x0031,
        sap::IPX => 0x002b,
        _ => protocol,
    }
}
