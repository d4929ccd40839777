//! rtnetlink messages about one interface: a request by name, and the attributes that are read from replies and
//! notifications. Other attributes may have any format.
//!
//! All other kinds of message are skipped; dumps of all interfaces are not requested.

use libc::{
    IFF_UP, IFLA_CARRIER, IFLA_IFNAME, IFLA_INFO_KIND, IFLA_INFO_SLAVE_KIND, IFLA_LINK, IFLA_LINK_NETNSID,
    IFLA_LINKINFO, IFLA_MASTER, IFLA_MTU, RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK,
};
use netlink_packet_core::{
    NLA_ALIGNTO, NLA_HEADER_SIZE, NLM_F_REQUEST, NLMSG_ALIGNTO, NLMSG_ERROR, NetlinkBuffer, NlaBuffer,
    NlasIterator,
};
use rustix::io::Errno;

/// Bytes of `struct nlmsghdr`, the header of a netlink message.
const HEADER: usize = 16;
/// Bytes of `struct ifinfomsg`, which follows the header of a message about an interface.
const INFO: usize = 16;
/// Offset of the interface index in `struct ifinfomsg`, in bytes.
const INDEX: usize = 4;
/// Offset of the interface flags in `struct ifinfomsg`, in bytes.
const FLAGS: usize = 8;

/// State of a network interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NetworkLinkState {
    /// Index of the interface in its namespace. The kernel reuses an index only on request.
    pub index: u32,
    /// True if the administrator has set the interface up.
    pub up: bool,
    /// True if the interface has a carrier: for a tap, a process is attached and the carrier is not switched off.
    pub carrier: bool,
    /// Largest payload of a frame on the interface, in bytes.
    pub mtu: u32,
    /// Index of the interface whose Ethernet link this interface shares: the bridge of a bridge's port, the interface below a
    /// macvtap or macvlan, or else the interface itself.
    pub parent: u32,
}

/// Kernel's reply to a request for an interface.
pub(super) enum NetlinkReply {
    Link(NetworkLinkState),
    Error(Errno),
}

/// Builds a request for the interface of this name.
pub(super) fn question(name: &str) -> Vec<u8> {
    let text = name.as_bytes();
    // Includes the terminating zero.
    let attribute = NLA_HEADER_SIZE + text.len() + 1;
    let length = HEADER + INFO + attribute.next_multiple_of(NLA_ALIGNTO);
    let mut bytes = vec![0; length];
    let mut header = NetlinkBuffer::new(&mut bytes);
    header.set_length(length as u32);
    header.set_message_type(RTM_GETLINK);
    header.set_flags(NLM_F_REQUEST);
    let mut named = NlaBuffer::new(&mut bytes[HEADER + INFO..]);
    named.set_kind(IFLA_IFNAME);
    named.set_length(attribute as u16);
    named.value_mut()[..text.len()].copy_from_slice(text);
    bytes
}

/// Parses the kernel's reply to a request for an interface. Returns `None` if the reply is malformed.
pub(super) fn answer(bytes: &[u8]) -> Option<NetlinkReply> {
    let message = NetlinkBuffer::new_checked(bytes).ok()?;
    match message.message_type() {
        RTM_NEWLINK => Some(NetlinkReply::Link(link(message.payload())?)),
        NLMSG_ERROR => {
            let code = i32::from_ne_bytes(*message.payload().first_chunk()?);
            Some(NetlinkReply::Error(Errno::from_raw_os_error(code.wrapping_neg())))
        }
        _ => None,
    }
}

/// Returns index and name of each interface that the notifications in `bytes` are about.
pub(super) fn changes(bytes: &[u8]) -> impl Iterator<Item = (u32, &str)> {
    let mut rest = bytes;
    std::iter::from_fn(move || {
        let message = NetlinkBuffer::new_checked(rest).ok()?;
        let length = (message.length() as usize).next_multiple_of(usize::from(NLMSG_ALIGNTO));
        rest = rest.get(length..).unwrap_or_default();
        Some((message.message_type(), message.payload()))
    })
    .filter(|(kind, _)| matches!(*kind, RTM_NEWLINK | RTM_DELLINK))
    .filter_map(|(_, payload)| Some((number(payload, INDEX)?, name(payload)?)))
}

fn link(payload: &[u8]) -> Option<NetworkLinkState> {
    let flags = number(payload, FLAGS)?;
    let mtu = attribute(payload, IFLA_MTU)?;
    let index = number(payload, INDEX)?;
    Some(NetworkLinkState {
        index,
        up: flags & IFF_UP as u32 != 0,
        carrier: attribute(payload, IFLA_CARRIER)?.first() != Some(&0),
        mtu: u32::from_ne_bytes(*mtu.first_chunk()?),
        parent: parent(payload).unwrap_or(index),
    })
}

/// Returns the index of an interface's bridge, or of the interface below a macvtap or macvlan in the same network namespace.
/// Other masters, such as VRFs and Open vSwitch, are not one Ethernet link, and a veth's IFLA_LINK is its peer.
fn parent(payload: &[u8]) -> Option<u32> {
    let info = attribute(payload, IFLA_LINKINFO)?;
    let is = |kind, name: &[u8]| find(info, kind).is_some_and(|text| text.strip_suffix(&[0]) == Some(name));
    if is(IFLA_INFO_KIND, b"macvtap") || is(IFLA_INFO_KIND, b"macvlan") {
        let is_here = attribute(payload, IFLA_LINK_NETNSID).is_none();
        return number(attribute(payload, IFLA_LINK)?, 0).filter(|_| is_here);
    }
    let is_on_bridge = is(IFLA_INFO_SLAVE_KIND, b"bridge");
    number(attribute(payload, IFLA_MASTER)?, 0).filter(|_| is_on_bridge)
}

fn name(payload: &[u8]) -> Option<&str> {
    let name = attribute(payload, IFLA_IFNAME)?;
    std::str::from_utf8(name.strip_suffix(&[0]).unwrap_or(name)).ok()
}

fn number(payload: &[u8], offset: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(*payload.get(offset..)?.first_chunk()?))
}

fn attribute(payload: &[u8], kind: u16) -> Option<&[u8]> {
    find(payload.get(INFO..)?, kind)
}

/// Returns the value of the first attribute of this kind.
fn find(attributes: &[u8], kind: u16) -> Option<&[u8]> {
    let attributes = NlasIterator::new(attributes);
    let found = attributes.map_while(Result::ok).find(|attribute| attribute.kind() == kind)?;
    // From the outer slice, which outlives the attribute.
    let length = usize::from(found.length());
    found.into_inner().get(NLA_HEADER_SIZE..length)
}
