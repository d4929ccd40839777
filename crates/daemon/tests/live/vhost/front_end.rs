//! Front end of a test: its connection to a VF's socket, and messages of any kind.

use crate::support::ram::{GuestRam, SIZE};
use crate::support::{PATIENCE, eventually};
use host::eventfd::EventFd;
use host::poll::{PollInterest, Poller};
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use vhost_user::features::{device, protocol};
use vhost_user::frontend::{BackendReply, Frontend};
use vhost_user::message::{
    FrontendRequest, InflightArea, LogArea, MemoryRegion, RingAddresses, RingEventfdMessage,
};
use vhost_user::outbox::OutgoingMessages;
use virtio::VirtioFeatures;
use virtio::layout::RingAddresses as GuestAddresses;

/// Base address of guest memory in the front end's process: vhost-user messages about rings use addresses of that
/// process.
pub(crate) const USER: u64 = 0x7f00_0000_0000;
/// Features that the driver of a test accepts: rings without event indexes, and a packet header of 12 bytes.
pub(crate) const FEATURES: u64 = VirtioFeatures::VERSION_1.bits() | device::PROTOCOL_FEATURES;

/// Returns a region of the memory file whose offsets are guest addresses.
pub(crate) fn region(guest_address: u64, size: u64) -> MemoryRegion {
    MemoryRegion { guest_address, size, user_address: USER + guest_address, file_offset: guest_address }
}

/// Returns a copy of an eventfd's file descriptor, to send to the host.
pub(crate) fn copy(eventfd: &EventFd) -> OwnedFd {
    eventfd.as_fd().try_clone_to_owned().unwrap()
}

/// Front end of a test, with the memory of its guest.
pub(crate) struct VhostTestFrontEnd {
    pub(crate) stream: StreamSocket,
    poller: Poller,
    frontend: Frontend<OwnedFd>,
    out: OutgoingMessages<OwnedFd>,
    pub(crate) ram: GuestRam,
}

/// Shuts the connection down explicitly. A child process of another test has copies of all file descriptors until it
/// runs its own program, so closing alone would end the connection only then.
impl Drop for VhostTestFrontEnd {
    fn drop(&mut self) {
        self.stream.hang_up();
    }
}

impl VhostTestFrontEnd {
    /// Connects to a VF's socket with new guest memory.
    pub(crate) fn connect(path: &Path) -> Self {
        Self::over(StreamSocket::connect(path).unwrap())
    }

    /// Uses a connection to the host, with new guest memory.
    pub(crate) fn over(stream: StreamSocket) -> Self {
        Self::over_with(stream, GuestRam::new())
    }

    /// Uses a connection to the host, with the memory of a running guest.
    pub(crate) fn over_with(stream: StreamSocket, ram: GuestRam) -> Self {
        let poller = Poller::new().unwrap();
        poller.add(&stream, 0, PollInterest::READ).unwrap();
        Self { stream, poller, frontend: Frontend::new(), out: OutgoingMessages::new(), ram }
    }

    /// Connects to a VF's socket, and negotiates as QEMU does.
    pub(crate) fn greet(path: &Path) -> Self {
        let mut this = Self::connect(path);
        this.negotiate();
        this
    }

    /// Takes ownership of the session (SET_OWNER), and accepts all protocol features and [`FEATURES`].
    pub(crate) fn negotiate(&mut self) {
        self.negotiate_features(FEATURES);
    }

    /// Negotiates as [`Self::negotiate`] does, and accepts these feature bits.
    pub(crate) fn negotiate_features(&mut self, features: u64) {
        self.negotiate_without(0, features);
    }

