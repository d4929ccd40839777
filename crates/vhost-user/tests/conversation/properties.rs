//! Tests properties of a session for every stream of messages: no panic, bounded memory, well-formed replies, no leaked
//! descriptor, the same result for any division into pieces, and no revival after the end.

use std::collections::BTreeSet;
use std::rc::Rc;

use proptest::collection::vec;
use proptest::prelude::*;
use vhost_user::backend::{
    BackendEvent, BackendOffer, BackendProgress, BackendSession, HostOperation, HostOperationOutcome,
    MAX_UNSENT_REPLIES,
};
use vhost_user::frontend::{BackendReply, Frontend};
use vhost_user::message::{
    DeviceConfigAccess, FrontendRequest, InflightArea, LogArea, MAX_MESSAGE_FDS, MemoryRegion, RequestCode,
    RingAddresses, RingBase, RingEventfdMessage,
};
use vhost_user::outbox::OutgoingMessages;

use crate::saved::assert_round_trip;
use crate::script::{
    CountedFd, DEVICE, EVERYTHING, MEMORY, NEED_REPLY, PLAIN, PROTOCOL, ReceivedReply, SPLIT, USER, message,
    take_replies,
};

/// Message of a request, with the number of its descriptors.
type Sent = (Vec<u8>, usize);

fn region() -> impl Strategy<Value = MemoryRegion> {
    let address = prop_oneof![(0u64..6).prop_map(|block| MEMORY.0 + block * 0x10_0000), any::<u64>()];
    let size = prop_oneof![4 => (0u64..3).prop_map(|block| block * 0x10_0000), 1 => any::<u64>()];
    (address, size, 0u64..0x2000).prop_map(|(guest_address, size, file_offset)| MemoryRegion {
        guest_address,
        size,
        user_address: guest_address.wrapping_add(USER - MEMORY.0),
        file_offset,
    })
}

fn ring() -> impl Strategy<Value = u32> {
    prop_oneof![8 => 0u32..4, 1 => 0u32..256, 1 => any::<u32>()]
}

fn ring_addresses() -> impl Strategy<Value = RingAddresses> {
    // Inside the first region, about its end, or anywhere.
    let block = prop_oneof![3 => 0u64..128, 2 => 0x1fc_u64..0x202];
    let part = prop_oneof![8 => block.prop_map(|block| USER + block * 0x800), 1 => any::<u64>()];
    (ring(), any::<bool>(), part.clone(), part.clone(), part, any::<u64>()).prop_map(
        |(ring, logged, descriptors, used, available, log)| RingAddresses {
            ring,
            logged,
            descriptors,
            used,
            available,
            log,
        },
    )
}

