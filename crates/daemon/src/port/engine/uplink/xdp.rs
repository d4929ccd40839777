//! Existing network interface as a port's uplink, by AF_XDP. If AF_XDP is not available and optional, by a packet
//! socket.
//!
//! The XDP program of an interface is loaded while the host starts, before it gives up the rights for that.
//! Attaching a program needs fewer rights. So an interface that returns can be attached by AF_XDP again, if the
//! kernel permits it.
//!
//! `host::xdp` has rings and programs, and `watch` watches the interface.

pub(super) mod programs;

use super::UplinkError;
use super::device::{UplinkDevice, UplinkReceiveOutcome};
use super::{offload, packet};
use crate::config::uplink::XdpMode;
use crate::control::uplink::InterfaceMode;
use ::offload::verify::unfinished;
use host::packet::{InterfaceHoldSocket, PacketSocket, PacketSocketError, UnsentFrameCounts};
use host::tap::InterfaceName;
use host::xdp::{LONGEST, XdpError, XdpInterface, XdpQueues, XdpReceiveResult, XdpTransferMode};
use programs::XdpAttachOptions;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// Longest wait at the port's start for an interface that another process uses. A process that ends frees the interface
/// a moment later. The previous host process frees it when the successor is ready.
const PATIENCE: Duration = Duration::from_secs(5);
/// Longest wait for an interface that another process uses, when the interface has come back.
const TAKE_OVER: Duration = Duration::from_secs(4);

/// Network interface to which an uplink is attached, by AF_XDP or by a packet socket.
#[derive(Debug)]
pub(super) enum XdpDevice {
    Xdp(XdpInterface),
    Packet(PacketSocket),
}

/// Reason why an XDP uplink cannot attach to its interface.
enum XdpAttachError {
    /// The interface itself cannot be used.
    Interface(PacketSocketError),
    /// The interface exists, but does not support the wanted AF_XDP modes.
    Mode(String),
    /// Another process uses the interface by AF_XDP.
    Busy(String),
}

impl XdpAttachOptions {
    /// Attaches to an interface in a wanted AF_XDP mode, or falls back to a packet socket if permitted.
    fn attach(&self, name: &InterfaceName, patience: Duration) -> Result<XdpDevice, XdpAttachError> {
        let modes = self.asked.modes();
        let opened = match &self.program {
            Ok(program) => XdpInterface::open(name, program, modes, patience),
            Err(why) => return self.fall_back(name, XdpAttachError::Mode(why.clone())),
        };
        match opened {
            Ok(device) => {
                let (name, mode, queues) = (name.as_str(), device.mode(), device.queues());
                tracing::info!(interface = name, %mode, queues, "the uplink uses AF_XDP");
                Ok(XdpDevice::Xdp(device))
            }
            Err(XdpError::Interface(error)) => Err(XdpAttachError::Interface(error)),
            Err(error) if error.is_busy() => Err(XdpAttachError::Busy(error.to_string())),
            Err(error) => self.fall_back(name, XdpAttachError::Mode(error.to_string())),
        }
    }

    /// Attaches to an interface by a packet socket, if AF_XDP is optional.
    fn fall_back(&self, name: &InterfaceName, why: XdpAttachError) -> Result<XdpDevice, XdpAttachError> {
        if self.asked != XdpMode::BestEffort {
            return Err(why);
        }
        let socket = PacketSocket::open(name).map_err(XdpAttachError::Interface)?;
        let name = name.as_str();
        tracing::warn!(interface = name, %why, "AF_XDP is not available; the uplink uses a packet socket");
        Ok(XdpDevice::Packet(socket))
    }

    /// Attaches to an interface, after waiting for another process to stop using it. Falls back to a packet socket if
    /// that process keeps the interface.
    fn attach_at_last(&self, name: &InterfaceName, patience: Duration) -> Result<XdpDevice, XdpAttachError> {
        match self.attach(name, patience) {
            Err(why @ XdpAttachError::Busy(_)) => self.fall_back(name, why),
            other => other,
        }
    }
}

impl std::fmt::Display for XdpAttachError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interface(error) => error.fmt(f),
            Self::Mode(why) | Self::Busy(why) => f.write_str(why),
        }
    }
}

/// Frames queued between the port and the AF_XDP socket, in either direction.
#[derive(Debug, Default)]
pub(super) struct XdpBurst {
    frames: Option<XdpQueues>,
    packets: packet::PacketSocketBurst,
}

impl AsFd for XdpDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Xdp(device) => device.as_fd(),
            Self::Packet(socket) => socket.as_fd(),
        }
    }
}

impl UplinkDevice for XdpDevice {
    const KIND: &'static str = PacketSocket::KIND;
    const KEPT: &'static str = "xdp";
    type Terms = XdpAttachOptions;
    type Burst = XdpBurst;

    fn open(name: &InterfaceName, terms: &XdpAttachOptions) -> Result<Self, UplinkError> {
        terms.attach_at_last(name, PATIENCE).map_err(|why| match why {
            XdpAttachError::Interface(error) => UplinkError::Packet(error),
            XdpAttachError::Mode(why) | XdpAttachError::Busy(why) => UplinkError::Xdp(why),
        })
    }