    /// Negotiates as [`Self::negotiate_features`] does, without these protocol features.
    pub(crate) fn negotiate_without(&mut self, missing: u64, features: u64) {
        let offered = self.number(&FrontendRequest::GetFeatures);
        assert_eq!(offered & features, features, "{offered:#x}");
        let protocol = self.number(&FrontendRequest::GetProtocolFeatures);
        assert_ne!(protocol >> protocol::REPLY_ACK & 1, 0);
        self.post(&FrontendRequest::SetProtocolFeatures(protocol & !missing), vec![]);
        self.accept(&FrontendRequest::SetOwner, vec![]);
        self.accept(&FrontendRequest::SetFeatures(features), vec![]);
    }

    /// Maps all guest memory by one memory slot.
    pub(crate) fn share_memory(&mut self) {
        let fd = self.ram.fd();
        self.accept(&FrontendRequest::AddMemReg(region(0, SIZE)), vec![fd]);
    }

    /// Enables a ring and then starts it at these guest addresses, in QEMU's order. A ring that is enabled after its
    /// start discards packets that the guest has already made available.
    pub(crate) fn start_ring(
        &mut self,
        ring: u32,
        (size, base): (u32, u32),
        at: GuestAddresses,
        (kick, call): (&EventFd, &EventFd),
    ) {
        let [descriptors, available, used] = [at.descriptors, at.driver, at.device].map(|at| USER + at);
        let addresses = RingAddresses { ring, descriptors, available, used, ..RingAddresses::default() };
        let eventfd = RingEventfdMessage { ring, attached: true };
        self.accept(&FrontendRequest::SetVringEnable { ring, enabled: true }, vec![]);
        self.accept(&FrontendRequest::SetVringCall(eventfd), vec![copy(call)]);
        self.accept(&FrontendRequest::SetVringNum { ring, size }, vec![]);
        self.accept(&FrontendRequest::SetVringBase { ring, base }, vec![]);
        self.accept(&FrontendRequest::SetVringAddr(addresses), vec![]);
        self.accept(&FrontendRequest::SetVringKick(eventfd), vec![copy(kick)]);
    }

    /// Sets the addresses of a ring, with the guest address at which writes to its used ring are logged.
    pub(crate) fn log_ring(&mut self, ring: u32, at: GuestAddresses, log: Option<u64>) {
        let [descriptors, available, used] = [at.descriptors, at.driver, at.device].map(|at| USER + at);
        let (logged, log) = (log.is_some(), log.unwrap_or(0));
        let addresses = RingAddresses { ring, logged, descriptors, used, available, log };
        self.accept(&FrontendRequest::SetVringAddr(addresses), vec![]);
    }

    /// Sets a migration log, and returns true if the host confirms it. The host closes the connection if it refuses.
    pub(crate) fn set_log(&mut self, area: LogArea, fd: OwnedFd) -> bool {
        self.post(&FrontendRequest::SetLogBase(area), vec![fd]);
        match self.reply() {
            None => false,
            Some(BackendReply::LogSet) => true,
            other => panic!("unexpected reply: {other:?}"),
        }
    }

    /// Asks for memory that records unfinished descriptors. Returns `None` if the host closes the connection.
    pub(crate) fn create_inflight(
        &mut self,
        queues: u16,
        queue_size: u16,
    ) -> Option<(InflightArea, OwnedFd)> {
        let wanted = InflightArea { queues, queue_size, ..InflightArea::default() };
        self.post(&FrontendRequest::GetInflightFd(wanted), vec![]);
        match self.reply()? {
            BackendReply::Inflight { area, fd } => Some((area, fd)),
            other => panic!("unexpected reply: {other:?}"),
        }
    }

    /// Sends a request without a reply.
    pub(crate) fn post(&mut self, request: &FrontendRequest, fds: Vec<OwnedFd>) {
        self.frontend.send(&mut self.out, request, fds);
        self.flush();
    }

    /// Sends a request, and checks that the host confirms it.
    #[track_caller]
    pub(crate) fn accept(&mut self, request: &FrontendRequest, fds: Vec<OwnedFd>) {
        assert_eq!(self.acknowledged(request, fds), Some(BackendReplyKind::Accepted), "{request:?}");
    }

