//! Scripted conversations with a back end's session: raw messages, replies, and a host that records events and tasks.

use std::rc::Rc;

use vhost_user::backend::{
    BackendEvent, BackendOffer, BackendProgress, BackendSession, HostOperation, HostOperationOutcome,
    LiveRingParameters, SessionError,
};
use vhost_user::message::{InflightArea, RingBase};
use vhost_user::outbox::OutgoingMessages;

/// Simulated file descriptor, a reference count by which tests find leaked descriptors.
pub(crate) type CountedFd = Rc<i32>;

/// Flags of a request: version 1.
pub(crate) const PLAIN: u32 = 1;
/// Flags of a request that asks for an acknowledgement.
pub(crate) const NEED_REPLY: u32 = 1 | 8;
/// Flags of a back end's reply, as QEMU requires them.
const REPLY: u32 = 1 | 4;

pub(crate) const GET_FEATURES: u32 = 1;
pub(crate) const SET_FEATURES: u32 = 2;
pub(crate) const SET_OWNER: u32 = 3;
pub(crate) const RESET_OWNER: u32 = 4;
pub(crate) const SET_MEM_TABLE: u32 = 5;
pub(crate) const SET_LOG_BASE: u32 = 6;
pub(crate) const SET_LOG_FD: u32 = 7;
pub(crate) const SET_VRING_NUM: u32 = 8;
pub(crate) const SET_VRING_ADDR: u32 = 9;
pub(crate) const SET_VRING_BASE: u32 = 10;
pub(crate) const GET_VRING_BASE: u32 = 11;
pub(crate) const SET_VRING_KICK: u32 = 12;
pub(crate) const SET_VRING_CALL: u32 = 13;
pub(crate) const SET_VRING_ERR: u32 = 14;
pub(crate) const GET_PROTOCOL_FEATURES: u32 = 15;
pub(crate) const SET_PROTOCOL_FEATURES: u32 = 16;
pub(crate) const GET_QUEUE_NUM: u32 = 17;
pub(crate) const SET_VRING_ENABLE: u32 = 18;
pub(crate) const SEND_RARP: u32 = 19;
pub(crate) const NET_SET_MTU: u32 = 20;
pub(crate) const SET_BACKEND_REQ_FD: u32 = 21;
pub(crate) const GET_CONFIG: u32 = 24;
pub(crate) const SET_CONFIG: u32 = 25;
pub(crate) const GET_INFLIGHT_FD: u32 = 31;
pub(crate) const SET_INFLIGHT_FD: u32 = 32;
pub(crate) const RESET_DEVICE: u32 = 34;
pub(crate) const GET_MAX_MEM_SLOTS: u32 = 36;
pub(crate) const ADD_MEM_REG: u32 = 37;
pub(crate) const REM_MEM_REG: u32 = 38;
pub(crate) const SET_STATUS: u32 = 39;
pub(crate) const GET_STATUS: u32 = 40;

/// Feature bits of the scripted device: checksums, TSO, MRG_RXBUF, MQ, event index, VERSION_1, packed rings, log.
pub(crate) const DEVICE: u64 =
    0x3 | 0x1880 | 1 << 15 | 1 << 22 | 1 << 26 | 1 << 28 | 1 << 29 | 1 << 32 | 1 << 34;
/// Feature bits that a driver with split rings accepts under QEMU, without bit 30 (protocol features).
pub(crate) const SPLIT: u64 = 0x3 | 0x1880 | 1 << 15 | 1 << 28 | 1 << 29 | 1 << 32;
/// Feature bits that a driver with packed rings accepts.
pub(crate) const PACKED: u64 = SPLIT | 1 << 34;
/// Feature bit 30, which states that protocol features exist.
pub(crate) const PROTOCOL: u64 = 1 << 30;
/// All protocol features that the scripted back end offers.
pub(crate) const EVERYTHING: u64 = 0x1_b21f;

/// User address of the scripted guest's memory in the front end.
pub(crate) const USER: u64 = 0x7f12_0000_0000;
/// Guest-physical address and size of the scripted guest's memory.
pub(crate) const MEMORY: (u64, u64) = (0x10_0000, 0x100_0000);

