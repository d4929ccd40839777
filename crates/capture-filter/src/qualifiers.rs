//! Qualifiers of a filter's primitive: protocol, direction and kind.

/// Protocol word that qualifies a primitive, such as `tcp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ProtocolQualifier {
    /// The primitive has no protocol word.
    Any,
    Link,
    Ip,
    Arp,
    Rarp,
    Sctp,
    Tcp,
    Udp,
    Icmp,
    Igmp,
    Igrp,
    Pim,
    Vrrp,
    Carp,
    Atalk,
    Aarp,
    Decnet,
    Lat,
    Sca,
    Mopdl,
    Moprc,
    Ipv6,
    Icmpv6,
    Ah,
    Esp,
    Iso,
    Esis,
    Isis,
    IsisL1,
    IsisL2,
    IsisIih,
    IsisLsp,
    IsisSnp,
    IsisPsnp,
    IsisCsnp,
    Clnp,
    Stp,
    Ipx,
    Netbeui,
    Radio,
}

/// Direction word that selects the address or port of a frame to compare: source, destination, either or both.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DirectionQualifier {
    /// The primitive has no direction word: the same as [`DirectionQualifier::Either`], where a direction is allowed.
    Any,
    Source,
    Destination,
    Either,
    Both,
}

/// Type word of a primitive: the kind of its operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum TypeQualifier {
    /// The primitive has no type word: the same as [`TypeQualifier::Host`].
    Any,
    Host,
    Net,
    Port,
    PortRange,
    Gateway,
    Proto,
    ProtoChain,
}

/// Qualifiers of an operand. An operand after `and` or `or` without qualifiers inherits those of the previous operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PrimitiveQualifiers {
    pub(crate) proto: ProtocolQualifier,
    pub(crate) direction: DirectionQualifier,
    pub(crate) kind: TypeQualifier,
}
