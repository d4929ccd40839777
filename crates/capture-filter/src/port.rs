//! Compiles the primitives `port` and `portrange`: comparisons of ports of TCP, UDP and SCTP over IPv4 and IPv6. Of
//! IPv4 fragments, only the first has ports; an IPv6 packet has ports only without extension headers.

use crate::error::{FilterError, refuse};
use crate::layers::{LayerOffsets, ethernet};
use crate::names::NameDatabases;
use crate::node::{ComparisonRelation, ComputedNumber, FieldSize, FilterNode};
use crate::qualifiers::{DirectionQualifier, ProtocolQualifier};

/// Transport protocol that has ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortTransport {
    Tcp = 6,
    Udp = 17,
    Sctp = 132,
}

impl PortTransport {
    /// Returns the transport protocol that a qualifier selects for `port` primitives, or `None` for all three.
    pub(crate) fn of(proto: ProtocolQualifier) -> Result<Option<Self>, FilterError> {
        Ok(match proto {
            ProtocolQualifier::Any => None,
            ProtocolQualifier::Tcp => Some(Self::Tcp),
            ProtocolQualifier::Udp => Some(Self::Udp),
            ProtocolQualifier::Sctp => Some(Self::Sctp),
            _ => refuse!("{} has no ports; tcp, udp and sctp have", proto.word()),
        })
    }
}

/// Comparison of a packet's ports with the range `first` to `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct PortComparison {
    first: u32,
    last: u32,
    /// True for `portrange`, which compares the bounds of a range even if both are the same.
    is_range: bool,
    transport: Option<PortTransport>,
    direction: DirectionQualifier,
}

impl PortComparison {
    pub(crate) fn one(port: u32, transport: Option<PortTransport>, direction: DirectionQualifier) -> Self {
        Self { first: port, last: port, is_range: false, transport, direction }
    }

    pub(crate) fn range(
        one: u32,
        other: u32,
        transport: Option<PortTransport>,
        direction: DirectionQualifier,
    ) -> Self {
        Self { first: one.min(other), last: one.max(other), is_range: true, transport, direction }
    }

    pub(crate) fn test(&self, layers: &LayerOffsets) -> Result<FilterNode, FilterError> {
        if self.last > 65535 {
            refuse!("port {} is out of range (0-65535)", self.last);
        }
        Ok(self.in_ipv6(layers)?.or(self.in_ipv4(layers)?))
    }

    pub(crate) fn in_ipv4(&self, layers: &LayerOffsets) -> Result<FilterNode, FilterError> {
        let of = |transport: PortTransport| {
            let protocol = layers.network_field(9, FieldSize::Byte).equals(transport as u32);
            let ports = self.compare(|offset| layers.behind_ipv4(offset, FieldSize::Half));
            protocol.and(is_first_fragment(layers)).and(ports)
        };
        Ok(layers.has_type(ethernet::IP)?.and(self.transports(of)))
    }

    pub(crate) fn in_ipv6(&self, layers: &LayerOffsets) -> Result<FilterNode, FilterError> {
        let of = |transport: PortTransport| {
            let protocol = layers.network_field(6, FieldSize::Byte).equals(transport as u32);
            protocol.and(self.compare(|offset| layers.behind_ipv6(offset, FieldSize::Half)))
        };
        Ok(layers.has_type(ethernet::IPV6)?.and(self.transports(of)))
    }

    fn transports(&self, of: impl Fn(PortTransport) -> FilterNode) -> FilterNode {
        match self.transport {
            Some(transport) => of(transport),
            None => of(PortTransport::Sctp).or(of(PortTransport::Tcp)).or(of(PortTransport::Udp)),
        }
    }

    fn compare(&self, field: impl Fn(u32) -> ComputedNumber) -> FilterNode {
        let [source, destination] = [0, 2].map(|offset| {
            let bound = |relation, port| field(offset).compare(relation, ComputedNumber::Number(port));
            if self.is_range {
                bound(ComparisonRelation::GreaterOrEqual, self.first)
                    .and(bound(ComparisonRelation::Greater, self.last).negated())
            } else {
                field(offset).equals(self.first)
            }
        });
        self.direction.join(source, destination)
    }
}

impl DirectionQualifier {
    /// Combines a test of the source and a test of the destination by the direction: keeps one test, or joins both by
    /// "or" or "and".
    pub(crate) fn join(self, source: FilterNode, destination: FilterNode) -> FilterNode {
        match self {
            Self::Source => source,
            Self::Destination => destination,
            Self::Both => source.and(destination),
            Self::Any | Self::Either => source.or(destination),
        }
    }
}

/// Compiles a test that an IPv4 packet is not fragmented, or is the first fragment.
pub(crate) fn is_first_fragment(layers: &LayerOffsets) -> FilterNode {
    layers
        .network_field(6, FieldSize::Half)
        .compare(ComparisonRelation::CommonBits, ComputedNumber::Number(0x1fff))
        .negated()
}

/// Returns the number of a named port, and the transport protocol if the name stands for one protocol only.
pub(crate) fn named(
    name: &str,
    transport: Option<PortTransport>,
    names: &NameDatabases,
) -> Result<(u32, Option<PortTransport>), FilterError> {
    let Some(service) = names.service(name) else {
        refuse!("port {name} is not in /etc/services: write its number");
    };
    let (port, only) = match (service.tcp, service.udp) {
        (Some(tcp), udp) if udp != Some(tcp) => (tcp, Some(PortTransport::Tcp)),
        (Some(both), _) => (both, None),
        (None, udp) => (udp.unwrap_or(0), Some(PortTransport::Udp)),
    };
    if let (Some(asked), Some(only)) = (transport, only)
        && asked != only
    {
        refuse!("/etc/services lists port {name} for {only:?}, not for {asked:?}: write its number");
    }
    Ok((port.into(), transport.or(only)))
}

/// Returns the bounds of a range such as `80-90` or `ftp-ssh`, and the transport protocol if its names stand for one
/// only.
pub(crate) fn named_range(
    text: &str,
    transport: Option<PortTransport>,
    names: &NameDatabases,
) -> Result<(u32, u32, Option<PortTransport>), FilterError> {
    let Some((one, other)) = text.split_once('-').filter(|(_, other)| !other.contains('-')) else {
        refuse!("{text} is not a range of two ports such as 80-90");
    };
    let bound = |text: &str| -> Result<_, FilterError> {
        match text.parse::<u32>() {
            // Versions of libpcap differ on whether it is octal.
            Ok(_) if text.len() > 1 && text.starts_with('0') => {
                refuse!("port {text} has leading zeros: write the number without zeros")
            }
            Ok(port) => Ok((port, transport)),
            Err(_) => named(text, transport, names),
        }
    };
    let ((one, first_of), (other, last_of)) = (bound(one)?, bound(other)?);
    Ok((one, other, first_of.filter(|_| first_of == last_of).or(transport)))
}