/// Simulated host that records its events and tasks, and completes each task at once.
#[derive(Default)]
pub(crate) struct RecordingHost {
    pub(crate) said: Vec<String>,
    /// Position that the host returns for a stopped ring.
    pub(crate) position: Option<RingBase>,
    /// True if every task of the host fails.
    pub(crate) fails: bool,
    /// Descriptors that the host has received and not closed.
    pub(crate) kept: Vec<CountedFd>,
}

impl RecordingHost {
    fn event(&mut self, event: BackendEvent<CountedFd>) {
        let text = match event {
            BackendEvent::RingLive(setup) => live(&setup),
            BackendEvent::RingPaused { ring } => format!("pause {ring}"),
            BackendEvent::RingEnabled { ring, enabled } => format!("enable {ring} {enabled}"),
            BackendEvent::RingFaulty { ring, fault } => format!("fault {ring}: {fault}"),
            BackendEvent::KickSet { ring, fd } => self.eventfd("kick", ring, fd),
            BackendEvent::CallSet { ring, fd } => self.eventfd("call", ring, fd),
            BackendEvent::ErrorSet { ring, fd } => self.eventfd("error", ring, fd),
            BackendEvent::UnusedDescriptors(fds) => format!("close {fds:?}"),
            BackendEvent::LogEventSet(fd) => format!("log event {fd}"),
            BackendEvent::FeaturesSet(bits) => format!("features {bits:#x}"),
            BackendEvent::ProtocolFeaturesSet(bits) => format!("protocol {bits:#x}"),
            BackendEvent::StatusSet(status) => format!("status {status}"),
            other => format!("{other:?}"),
        };
        self.said.push(text);
    }

    fn eventfd(&mut self, name: &str, ring: u32, fd: Option<CountedFd>) -> String {
        let text = format!("{name} {ring}: {:?}", fd.as_deref());
        self.kept.extend(fd);
        text
    }

    fn task(&mut self, task: HostOperation<CountedFd>) -> HostOperationOutcome<CountedFd> {
        let (text, outcome) = match task {
            HostOperation::ReplaceMemory(regions) => {
                let addresses: Vec<_> =
                    regions.iter().map(|shared| (shared.region.guest_address, *shared.fd)).collect();
                (format!("memory {addresses:x?}"), HostOperationOutcome::Done)
            }
            HostOperation::AddRegion(shared) => {
                (format!("add {:#x} {}", shared.region.guest_address, shared.fd), HostOperationOutcome::Done)
            }
            HostOperation::RemoveRegion(region) => {
                (format!("remove {:#x}", region.guest_address), HostOperationOutcome::Done)
            }
            HostOperation::StopRing { ring } => {
                let position = self.position.unwrap_or(RingBase::Split { available: 0 });
                (format!("stop {ring}"), HostOperationOutcome::Base(position))
            }
            HostOperation::ReadConfig { offset, size } => {
                let contents = (offset..offset + size).map(|at| at as u8).collect();
                (format!("read config {offset}+{size}"), HostOperationOutcome::Config(contents))
            }
            HostOperation::CreateInflight { queues, queue_size } => {
                let area = InflightArea { size: 0x1000, offset: 0, queues, queue_size };
                (
                    format!("create inflight {queues}x{queue_size}"),
                    HostOperationOutcome::Inflight { area, fd: Rc::new(99) },
                )
            }
            HostOperation::SetLog { area, fd } => {
                (format!("log {:#x} at {:#x} {fd}", area.size, area.offset), HostOperationOutcome::Done)
            }
            other => (format!("{other:?}"), HostOperationOutcome::Done),
        };
        self.said.push(text);
        if self.fails { HostOperationOutcome::Failed } else { outcome }
    }
}

fn live(setup: &LiveRingParameters) -> String {
    let LiveRingParameters { ring, size, enabled, base, descriptors, .. } = *setup;
    let base = base.map_or("kept".into(), |base| format!("{:#x}", base.to_wire()));
    format!("live {ring}: {size} at {:#x}, base {base}, enabled {enabled}", descriptors.address)
}

/// Reply of the back end as the test received it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ReceivedReply {
    pub(crate) request: u32,
    pub(crate) body: Vec<u8>,
    pub(crate) fds: Vec<i32>,
}

/// Session of a back end, with its simulated host and its outbox.
pub(crate) struct ScriptedSession {
    pub(crate) session: BackendSession<CountedFd>,
    pub(crate) host: RecordingHost,
    pub(crate) out: OutgoingMessages<CountedFd>,
}

