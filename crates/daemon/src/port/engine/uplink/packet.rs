//! An existing network interface, by a packet socket, in bursts. `watch` watches the interface itself.

use super::UplinkError;
use super::interface::{Device, Received};
use crate::control::uplink::InterfaceMode;
use host::packet::{Arrived, Lost, PacketError, PacketSocket, ReceiveBurst, SendBurst};
use host::tap::InterfaceName;
use std::io;
use std::os::fd::OwnedFd;

/// Frames between the port and the packet socket.
#[derive(Debug, Default)]
pub(super) struct Burst {
    arrived: ReceiveBurst,
    leaving: SendBurst,
}

impl Device for PacketSocket {
    const KIND: &'static str = "interface";
    type Terms = ();
    type Burst = Burst;

    fn open(name: &InterfaceName, (): &()) -> Result<Self, UplinkError> {
        Ok(Self::open(name)?)
    }

    fn adopt(fd: OwnedFd, name: &InterfaceName, (): &()) -> Option<Self> {
        Self::adopt(fd, name)
    }

    fn open_existing(name: &InterfaceName, (): &()) -> Result<Option<Self>, (String, bool)> {
        Self::open_existing(name)
            .map_err(|error| (error.to_string(), matches!(error, PacketError::NotEthernet { .. })))
    }

    fn mode(&self) -> Option<InterfaceMode> {
        Some(InterfaceMode::PacketSocket)
    }

    fn interface(&self) -> Option<String> {
        self.interface()
    }

    /// Returns `false`: a packet socket does not follow its interface to another namespace.
    fn is_up_elsewhere(&self) -> bool {
        false
    }

    /// Does nothing: the administrator manages the interface.
    fn set_up(&self) {}

    fn transmit(&self, burst: &mut Burst, frame: &[u8]) -> Lost {
        if !burst.leaving.push(frame) {
            return Lost { too_long: 1, ..Lost::default() };
        }
        if burst.leaving.is_full() { self.flush(burst) } else { Lost::default() }
    }

    fn flush(&self, burst: &mut Burst) -> Lost {
        if burst.leaving.is_empty() {
            return Lost::default();
        }
        self.send(&mut burst.leaving)
    }

    fn receive(&self, burst: &mut Burst, into: &mut [u8]) -> io::Result<Received> {
        if burst.arrived.is_empty() {
            self.receive(&mut burst.arrived)?;
        }
        Ok(match burst.arrived.pop() {
            None => Received::Empty,
            Some(Arrived::Frame(frame)) if frame.len() <= into.len() => {
                into[..frame.len()].copy_from_slice(frame);
                Received::Frame(frame.len())
            }
            Some(Arrived::Frame(_) | Arrived::TooLong) => Received::Malformed,
        })
    }

    fn missed(&self) -> u64 {
        self.missed()
    }

    fn clear(burst: &mut Burst) {
        burst.arrived.clear();
        burst.leaving.clear();
    }
}
