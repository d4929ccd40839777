//! A tap: a network interface of the host whose wire is this process. The uplink of a port.
//!
//! Frames are whole Ethernet frames without a check sequence, one to a read or write, and nothing blocks.
//! Creating an interface takes CAP_NET_ADMIN; attaching to one that was made for this user
//! (`ip tuntap add dev NAME mode tap user USER`) does not. An attached tap stays attached when its interface is
//! renamed or moves to another network namespace.
//!
//! Attaching, letting go and all that asks about the interface may wait for the kernel's lock on interfaces; frames
//! never do. In front of each frame is a [`VnetHeader`], where the kernel knows that. What it says beside "a whole frame"
//! it says only to who takes offloads ([`Tap::take_offloads`]). A macvtap is one more kind of tap (`macvtap`). Left out:
//! several queues; addresses and bridges, which are the administrator's.

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
pub use name::{InterfaceName, InvalidName};

/// Why a tap could not be opened or set up.
#[derive(Debug, thiserror::Error)]
pub enum TapError {
    /// The kernel has no tap driver, or the container does not show it.
    #[error("/dev/net/tun does not exist: load the tun module, or let the container have the device")]
    NoDriver,
    /// The device file may not be opened.
    #[error("/dev/net/tun may not be opened: give this user read and write access to it")]
    NoAccess,
    /// Neither privileged nor the owner of an existing interface.
    #[error(
        "{doing} tap {name} needs root or CAP_NET_ADMIN; or let root make it beforehand: \
         ip tuntap add dev {name} mode tap user $USER && ip link set {name} up"
    )]
    NotPermitted {
        /// The interface.
        name: InterfaceName,
        /// Which step failed.
        doing: &'static str,
    },
    /// Another process is attached.
    #[error("tap {name} is in use by another process")]
    InUse {
        /// The interface.
        name: InterfaceName,
    },
    /// An interface of that name is something else.
    #[error("{name} exists and is not a tap with one queue")]
    NotATap {
        /// The interface.
        name: InterfaceName,
    },
    /// There is no interface of this name.
    #[error(
        "interface {name} does not exist; make a macvtap: ip link add link eth1 name {name} type macvtap mode passthru"
    )]
    NoMacvtap {
        /// The interface.
        name: InterfaceName,
    },
    /// An interface that has no macvtap's device file, or that of another one.
    #[error(
        "{path} is not the device file of {name}; make a macvtap: ip link add link eth1 name {name} type macvtap mode \
         passthru; if {name} is one, this container does not show its file: mknod {path} c MAJOR MINOR, with the \
         numbers in /sys/class/net/{name}/macvtap/*/dev"
    )]
    NoDeviceFile {
        /// The interface.
        name: InterfaceName,
        /// The file.
        path: String,
    },
    /// The device file of a macvtap may not be opened.
    #[error(
        "{path} may not be opened: give this user read and write access to it; a host with Landlock opens only the \
         file that was there when it started"
    )]
    NoFileAccess {
        /// The file.
        path: String,
    },
    /// The kernel refused.
    #[error("{doing} tap {name} failed")]
    System {
        /// The interface.
        name: InterfaceName,
        /// Which step failed.
        doing: &'static str,
        /// What the kernel said.
        #[source]
        source: io::Error,
    },
}

/// What a read from the tap brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapReceived {
    /// A frame, and its length in bytes; what did not fit into the buffer is lost. And what the kernel says of it.
    Frame(usize, VnetHeader),
    /// Nothing now.
    Empty,
}

/// What became of a frame written to the tap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TapSent {
    /// The host has it.
    Sent,
    /// The host has no room for it now.
    Full,
    /// The interface is down; the frame is lost, as on a wire that is not plugged in.
    Down,
}

/// The interface that a tap is attached to, as it is now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Attachment {
    /// Its name, in whatever network namespace it is.
    pub name: String,
    /// It stays when nobody is attached to it. One that [`Tap::open`] creates does not.
    pub persistent: bool,
}

/// An attached tap. The interface goes with it unless it was made persistent by its owner.
#[derive(Debug)]
pub struct Tap {
    fd: OwnedFd,
    name: InterfaceName,
    /// Frames have headers in front of them.
    headers: bool,
}