    /// Sends a request, and checks that the host refuses it.
    #[track_caller]
    pub(crate) fn refuse(&mut self, request: &FrontendRequest, fds: Vec<OwnedFd>) {
        assert_eq!(self.acknowledged(request, fds), Some(BackendReplyKind::Refused), "{request:?}");
    }

    /// Sends a request, and returns the host's confirmation; `None` if the host has closed the connection.
    pub(crate) fn acknowledged(
        &mut self,
        request: &FrontendRequest,
        fds: Vec<OwnedFd>,
    ) -> Option<BackendReplyKind> {
        self.frontend.send_acknowledged(&mut self.out, request, fds);
        if !self.flush() {
            return None;
        }
        Some(match self.reply()? {
            BackendReply::Accepted => BackendReplyKind::Accepted,
            BackendReply::Refused(_) => BackendReplyKind::Refused,
            other => panic!("unexpected reply to {request:?}: {other:?}"),
        })
    }

    /// Sends a request whose reply is a number, and returns the number.
    #[track_caller]
    pub(crate) fn number(&mut self, request: &FrontendRequest) -> u64 {
        self.post(request, vec![]);
        match self.reply() {
            Some(BackendReply::Number(number)) => number,
            other => panic!("unexpected reply to {request:?}: {other:?}"),
        }
    }

    /// Stops a ring, and returns its position.
    pub(crate) fn stop_ring(&mut self, ring: u32) -> u32 {
        self.post(&FrontendRequest::GetVringBase { ring }, vec![]);
        match self.reply() {
            Some(BackendReply::Base { base, .. }) => base,
            other => panic!("unexpected reply: {other:?}"),
        }
    }

    /// Sends bytes with any number of file descriptors. Returns false if the host has closed the connection.
    pub(crate) fn send_raw(&self, bytes: &[u8], fds: &[BorrowedFd<'_>]) -> bool {
        self.stream.send(bytes, fds).unwrap() == SocketSendResult::Bytes(bytes.len())
    }

    fn flush(&mut self) -> bool {
        while let Some(chunk) = self.out.chunk() {
            let fds: Vec<_> = chunk.fds.iter().map(AsFd::as_fd).collect();
            match self.stream.send(chunk.bytes, &fds).unwrap() {
                SocketSendResult::Bytes(sent) => self.out.sent(sent),
                SocketSendResult::WouldBlock => std::thread::yield_now(),
                SocketSendResult::Closed => return false,
            }
        }
        true
    }

    /// Returns the next reply; `None` if the host has closed the connection.
    fn reply(&mut self) -> Option<BackendReply<OwnedFd>> {
        let (mut buffer, mut received) = ([0; 4096], ReceivedFds::new());
        loop {
            if let Some(reply) = self.frontend.next_reply().unwrap() {
                return Some(reply);
            }
            let room = self.frontend.room();
            match self.stream.recv(&mut buffer[..room], &mut received).unwrap() {
                SocketReceiveResult::Bytes(count) => {
                    self.frontend.push(&buffer[..count], &mut received.drain().collect()).unwrap();
                }
                SocketReceiveResult::Closed => return None,
                SocketReceiveResult::WouldBlock => {
                    let ready = self.poller.wait(Some(PATIENCE)).unwrap().next().is_some();
                    assert!(ready, "the host does not reply");
                }
            }
        }
    }

    /// Reads until the host has closed the connection.
    pub(crate) fn wait_for_end(&mut self) {
        let (mut buffer, mut received) = ([0; 4096], ReceivedFds::new());
        eventually("the host closes the connection", || {
            matches!(self.stream.recv(&mut buffer, &mut received).unwrap(), SocketReceiveResult::Closed)
        });
    }
}

/// Outcome of a request that the host has confirmed: accepted or refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BackendReplyKind {
    Accepted,
    Refused,
}
