//! Protocols: a word alone such as `tcp`, and `proto`, `protochain`, `broadcast` and `multicast`.

use crate::error::{FilterError, refuse};
use crate::host::ethernet_address;
use crate::layers::{Layers, Link, ethernet, sap};
use crate::names::Names;
use crate::node::{HeaderChain, Node, Relation, Size, Value};
use crate::qualifiers::{Direction, Proto};

/// First bytes of OSI network protocols (ISO/IEC TR 9577).
const CLNP: u32 = 0x81;
const ESIS: u32 = 0x82;
const ISIS: u32 = 0x83;
/// Types of IS-IS packets (ISO/IEC 10589).
const L1_HELLO: u32 = 15;
const L2_HELLO: u32 = 16;
const POINT_TO_POINT_HELLO: u32 = 17;
const L1_LSP: u32 = 18;
const L2_LSP: u32 = 20;
const L1_CSNP: u32 = 24;
const L2_CSNP: u32 = 25;
const L1_PSNP: u32 = 26;
const L2_PSNP: u32 = 27;
/// Next header of an IPv6 fragment (IANA).
const FRAGMENT: u32 = 44;

impl Layers {
    /// Compiles the word of a protocol alone.
    pub(crate) fn has_protocol(&self, proto: Proto) -> Result<Node, FilterError> {
        let link_type = |protocol| self.has_type(protocol);
        let any_of = |packets: &[u32]| self.any_isis(packets);
        match proto {
            Proto::Sctp => self.carries(132, Proto::Any),
            Proto::Tcp => self.carries(6, Proto::Any),
            Proto::Udp => self.carries(17, Proto::Any),
            Proto::Icmp => self.carries(1, Proto::Ip),
            Proto::Igmp => self.carries(2, Proto::Ip),
            Proto::Igrp => self.carries(9, Proto::Ip),
            Proto::Pim => self.carries(103, Proto::Any),
            Proto::Vrrp | Proto::Carp => self.carries(112, Proto::Ip),
            Proto::Icmpv6 => self.carries(58, Proto::Ipv6),
            Proto::Ah => self.carries(51, Proto::Any),
            Proto::Esp => self.carries(50, Proto::Any),
            Proto::Ip => link_type(ethernet::IP),
            Proto::Arp => link_type(ethernet::ARP),
            Proto::Rarp => link_type(ethernet::RARP),
            Proto::Ipv6 => link_type(ethernet::IPV6),
            Proto::Atalk => link_type(ethernet::ATALK),
            Proto::Aarp => link_type(ethernet::AARP),
            Proto::Decnet => link_type(ethernet::DECNET),
            Proto::Sca => link_type(ethernet::SCA),
            Proto::Lat => link_type(ethernet::LAT),
            Proto::Mopdl => link_type(ethernet::MOPDL),
            Proto::Moprc => link_type(ethernet::MOPRC),
            Proto::Iso => link_type(sap::ISO),
            Proto::Stp => link_type(sap::SPANNING_TREE),
            Proto::Ipx => link_type(sap::IPX),
            Proto::Netbeui => link_type(sap::NETBEUI),
            Proto::Esis => self.carries(ESIS, Proto::Iso),
            Proto::Isis => self.carries(ISIS, Proto::Iso),
            Proto::Clnp => self.carries(CLNP, Proto::Iso),
            Proto::IsisL1 => any_of(&[L1_PSNP, L1_CSNP, L1_LSP, L1_HELLO, POINT_TO_POINT_HELLO]),
            Proto::IsisL2 => any_of(&[L2_PSNP, L2_CSNP, L2_LSP, L2_HELLO, POINT_TO_POINT_HELLO]),
            Proto::IsisIih => any_of(&[POINT_TO_POINT_HELLO, L1_HELLO, L2_HELLO]),
            Proto::IsisLsp => any_of(&[L1_LSP, L2_LSP]),
            Proto::IsisSnp => any_of(&[L2_PSNP, L1_PSNP, L1_CSNP, L2_CSNP]),
            Proto::IsisCsnp => any_of(&[L1_CSNP, L2_CSNP]),
            Proto::IsisPsnp => any_of(&[L1_PSNP, L2_PSNP]),
            Proto::Any | Proto::Link | Proto::Radio => {
                refuse!("{} does not name a protocol that a packet can have", proto.word())
            }
        }
    }

    fn any_isis(&self, packets: &[u32]) -> Result<Node, FilterError> {
        let tests = packets.iter().map(|packet| self.carries(*packet, Proto::Isis));
        Ok(Node::Any(tests.collect::<Result<_, _>>()?))
    }