    /// Attaches to the interface again, since AF_XDP sockets cannot be handed to another process. Returns `None` while
    /// the previous host process or a replaced uplink uses it; the watcher then attaches later. The interface may have another
    /// name than the configured one.
    fn adopt(fd: OwnedFd, _name: &InterfaceName, terms: &XdpAttachOptions) -> Option<Self> {
        terms.attach(&Self::kept_name(fd.as_fd())?, Duration::ZERO).ok()
    }

    fn kept_name(fd: BorrowedFd<'_>) -> Option<InterfaceName> {
        InterfaceHoldSocket::held_by(fd)?.parse().ok()
    }

    fn open_existing(name: &InterfaceName, terms: &XdpAttachOptions) -> Result<Option<Self>, (String, bool)> {
        match terms.attach_at_last(name, TAKE_OVER) {
            Ok(device) => Ok(Some(device)),
            Err(XdpAttachError::Interface(PacketSocketError::NoInterface { .. })) => Ok(None),
            Err(why) => {
                let for_good =
                    matches!(why, XdpAttachError::Interface(PacketSocketError::NotEthernet { .. }));
                Err((why.to_string(), for_good))
            }
        }
    }

    fn kept(&self) -> BorrowedFd<'_> {
        match self {
            Self::Xdp(device) => device.hold(),
            Self::Packet(socket) => socket.as_fd(),
        }
    }

    fn mode(&self) -> Option<InterfaceMode> {
        Some(match self {
            Self::Packet(_) => InterfaceMode::PacketSocket,
            Self::Xdp(device) => match device.mode() {
                XdpTransferMode::NativeWithZerocopy => InterfaceMode::NativeWithZerocopy,
                XdpTransferMode::Native => InterfaceMode::Native,
                XdpTransferMode::Generic => InterfaceMode::Generic,
            },
        })
    }

    fn longest(&self) -> usize {
        match self {
            Self::Xdp(_) => LONGEST,
            Self::Packet(_) => usize::MAX,
        }
    }

    fn interface(&self) -> Option<String> {
        match self {
            Self::Xdp(device) => device.interface(),
            Self::Packet(socket) => socket.interface(),
        }
    }

    /// Returns `false`: neither socket follows its interface to another namespace.
    fn is_up_elsewhere(&self) -> bool {
        false
    }

    /// Does nothing: the administrator manages the interface.
    fn set_up(&self) {}

    fn transmit(&self, burst: &mut XdpBurst, frame: &[u8]) -> UnsentFrameCounts {
        match (self, &mut burst.frames) {
            (Self::Xdp(_), Some(frames)) => frames.send(frame),
            (Self::Xdp(_), None) => UnsentFrameCounts { no_link: 1, ..UnsentFrameCounts::default() },
            (Self::Packet(socket), _) => socket.transmit(&mut burst.packets, frame),
        }
    }

    fn flush(&self, burst: &mut XdpBurst) -> UnsentFrameCounts {
        match (self, &mut burst.frames) {
            (Self::Xdp(_), Some(frames)) => frames.flush(),
            (Self::Xdp(_), None) => UnsentFrameCounts::default(),
            (Self::Packet(socket), _) => socket.flush(&mut burst.packets),
        }
    }

    fn has_left(burst: &XdpBurst) -> bool {
        burst.frames.as_ref().is_some_and(XdpQueues::has_left)
    }

    fn receive(&self, burst: &mut XdpBurst, into: &mut [u8]) -> io::Result<UplinkReceiveOutcome> {
        let Self::Xdp(device) = self else {
            let Self::Packet(socket) = self else { return Ok(UplinkReceiveOutcome::Empty) };
            return UplinkDevice::receive(socket, &mut burst.packets, into);
        };
        let Some(frames) = &mut burst.frames else { return Ok(UplinkReceiveOutcome::Empty) };
        Ok(match frames.receive(into)? {
            None => UplinkReceiveOutcome::Empty,
            Some(XdpReceiveResult::TooLong) => UplinkReceiveOutcome::Malformed,
            Some(XdpReceiveResult::Frame(length)) => {
                // Frames from a cable have their checksums.
                if device.mode() != XdpTransferMode::NativeWithZerocopy {
                    finish(&mut into[..length]);
                }
                UplinkReceiveOutcome::Frame(length)
            }
        })
    }

    fn unsent(burst: &mut XdpBurst) -> u32 {
        burst.frames.as_mut().map_or(0, XdpQueues::unsent)
    }

    fn missed(&self) -> u64 {
        match self {
            Self::Xdp(device) => device.missed(),
            Self::Packet(socket) => UplinkDevice::missed(socket),
        }
    }

    fn begin(&self, burst: &mut XdpBurst) {
        if let Self::Xdp(device) = self {
            burst.frames = device.take_frames();
        }
    }

    fn clear(burst: &mut XdpBurst) {
        burst.frames = None;
        PacketSocket::clear(&mut burst.packets);
    }
}

/// Completes a missing checksum in a frame that a process on this machine has sent to the interface. AF_XDP does not
/// report missing checksums.
fn finish(frame: &mut [u8]) {
    if let Some((segment, place)) = unfinished(frame) {
        let (start, offset) = (segment.start as u16, (place - segment.start) as u16);
        // The field is inside the frame, so this cannot fail.
        let _ = offload::complete(&mut frame[..segment.end], Some((start, offset)));
    }
}
