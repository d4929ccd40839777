//! Compiles primitives of protocols: a word alone such as `tcp`, and `proto`, `protochain`, `broadcast` and
//! `multicast`.

use crate::error::{FilterError, refuse};
use crate::host::ethernet_address;
use crate::layers::{LayerOffsets, LinkLayer, ethernet, sap};
use crate::names::NameDatabases;
use crate::node::{ComparisonRelation, ComputedNumber, FieldSize, FilterNode, HeaderChainSearch};
use crate::qualifiers::{DirectionQualifier, ProtocolQualifier};

/// First byte of an OSI CLNP packet (ISO/IEC TR 9577), followed by those of other OSI network protocols.
const CLNP: u32 = 0x81;
const ESIS: u32 = 0x82;
const ISIS: u32 = 0x83;
/// Type of an IS-IS hello packet of level 1 (ISO/IEC 10589), followed by the other IS-IS types.
const L1_HELLO: u32 = 15;
const L2_HELLO: u32 = 16;
const POINT_TO_POINT_HELLO: u32 = 17;
const L1_LSP: u32 = 18;
const L2_LSP: u32 = 20;
const L1_CSNP: u32 = 24;
const L2_CSNP: u32 = 25;
const L1_PSNP: u32 = 26;
const L2_PSNP: u32 = 27;
/// Next-header number of an IPv6 fragment header (IANA).
const FRAGMENT: u32 = 44;

impl LayerOffsets {
    /// Compiles the word of a protocol alone, such as `tcp`: a test for packets of the protocol.
    pub(crate) fn has_protocol(&self, proto: ProtocolQualifier) -> Result<FilterNode, FilterError> {
        let link_type = |protocol| self.has_type(protocol);
        let any_of = |packets: &[u32]| self.any_isis(packets);
        match proto {
            ProtocolQualifier::Sctp => self.carries(132, ProtocolQualifier::Any),
            ProtocolQualifier::Tcp => self.carries(6, ProtocolQualifier::Any),
            ProtocolQualifier::Udp => self.carries(17, ProtocolQualifier::Any),
            ProtocolQualifier::Icmp => self.carries(1, ProtocolQualifier::Ip),
            ProtocolQualifier::Igmp => self.carries(2, ProtocolQualifier::Ip),
            ProtocolQualifier::Igrp => self.carries(9, ProtocolQualifier::Ip),
            ProtocolQualifier::Pim => self.carries(103, ProtocolQualifier::Any),
            ProtocolQualifier::Vrrp | ProtocolQualifier::Carp => self.carries(112, ProtocolQualifier::Ip),
            ProtocolQualifier::Icmpv6 => self.carries(58, ProtocolQualifier::Ipv6),
            ProtocolQualifier::Ah => self.carries(51, ProtocolQualifier::Any),
            ProtocolQualifier::Esp => self.carries(50, ProtocolQualifier::Any),
            ProtocolQualifier::Ip => link_type(ethernet::IP),
            ProtocolQualifier::Arp => link_type(ethernet::ARP),
            ProtocolQualifier::Rarp => link_type(ethernet::RARP),
            ProtocolQualifier::Ipv6 => link_type(ethernet::IPV6),
            ProtocolQualifier::Atalk => link_type(ethernet::ATALK),
            ProtocolQualifier::Aarp => link_type(ethernet::AARP),
            ProtocolQualifier::Decnet => link_type(ethernet::DECNET),
            ProtocolQualifier::Sca => link_type(ethernet::SCA),
            ProtocolQualifier::Lat => link_type(ethernet::LAT),
            ProtocolQualifier::Mopdl => link_type(ethernet::MOPDL),
            ProtocolQualifier::Moprc => link_type(ethernet::MOPRC),
            ProtocolQualifier::Iso => link_type(sap::ISO),
            ProtocolQualifier::Stp => link_type(sap::SPANNING_TREE),
            ProtocolQualifier::Ipx => link_type(sap::IPX),
            ProtocolQualifier::Netbeui => link_type(sap::NETBEUI),
            ProtocolQualifier::Esis => self.carries(ESIS, ProtocolQualifier::Iso),
            ProtocolQualifier::Isis => self.carries(ISIS, ProtocolQualifier::Iso),
            ProtocolQualifier::Clnp => self.carries(CLNP, ProtocolQualifier::Iso),
            ProtocolQualifier::IsisL1 => any_of(&[L1_PSNP, L1_CSNP, L1_LSP, L1_HELLO, POINT_TO_POINT_HELLO]),
            ProtocolQualifier::IsisL2 => any_of(&[L2_PSNP, L2_CSNP, L2_LSP, L2_HELLO, POINT_TO_POINT_HELLO]),
            ProtocolQualifier::IsisIih => any_of(&[POINT_TO_POINT_HELLO, L1_HELLO, L2_HELLO]),
            ProtocolQualifier::IsisLsp => any_of(&[L1_LSP, L2_LSP]),
            ProtocolQualifier::IsisSnp => any_of(&[L2_PSNP, L1_PSNP, L1_CSNP, L2_CSNP]),
            ProtocolQualifier::IsisCsnp => any_of(&[L1_CSNP, L2_CSNP]),
            ProtocolQualifier::IsisPsnp => any_of(&[L1_PSNP, L2_PSNP]),
            ProtocolQualifier::Any | ProtocolQualifier::Link | ProtocolQualifier::Radio => {
                refuse!("{} does not name a protocol that a packet can have", proto.word())
            }
        }
    }

