//! `port` and `portrange`: ports of TCP, UDP and SCTP over IPv4 and IPv6. Of IPv4 fragments, only the first has
//! ports; an IPv6 packet has ports only without extension headers.

use crate::error::{FilterError, refuse};
use crate::layers::{Layers, ethernet};
use crate::names::Names;
use crate::node::{Node, Relation, Size, Value};
use crate::qualifiers::{Direction, Proto};

/// A protocol with ports.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Transport {
    Tcp = 6,
    Udp = 17,
    Sctp = 132,
}

impl Transport {
    /// Returns the protocol of `port` primitives with this qualifier, `None` for all three.
    pub(crate) fn of(proto: Proto) -> Result<Option<Self>, FilterError> {
        Ok(match proto {
            Proto::Any => None,
            Proto::Tcp => Some(Self::Tcp),
            Proto::Udp => Some(Self::Udp),
            Proto::Sctp => Some(Self::Sctp),
            _ => refuse!("{} has no ports; tcp, udp and sctp have", proto.word()),
        })
    }
}

/// Ports to compare, `first` to `last`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Ports {
    first: u32,
    last: u32,
    /// True to compare the bounds of a range, even if both are the same.
    is_range: bool,
    transport: Option<Transport>,
    direction: Direction,
}

impl Ports {
    pub(crate) fn one(port: u32, transport: Option<Transport>, direction: Direction) -> Self {
        Self { first: port, last: port, is_range: false, transport, direction }
    }

    pub(crate) fn range(one: u32, other: u32, transport: Option<Transport>, direction: Direction) -> Self {
        Self { first: one.min(other), last: one.max(other), is_range: true, transport, direction }
    }

    pub(crate) fn test(&self, layers: &Layers) -> Result<Node, FilterError> {
        if self.last > 65535 {
            refuse!("port {} is out of range (0-65535)", self.last);
        }
        Ok(self.in_ipv6(layers)?.or(self.in_ipv4(layers)?))
    }

    pub(crate) fn in_ipv4(&self, layers: &Layers) -> Result<Node, FilterError> {
        let of = |transport: Transport| {
            let protocol = layers.network_field(9, Size::Byte).equals(transport as u32);
            let ports = self.compare(|offset| layers.behind_ipv4(offset, Size::Half));
            protocol.and(is_first_fragment(layers)).and(ports)
        };
        Ok(layers.has_type(ethernet::IP)?.and(self.transports(of)))
    }

    pub(crate) fn in_ipv6(&self, layers: &Layers) -> Result<Node, FilterError> {
        let of = |transport: Transport| {
            let protocol = layers.network_field(6, Size::Byte).equals(transport as u32);
            protocol.and(self.compare(|offset| layers.behind_ipv6(offset, Size::Half)))
        };
        Ok(layers.has_type(ethernet::IPV6)?.and(self.transports(of)))
    }

    fn transports(&self, of: impl Fn(Transport) -> Node) -> Node {
        match self.transport {
            Some(transport) => of(transport),
            None => of(Transport::Sctp).or(of(Transport::Tcp)).or(of(Transport::Udp)),
        }
    }

    fn compare(&self, field: impl Fn(u32) -> Value) -> Node {
        let [source, destination] = [0, 2].map(|offset| {
            let bound = |relation, port| field(offset).compare(relation, Value::Number(port));
            if self.is_range {
                bound(Relation::GreaterOrEqual, self.first).and(bound(Relation::Greater, self.last).negated())
            } else {
                field(offset).equals(self.first)
            }
        });
        self.direction.join(source, destination)
    }
}

impl Direction {
    /// Joins the tests of a frame's two addresses or ports.
    pub(crate) fn join(self, source: Node, destination: Node) -> Node {
        match self {
            Self::Source => source,
            Self::Destination => destination,
            Self::Both => source.and(destination),
            Self::Any | Self::Either => source.or(destination),
        }
    }
}

/// Compiles a test that an IPv4 packet is not fragmented, or the first fragment.
pub(crate) fn is_first_fragment(layers: &Layers) -> Node {
    layers.network_field(6, Size::Half).compare(Relation::CommonBits, Value::Number(0x1fff)).negated()
}

/// Returns the port with a name, and the protocol if only one has the name.
pub(crate) fn named(
    name: &str,
    transport: Option<Transport>,
    names: &Names,
) -> Result<(u32, Option<Transport>), FilterError> {
    let Some(service) = names.service(name) else {
        refuse!("port {name} is not in /etc/services: write its number");
    };
    let (port, only) = match (service.tcp, service.udp) {
        (Some(tcp), udp) if udp != Some(tcp) => (tcp, Some(Transport::Tcp)),
        (Some(both), _) => (both, None),
        (None, udp) => (udp.unwrap_or(0), Some(Transport::Udp)),
    };
    if let (Some(asked), Some(only)) = (transport, only)
        && asked != only
    {
        refuse!("/etc/services lists port {name} for {only:?}, not for {asked:?}: write its number");
    }
    Ok((port.into(), transport.or(only)))
}

/// Returns the bounds of a range such as `80-90` or `ftp-ssh`, and the protocol if only one has the names.
pub(crate) fn named_range(
    text: &str,
    transport: Option<Transport>,
    names: &Names,
) -> Result<(u32, u32, Option<Transport>), FilterError> {
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
