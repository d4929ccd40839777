//! A file descriptor attached to a network interface: the trait of its kinds. Left out: the kinds (`tap`, `packet`, `xdp`), and
//! the port's use of one (`device`).

use super::UplinkError;
use crate::control::uplink::InterfaceMode;
use host::packet::Lost;
use host::tap::InterfaceName;
use nic::{Sealed, Uncut};
use std::fmt::{Debug, Display};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// A file descriptor attached to a network interface.
pub(super) trait Device: AsFd + Debug + Send + Sync + Sized + 'static {
    /// What the status calls it, and the log.
    const KIND: &'static str;
    /// What the vault calls it.
    const KEPT: &'static str = Self::KIND;
    /// What is to be known of it but its name.
    type Terms: Debug + Clone + Send + 'static;
    /// Frames on their way between the port and the device.
    type Burst: Debug + Send + Default;

    /// Attaches at the port's start, as the configuration says.
    fn open(name: &InterfaceName, terms: &Self::Terms) -> Result<Self, UplinkError>;

    /// Goes on with a predecessor's; `None` if it is gone, or cannot be had yet.
    fn adopt(fd: OwnedFd, name: &InterfaceName, terms: &Self::Terms) -> Option<Self>;

    /// Attaches to one that is there; `None` if there is none. The error says why not, and whether it will always be so.
    fn open_existing(name: &InterfaceName, terms: &Self::Terms) -> Result<Option<Self>, (String, bool)>;

    /// What the vault keeps for a successor.
    fn kept(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    /// How an interface's frames pass.
    fn mode(&self) -> Option<InterfaceMode> {
        None
    }

    /// A frame's outermost VLAN tag comes on top of the longest frame: the kernel takes the tag off before it looks at the length.
    const TAG_ON_TOP: bool = false;

    /// The longest frame that it takes, whatever the MTU, bytes.
    fn longest(&self) -> usize {
        usize::MAX
    }

    /// What the interface is called now; `None` if it was deleted.
    fn interface(&self) -> Option<String>;

    /// Whether it is set up, if it is in another network namespace than the host's.
    fn is_up_elsewhere(&self) -> bool;

    /// Sets it up if that is allowed, where that is the host's to do.
    fn set_up(&self);

    /// Takes a frame, to be sent by the next flush at the latest.
    fn transmit(&self, burst: &mut Self::Burst, frame: &[u8]) -> Lost;

    /// Whether it takes packets that are not cut into segments yet.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Takes such a packet.
    fn transmit_uncut(&self, _burst: &mut Self::Burst, _packet: &[u8], _uncut: &Uncut) -> Lost {
        Lost { no_room: 1, ..Lost::default() }
    }

    /// Sends what it has taken.
    fn flush(&self, _burst: &mut Self::Burst) -> Lost {
        Lost::default()
    }

    /// Whether it has to be flushed again soon, though nothing else happens.
    fn has_left(_burst: &Self::Burst) -> bool {
        false
    }

    /// The next frame. When it is empty the descriptor is waited on.
    fn receive(&self, burst: &mut Self::Burst, into: &mut [u8]) -> io::Result<Received>;

    /// What is known of the checksum of the frame that was received last.
    fn sealed(_burst: &Self::Burst) -> Option<Sealed> {
        None
    }

    /// Frames that came and that the port did not take in time, since the device was opened.
    fn missed(&self) -> u64 {
        0
    }

    /// Moves frames by this burst from now on.
    fn begin(&self, _burst: &mut Self::Burst) {}

    /// Forgets the frames that another device has left, and that device.
    fn clear(_burst: &mut Self::Burst) {}
}

/// What has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Received {
    /// A frame, and its length in bytes.
    Frame(usize),
    /// Something that is no frame for this port.
    Malformed,
    /// Nothing now.
    Empty,
}

/// Under which name the vault has a device.
pub(super) fn kept_as<D: Device>(name: &(impl Display + ?Sized)) -> String {
    format!("{}.{name}", D::KEPT)
}