    fn any_isis(&self, packets: &[u32]) -> Result<FilterNode, FilterError> {
        let tests = packets.iter().map(|packet| self.carries(*packet, ProtocolQualifier::Isis));
        Ok(FilterNode::Any(tests.collect::<Result<_, _>>()?))
    }

    /// Compiles `PROTO proto NUMBER`: a test for packets of PROTO that carry the protocol NUMBER.
    pub(crate) fn carries(&self, number: u32, proto: ProtocolQualifier) -> Result<FilterNode, FilterError> {
        let behind_llc = |offset| {
            ComputedNumber::field(self.payload.plus(self.llc_bytes + offset), FieldSize::Byte).equals(number)
        };
        Ok(match proto {
            ProtocolQualifier::Any => self
                .carries(number, ProtocolQualifier::Ip)?
                .or(self.carries(number, ProtocolQualifier::Ipv6)?),
            ProtocolQualifier::Link => self.has_type(number)?,
            ProtocolQualifier::Ip => {
                self.has_type(ethernet::IP)?.and(self.network_field(9, FieldSize::Byte).equals(number))
            }
            ProtocolQualifier::Ipv6 => {
                let next = |number| self.network_field(6, FieldSize::Byte).equals(number);
                let in_fragment = next(FRAGMENT).and(self.network_field(40, FieldSize::Byte).equals(number));
                self.has_type(ethernet::IPV6)?.and(next(number).or(in_fragment))
            }
            ProtocolQualifier::Iso => self.has_type(sap::ISO)?.and(behind_llc(0)),
            ProtocolQualifier::Isis => self.carries(ISIS, ProtocolQualifier::Iso)?.and(behind_llc(4)),
            _ => refuse!("{} carries no protocols by number", proto.word()),
        })
    }

    /// Compiles `PROTO protochain NUMBER`: a search for the protocol NUMBER in the chain of headers.
    pub(crate) fn has_in_chain(
        &self,
        protocol: u32,
        proto: ProtocolQualifier,
    ) -> Result<FilterNode, FilterError> {
        let chain = |kind, is_ipv6| -> Result<FilterNode, FilterError> {
            let header = self.network();
            if header.slot.is_some() {
                refuse!("protochain cannot follow geneve");
            }
            Ok(self.has_type(kind)?.and(FilterNode::Chain(HeaderChainSearch {
                header: header.constant,
                is_ipv6,
                protocol,
            })))
        };
        Ok(match proto {
            ProtocolQualifier::Ip => chain(ethernet::IP, false)?,
            ProtocolQualifier::Ipv6 => chain(ethernet::IPV6, true)?,
            ProtocolQualifier::Any => chain(ethernet::IP, false)?.or(chain(ethernet::IPV6, true)?),
            _ => refuse!("protochain applies to ip and ip6, not to {}", proto.word()),
        })
    }

