//! A network interface that is there, by AF_XDP; where that is not to be had and need not be, by a packet socket.
//!
//! The program that an interface gets is loaded while the host starts, before it gives up what that takes. To attach one to
//! an interface takes less, so that an interface that comes back is had by AF_XDP again, if the kernel allows it.
//!
//! Left out: rings and programs themselves (`host::xdp`); the interface (`watch`).

pub(super) mod programs;

use super::UplinkError;
use super::interface::{Device, Received};
use super::{offload, packet};
use crate::config::uplink::Xdp;
use crate::control::uplink::InterfaceMode;
use ::offload::verify::unfinished;
use host::packet::{Hold, Lost, PacketError, PacketSocket};
use host::tap::InterfaceName;
use host::xdp::{Arrived, Frames, LONGEST, Mode, XdpError, XdpInterface};
use programs::Terms;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::Duration;

/// How long an interface is waited for that somebody else has: a process that ends leaves it a moment later, and one that
/// hands over goes on until its successor is ready.
const PATIENCE: Duration = Duration::from_secs(5);
const TAKE_OVER: Duration = Duration::from_secs(4);

/// What has come of it.
#[derive(Debug)]
pub(super) enum XdpDevice {
    Xdp(XdpInterface),
    Packet(PacketSocket),
}

/// Why there is none.
enum NotAttached {
    /// The interface itself cannot be had.
    Interface(PacketError),
    /// It can be had, but not so.
    Mode(String),
    /// Somebody has it by AF_XDP now.
    Busy(String),
}

impl Terms {
    /// Attaches as asked, or falls back if that may be.
    fn attach(&self, name: &InterfaceName, patience: Duration) -> Result<XdpDevice, NotAttached> {
        let modes = self.asked.modes();
        let opened = match &self.program {
            Ok(program) => XdpInterface::open(name, program, modes, patience),
            Err(why) => return self.fall_back(name, NotAttached::Mode(why.clone())),
        };
        match opened {
            Ok(device) => {
                let (name, mode, queues) = (name.as_str(), device.mode(), device.queues());
                tracing::info!(interface = name, %mode, queues, "frames pass by AF_XDP");
                Ok(XdpDevice::Xdp(device))
            }
            Err(XdpError::Interface(error)) => Err(NotAttached::Interface(error)),
            Err(error) if error.is_busy() => Err(NotAttached::Busy(error.to_string())),
            Err(error) => self.fall_back(name, NotAttached::Mode(error.to_string())),
        }
    }

    /// Attaches by a packet socket, if it need not be AF_XDP.
    fn fall_back(&self, name: &InterfaceName, why: NotAttached) -> Result<XdpDevice, NotAttached> {
        if self.asked != Xdp::BestEffort {
            return Err(why);
        }
        let socket = PacketSocket::open(name).map_err(NotAttached::Interface)?;
        let name = name.as_str();
        tracing::warn!(interface = name, %why, "frames pass by a packet socket and not by AF_XDP");
        Ok(XdpDevice::Packet(socket))
    }

    /// The same, where somebody who has the interface has had the time to leave it.
    fn attach_at_last(&self, name: &InterfaceName, patience: Duration) -> Result<XdpDevice, NotAttached> {
        match self.attach(name, patience) {
            Err(why @ NotAttached::Busy(_)) => self.fall_back(name, why),
            other => other,
        }
    }
}

impl std::fmt::Display for NotAttached {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Interface(error) => error.fmt(f),
            Self::Mode(why) | Self::Busy(why) => f.write_str(why),
        }
    }
}

/// Frames on their way.
#[derive(Debug, Default)]
pub(super) struct Burst {
    frames: Option<Frames>,
    packets: packet::Burst,
}

impl AsFd for XdpDevice {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Xdp(device) => device.as_fd(),
            Self::Packet(socket) => socket.as_fd(),
        }
    }
}

impl Device for XdpDevice {
    const KIND: &'static str = PacketSocket::KIND;
    const KEPT: &'static str = "xdp";
    type Terms = Terms;
    type Burst = Burst;