impl ScriptedSession {
    /// Creates a session with two queue pairs that has received no message.
    pub(crate) fn fresh() -> Self {
        let offer = BackendOffer { protocol_features: EVERYTHING, ..BackendOffer::net(2, DEVICE) };
        Self {
            session: BackendSession::new(offer),
            host: RecordingHost::default(),
            out: OutgoingMessages::new(),
        }
    }

    /// Creates a session that has negotiated all protocol features.
    pub(crate) fn negotiated_protocol() -> Self {
        let mut script = Self::fresh();
        script.tell(SET_PROTOCOL_FEATURES, &long(EVERYTHING));
        script.tell(SET_OWNER, &[]);
        script.said();
        script
    }

    /// Creates a session that has negotiated features of the device and all protocol features.
    pub(crate) fn negotiated(features: u64) -> Self {
        let mut script = Self::negotiated_protocol();
        script.tell(SET_FEATURES, &long(features | PROTOCOL));
        script.said();
        script
    }

    /// Creates a session with memory and a live ring 0 of 256 descriptors.
    pub(crate) fn running(features: u64) -> Self {
        let mut script = Self::negotiated(features);
        script.tell_with(ADD_MEM_REG, &single_region(MEMORY.0, MEMORY.1, USER, 0), fds(&[5]));
        script.set_up_ring(0);
        assert!(script.session.is_live(0), "{:?}", script.host.said);
        script.said();
        script
    }

    /// Sends size, addresses and the eventfd of kicks of a ring with 256 descriptors.
    pub(crate) fn set_up_ring(&mut self, ring: u32) {
        self.tell(SET_VRING_NUM, &state(ring, 256));
        self.tell(SET_VRING_ADDR, &ring_addresses(ring));
        self.tell_with(SET_VRING_KICK, &long(u64::from(ring)), fds(&[10 + ring as i32]));
    }

    /// Delivers bytes as the socket does: at most the session's room at once, descriptors with the first byte. Handles
    /// all events, tasks and messages.
    pub(crate) fn receive(&mut self, bytes: &[u8], mut fds: Vec<CountedFd>) -> Result<(), SessionError> {
        let mut rest = bytes;
        while !rest.is_empty() {
            let (piece, later) = rest.split_at(self.session.room().min(rest.len()));
            assert!(!piece.is_empty(), "a session that is starved has room");
            rest = later;
            self.session.push(piece, &mut fds)?;
            self.handle()?;
        }
        Ok(())
    }

    /// Handles events, tasks and messages until the session needs bytes.
    pub(crate) fn handle(&mut self) -> Result<(), SessionError> {
        loop {
            match self.session.step(&mut self.out)? {
                BackendProgress::Handled => {}
                BackendProgress::Event(event) => self.host.event(event),
                BackendProgress::Task(task) => {
                    let outcome = self.host.task(task);
                    self.session.complete(outcome);
                }
                BackendProgress::Starved | BackendProgress::Blocked => return Ok(()),
                BackendProgress::Waiting => panic!("the host completes every task"),
            }
        }
    }

    /// Sends a request that has no reply, and asserts that none comes.
    #[track_caller]
    pub(crate) fn tell(&mut self, request: u32, body: &[u8]) {
        self.tell_with(request, body, Vec::new());
    }

    /// Sends a request with descriptors that has no reply, and asserts that none comes.
    #[track_caller]
    pub(crate) fn tell_with(&mut self, request: u32, body: &[u8], fds: Vec<CountedFd>) {
        self.receive(&message(request, PLAIN, body), fds).unwrap();
        assert_eq!(self.replies(), []);
    }

    /// Sends a request that has a reply, and returns the reply's body.
    #[track_caller]
    pub(crate) fn ask(&mut self, request: u32, body: &[u8]) -> Vec<u8> {
        self.ask_with(request, PLAIN, body, Vec::new()).body
    }

    /// Sends a request whose reply is a number, and returns the number.
    #[track_caller]
    pub(crate) fn number(&mut self, request: u32) -> u64 {
        long_at(&self.ask(request, &[]))
    }

    /// Sends a request and asks for an acknowledgement. Returns the number in the acknowledgement; 0 is success.
    #[track_caller]
    pub(crate) fn acknowledged(&mut self, request: u32, body: &[u8], fds: Vec<CountedFd>) -> u64 {
        long_at(&self.ask_with(request, NEED_REPLY, body, fds).body)
    }

