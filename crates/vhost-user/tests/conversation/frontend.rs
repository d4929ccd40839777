//! Tests this crate's front end against its back end, and against replies that violate the protocol.

use std::rc::Rc;

use vhost_user::backend::{BackendOffer, BackendSession};
use vhost_user::frontend::{BackendReply, BackendViolation, Frontend};
use vhost_user::message::{
    DeviceConfigAccess, FrontendRequest, InflightArea, MemoryRegion, RequestCode, RingAddresses, RingBase,
    RingEventfdMessage,
};
use vhost_user::outbox::OutgoingMessages;

use crate::script::{
    CountedFd, DEVICE, EVERYTHING, MEMORY, PROTOCOL, SPLIT, ScriptedSession, USER, fds, long, message, state,
};

/// Front end and back end of a test, joined by buffers in memory.
struct ConnectedFrontendAndBackend {
    frontend: Frontend<CountedFd>,
    requests: OutgoingMessages<CountedFd>,
    backend: ScriptedSession,
}

impl ConnectedFrontendAndBackend {
    fn new() -> Self {
        Self {
            frontend: Frontend::new(),
            requests: OutgoingMessages::new(),
            backend: ScriptedSession::fresh(),
        }
    }

    /// Sends a request, and returns the reply if one comes.
    fn send(&mut self, request: &FrontendRequest, acknowledged: bool) -> Option<BackendReply<CountedFd>> {
        let fds = fds(&vec![7; request.descriptors()]);
        if acknowledged {
            self.frontend.send_acknowledged(&mut self.requests, request, fds);
        } else {
            self.frontend.send(&mut self.requests, request, fds);
        }
        while let Some(chunk) = self.requests.chunk() {
            let (bytes, fds) = (chunk.bytes.to_vec(), chunk.fds.to_vec());
            self.backend.receive(&bytes, fds).unwrap();
            self.requests.sent(bytes.len());
        }
        while let Some(chunk) = self.backend.out.chunk() {
            let sent = chunk.bytes.len().min(self.frontend.room());
            self.frontend.push(&chunk.bytes[..sent], &mut chunk.fds.to_vec()).unwrap();
            self.backend.out.sent(sent);
        }
        self.frontend.next_reply().unwrap()
    }

    fn accepted(&mut self, request: &FrontendRequest) {
        assert_eq!(self.send(request, true), Some(BackendReply::Accepted), "{request:?}");
    }
}

#[test]
fn front_end_starts_a_ring_and_stops_it() {
    use FrontendRequest as Request;
    let mut ends = ConnectedFrontendAndBackend::new();
    assert_eq!(ends.send(&Request::GetFeatures, false), Some(BackendReply::Number(DEVICE | PROTOCOL)));
    assert_eq!(ends.send(&Request::SetProtocolFeatures(EVERYTHING), false), None);
    ends.accepted(&Request::SetOwner);
    ends.accepted(&Request::SetFeatures(SPLIT | PROTOCOL));
    let memory = MemoryRegion { guest_address: MEMORY.0, size: MEMORY.1, user_address: USER, file_offset: 0 };
    ends.accepted(&Request::SetMemTable(vec![memory]));
    ends.accepted(&Request::SetVringNum { ring: 1, size: 256 });
    ends.accepted(&Request::SetVringBase { ring: 1, base: RingBase::Split { available: 3 }.to_wire() });
    let (descriptors, used, available) = (USER, USER + 0x2000, USER + 0x1000);
    ends.accepted(&Request::SetVringAddr(RingAddresses {
        ring: 1,
        descriptors,
        used,
        available,
        ..Default::default()
    }));
    ends.accepted(&Request::SetVringKick(RingEventfdMessage { ring: 1, attached: true }));
    ends.accepted(&Request::SetVringEnable { ring: 1, enabled: true });
    assert!(ends.backend.session.is_live(1));
    let refused = Request::SetVringNum { ring: 1, size: 512 };
    assert_eq!(ends.send(&refused, true), Some(BackendReply::Refused(1)));
    let stop = Request::GetVringBase { ring: 1 };
    ends.backend.host.position = Some(RingBase::Split { available: 9 });
    assert_eq!(ends.send(&stop, true), Some(BackendReply::Base { ring: 1, base: 9 }));
    assert_eq!(ends.frontend.pending(), 0);
}

#[test]
fn front_end_reads_configuration_and_inflight_records() {
    use FrontendRequest as Request;
    let mut ends = ConnectedFrontendAndBackend::new();
    ends.send(&Request::SetProtocolFeatures(EVERYTHING), false);
    let read = Request::GetConfig(DeviceConfigAccess { offset: 4, flags: 0, contents: vec![0; 3] });
    assert_eq!(ends.send(&read, false), Some(BackendReply::Config(Some(vec![4, 5, 6]))));
    let area = InflightArea { size: 0x1000, offset: 0, queues: 2, queue_size: 256 };
    let inflight = BackendReply::Inflight { area, fd: Rc::new(99) };
    assert_eq!(ends.send(&Request::GetInflightFd(area), false), Some(inflight));
    ends.backend.host.fails = true;
    assert_eq!(ends.send(&read, false), Some(BackendReply::Config(None)));
}

#[test]
fn unrequested_or_malformed_reply_is_a_back_end_violation() {
    let pushed = |bytes: &[u8]| {
        let mut frontend: Frontend<CountedFd> = Frontend::new();
        frontend.send(&mut OutgoingMessages::<CountedFd>::new(), &FrontendRequest::GetFeatures, Vec::new());
        frontend.push(&bytes[..12], &mut Vec::new()).unwrap();
        frontend.push(&bytes[12..], &mut Vec::new()).unwrap();
        frontend.next_reply().unwrap_err()
    };
    assert_eq!(pushed(&message(15, 5, &long(0))), BackendViolation::UnexpectedMessage(15));
    assert_eq!(pushed(&message(1, 1, &long(0))), BackendViolation::UnexpectedMessage(1), "a request");
    let short = BackendViolation::MalformedReply(RequestCode::GetFeatures);
    assert_eq!(pushed(&message(1, 5, &state(0, 0)[..7])), short);
}

#[test]
fn dropped_session_closes_every_file_descriptor() {
    let fd = Rc::new(7);
    let mut session = BackendSession::new(BackendOffer::net(1, 0));
    session.push(&message(13, 1, &long(0))[..12], &mut vec![fd.clone()]).unwrap();
    session.push(&long(0), &mut Vec::new()).unwrap();
    session.step(&mut OutgoingMessages::new()).unwrap();
    assert_eq!(Rc::strong_count(&fd), 2, "in an event that the host has not taken");
    drop(session);
    assert_eq!(Rc::strong_count(&fd), 1);
}