/// Generates a request that is valid, or nearly so.
fn request() -> impl Strategy<Value = FrontendRequest> {
    use FrontendRequest as Request;
    let eventfd = (0u32..5, any::<bool>()).prop_map(|(ring, attached)| RingEventfdMessage { ring, attached });
    let inflight = (any::<u64>(), 0u64..0x2000, 0u16..6, 0u16..600)
        .prop_map(|(size, offset, queues, queue_size)| InflightArea { size, offset, queues, queue_size });
    let config = (0u32..70, 0u32..2, vec(any::<u8>(), 0..70))
        .prop_map(|(offset, flags, contents)| DeviceConfigAccess { offset, flags, contents });
    let simple = prop_oneof![
        Just(Request::GetFeatures),
        Just(Request::SetOwner),
        Just(Request::ResetOwner),
        Just(Request::SetLogFd),
        Just(Request::GetProtocolFeatures),
        Just(Request::GetQueueNum),
        Just(Request::SetBackendReqFd),
        Just(Request::ResetDevice),
        Just(Request::GetMaxMemSlots),
        Just(Request::GetStatus),
    ];
    let features = prop_oneof![Just(SPLIT | PROTOCOL), Just(SPLIT), Just(DEVICE | PROTOCOL), any::<u64>()];
    let rings = prop_oneof![
        (ring(), prop_oneof![Just(256u32), 0u32..1000])
            .prop_map(|(ring, size)| Request::SetVringNum { ring, size }),
        ring_addresses().prop_map(Request::SetVringAddr),
        (ring(), any::<u32>()).prop_map(|(ring, base)| Request::SetVringBase { ring, base }),
        ring().prop_map(|ring| Request::GetVringBase { ring }),
        (ring(), any::<bool>()).prop_map(|(ring, enabled)| Request::SetVringEnable { ring, enabled }),
        eventfd.clone().prop_map(Request::SetVringKick),
        eventfd.clone().prop_map(Request::SetVringCall),
        eventfd.prop_map(Request::SetVringErr),
    ];
    prop_oneof![
        2 => simple,
        1 => features.prop_map(Request::SetFeatures),
        1 => prop_oneof![Just(EVERYTHING), any::<u64>()].prop_map(Request::SetProtocolFeatures),
        8 => rings,
        1 => vec(region(), 0..4).prop_map(Request::SetMemTable),
        3 => region().prop_map(Request::AddMemReg),
        2 => region().prop_map(Request::RemMemReg),
        1 => (any::<u64>(), any::<u64>()).prop_map(|(size, offset)| Request::SetLogBase(LogArea { size, offset })),
        1 => any::<[u8; 6]>().prop_map(Request::SendRarp),
        1 => any::<u16>().prop_map(Request::NetSetMtu),
        1 => any::<u8>().prop_map(Request::SetStatus),
        1 => config.clone().prop_map(Request::GetConfig),
        1 => config.prop_map(Request::SetConfig),
        1 => inflight.clone().prop_map(Request::GetInflightFd),
        1 => inflight.prop_map(Request::SetInflightFd),
    ]
}

/// Returns the messages that negotiate all features, share memory, and set up rings 0 and 1.
fn start() -> impl Iterator<Item = Sent> {
    use FrontendRequest as Request;
    let memory =
        MemoryRegion { guest_address: MEMORY.0, size: 0x10_0000, user_address: USER, file_offset: 0 };
    let rings = [0, 1].map(|ring| {
        let start = USER + 0x1_0000 * u64::from(ring);
        let (descriptors, used, available) = (start, start + 0x2000, start + 0x1000);
        let addresses = RingAddresses { ring, descriptors, used, available, ..RingAddresses::default() };
        [
            Request::SetVringNum { ring, size: 256 },
            Request::SetVringAddr(addresses),
            Request::SetVringKick(RingEventfdMessage { ring, attached: true }),
        ]
    });
    let features = [Request::SetProtocolFeatures(EVERYTHING), Request::SetFeatures(SPLIT | PROTOCOL)];
    let requests =
        features.into_iter().chain([Request::AddMemReg(memory)]).chain(rings.into_iter().flatten());
    requests.map(|request| sent(&request, PLAIN, 0))
}

/// Returns the message of a request, with `more` descriptors in addition to the required ones.
fn sent(request: &FrontendRequest, flags: u32, more: usize) -> Sent {
    (message(request.code().number(), flags, &request.encode()), request.descriptors() + more)
}

/// Generates a front end's messages to running rings: mostly requests with the right number of descriptors, seldom with
/// a wrong one, and seldom random bytes with a valid header.
fn conversation() -> impl Strategy<Value = Vec<Sent>> {
    let flags = prop_oneof![19 => Just(NEED_REPLY), 1 => Just(PLAIN)];
    let more = prop_oneof![30 => Just(0usize), 1 => 1usize..4];
    let sound =
        (request(), flags.clone(), more).prop_map(|(request, flags, more)| sent(&request, flags, more));
    let strange = (0u32..50, flags, vec(any::<u8>(), 0..80), 0usize..3)
        .prop_map(|(number, flags, body, fds)| (message(number, flags, &body), fds));
    vec(prop_oneof![15 => sound, 1 => strange], 0..40).prop_map(|messages| start().chain(messages).collect())
}

/// Simulated host that asserts every guarantee that a session gives.
#[derive(Default)]
struct AssertingHost {
    regions: Vec<MemoryRegion>,
    live: BTreeSet<u32>,
    /// Descriptors of memory and eventfds that the host keeps open.
    kept: Vec<CountedFd>,
    said: Vec<String>,
}

