//! Requests to the kernel about interfaces: those with `struct ifreq` (netdevice(7)), and those of the tun driver.
//!
//! Each is one system call on one zeroed structure.

#![expect(unsafe_code, reason = "ioctls are untyped")]

use std::mem;
use std::os::fd::AsFd;

use rustix::io::{Errno, Result};
use rustix::ioctl::{IntegerSetter, Opcode, Setter, Updater, ioctl};

use super::InterfaceName;

const TUNSETIFF: Opcode = libc::TUNSETIFF as Opcode;
const TUNGETIFF: Opcode = libc::TUNGETIFF as Opcode;
const TUNSETOFFLOAD: Opcode = libc::TUNSETOFFLOAD as Opcode;
const TUNSETVNETHDRSZ: Opcode = libc::TUNSETVNETHDRSZ as Opcode;
const TUNSETVNETLE: Opcode = libc::TUNSETVNETLE as Opcode;
const SIOCGIFFLAGS: Opcode = libc::SIOCGIFFLAGS as Opcode;
const SIOCSIFFLAGS: Opcode = libc::SIOCSIFFLAGS as Opcode;
const SIOCGIFHWADDR: Opcode = libc::SIOCGIFHWADDR as Opcode;
const SIOCGIFMTU: Opcode = libc::SIOCGIFMTU as Opcode;
const SIOCSIFMTU: Opcode = libc::SIOCSIFMTU as Opcode;

/// Flags of a network interface (IFF_*), including flags that this crate does not use.
#[derive(Clone, Copy, Debug)]
pub(super) struct InterfaceFlags {
    raw: libc::c_short,
    pub(super) up: bool,
}

/// Attaches a file descriptor of the tun driver to the interface `name`, with or without a [`VnetHeader`] before each
/// frame.
///
/// [`VnetHeader`]: crate::vnet::VnetHeader
pub(super) fn attach(tun: impl AsFd, name: &InterfaceName, headers: bool) -> Result<()> {
    let mut request = named(name);
    let flags = libc::IFF_TAP | libc::IFF_NO_PI | if headers { libc::IFF_VNET_HDR } else { 0 };
    request.ifr_ifru.ifru_flags = libc::c_short::try_from(flags).map_err(|_| Errno::INVAL)?;
    // SAFETY: TUNSETIFF reads and writes one `ifreq`.
    unsafe { ioctl(tun, Updater::<TUNSETIFF, _>::new(&mut request)) }
}

/// Sets the size and byte order of a tap's virtio-net headers, which a previous process may have changed.
pub(super) fn settle_headers(tun: impl AsFd) -> Result<()> {
    let size = crate::vnet::VnetHeader::SIZE as libc::c_int;
    // SAFETY: TUNSETVNETHDRSZ reads one `int`.
    unsafe { ioctl(&tun, Setter::<TUNSETVNETHDRSZ, _>::new(size)) }?;
    let little = libc::c_int::from(cfg!(target_endian = "little"));
    // SAFETY: TUNSETVNETLE reads one `int`.
    unsafe { ioctl(&tun, Setter::<TUNSETVNETLE, _>::new(little)) }
}

/// Enables or disables all offloads of a tap: checksums and TCP segmentation.
pub(super) fn set_offloads(tun: impl AsFd, on: bool) -> Result<()> {
    let all = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    let offloads = if on { all as usize } else { 0 };
    // SAFETY: TUNSETOFFLOAD takes a number and no pointer.
    unsafe { ioctl(tun, IntegerSetter::<TUNSETOFFLOAD>::new_usize(offloads)) }
}

/// Interface that a tap's file descriptor is attached to.
pub(super) struct AttachedInterface {
    pub(super) name: String,
    pub(super) persistent: bool,
    /// True if a virtio-net header precedes each frame.
    pub(super) headers: bool,
}

