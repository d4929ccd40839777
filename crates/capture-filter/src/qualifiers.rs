//! Qualifiers of a primitive: protocol, direction and kind.

/// A protocol word of the language.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Proto {
    /// No protocol is given.
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

/// Address or port of a frame that is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Direction {
    /// No direction is given: the same as [`Direction::Either`], where one is allowed.
    Any,
    Source,
    Destination,
    Either,
    Both,
}

/// Kind of operand.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// No kind is given: the same as [`Kind::Host`].
    Any,
    Host,
    Net,
    Port,
    PortRange,
    Gateway,
    Proto,
    ProtoChain,
}

/// Qualifiers of an operand. Operands behind `and` and `or` without qualifiers of their own have those before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Qualifiers {
    pub(crate) proto: Proto,
    pub(crate) direction: Direction,
    pub(crate) kind: Kind,
}
