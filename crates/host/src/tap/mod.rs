//! Tap: a network interface of the host whose wire is this process. An uplink of a port.
//!
//! Frames are whole Ethernet frames without a check sequence, one per read or write, and no call blocks on them.
//! Creating an interface takes CAP_NET_ADMIN; attaching to one that was created for this user (`ip tuntap add dev
//! NAME mode tap user USER`) does not. An attached tap stays attached when its interface is renamed or moves to
//! another network namespace.
//!
//! Attaching, detaching and requests about the interface may wait for the kernel's lock on interfaces; frames never
//! do. A [`VnetHeader`] precedes each frame, where the kernel supports it. It describes partial frames only to a
//! process that accepts offloads ([`Tap::take_offloads`]). A macvtap is one more kind of tap (`macvtap`). A tap has
//! one queue; addresses and bridges are the administrator's.

mod macvtap;
mod name;
mod request;
#[cfg(test)]
mod tests;

use std::io::{self, IoSlice, IoSliceMut};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fs::{Mode, OFlags, fcntl_getfl, fcntl_setfl, open};
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socket_with};

use crate::vnet::VnetHeader;
pub use name::{InterfaceName, InvalidInterfaceName};

/// Reason why a tap or macvtap could not be opened or set up.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The kernel has no tap driver, or the container hides the driver's device file.
    #[error("/dev/net/tun does not exist: load the tun module, or give the container the device")]
    NoDriver,
    /// The device file of the tap driver may not be opened.
    #[error("cannot open /dev/net/tun: give this user read and write access to the device")]
    NoAccess,
    /// The user has neither the privilege for the action on the tap nor an existing tap of that name.
    #[error(
        "cannot {doing} tap {name}: that needs root or CAP_NET_ADMIN; or let root create the tap beforehand: \
         ip tuntap add dev {name} mode tap user $USER && ip link set {name} up"
    )]
    NotPermitted {
        /// Name of the tap that could not be opened.
        name: InterfaceName,
        /// Failed action on the tap, as an infinitive.
        doing: &'static str,
    },
    /// Another process is attached to the tap.
    #[error("tap {name} is in use by another process")]
    InUse {
        /// Name of the tap in use.
        name: InterfaceName,
    },
    /// An interface of another kind has the requested tap's name.
    #[error("interface {name} exists and is not a tap with one queue")]
    NotATap {
        /// Name of the interface that is no tap.
        name: InterfaceName,
    },
    /// No interface has the requested macvtap's name.
    #[error(
        "interface {name} does not exist; create a macvtap: ip link add link eth1 name {name} type macvtap mode passthru"
    )]
    NoMacvtap {
        /// Requested name, which no interface has.
        name: InterfaceName,
    },
    /// The interface has no macvtap device file, or the file belongs to another interface.
    #[error(
        "{path} is not the device file of {name}; create a macvtap: ip link add link eth1 name {name} type macvtap mode \
         passthru; if {name} is one, this container does not show its file: mknod {path} c MAJOR MINOR, with the \
         numbers in /sys/class/net/{name}/macvtap/*/dev"
    )]
    NoDeviceFile {
        /// Name of the macvtap's interface.
        name: InterfaceName,
        /// Path at which the macvtap's device file was expected.
        path: String,
    },
    /// The device file of a macvtap may not be opened.
    #[error(
        "cannot open {path}: give this user read and write access to the file; a host with Landlock opens \
         only a file that existed when the host started"
    )]
    NoFileAccess {
        /// Path of the device file that may not be opened.
        path: String,
    },
    /// The kernel refused to open or set up the tap.
    #[error("cannot {doing} tap {name}")]
    System {
        /// Name of the tap.
        name: InterfaceName,
        /// Failed action on the tap, as an infinitive.
        doing: &'static str,
        /// Kernel's error for the refused operation on the tap.
        #[source]
        source: io::Error,
    },
}

/// Result of a read from a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapReceiveResult {
    /// Frame of this length in bytes, with its virtio-net header. The part of the frame that did not fit the buffer is
    /// lost.
    Frame(usize, VnetHeader),
    /// Packet that the kernel cannot describe with a virtio-net header, and has dropped.
    Malformed,
    /// No frame from the host is pending in the tap.
    Empty,
}

/// Result of a write to a tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapSendResult {
    /// The host's network stack has taken the frame.
    Sent,
    /// The host's queue of frames from the tap is full.
    Full,
    /// The interface is down; the frame is dropped, as on an unplugged wire.
    Down,
}

/// Interface that a tap is attached to: its current name, and whether it remains without the tap.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TapInterface {
    /// Name of the interface, in its current network namespace.
    pub name: String,
    /// True if the interface remains when no process is attached to the tap. An interface that [`Tap::open`] creates is
    /// removed.
    pub persistent: bool,
}