impl AssertingHost {
    fn event(&mut self, event: BackendEvent<CountedFd>) {
        self.said.push(format!("{event:?}"));
        match event {
            BackendEvent::RingLive(ring) => {
                assert!(ring.size.is_power_of_two() || ring.packed);
                for range in [ring.descriptors, ring.available, ring.used] {
                    let inside = |region: &MemoryRegion| {
                        let offset = range.address.checked_sub(region.guest_address);
                        offset.is_some_and(|offset| offset.saturating_add(range.size) <= region.size)
                    };
                    assert!(self.regions.iter().any(inside), "a live ring is in mapped memory");
                }
                assert!(ring.ring < 4 && self.live.insert(ring.ring));
            }
            BackendEvent::RingPaused { ring } => assert!(self.live.remove(&ring)),
            BackendEvent::RingEnabled { ring, .. } => assert!(self.live.contains(&ring)),
            BackendEvent::KickSet { ring, fd }
            | BackendEvent::CallSet { ring, fd }
            | BackendEvent::ErrorSet { ring, fd } => {
                assert!(ring < 4);
                self.kept.extend(fd);
            }
            BackendEvent::DeviceReset => assert!(self.live.is_empty()),
            _ => {}
        }
    }

    fn task(&mut self, task: HostOperation<CountedFd>) -> HostOperationOutcome<CountedFd> {
        self.said.push(format!("{task:?}"));
        match task {
            HostOperation::ReplaceMemory(regions) => {
                assert!(self.live.is_empty());
                self.regions = regions.iter().map(|shared| shared.region).collect();
                HostOperationOutcome::Done
            }
            HostOperation::AddRegion(shared) => {
                assert!(self.live.is_empty());
                // Regions from this offset on cannot be mapped.
                if shared.region.file_offset > 0x1f00 {
                    return HostOperationOutcome::Failed;
                }
                self.regions.push(shared.region);
                HostOperationOutcome::Done
            }
            HostOperation::RemoveRegion(region) => {
                assert!(self.live.is_empty());
                let before = self.regions.len();
                self.regions.retain(|present| *present != region);
                assert_eq!(self.regions.len() + 1, before);
                HostOperationOutcome::Done
            }
            HostOperation::StopRing { ring } => {
                self.live.remove(&ring);
                HostOperationOutcome::Base(RingBase::from_wire(0x8003_8003, ring % 2 == 0))
            }
            HostOperation::ReadConfig { size, .. } => HostOperationOutcome::Config(vec![1; size as usize]),
            HostOperation::CreateInflight { .. } => HostOperationOutcome::Inflight {
                area: InflightArea { size: 1, ..InflightArea::default() },
                fd: Rc::new(9),
            },
            HostOperation::WriteConfig(_) => HostOperationOutcome::Failed,
            _ => HostOperationOutcome::Done,
        }
    }
}

struct BackendSessionRunResult {
    replies: Vec<ReceivedReply>,
    said: Vec<String>,
    error: bool,
}

/// Passes messages to a new session, in pieces whose lengths repeat `pieces`. Descriptors come with the first byte.
fn run(messages: &[Sent], pieces: &[usize], fd: &CountedFd) -> BackendSessionRunResult {
    let offer = BackendOffer { protocol_features: EVERYTHING, ..BackendOffer::net(2, DEVICE) };
    let mut session = BackendSession::new(offer);
    let mut host = AssertingHost::default();
    let mut out = OutgoingMessages::new();
    let (mut replies, mut error) = (Vec::new(), false);
    let mut pieces = pieces.iter().cycle();
    for (bytes, count) in messages {
        let (mut rest, mut fds) = (&bytes[..], vec![fd.clone(); *count]);
        while !rest.is_empty() && !error {
            let most = session.room().min(rest.len());
            let (piece, later) = rest.split_at((*pieces.next().unwrap()).clamp(1, most.max(1)));
            rest = later;
            error =
                session.push(piece, &mut fds).is_err() || handle(&mut session, &mut host, &mut out).is_err();
            replies.extend(take_replies(&mut out));
        }
    }
    assert_eq!(session.step(&mut out).is_err(), error, "an end is for good, and nothing is left to do");
    if !error {
        assert_round_trip(&session);
    }
    BackendSessionRunResult { replies, said: host.said, error }
}