/// Returns the interface that a tap's file descriptor is attached to.
pub(super) fn attachment(tun: impl AsFd) -> Result<AttachedInterface> {
    // SAFETY: all-zero is a valid `ifreq`: an empty name and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // SAFETY: TUNGETIFF writes one `ifreq`.
    unsafe { ioctl(tun, Updater::<TUNGETIFF, _>::new(&mut request)) }?;
    // SAFETY: TUNGETIFF answered in this member; the whole union was zeroed before.
    let flags = libc::c_int::from(unsafe { request.ifr_ifru.ifru_flags });
    if flags & libc::IFF_TAP == 0 {
        return Err(Errno::INVAL);
    }
    let bytes: Vec<u8> = request.ifr_name.iter().map(|byte| byte.cast_unsigned()).collect();
    let name = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
    Ok(AttachedInterface {
        name: String::from_utf8_lossy(name).into_owned(),
        persistent: flags & libc::IFF_PERSIST != 0,
        headers: flags & libc::IFF_VNET_HDR != 0,
    })
}

pub(super) fn flags(socket: impl AsFd, name: &InterfaceName) -> Result<InterfaceFlags> {
    let mut request = named(name);
    // SAFETY: SIOCGIFFLAGS reads and writes one `ifreq`.
    unsafe { ioctl(socket, Updater::<SIOCGIFFLAGS, _>::new(&mut request)) }?;
    // SAFETY: SIOCGIFFLAGS answered in this member; the whole union was zeroed before.
    let raw = unsafe { request.ifr_ifru.ifru_flags };
    Ok(InterfaceFlags { raw, up: libc::c_int::from(raw) & libc::IFF_UP != 0 })
}

pub(super) fn set_up(socket: impl AsFd, name: &InterfaceName, flags: InterfaceFlags) -> Result<()> {
    let mut request = named(name);
    let up = libc::c_short::try_from(libc::IFF_UP).map_err(|_| Errno::INVAL)?;
    request.ifr_ifru.ifru_flags = flags.raw | up;
    // SAFETY: SIOCSIFFLAGS reads one `ifreq`.
    unsafe { ioctl(socket, Updater::<SIOCSIFFLAGS, _>::new(&mut request)) }
}

/// Returns the Ethernet address of an interface by name. For a file descriptor of a macvtap, returns the address of the
/// macvtap's interface and ignores the name.
pub(super) fn address(socket: impl AsFd, name: &InterfaceName) -> Result<[libc::c_char; 6]> {
    let mut request = named(name);
    // SAFETY: SIOCGIFHWADDR reads and writes one `ifreq`.
    unsafe { ioctl(socket, Updater::<SIOCGIFHWADDR, _>::new(&mut request)) }?;
    // SAFETY: SIOCGIFHWADDR answered in this member; the whole union was zeroed before.
    let [a, b, c, d, e, f, ..] = unsafe { request.ifr_ifru.ifru_hwaddr.sa_data };
    Ok([a, b, c, d, e, f])
}

pub(super) fn mtu(socket: impl AsFd, name: &InterfaceName) -> Result<u32> {
    let mut request = named(name);
    // SAFETY: SIOCGIFMTU reads and writes one `ifreq`.
    unsafe { ioctl(socket, Updater::<SIOCGIFMTU, _>::new(&mut request)) }?;
    // SAFETY: SIOCGIFMTU answered in this member; the whole union was zeroed before.
    u32::try_from(unsafe { request.ifr_ifru.ifru_mtu }).map_err(|_| Errno::RANGE)
}

pub(super) fn set_mtu(socket: impl AsFd, name: &InterfaceName, mtu: u32) -> Result<()> {
    let mut request = named(name);
    request.ifr_ifru.ifru_mtu = libc::c_int::try_from(mtu).map_err(|_| Errno::INVAL)?;
    // SAFETY: SIOCSIFMTU reads one `ifreq`.
    unsafe { ioctl(socket, Updater::<SIOCSIFMTU, _>::new(&mut request)) }
}

fn named(name: &InterfaceName) -> libc::ifreq {
    // SAFETY: all-zero is a valid `ifreq`: an empty name and a union of plain numbers.
    let mut request: libc::ifreq = unsafe { mem::zeroed() };
    // At most 15 bytes, so that the last of the 16 stays zero.
    for (to, from) in request.ifr_name.iter_mut().zip(name.as_str().bytes()) {
        *to = from.cast_signed();
    }
    request
}
