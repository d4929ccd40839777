//! Addresses and options of packet sockets (`linux/if_packet.h`).

use std::io;
use std::mem;
use std::os::fd::{AsFd, AsRawFd};

/// Interface that a packet socket is bound to.
pub(super) struct BoundInterface {
    /// Index of the interface; `None` if the interface was deleted.
    pub(super) index: Option<u32>,
    pub(super) is_ethernet: bool,
}

/// Sets options of a packet socket: VLAN tags and checksum offsets with received frames, no outgoing frames, and the
/// receive buffer's size in bytes, which the kernel may limit.
pub(super) fn prepare(socket: impl AsFd, backlog: libc::c_int) -> io::Result<()> {
    let on: libc::c_int = 1;
    for option in [libc::PACKET_AUXDATA, libc::PACKET_VNET_HDR, libc::PACKET_IGNORE_OUTGOING] {
        set(&socket, libc::SOL_PACKET, option, &on)?;
    }
    if set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUFFORCE, &backlog).is_err() {
        set(&socket, libc::SOL_SOCKET, libc::SO_RCVBUF, &backlog)?;
    }
    Ok(())
}

/// Puts the interface into promiscuous mode while the socket is open.
pub(super) fn listen_to_all(socket: impl AsFd, index: u32) -> io::Result<()> {
    let membership = libc::packet_mreq {
        mr_ifindex: index.cast_signed(),
        mr_type: libc::PACKET_MR_PROMISC as libc::c_ushort,
        mr_alen: 0,
        mr_address: [0; 8],
    };
    set(socket, libc::SOL_PACKET, libc::PACKET_ADD_MEMBERSHIP, &membership)
}

fn set<T: Copy>(socket: impl AsFd, level: libc::c_int, option: libc::c_int, value: &T) -> io::Result<()> {
    let (fd, size) = (socket.as_fd().as_raw_fd(), mem::size_of::<T>() as libc::socklen_t);
    // SAFETY: the kernel reads `size` bytes of `value`, a plain structure of the option's type.
    let result = unsafe { libc::setsockopt(fd, level, option, std::ptr::from_ref(value).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// Frames that a packet socket receives from its interface: all or none.
#[derive(Clone, Copy)]
pub(super) enum ReceivedFrameSelection {
    All,
    None,
}

/// Binds a packet socket to an interface and selects the frames that the socket receives.
pub(super) fn bind(socket: impl AsFd, index: u32, frames: ReceivedFrameSelection) -> io::Result<()> {
    let mut address = no_address();
    address.sll_family = libc::AF_PACKET as libc::c_ushort;
    address.sll_protocol = match frames {
        ReceivedFrameSelection::All => (libc::ETH_P_ALL as libc::c_ushort).to_be(),
        ReceivedFrameSelection::None => 0,
    };
    address.sll_ifindex = index.cast_signed();
    let size = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel reads `size` bytes of `address`.
    let result = unsafe { libc::bind(socket.as_fd().as_raw_fd(), std::ptr::from_ref(&address).cast(), size) };
    if result == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

pub(super) fn bound(socket: impl AsFd) -> io::Result<BoundInterface> {
    let mut address = no_address();
    let mut size = mem::size_of_val(&address) as libc::socklen_t;
    // SAFETY: the kernel writes at most `size` bytes to `address`, and then to `size`.
    let result = unsafe {
        libc::getsockname(socket.as_fd().as_raw_fd(), std::ptr::from_mut(&mut address).cast(), &raw mut size)
    };
    if result != 0 {
        return Err(io::Error::last_os_error());
    }
    let index = u32::try_from(address.sll_ifindex).ok().filter(|index| *index > 0);
    Ok(BoundInterface { index, is_ethernet: address.sll_hatype == libc::ARPHRD_ETHER })
}

fn no_address() -> libc::sockaddr_ll {
    // SAFETY: all-zero is a valid `sockaddr_ll`, which has plain numbers only.
    unsafe { mem::zeroed() }
}

/// Returns the number of frames dropped for a full receive buffer since the last call.
pub(super) fn take_missed(socket: impl AsFd) -> io::Result<u32> {
    let mut counts = libc::tpacket_stats { tp_packets: 0, tp_drops: 0 };
    let mut size = mem::size_of_val(&counts) as libc::socklen_t;
    let (level, option) = (libc::SOL_PACKET, libc::PACKET_STATISTICS);
    let fd = socket.as_fd().as_raw_fd();
    // SAFETY: the kernel writes at most `size` bytes to `counts`, and then to `size`.
    let result =
        unsafe { libc::getsockopt(fd, level, option, std::ptr::from_mut(&mut counts).cast(), &raw mut size) };
    if result == 0 { Ok(counts.tp_drops) } else { Err(io::Error::last_os_error()) }
}