    fn open(name: &InterfaceName, terms: &Terms) -> Result<Self, UplinkError> {
        terms.attach_at_last(name, PATIENCE).map_err(|why| match why {
            NotAttached::Interface(error) => UplinkError::Packet(error),
            NotAttached::Mode(why) | NotAttached::Busy(why) => UplinkError::Xdp(why),
        })
    }

    /// Sockets and program are a process's own. One that still runs has the interface until it ends, and so has an uplink
    /// whose place this one takes: then the watcher attaches.
    fn adopt(fd: OwnedFd, name: &InterfaceName, terms: &Terms) -> Option<Self> {
        if !Hold::is_held(&fd) {
            return None;
        }
        terms.attach(name, Duration::ZERO).ok()
    }

    fn open_existing(name: &InterfaceName, terms: &Terms) -> Result<Option<Self>, (String, bool)> {
        match terms.attach_at_last(name, TAKE_OVER) {
            Ok(device) => Ok(Some(device)),
            Err(NotAttached::Interface(PacketError::NoInterface { .. })) => Ok(None),
            Err(why) => {
                let for_good = matches!(why, NotAttached::Interface(PacketError::NotEthernet { .. }));
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
                Mode::NativeWithZerocopy => InterfaceMode::NativeWithZerocopy,
                Mode::Native => InterfaceMode::Native,
                Mode::Generic => InterfaceMode::Generic,
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

    /// It never is elsewhere: neither socket goes there.
    fn is_up_elsewhere(&self) -> bool {
        false
    }

    /// It is the administrator's.
    fn set_up(&self) {}

    fn transmit(&self, burst: &mut Burst, frame: &[u8]) -> Lost {
        match (self, &mut burst.frames) {
            (Self::Xdp(_), Some(frames)) => frames.send(frame),
            (Self::Xdp(_), None) => Lost { no_link: 1, ..Lost::default() },
            (Self::Packet(socket), _) => socket.transmit(&mut burst.packets, frame),
        }
    }

    fn flush(&self, burst: &mut Burst) -> Lost {
        match (self, &mut burst.frames) {
            (Self::Xdp(_), Some(frames)) => frames.flush(),
            (Self::Xdp(_), None) => Lost::default(),
            (Self::Packet(socket), _) => socket.flush(&mut burst.packets),
        }
    }

    fn has_left(burst: &Burst) -> bool {
        burst.frames.as_ref().is_some_and(Frames::has_left)
    }

    fn receive(&self, burst: &mut Burst, into: &mut [u8]) -> io::Result<Received> {
        let Self::Xdp(device) = self else {
            let Self::Packet(socket) = self else { return Ok(Received::Empty) };
            return Device::receive(socket, &mut burst.packets, into);
        };
        let Some(frames) = &mut burst.frames else { return Ok(Received::Empty) };
        Ok(match frames.receive(into)? {
            None => Received::Empty,
            Some(Arrived::TooLong) => Received::Malformed,
            Some(Arrived::Frame(length)) => {
                // What comes over a cable is whole.
                if device.mode() != Mode::NativeWithZerocopy {
                    finish(&mut into[..length]);
                }
                Received::Frame(length)
            }
        })
    }

    fn missed(&self) -> u64 {
        match self {
            Self::Xdp(device) => device.missed(),
            Self::Packet(socket) => Device::missed(socket),
        }
    }

    fn begin(&self, burst: &mut Burst) {
        if let Self::Xdp(device) = self {
            burst.frames = device.take_frames();
        }
    }

    fn clear(burst: &mut Burst) {
        burst.frames = None;
        PacketSocket::clear(&mut burst.packets);
    }
}

/// Puts in a checksum that a process of this machine has left to the interface: the kernel does not say so by this way.
fn finish(frame: &mut [u8]) {
    if let Some((segment, place)) = unfinished(frame) {
        let (start, offset) = (segment.start as u16, (place - segment.start) as u16);
        // It is inside the frame, so that it can be put there.
        let _ = offload::complete(&mut frame[..segment.end], Some((start, offset)));
    }
}