    /// Sends a message, and asserts that exactly one reply comes. Returns the reply.
    #[track_caller]
    pub(crate) fn ask_with(
        &mut self,
        request: u32,
        flags: u32,
        body: &[u8],
        fds: Vec<CountedFd>,
    ) -> ReceivedReply {
        self.receive(&message(request, flags, body), fds).unwrap();
        let mut replies = self.replies();
        assert_eq!(replies.len(), 1, "one request, one reply");
        assert_eq!(replies[0].request, request, "the request's number is repeated");
        replies.remove(0)
    }

    /// Sends a request that ends the connection, and returns the error.
    #[track_caller]
    pub(crate) fn ends(&mut self, request: u32, body: &[u8], fds: Vec<CountedFd>) -> SessionError {
        let error = self.receive(&message(request, PLAIN, body), fds).unwrap_err();
        assert_eq!(self.replies(), []);
        assert_eq!(self.handle(), Err(error), "the end is for good");
        error
    }

    /// Takes and parses all unsent replies of the session.
    pub(crate) fn replies(&mut self) -> Vec<ReceivedReply> {
        take_replies(&mut self.out)
    }

    /// Returns the events and tasks since the last call of this function.
    pub(crate) fn said(&mut self) -> Vec<String> {
        std::mem::take(&mut self.host.said)
    }
}

pub(crate) fn take_replies(out: &mut OutgoingMessages<CountedFd>) -> Vec<ReceivedReply> {
    let mut replies = Vec::new();
    while let Some(chunk) = out.chunk() {
        let word = |at: usize| u32::from_le_bytes(chunk.bytes[at..at + 4].try_into().unwrap());
        assert_eq!((word(4), word(8) as usize), (REPLY, chunk.bytes.len() - 12));
        let fds = chunk.fds.iter().map(|fd| **fd).collect();
        replies.push(ReceivedReply { request: word(0), body: chunk.bytes[12..].to_vec(), fds });
        let sent = chunk.bytes.len();
        out.sent(sent);
    }
    replies
}

pub(crate) fn message(request: u32, flags: u32, body: &[u8]) -> Vec<u8> {
    [&words(&[request, flags, body.len() as u32]), body].concat()
}

/// Returns the bytes of 32-bit words in little-endian order.
pub(crate) fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

/// Returns the bytes of 64-bit words in little-endian order.
pub(crate) fn longs(values: &[u64]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

pub(crate) fn long(value: u64) -> Vec<u8> {
    longs(&[value])
}

pub(crate) fn long_at(bytes: &[u8]) -> u64 {
    u64::from_le_bytes(bytes.try_into().unwrap())
}

/// Returns a message body of a ring number and another number ("vring state description").
pub(crate) fn state(ring: u32, number: u32) -> Vec<u8> {
    words(&[ring, number])
}

/// Returns the body of `SET_VRING_ADDR` for a ring. Each ring has its own 64 KiB of the scripted memory, for
/// descriptors, used ring and available ring.
pub(crate) fn ring_addresses(ring: u32) -> Vec<u8> {
    let start = USER + 0x1_0000 * u64::from(ring);
    addresses(ring, 0, [start, start + 0x2000, start + 0x1000], 0)
}

pub(crate) fn addresses(ring: u32, flags: u32, user: [u64; 3], log: u64) -> Vec<u8> {
    [words(&[ring, flags]), longs(&user), long(log)].concat()
}

/// Returns the body of `ADD_MEM_REG` or `REM_MEM_REG` for one region.
pub(crate) fn single_region(guest: u64, size: u64, user: u64, offset: u64) -> Vec<u8> {
    longs(&[0, guest, size, user, offset])
}

/// Returns the body of `SET_MEM_TABLE` with regions of guest address, size, user address and file offset.
pub(crate) fn memory_table(regions: &[[u64; 4]]) -> Vec<u8> {
    [words(&[regions.len() as u32, 0]), longs(&regions.concat())].concat()
}

pub(crate) fn inflight(size: u64, offset: u64, queues: u32, queue_size: u32) -> Vec<u8> {
    [longs(&[size, offset]), words(&[queue_size << 16 | queues, 0])].concat()
}

pub(crate) fn fds(numbers: &[i32]) -> Vec<CountedFd> {
    numbers.iter().map(|&number| Rc::new(number)).collect()
}
