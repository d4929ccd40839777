//! Existing network interface as a port's uplink, by a packet socket that moves frames in bursts. `watch` watches the
//! interface itself.

use super::UplinkError;
use super::device::{UplinkDevice, UplinkReceiveOutcome};
use crate::control::uplink::InterfaceMode;
use host::packet::{
    PacketReceiveResult, PacketSocket, PacketSocketError, ReceiveBurst, SendBurst, UnsentFrameCounts,
};
use host::tap::InterfaceName;
use std::io;
use std::os::fd::OwnedFd;

/// Frames queued between the port and the packet socket, in either direction.
#[derive(Debug, Default)]
pub(super) struct PacketSocketBurst {
    arrived: ReceiveBurst,
    leaving: SendBurst,
}

impl UplinkDevice for PacketSocket {
    const KIND: &'static str = "interface";
    type Terms = ();
    type Burst = PacketSocketBurst;

    fn open(name: &InterfaceName, (): &()) -> Result<Self, UplinkError> {
        Ok(Self::open(name)?)
    }

    fn adopt(fd: OwnedFd, name: &InterfaceName, (): &()) -> Option<Self> {
        Self::adopt(fd, name)
    }

    fn open_existing(name: &InterfaceName, (): &()) -> Result<Option<Self>, (String, bool)> {
        Self::open_existing(name)
            .map_err(|error| (error.to_string(), matches!(error, PacketSocketError::NotEthernet { .. })))
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

    fn transmit(&self, burst: &mut PacketSocketBurst, frame: &[u8]) -> UnsentFrameCounts {
        if !burst.leaving.push(frame) {
            return UnsentFrameCounts { too_long: 1, ..UnsentFrameCounts::default() };
        }
        if burst.leaving.is_full() { self.flush(burst) } else { UnsentFrameCounts::default() }
    }

    fn flush(&self, burst: &mut PacketSocketBurst) -> UnsentFrameCounts {
        if burst.leaving.is_empty() {
            return UnsentFrameCounts::default();
        }
        self.send(&mut burst.leaving)
    }

    fn receive(&self, burst: &mut PacketSocketBurst, into: &mut [u8]) -> io::Result<UplinkReceiveOutcome> {
        if burst.arrived.is_empty() {
            self.receive(&mut burst.arrived)?;
        }
        Ok(match burst.arrived.pop() {
            None => UplinkReceiveOutcome::Empty,
            Some(PacketReceiveResult::Frame(frame)) if frame.len() <= into.len() => {
                into[..frame.len()].copy_from_slice(frame);
                UplinkReceiveOutcome::Frame(frame.len())
            }
            Some(PacketReceiveResult::Frame(_) | PacketReceiveResult::Malformed) => {
                UplinkReceiveOutcome::Malformed
            }
        })
    }

    fn missed(&self) -> u64 {
        self.missed()
    }

    fn clear(burst: &mut PacketSocketBurst) {
        burst.arrived.clear();
        burst.leaving.clear();
    }
}