impl Tap {
    /// Attaches to the tap of this name, or creates it, in the network namespace of the calling thread.
    ///
    /// # Errors
    /// See [`TapError`].
    pub fn open(name: &InterfaceName) -> Result<Self, TapError> {
        let flags = OFlags::RDWR | OFlags::NONBLOCK | OFlags::CLOEXEC;
        let fd = open("/dev/net/tun", flags, Mode::empty()).map_err(|errno| match errno {
            Errno::NOENT | Errno::NXIO | Errno::NODEV => TapError::NoDriver,
            Errno::ACCESS | Errno::PERM => TapError::NoAccess,
            other => system(name, "opening")(other),
        })?;
        Self::attach(fd, name)
    }

    /// Attaches to the tap of this name if there is one, and creates none.
    ///
    /// # Errors
    /// See [`TapError`]; without the privilege to create one, [`TapError::NotPermitted`] if there is none.
    pub fn open_existing(name: &InterfaceName) -> Result<Option<Self>, TapError> {
        let tap = Self::open(name)?;
        // The kernel has created what was not there, and what it creates so is not persistent. One that another
        // process has created so would be in use.
        let was_there = tap.attachment().is_ok_and(|interface| interface.persistent);
        Ok(was_there.then_some(tap))
    }

    /// Takes over a descriptor that another process had from [`Tap::open`] with this name. It stays attached.
    ///
    /// # Errors
    /// [`TapError::NotATap`] if it is not attached to a tap, or the tap was deleted meanwhile; [`TapError::System`].
    pub fn adopt(fd: OwnedFd, name: &InterfaceName) -> Result<Self, TapError> {
        let flags = fcntl_getfl(&fd).map_err(system(name, "taking over"))?;
        fcntl_setfl(&fd, flags | OFlags::NONBLOCK).map_err(system(name, "taking over"))?;
        match request::attachment(&fd) {
            Ok(attached) => Ok(Self { fd, name: name.clone(), headers: attached.headers }),
            Err(_) => Err(TapError::NotATap { name: name.clone() }),
        }
    }

    fn attach(fd: OwnedFd, name: &InterfaceName) -> Result<Self, TapError> {
        // A kernel that knows no headers refuses them as it refuses what is no tap.
        let headers = match request::attach(&fd, name, true) {
            Err(Errno::INVAL) => request::attach(&fd, name, false).map(|()| false),
            other => other.map(|()| true),
        };
        let headers = headers.map_err(|errno| match errno {
            Errno::BUSY => TapError::InUse { name: name.clone() },
            Errno::INVAL => TapError::NotATap { name: name.clone() },
            other => system(name, "creating or attaching to")(other),
        })?;
        let tap = Self { fd, name: name.clone(), headers };
        if headers {
            request::settle_headers(&tap.fd).map_err(system(name, "setting up the frames of"))?;
        }
        // Who was attached before may have taken more.
        tap.leave_offloads();
        Ok(tap)
    }

    /// Has the host leave to the receiver what it can: checksums, and the cutting of TCP packets into segments. And it may
    /// be sent such. `false` if this kernel cannot, and everything stays as it was: whole frames.
    #[must_use]
    pub fn take_offloads(&self) -> bool {
        self.headers && request::set_offloads(&self.fd, true).is_ok()
    }

    fn leave_offloads(&self) {
        // A kernel that knows no offloads has none on.
        let _ = request::set_offloads(&self.fd, false);
    }

    /// The name it was opened by.
    #[must_use]
    pub fn name(&self) -> &InterfaceName {
        &self.name
    }

    /// The interface that this is attached to.
    ///
    /// # Errors
    /// The interface was deleted, or what else the kernel says.
    pub fn attachment(&self) -> io::Result<Attachment> {
        let request::Attached { name, persistent, .. } = request::attachment(&self.fd)?;
        Ok(Attachment { name, persistent })
    }