    /// Compiles `PROTO proto NUMBER`.
    pub(crate) fn carries(&self, number: u32, proto: Proto) -> Result<Node, FilterError> {
        let behind_llc =
            |offset| Value::field(self.payload.plus(self.llc_bytes + offset), Size::Byte).equals(number);
        Ok(match proto {
            Proto::Any => self.carries(number, Proto::Ip)?.or(self.carries(number, Proto::Ipv6)?),
            Proto::Link => self.has_type(number)?,
            Proto::Ip => self.has_type(ethernet::IP)?.and(self.network_field(9, Size::Byte).equals(number)),
            Proto::Ipv6 => {
                let next = |number| self.network_field(6, Size::Byte).equals(number);
                let in_fragment = next(FRAGMENT).and(self.network_field(40, Size::Byte).equals(number));
                self.has_type(ethernet::IPV6)?.and(next(number).or(in_fragment))
            }
            Proto::Iso => self.has_type(sap::ISO)?.and(behind_llc(0)),
            Proto::Isis => self.carries(ISIS, Proto::Iso)?.and(behind_llc(4)),
            _ => refuse!("{} carries no protocols by number", proto.word()),
        })
    }

    /// Compiles `PROTO protochain NUMBER`.
    pub(crate) fn has_in_chain(&self, protocol: u32, proto: Proto) -> Result<Node, FilterError> {
        let chain = |kind, is_ipv6| -> Result<Node, FilterError> {
            let header = self.network();
            if header.slot.is_some() {
                refuse!("protochain cannot follow geneve");
            }
            Ok(self.has_type(kind)?.and(Node::Chain(HeaderChain {
                header: header.constant,
                is_ipv6,
                protocol,
            })))
        };
        Ok(match proto {
            Proto::Ip => chain(ethernet::IP, false)?,
            Proto::Ipv6 => chain(ethernet::IPV6, true)?,
            Proto::Any => chain(ethernet::IP, false)?.or(chain(ethernet::IPV6, true)?),
            _ => refuse!("protochain applies to ip and ip6, not to {}", proto.word()),
        })
    }

    /// Compiles `broadcast`, `ether broadcast` or `ip broadcast`.
    pub(crate) fn is_broadcast(&self, proto: Proto) -> Result<Node, FilterError> {
        match proto {
            Proto::Any | Proto::Link => self.has_ethernet_address([0xff; 6], Direction::Destination),
            // tcpdump treats an unknown netmask as 0, so that only these two are broadcast addresses.
            Proto::Ip => {
                let address = |number| self.network_field(16, Size::Word).equals(number);
                Ok(self.has_type(ethernet::IP)?.and(address(0).or(address(u32::MAX))))
            }
            _ => refuse!("{} has no broadcast; ether and ip have", proto.word()),
        }
    }

    /// Compiles `multicast`, `ether multicast`, `ip multicast` or `ip6 multicast`.
    pub(crate) fn is_multicast(&self, proto: Proto) -> Result<Node, FilterError> {
        Ok(match proto {
            Proto::Any | Proto::Link if self.link == Link::Ethernet => {
                let first = Value::field(self.header, Size::Byte);
                self.with_link_header(first.compare(Relation::CommonBits, Value::Number(1)))
            }
            // Up to version 1.10.5, libpcap includes reserved addresses and the broadcast address.
            Proto::Ip => {
                let first = self.network_field(16, Size::Byte);
                self.has_type(ethernet::IP)?.and(first.compare(Relation::GreaterOrEqual, Value::Number(224)))
            }
            Proto::Ipv6 => self.has_type(ethernet::IPV6)?.and(self.network_field(24, Size::Byte).equals(255)),
            Proto::Any | Proto::Link => refuse!("multicast applies to Ethernet, which cannot follow pppoes"),
            _ => refuse!("{} has no multicast; ether, ip and ip6 have", proto.word()),
        })
    }

    /// Compiles a comparison of an Ethernet address.
    pub(crate) fn has_ethernet_address(
        &self,
        address: [u8; 6],
        direction: Direction,
    ) -> Result<Node, FilterError> {
        if self.link != Link::Ethernet {
            refuse!("Ethernet addresses cannot follow pppoes");
        }
        Ok(self.with_link_header(ethernet_address(self.header, address, direction)))
    }
}

/// Returns the number of a protocol by name.
pub(crate) fn named(name: &str, proto: Proto, names: &Names) -> Result<u32, FilterError> {
    let found = match proto {
        Proto::Any | Proto::Ip | Proto::Ipv6 => match names.protocol(name) {
            None => refuse!("protocol {name} is not in /etc/protocols: write its number"),
            found => found,
        },
        Proto::Link => link_protocol(name),
        Proto::Iso => [("esis", ESIS), ("isis", ISIS), ("clnp", CLNP)].into_iter().find_map(by(name)),
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
