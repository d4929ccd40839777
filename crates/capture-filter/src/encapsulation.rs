//! Compiles primitives that move the header offsets for the rest of a filter: VLAN tags, MPLS labels, PPPoE sessions
//! and Geneve tunnels.

use crate::error::{FilterError, refuse};
use crate::layers::{LayerOffsets, LinkLayer, SLOTS, ethernet};
use crate::node::{ComputedNumber, FieldSize, FilterNode, FrameOffset, GenevePredicate};
use crate::port::{PortComparison, PortTransport};
use crate::qualifiers::DirectionQualifier;

/// UDP port of Geneve (RFC 8926).
const GENEVE_PORT: u32 = 6081;

impl LayerOffsets {
    /// Compiles `vlan [ID]`: tests for a VLAN tag, and moves the offsets behind the tag.
    pub(crate) fn enter_vlan(&mut self, id: Option<u32>) -> Result<FilterNode, FilterError> {
        if self.is_labelled {
            refuse!("vlan cannot follow mpls");
        }
        if self.link == LinkLayer::Ppp {
            refuse!("vlan cannot follow pppoes");
        }
        let [tag, service_tag, old_tag] = ethernet::TAGS.map(|kind| self.has_type(kind));
        let mut node = tag?.or(service_tag?).or(old_tag?);
        if let Some(id) = bounded("VLAN", id, 0xfff)? {
            node = node.and(self.network_field(0, FieldSize::Half).equals_under(0xfff, id));
        }
        self.payload = self.payload.plus(4);
        self.link_type = self.link_type.plus(4);
        Ok(node)
    }

    /// Compiles `mpls [LABEL]`: tests for an MPLS label, and moves the offsets behind the label.
    pub(crate) fn enter_mpls(&mut self, label: Option<u32>) -> Result<FilterNode, FilterError> {
        let mut node = if self.is_labelled {
            let before = self.network().plus(4_u32.wrapping_neg());
            ComputedNumber::field(before.plus(2), FieldSize::Byte).equals_under(1, 0)
        } else {
            self.has_mpls()?
        };
        if let Some(label) = bounded("MPLS label", label, 0xf_ffff)? {
            node = node.and(self.network_field(0, FieldSize::Word).equals_under(0xffff_f000, label << 12));
        }
        self.is_labelled = true;
        self.label_bytes += 4;
        self.llc_bytes += 4;
        Ok(node)
    }

    /// Compiles `pppoes [SESSION]`: tests for a PPPoE session, and moves the offsets to its payload.
    pub(crate) fn enter_pppoe_session(&mut self, session: Option<u32>) -> Result<FilterNode, FilterError> {
        let mut node = self.has_type(ethernet::PPPOE_SESSION)?;
        if let Some(session) = bounded("PPPoE session", session, 0xffff)? {
            node = node.and(self.network_field(0, FieldSize::Word).equals_under(0xffff, session));
        }
        let header = self.network().plus(6);
        let payload = header.plus(2);
        *self = Self {
            link: LinkLayer::Ppp,
            header,
            link_type: header,
            payload,
            label_bytes: 0,
            llc_bytes: 0,
            geneve: None,
            ..*self
        };
        Ok(node)
    }

    /// Compiles `geneve [VNI]`: tests for a Geneve tunnel, and moves the offsets to the headers inside.
    pub(crate) fn enter_geneve(&mut self, vni: Option<u32>) -> Result<FilterNode, FilterError> {
        let vni = bounded("Geneve VNI", vni, 0xff_ffff)?;
        let slots = self.slots;
        if usize::from(slots) + 3 > SLOTS {
            refuse!("geneve occurs more than {} times", SLOTS / 3);
        }
        let tunnel = |is_ipv6: bool| -> Result<FilterNode, FilterError> {
            let ports =
                PortComparison::one(GENEVE_PORT, Some(PortTransport::Udp), DirectionQualifier::Destination);
            let (packet, version, number) = if is_ipv6 {
                (
                    ports.in_ipv6(self)?,
                    self.behind_ipv6(8, FieldSize::Byte),
                    self.behind_ipv6(12, FieldSize::Word),
                )
            } else {
                (
                    ports.in_ipv4(self)?,
                    self.behind_ipv4(8, FieldSize::Byte),
                    self.behind_ipv4(12, FieldSize::Word),
                )
            };
            let mut node = packet.and(version.equals_under(0xc0, 0));
            if let Some(vni) = vni {
                node = node.and(number.equals_under(0xffff_ff00, vni << 8));
            }
            let outer = self.network();
            let [link_type, header, payload] = [slots, slots + 1, slots + 2];
            Ok(node.and(FilterNode::Geneve(GenevePredicate { outer, is_ipv6, link_type, header, payload })))
        };
        let node = tunnel(false)?.or(tunnel(true)?);
        let slot = |slot| FrameOffset { slot: Some(slot), constant: 0 };
        *self = Self {
            link: LinkLayer::Ethernet,
            link_type: slot(slots),
            header: slot(slots + 1),
            payload: slot(slots + 2),
            label_bytes: 0,
            geneve: Some((slots + 1, slots + 2)),
            slots: slots + 3,
            ..*self
        };
        Ok(node)
    }
}

fn bounded(what: &str, number: Option<u32>, max: u32) -> Result<Option<u32>, FilterError> {
    match number {
        Some(number) if number > max => refuse!("{what} {number} is out of range (0-{max})"),
        number => Ok(number),
    }
}