    /// Compiles `broadcast`, `ether broadcast` or `ip broadcast`.
    pub(crate) fn is_broadcast(&self, proto: ProtocolQualifier) -> Result<FilterNode, FilterError> {
        match proto {
            ProtocolQualifier::Any | ProtocolQualifier::Link => {
                self.has_ethernet_address([0xff; 6], DirectionQualifier::Destination)
            }
            // tcpdump treats an unknown netmask as 0, so that only these two are broadcast addresses.
            ProtocolQualifier::Ip => {
                let address = |number| self.network_field(16, FieldSize::Word).equals(number);
                Ok(self.has_type(ethernet::IP)?.and(address(0).or(address(u32::MAX))))
            }
            _ => refuse!("{} has no broadcast; ether and ip have", proto.word()),
        }
    }

    /// Compiles `multicast`, `ether multicast`, `ip multicast` or `ip6 multicast`.
    pub(crate) fn is_multicast(&self, proto: ProtocolQualifier) -> Result<FilterNode, FilterError> {
        Ok(match proto {
            ProtocolQualifier::Any | ProtocolQualifier::Link if self.link == LinkLayer::Ethernet => {
                let first = ComputedNumber::field(self.header, FieldSize::Byte);
                self.with_link_header(
                    first.compare(ComparisonRelation::CommonBits, ComputedNumber::Number(1)),
                )
            }
            // Up to version 1.10.5, libpcap includes reserved addresses and the broadcast address.
            ProtocolQualifier::Ip => {
                let first = self.network_field(16, FieldSize::Byte);
                self.has_type(ethernet::IP)?
                    .and(first.compare(ComparisonRelation::GreaterOrEqual, ComputedNumber::Number(224)))
            }
            ProtocolQualifier::Ipv6 => {
                self.has_type(ethernet::IPV6)?.and(self.network_field(24, FieldSize::Byte).equals(255))
            }
            ProtocolQualifier::Any | ProtocolQualifier::Link => {
                refuse!("multicast applies to Ethernet, which cannot follow pppoes")
            }
            _ => refuse!("{} has no multicast; ether, ip and ip6 have", proto.word()),
        })
    }

    /// Compiles a test of a frame's Ethernet addresses.
    pub(crate) fn has_ethernet_address(
        &self,
        address: [u8; 6],
        direction: DirectionQualifier,
    ) -> Result<FilterNode, FilterError> {
        if self.link != LinkLayer::Ethernet {
            refuse!("Ethernet addresses cannot follow pppoes");
        }
        Ok(self.with_link_header(ethernet_address(self.header, address, direction)))
    }
}

/// Returns the number that a protocol's name stands for after the qualifier `proto`.
pub(crate) fn named(name: &str, proto: ProtocolQualifier, names: &NameDatabases) -> Result<u32, FilterError> {
    let found = match proto {
        ProtocolQualifier::Any | ProtocolQualifier::Ip | ProtocolQualifier::Ipv6 => {
            match names.protocol(name) {
                None => refuse!("protocol {name} is not in /etc/protocols: write its number"),
                found => found,
            }
        }
        ProtocolQualifier::Link => link_protocol(name),
        ProtocolQualifier::Iso => {
            [("esis", ESIS), ("isis", ISIS), ("clnp", CLNP)].into_iter().find_map(by(name))
        }
        _ => None,
    };
    match found {
        Some(number) => Ok(number),
        None => refuse!("{} has no protocol {name}: write its number", proto.word()),
    }
}

fn link_protocol(name: &str) -> Option<u32> {
    let known = [
        ("aarp", ethernet::AARP),
        ("arp", ethernet::ARP),
        ("atalk", ethernet::ATALK),
        ("decnet", ethernet::DECNET),
        ("ip", ethernet::IP),
        ("ip6", ethernet::IPV6),
        ("lat", ethernet::LAT),
        ("loopback", ethernet::LOOPBACK),
        ("mopdl", ethernet::MOPDL),
        ("moprc", ethernet::MOPRC),
        ("rarp", ethernet::RARP),
        ("sca", ethernet::SCA),
        ("iso", sap::ISO),
        ("stp", sap::SPANNING_TREE),
        ("ipx", sap::IPX),
        ("netbeui", sap::NETBEUI),
    ];
    known.into_iter().find_map(by(name))
}

fn by(name: &str) -> impl Fn((&str, u32)) -> Option<u32> {
    move |(known, number)| (known == name).then_some(number)
}
