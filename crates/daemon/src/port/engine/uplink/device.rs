//! Trait of a file descriptor that is attached to a network interface. `tap`, `packet` and `xdp` implement it, and
//! `interface` uses it.

use super::UplinkError;
use crate::control::uplink::InterfaceMode;
use host::packet::UnsentFrameCounts;
use host::tap::InterfaceName;
use nic::{TrustedChecksum, UnsegmentedPacketLayout};
use std::fmt::{Debug, Display};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

/// File descriptor that is attached to a network interface.
pub(super) trait UplinkDevice: AsFd + Debug + Send + Sync + Sized + 'static {
    /// Name of the kind of interface, in status and log.
    const KIND: &'static str;
    /// Name under which the keeper process stores the file descriptor of this kind of interface.
    const KEPT: &'static str = Self::KIND;
    /// Parameters for attaching to an interface, beside the interface's name.
    type Terms: Debug + Clone + Send + 'static;
    /// Frames queued between the port and the interface, in either direction.
    type Burst: Debug + Send + Default;

    /// Attaches to the interface at the port's start, as configured.
    fn open(name: &InterfaceName, terms: &Self::Terms) -> Result<Self, UplinkError>;

    /// Continues to use the interface of the previous host process. Returns `None` if its interface is gone, or still
    /// in use.
    fn adopt(fd: OwnedFd, name: &InterfaceName, terms: &Self::Terms) -> Option<Self>;

    /// Returns the present name of the interface to which a kept file descriptor of this kind belongs, or `None` if the
    /// interface was deleted. Returns `None` for kinds that [`UplinkDevice::adopt`] never attaches later than at the start.
    fn kept_name(_fd: BorrowedFd<'_>) -> Option<InterfaceName> {
        None
    }

    /// Attaches to an existing interface. Returns `None` if there is none. The error has the reason, and whether
    /// retries are useless.
    fn open_existing(name: &InterfaceName, terms: &Self::Terms) -> Result<Option<Self>, (String, bool)>;

    /// True if an interface of this kind has one attachment at a time. The file descriptor that is kept for the successor process
    /// is that attachment, so a device that the port gives back is the only one that can be attached again.
    const ONE_ATTACHMENT: bool = false;

    /// Returns the file descriptor to keep for the successor process.
    fn kept(&self) -> BorrowedFd<'_> {
        self.as_fd()
    }

    /// Returns the mode in which frames pass the interface, if its kind has several modes.
    fn mode(&self) -> Option<InterfaceMode> {
        None
    }

    /// True if a frame may be longer than the interface's maximum by its outermost VLAN tag. The kernel removes that
    /// tag before it checks the length.
    const TAG_ON_TOP: bool = false;

    /// Returns the longest frame that the device transfers in bytes, whatever the MTU.
    fn longest(&self) -> usize {
        usize::MAX
    }

    /// Returns the interface's present name, or `None` if it was deleted.
    fn interface(&self) -> Option<String>;

    /// Returns true if the interface is in the host's network namespace. Returns `None` for kinds that do not follow their
    /// interface to another namespace.
    ///
    /// # Errors
    /// The kernel's error.
    fn is_here(&self) -> io::Result<Option<bool>> {
        Ok(None)
    }

    /// Returns true if the interface is up in another network namespace than the host's.
    fn is_up_elsewhere(&self) -> bool;

    /// Sets the interface up if permitted, for kinds whose interface the host manages.
    fn set_up(&self);

    /// Queues a frame, to be sent by the next flush at the latest.
    fn transmit(&self, burst: &mut Self::Burst, frame: &[u8]) -> UnsentFrameCounts;

    /// Returns true if the interface accepts packets before segmentation.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Queues a packet for the interface to segment.
    fn transmit_uncut(
        &self,
        _burst: &mut Self::Burst,
        _packet: &[u8],
        _uncut: &UnsegmentedPacketLayout,
    ) -> UnsentFrameCounts {
        UnsentFrameCounts { no_room: 1, ..UnsentFrameCounts::default() }
    }

    /// Sends the queued frames on the interface.
    fn flush(&self, _burst: &mut Self::Burst) -> UnsentFrameCounts {
        UnsentFrameCounts::default()
    }

    /// Returns true if a flush has left frames that need another flush soon.
    fn has_left(_burst: &Self::Burst) -> bool {
        false
    }

    /// Receives the next frame from the interface. After [`UplinkReceiveOutcome::Empty`] the port waits on the file
    /// descriptor.
    fn receive(&self, burst: &mut Self::Burst, into: &mut [u8]) -> io::Result<UplinkReceiveOutcome>;

    /// Receives the next packet from the interface, unless a packet is pending. The packet stays pending. Returns false
    /// if there is none.
    fn fetch(&self, _burst: &mut Self::Burst) -> io::Result<bool> {
        Ok(true)
    }

    /// Returns the next packet, with headroom before it, if it is TCP before segmentation.
    fn uncut(_burst: &mut Self::Burst) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        None
    }

    /// Returns the kernel's guarantee about the checksum of the last received frame, or `None` if it gave none.
    fn sealed(_burst: &Self::Burst) -> Option<TrustedChecksum> {
        None
    }

    /// Returns the number of queued frames that the device has not sent. [`UplinkDevice::clear`] drops them.
    fn unsent(_burst: &mut Self::Burst) -> u32 {
        0
    }

    /// Returns the number of frames that the port did not receive in time, since the device was opened.
    fn missed(&self) -> u64 {
        0
    }

    /// Prepares the queues of frames for a newly attached device.
    fn begin(&self, _burst: &mut Self::Burst) {}

    /// Drops the frames queued for a device that was detached, and the burst's reference to that device.
    fn clear(_burst: &mut Self::Burst) {}
}

/// Result of an attempt to receive a frame from an interface.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum UplinkReceiveOutcome {
    /// A frame of this length in bytes was received.
    Frame(usize),
    /// The received data is not a valid frame for this port.
    Malformed,
    /// No frame of the interface is pending.
    Empty,
}

/// Returns the name under which the keeper process holds the file descriptor of an interface.
pub(super) fn kept_as<D: UplinkDevice>(name: &(impl Display + ?Sized)) -> String {
    format!("{}.{name}", D::KEPT)
}
