//! Tap or macvtap as a port's uplink. One call moves one frame, or one packet before segmentation. The other end is
//! this machine's network stack, or an interface (macvtap). `watch` watches the interface behind it.

use super::UplinkError;
use super::device::{UplinkDevice, UplinkReceiveOutcome};
use super::offload::{self, KernelPacket};
use host::packet::UnsentFrameCounts;
use host::tap::{InterfaceName, Tap, TapError, TapReceiveResult, TapSendResult};
use host::vnet::VnetHeader;
use nic::{TrustedChecksum, UnsegmentedPacketLayout};
use std::fmt::Debug;
use std::io;
use std::marker::PhantomData;
use std::os::fd::OwnedFd;

/// Kind of tap device, tap or macvtap, with the operations in which they differ.
pub(super) trait TapKind: Debug + Send + Sync + 'static {
    const KIND: &'static str;
    /// True if a frame may be longer than the interface's maximum by its outermost VLAN tag
    /// ([`UplinkDevice::TAG_ON_TOP`]).
    const TAG_ON_TOP: bool;
    /// True if the tap has one queue, which one process attaches to ([`UplinkDevice::ONE_ATTACHMENT`]).
    const ONE_ATTACHMENT: bool;

    /// Attaches to the tap at the port's start.
    fn open(name: &InterfaceName) -> Result<Tap, TapError>;

    /// Attaches to an existing tap, later than at the start. Returns `None` if there is none.
    fn open_existing(name: &InterfaceName) -> Result<Option<Tap>, TapError>;

    /// Sets the tap up, if the host manages the tap and is permitted to.
    fn set_up(_tap: &Tap) {}
}

/// Tap whose other end is this machine's network stack. A missing tap is created.
#[derive(Debug)]
pub(super) struct HostStackTap;

impl TapKind for HostStackTap {
    const KIND: &'static str = "tap";
    const TAG_ON_TOP: bool = true;
    const ONE_ATTACHMENT: bool = true;

    fn open(name: &InterfaceName) -> Result<Tap, TapError> {
        Tap::open(name)
    }

    fn open_existing(name: &InterfaceName) -> Result<Option<Tap>, TapError> {
        Tap::open_existing(name)
    }

    fn set_up(tap: &Tap) {
        // Another program may set the interface up, and may be the only one that is permitted to.
        if let Err(error) = tap.set_up() {
            tracing::info!(
                tap = tap.name().as_str(),
                %error,
                "cannot set the tap up; run `ip link set TAP up`"
            );
        }
    }
}

/// Macvtap, an interface that its administrator creates and deletes.
#[derive(Debug)]
pub(super) struct Macvtap;

impl TapKind for Macvtap {
    const KIND: &'static str = "macvtap";
    /// False, because the VLAN tag stays in the frame until the interface below the macvtap receives the frame.
    const TAG_ON_TOP: bool = false;
    const ONE_ATTACHMENT: bool = false;

    fn open(name: &InterfaceName) -> Result<Tap, TapError> {
        Tap::open_macvtap(name)?.ok_or_else(|| TapError::NoMacvtap { name: name.clone() })
    }

    fn open_existing(name: &InterfaceName) -> Result<Option<Tap>, TapError> {
        Tap::open_macvtap(name)
    }
}

/// Attached tap or macvtap of a port.
#[derive(Debug)]
pub(super) struct TapDevice<S> {
    tap: Tap,
    /// True if the tap accepts and delivers packets before segmentation. A kernel without offloads does not.
    offloads: bool,
    source: PhantomData<S>,
}

impl<S> TapDevice<S> {
    fn new(tap: Tap) -> Self {
        let offloads = tap.take_offloads();
        if !offloads {
            let name = tap.name().as_str();
            tracing::info!(tap = name, "the kernel offers no offloads for the tap; TCP is slower");
        }
        Self { tap, offloads, source: PhantomData }
    }

    fn send(&self, header: &VnetHeader, frame: &[u8]) -> UnsentFrameCounts {
        match self.tap.send_with(header, frame) {
            Ok(TapSendResult::Sent) => UnsentFrameCounts::default(),
            Ok(TapSendResult::Full) => UnsentFrameCounts { no_room: 1, ..UnsentFrameCounts::default() },
            // The kernel refuses the frame or its header. The interface may be up.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
                UnsentFrameCounts { no_room: 1, ..UnsentFrameCounts::default() }
            }
            Ok(TapSendResult::Down) | Err(_) => {
                UnsentFrameCounts { no_link: 1, ..UnsentFrameCounts::default() }
            }
        }
    }
}

impl<S> std::os::fd::AsFd for TapDevice<S> {
    fn as_fd(&self) -> std::os::fd::BorrowedFd<'_> {
        self.tap.as_fd()
    }
}