/// Attached tap. Dropping it removes the interface, unless its owner has made it persistent.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: InterfaceName,
    /// True if a virtio-net header precedes each frame of the tap.
    headers: bool,
}

impl Tap {
    /// Attaches to the tap of this name, or creates it, in the calling thread's network namespace.
    ///
    /// # Errors
    /// See [`TapError`].
    pub fn open(name: &InterfaceName) -> Result<Self, TapError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open("/dev/net/tun", flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => TapError::NoDriver,
            Errno::ACCESS | Errno::PERM => TapError::NoAccess,
            other => system(name, "open")(other),
        })?;
        Self::attach(fd, name)
    }

    /// Attaches to the tap of this name. Returns `None` if there is none.
    ///
    /// # Errors
    /// See [`TapError`]. Without the privilege to create a tap, [`TapError::NotPermitted`] if there is none.
    pub fn open_existing(name: &InterfaceName) -> Result<Option<Self>, TapError> {
        let tap = Self::open(name)?;
        // The kernel creates a missing tap, which is then not persistent. A tap that another process created so
        // would be in use.
        let was_there = tap.attachment().is_ok_and(|interface| interface.persistent);
        Ok(was_there.then_some(tap))
    }

    /// Adopts a file descriptor of another process's tap with this name. The descriptor remains attached to the tap.
    ///
    /// # Errors
    /// [`TapError::NotATap`] if the descriptor is not attached to a tap, or the tap was deleted;
    /// [`TapError::System`].
    pub fn adopt(fd: OwnedFd, name: &InterfaceName) -> Result<Self, TapError> {
        let flags = fcntl_getfl(&fd).map_err(system(name, "take over"))?;
        fcntl_setfl(&fd, flags | OFlags::NONBLOCK).map_err(system(name, "take over"))?;
        match request::attachment(&fd) {
            Ok(attached) => Ok(Self { fd, name: name.clone(), headers: attached.headers }),
            Err(_) => Err(TapError::NotATap { name: name.clone() }),
        }
    }

    fn attach(fd: OwnedFd, name: &InterfaceName) -> Result<Self, TapError> {
        // A kernel without headers returns the same error as for an interface of another kind.
        let headers = match request::attach(&fd, name, true) {
            Err(Errno::INVAL) => request::attach(&fd, name, false).map(|()| false),
            other => other.map(|()| true),
        };
        let headers = headers.map_err(|errno| match errno {
            Errno::BUSY => TapError::InUse { name: name.clone() },
            Errno::INVAL => TapError::NotATap { name: name.clone() },
            other => system(name, "create or attach to")(other),
        })?;
        let tap = Self { fd, name: name.clone(), headers };
        if headers {
            request::settle_headers(&tap.fd).map_err(system(name, "set up the frames of"))?;
        }
        // A previous process may have enabled offloads.
        tap.leave_offloads();
        Ok(tap)
    }

    /// Enables offloads: the host may send and accept frames without checksum and unsegmented TCP packets. Returns
    /// false if the kernel does not support offloads; every frame is then complete and segmented.
    #[must_use]
    pub fn take_offloads(&self) -> bool {
        self.headers && request::set_offloads(&self.fd, true).is_ok()
    }

    fn leave_offloads(&self) {
        // A kernel without offloads has none enabled.
        let _ = request::set_offloads(&self.fd, false);
    }

    /// Returns the name that the tap was opened with.
    #[must_use]
    pub fn name(&self) -> &InterfaceName {
        &self.name
    }

    /// Returns the interface that the tap is attached to.
    ///
    /// # Errors
    /// The interface was deleted, or another error of the kernel.
    pub fn attachment(&self) -> io::Result<TapInterface> {
        let request::AttachedInterface { name, persistent, .. } = request::attachment(&self.fd)?;
        Ok(TapInterface { name, persistent })
    }

    /// Returns true if the interface is in the calling thread's network namespace. Needs no privilege.
    ///
    /// # Errors
    /// The interface was deleted, or another error of the kernel.
    pub fn is_here(&self) -> io::Result<bool> {
        let control = self.control().map_err(io::Error::other)?;
        // Name and address may change between the questions about them.
        for _ in 0..2 {
            match self.present_name(&control) {
                Ok(_) => return Ok(true),
                Err(Errno::NODEV) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Ok(false)
    }

    /// Returns true if the interface is up, in any network namespace. Needs no privilege.
    ///
    /// # Errors
    /// The kernel's error.
    pub fn is_up(&self) -> io::Result<bool> {
        // The driver accepts frames exactly while the interface is up.
        let mut waiting = [PollFd::new(&self.fd, PollFlags::OUT)];
        poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(waiting[0].revents().contains(PollFlags::OUT))
    }

    /// Sets the tap's interface up. Needs no privilege if the interface is up already.
    ///
    /// # Errors
    /// [`TapError::NotPermitted`], [`TapError::System`].
    pub fn set_up(&self) -> Result<(), TapError> {
        let control = self.control()?;
        let properties = system(&self.name, "read the properties of");
        let name = self.present_name(&control).map_err(&properties)?;
        let flags = request::flags(&control, &name).map_err(properties)?;
        if flags.up {
            return Ok(());
        }
        request::set_up(&control, &name, flags).map_err(system(&self.name, "set up"))
    }

    /// Returns the interface's current name, for a request about it in the network namespace of the socket `control`. Returns
    /// NODEV if the interface is in another namespace.
    fn present_name(&self, control: &OwnedFd) -> Result<InterfaceName, Errno> {
        let name = request::attachment(&self.fd)?.name.parse().map_err(|_| Errno::NODEV)?;
        // An interface of this namespace may have the same name.
        if request::address(control, &name)? == request::address(&self.fd, &name)? {
            Ok(name)
        } else {
            Err(Errno::NODEV)
        }
    }

    /// Returns the tap's MTU: the largest payload of a frame in bytes, without its Ethernet header.
    ///
    /// # Errors
    /// [`TapError::System`].
    pub fn mtu(&self) -> Result<u32, TapError> {
        let control = self.control()?;
        let mtu = self.present_name(&control).and_then(|name| request::mtu(&control, &name));
        mtu.map_err(system(&self.name, "read the properties of"))
    }

    /// Sets the tap's MTU, 68 to 65,521 bytes. Needs no privilege if the MTU is that already.
    ///
    /// # Errors
    /// [`TapError::NotPermitted`], [`TapError::System`].
    pub fn set_mtu(&self, mtu: u32) -> Result<(), TapError> {
        let control = self.control()?;
        let name = self.present_name(&control).map_err(system(&self.name, "read the properties of"))?;
        if request::mtu(&control, &name) == Ok(mtu) {
            return Ok(());
        }
        request::set_mtu(&control, &name, mtu).map_err(system(&self.name, "set the MTU of"))
    }

    /// Receives the next frame of the host. The buffer should hold the MTU and 18 bytes of header; with offloads,
    /// 65,535 bytes and the header.
    ///
    /// # Errors
    /// The interface was deleted, or another error of the kernel.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<TapReceiveResult> {
        let mut header = [0; VnetHeader::SIZE];
        let place = if self.headers { &mut header[..] } else { &mut [] };
        let before = place.len();
        match rustix::io::readv(&self.fd, &mut [IoSliceMut::new(place), IoSliceMut::new(buffer)]) {
            Ok(length) => {
                Ok(TapReceiveResult::Frame(length.saturating_sub(before), VnetHeader::parse(&header)))
            }
            Err(Errno::AGAIN | Errno::INTR) => Ok(TapReceiveResult::Empty),
            Err(Errno::INVAL) => Ok(TapReceiveResult::Malformed),
            Err(error) => Err(error.into()),
        }
    }

    /// Sends a frame over the tap to the host.
    ///
    /// # Errors
    /// `InvalidInput` for a frame shorter than its header; the interface was deleted; another error of the kernel.
    pub fn send(&self, frame: &[u8]) -> io::Result<TapSendResult> {
        self.send_with(&VnetHeader::default(), frame)
    }

    /// Sends a frame with its virtio-net header to the host. The header is omitted where the kernel does not support
    /// it.
    ///
    /// # Errors
    /// Returns the errors of [`Tap::send`]; `InvalidInput` too if the header contradicts the frame.
    pub fn send_with(&self, header: &VnetHeader, frame: &[u8]) -> io::Result<TapSendResult> {
        let header = header.emit();
        let header = if self.headers { &header[..] } else { &[] };
        match rustix::io::writev(&self.fd, &[IoSlice::new(header), IoSlice::new(frame)]) {
            Ok(_) => Ok(TapSendResult::Sent),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => Ok(TapSendResult::Full),
            Err(Errno::IO) => Ok(TapSendResult::Down),
            Err(error) => Err(error.into()),
        }
    }

    fn control(&self) -> Result<OwnedFd, TapError> {
        control(&self.name)
    }
}

/// Opens a socket for requests about interfaces of the calling thread's network namespace.
fn control(name: &InterfaceName) -> Result<OwnedFd, TapError> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    socket.map_err(system(name, "read the properties of"))
}

impl AsFd for Tap {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.fd.as_fd()
    }
}

fn system(name: &InterfaceName, doing: &'static str) -> impl Fn(Errno) -> TapError + use<> {
    let name = name.clone();
    move |errno| match errno {
        Errno::PERM | Errno::ACCESS => TapError::NotPermitted { name: name.clone(), doing },
        other => TapError::System { name: name.clone(), doing, source: other.into() },
    }
}