/// Handles a message with all its events. The number of steps is bounded by the number of rings.
fn handle(
    session: &mut BackendSession<CountedFd>,
    host: &mut AssertingHost,
    out: &mut OutgoingMessages<CountedFd>,
) -> Result<(), ()> {
    for _ in 0..40 {
        match session.step(out).map_err(drop)? {
            BackendProgress::Handled => {}
            BackendProgress::Event(event) => host.event(event),
            BackendProgress::Task(task) => {
                let outcome = host.task(task);
                session.complete(outcome);
            }
            BackendProgress::Starved => {
                let mapped: BTreeSet<_> = host.regions.iter().map(|region| region.guest_address).collect();
                let known = session.memory().regions().iter().map(|region| region.guest_address);
                assert!(known.eq(mapped), "host and session agree on memory");
                assert!((0..4).all(|ring| session.is_live(ring) == host.live.contains(&ring)));
                return Ok(());
            }
            BackendProgress::Blocked | BackendProgress::Waiting => panic!("nothing is pending"),
        }
        assert!(out.pending() <= MAX_UNSENT_REPLIES);
    }
    panic!("no end of work");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 512, ..ProptestConfig::default() })]

    #[test]
    fn session_survives_any_bytes_with_any_file_descriptors(
        stream in vec((vec(any::<u8>(), 1..60), 0usize..40), 0..30),
        pieces in vec(1usize..30, 1..8),
    ) {
        let fd = Rc::new(1);
        let run = run(&stream, &pieces, &fd);
        prop_assert!(run.error || stream.iter().all(|(_, fds)| *fds <= MAX_MESSAGE_FDS));
        prop_assert_eq!(Rc::strong_count(&fd), 1, "every descriptor is closed");
    }

    #[test]
    fn host_and_session_agree_after_any_front_end_messages(
        messages in conversation(),
        pieces in vec(prop_oneof![1usize..4, 1usize..5000], 1..8),
    ) {
        let fd = Rc::new(1);
        let whole = run(&messages, &[usize::MAX], &fd);
        let cut = run(&messages, &pieces, &fd);
        prop_assert_eq!(whole.replies, cut.replies, "cuts do not matter");
        prop_assert_eq!(whole.said, cut.said);
        prop_assert_eq!(whole.error, cut.error);
        prop_assert_eq!(Rc::strong_count(&fd), 1, "every descriptor is closed");
    }

    #[test]
    fn vhost_user_request_is_parsed_as_encoded(request in request()) {
        let body = request.encode();
        if let Ok(parsed) = FrontendRequest::parse(request.code(), &body) {
            prop_assert_eq!(&parsed, &request);
        }
        for code in RequestCode::ALL {
            if let Ok(parsed) = FrontendRequest::parse(code, &body) {
                prop_assert_eq!(parsed.code(), code);
            }
        }
    }

    #[test]
    fn front_end_survives_arbitrary_bytes_of_the_back_end(
        requests in vec((request(), any::<bool>()), 0..10),
        stream in vec((vec(any::<u8>(), 1..40), 0usize..3), 0..10),
    ) {
        let fd = Rc::new(1);
        let mut frontend: Frontend<CountedFd> = Frontend::new();
        let mut out: OutgoingMessages<CountedFd> = OutgoingMessages::new();
        for (request, acknowledged) in &requests {
            if *acknowledged {
                frontend.send_acknowledged(&mut out, request, Vec::new());
            } else {
                frontend.send(&mut out, request, Vec::new());
            }
        }
        prop_assert!(frontend.pending() <= requests.len());
        for (bytes, fds) in stream {
            let piece = &bytes[..bytes.len().min(frontend.room())];
            let pushed = frontend.push(piece, &mut vec![fd.clone(); fds]);
            let reply: Result<Option<BackendReply<_>>, _> = frontend.next_reply();
            prop_assert!(pushed.is_ok() || reply.is_err());
        }
    }
}