impl<S: TapKind> UplinkDevice for TapDevice<S> {
    const KIND: &'static str = S::KIND;
    const TAG_ON_TOP: bool = S::TAG_ON_TOP;
    const ONE_ATTACHMENT: bool = S::ONE_ATTACHMENT;
    type Terms = ();
    type Burst = KernelPacket;

    fn open(name: &InterfaceName, (): &()) -> Result<Self, UplinkError> {
        Ok(Self::new(S::open(name)?))
    }

    fn adopt(fd: OwnedFd, name: &InterfaceName, (): &()) -> Option<Self> {
        Some(Self::new(Tap::adopt(fd, name).ok()?))
    }

    fn open_existing(name: &InterfaceName, (): &()) -> Result<Option<Self>, (String, bool)> {
        let tap = S::open_existing(name)
            .map_err(|error| (error.to_string(), matches!(error, TapError::NotATap { .. })))?;
        Ok(tap.map(Self::new))
    }

    fn interface(&self) -> Option<String> {
        Some(self.tap.attachment().ok()?.name)
    }

    fn is_here(&self) -> io::Result<Option<bool>> {
        self.tap.is_here().map(Some)
    }

    fn is_up_elsewhere(&self) -> bool {
        self.tap.is_up().unwrap_or(false)
    }

    fn set_up(&self) {
        S::set_up(&self.tap);
    }

    fn transmit(&self, _burst: &mut KernelPacket, frame: &[u8]) -> UnsentFrameCounts {
        self.send(&VnetHeader::default(), frame)
    }

    fn takes_uncut(&self) -> bool {
        self.offloads
    }

    fn transmit_uncut(
        &self,
        _burst: &mut KernelPacket,
        packet: &[u8],
        uncut: &UnsegmentedPacketLayout,
    ) -> UnsentFrameCounts {
        self.send(&offload::header(uncut), packet)
    }

    fn fetch(&self, arrival: &mut KernelPacket) -> io::Result<bool> {
        if !self.offloads || !arrival.is_empty() {
            return Ok(true);
        }
        let is_valid = match self.tap.recv(arrival.place())? {
            TapReceiveResult::Frame(length, header) => arrival.put(length, &header).is_ok(),
            TapReceiveResult::Malformed => false,
            TapReceiveResult::Empty => return Ok(false),
        };
        if !is_valid {
            arrival.put_malformed();
        }
        Ok(true)
    }

    fn uncut(arrival: &mut KernelPacket) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        arrival.uncut()
    }

    fn receive(&self, arrival: &mut KernelPacket, into: &mut [u8]) -> io::Result<UplinkReceiveOutcome> {
        if arrival.take_malformed() {
            return Ok(UplinkReceiveOutcome::Malformed);
        }
        if let Some(length) = arrival.take(into) {
            return Ok(UplinkReceiveOutcome::Frame(length));
        }
        let frame = match self.tap.recv(arrival.place())? {
            TapReceiveResult::Frame(length, header) => {
                arrival.put(length, &header).ok().and_then(|()| arrival.take(into))
            }
            TapReceiveResult::Malformed => None,
            TapReceiveResult::Empty => return Ok(UplinkReceiveOutcome::Empty),
        };
        Ok(frame.map_or(UplinkReceiveOutcome::Malformed, UplinkReceiveOutcome::Frame))
    }

    fn sealed(arrival: &KernelPacket) -> Option<TrustedChecksum> {
        arrival.sealed()
    }

    fn clear(arrival: &mut KernelPacket) {
        arrival.forget();
    }
}

#[cfg(test)]
mod tests {
    use super::{HostStackTap, TapDevice, UnsentFrameCounts};
    use crate::port::engine::uplink::device::UplinkDevice;
    use host::test_support::in_network_namespace;

    #[test]
    fn frame_that_a_tap_refuses_counts_as_no_lack_of_a_link() {
        in_network_namespace("refused frame", || {
            let tap = TapDevice::<HostStackTap>::open(&"refuses0".parse().unwrap(), &()).unwrap();
            let mut burst = Default::default();
            let no_link = UnsentFrameCounts { no_link: 1, ..UnsentFrameCounts::default() };
            assert_eq!(tap.transmit(&mut burst, &[0xff; 60]), no_link, "the tap is down");
            tap.set_up();
            assert_eq!(tap.transmit(&mut burst, &[0xff; 60]), UnsentFrameCounts::default());
            let refused = UnsentFrameCounts { no_room: 1, ..UnsentFrameCounts::default() };
            assert_eq!(tap.transmit(&mut burst, &[0xff; 5]), refused, "no Ethernet header");
        });
    }
}
