//! Trait of every kind of uplink, and the resources with which a port opens one.

use super::addresses::ParentAddressRegistry;
use super::port_wire::cable::WireRegistry;
use super::xdp::programs::XdpPrograms;
use crate::control::uplink::UplinkStatus;
use crate::file_calls::FileCalls;
use crate::uplink_threads::{RunningThreads, UplinkThreads};
use crate::vault::PortFileDescriptorStore;
use host::confine::{PreparedSandbox, SandboxError};
use host::poll::{Poller, ThreadWaker};
use i82576::Time;
use nic::{TrustedChecksum, UnsegmentedPacketLayout};
use plane::guard::SharedAddresses;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::thread::JoinHandle;

/// Context of a call to an uplink: the port's poller, the token of the uplink's file descriptors, and the time.
#[derive(Debug, Clone, Copy)]
pub(in crate::port) struct UplinkPollContext<'a> {
    pub(in crate::port) poller: &'a Poller,
    pub(in crate::port) token: u64,
    pub(in crate::port) now: Time,
}

/// Uplink of any kind, as used by the port's thread.
pub(super) trait UplinkBackend: fmt::Debug + Send {
    /// Adds the uplink's file descriptors, if it has any, to the port's poller.
    fn join(&mut self, _at: UplinkPollContext<'_>) -> io::Result<()> {
        Ok(())
    }

    /// Removes the uplink's file descriptors from the poller.
    fn leave_poller(&mut self, _poller: &Poller) {}

    /// Records that a file descriptor of the uplink is readable.
    fn set_readable(&mut self) {}

    /// Handles changes of the uplink's interface or peer. Returns `false` if there are none. Adds new file descriptors
    /// to the poller.
    fn follow(&mut self, _at: UplinkPollContext<'_>) -> bool {
        false
    }

    /// Returns true if frames can pass the uplink.
    fn link(&self) -> bool;

    /// Returns the addresses that this port and others hold on the uplink's link, if several ports of the host may share it.
    fn addresses(&self) -> Option<Arc<dyn SharedAddresses>> {
        None
    }

    /// Returns the uplink's status, or `None` without an uplink.
    fn status(&self, now: Time) -> Option<UplinkStatus>;

    /// Queues a frame, to be sent by the next flush at the latest. Returns `false` if the uplink drops the frame,
    /// which it counts.
    fn transmit(&mut self, frame: &[u8]) -> bool;

    /// Returns true if the uplink accepts packets before segmentation.
    fn takes_uncut(&self) -> bool {
        false
    }

    /// Queues a packet before segmentation, as [`UplinkBackend::transmit`] queues a frame.
    fn transmit_uncut(&mut self, _packet: &[u8], _uncut: &UnsegmentedPacketLayout) -> bool {
        false
    }

    /// Sends the frames queued for the uplink.
    fn flush(&mut self, _now: Time) {}

    /// Returns the time of the next flush if no event comes before.
    fn deadline(&self) -> Option<Time> {
        None
    }

    /// Receives the next frame from the uplink. Returns its length in bytes.
    fn receive(&mut self, into: &mut [u8]) -> Option<usize>;

    /// Receives the next packet. If it is an unsegmented TCP packet, returns it with headroom before its first byte.
    /// The packet stays pending until [`UplinkBackend::pass_uncut`].
    fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        None
    }

    /// Removes the pending packet that [`UplinkBackend::uncut`] has returned.
    fn pass_uncut(&mut self) {}

    /// Returns the kernel's guarantee about the checksum of the last received frame, or `None` if it gave none.
    fn sealed(&self) -> Option<TrustedChecksum> {
        None
    }

    /// Prepares the uplink for the port's sleep. Returns `false` if there are frames to receive. Later frames wake the
    /// port.
    fn may_sleep(&mut self) -> bool {
        true
    }

    /// Keeps the uplink's file descriptors for the successor process, in place of a former uplink's. Deletes its socket file
    /// when the uplink is dropped, unless [`UplinkBackend::leave`] is called before.
    fn own(&mut self) {}

    /// Leaves the uplink's socket file to the successor process.
    fn leave(&mut self) {}

    /// Ends the uplink after its replacement, and releases its file descriptors that are kept for the successor process.
    /// Those of the uplink in use stay. May block.
    fn retire(self: Box<Self>) {}
}

/// Resources with which a port opens its uplink.
pub(crate) struct UplinkResources<'a> {
    pub(crate) vault: &'a PortFileDescriptorStore,
    /// Waker of the port's thread, which the uplink's thread calls after a change.
    pub(crate) port: &'a ThreadWaker,
    /// Sandbox in which the uplink's own thread runs.
    pub(crate) watcher: &'a PreparedSandbox,
    /// Threads of the port's uplinks.
    pub(crate) threads: &'a UplinkThreads,
    /// File calls of the host's threads.
    pub(crate) files: &'a FileCalls,
    /// Wires that connect ports of the host.
    pub(crate) wires: &'a WireRegistry,
    /// Addresses that ports hold on interfaces which their uplinks share.
    pub(crate) parents: &'a ParentAddressRegistry,
    /// XDP programs for the uplinks' interfaces.
    pub(crate) programs: &'a XdpPrograms,
    /// Time at which the uplink is opened.
    pub(crate) now: Time,
}

impl UplinkResources<'_> {
    /// Starts a thread that holds devices or sockets of the uplink. The port's thread must not wait for its end.
    pub(super) fn spawn_for_device(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, SandboxError> {
        self.spawn(&self.threads.devices, name, body)
    }

    /// Starts a thread that reads or writes a file. The port's thread must not wait for its end.
    pub(super) fn spawn_for_file(
        &self,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, SandboxError> {
        self.spawn(&self.threads.files, name, body)
    }

    fn spawn(
        &self,
        running: &RunningThreads,
        name: &str,
        body: impl FnOnce() + Send + 'static,
    ) -> Result<JoinHandle<()>, SandboxError> {
        let mark = running.enter();
        self.watcher.spawn(name, move || {
            let _mark = mark;
            body();
        })
    }
}