    /// Whether the interface is set up, in whatever network namespace it is. Needs no privilege.
    ///
    /// # Errors
    /// What the kernel says.
    pub fn is_up(&self) -> io::Result<bool> {
        // The driver has room for frames exactly while the interface is up.
        let mut waiting = [PollFd::new(&self.fd, PollFlags::OUT)];
        poll(&mut waiting, Some(&Timespec { tv_sec: 0, tv_nsec: 0 }))?;
        Ok(waiting[0].revents().contains(PollFlags::OUT))
    }

    /// Sets the interface up. Needs no privilege if it is up already.
    ///
    /// # Errors
    /// [`TapError::NotPermitted`], [`TapError::System`].
    pub fn set_up(&self) -> Result<(), TapError> {
        let control = self.control()?;
        let flags = request::flags(&control, &self.name).map_err(system(&self.name, "looking at"))?;
        if flags.up {
            return Ok(());
        }
        request::set_up(&control, &self.name, flags).map_err(system(&self.name, "setting up"))
    }

    /// The largest payload of a frame, in bytes, without its Ethernet header.
    ///
    /// # Errors
    /// [`TapError::System`].
    pub fn mtu(&self) -> Result<u32, TapError> {
        request::mtu(&self.control()?, &self.name).map_err(system(&self.name, "looking at"))
    }

    /// Sets the largest payload of a frame, 68 to 65,521 bytes. Needs no privilege if it is that already.
    ///
    /// # Errors
    /// [`TapError::NotPermitted`], [`TapError::System`].
    pub fn set_mtu(&self, mtu: u32) -> Result<(), TapError> {
        let control = self.control()?;
        if request::mtu(&control, &self.name) == Ok(mtu) {
            return Ok(());
        }
        request::set_mtu(&control, &self.name, mtu).map_err(system(&self.name, "setting the MTU of"))
    }

    /// Takes the next frame the host sends, into a buffer that should hold the MTU and 18 bytes of header; with offloads,
    /// 65,535 bytes and the header.
    ///
    /// # Errors
    /// The interface is gone, or what else the kernel says.
    pub fn recv(&self, buffer: &mut [u8]) -> io::Result<TapReceived> {
        let mut header = [0; VnetHeader::SIZE];
        let place = if self.headers { &mut header[..] } else { &mut [] };
        let before = place.len();
        match rustix::io::readv(&self.fd, &mut [IoSliceMut::new(place), IoSliceMut::new(buffer)]) {
            Ok(length) => Ok(TapReceived::Frame(length.saturating_sub(before), VnetHeader::parse(&header))),
            Err(Errno::AGAIN | Errno::INTR) => Ok(TapReceived::Empty),
            Err(error) => Err(error.into()),
        }
    }

    /// Gives the host a frame.
    ///
    /// # Errors
    /// `InvalidInput` for a frame shorter than its header; the interface is gone; what else the kernel says.
    pub fn send(&self, frame: &[u8]) -> io::Result<TapSent> {
        self.send_with(&VnetHeader::default(), frame)
    }

    /// Gives the host a frame of which it has to know something; where it knows no headers, nothing.
    ///
    /// # Errors
    /// As [`Tap::send`]; `InvalidInput` too if the header is not true of the frame.
    pub fn send_with(&self, header: &VnetHeader, frame: &[u8]) -> io::Result<TapSent> {
        let header = header.emit();
        let header = if self.headers { &header[..] } else { &[] };
        match rustix::io::writev(&self.fd, &[IoSlice::new(header), IoSlice::new(frame)]) {
            Ok(_) => Ok(TapSent::Sent),
            Err(Errno::AGAIN | Errno::NOBUFS | Errno::NOMEM | Errno::INTR) => Ok(TapSent::Full),
            Err(Errno::IO) => Ok(TapSent::Down),
            Err(error) => Err(error.into()),
        }
    }

    fn control(&self) -> Result<OwnedFd, TapError> {
        control(&self.name)
    }
}

/// Any socket carries requests about interfaces; it sees the namespace of the thread that made it.
fn control(name: &InterfaceName) -> Result<OwnedFd, TapError> {
    let socket = socket_with(AddressFamily::UNIX, SocketType::DGRAM, SocketFlags::CLOEXEC, None);
    socket.map_err(system(name, "looking at"))
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
