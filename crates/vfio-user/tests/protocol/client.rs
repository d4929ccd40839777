//! Tests this crate's client against its server, without a socket, and against servers that violate the protocol.

use std::rc::Rc;

use vfio_user::client::{Client, ClientDmaWindow, ReplyContents, ServerReply, ServerViolation};
use vfio_user::decoder::ProtocolError;
use vfio_user::outbox::MessageOutbox;
use vfio_user::types::{DeviceInfo, IrqInfo, SparseArea};
use vfio_user::wire::{Command, Errno};

use crate::script::{CountedFd, ERROR, REPLY, ScriptedSession, message, sized_message, words};

/// Client session and server session of one connection, with the outboxes whose bytes pass between them.
#[derive(Default)]
struct ScriptedConnection {
    client: Client<CountedFd>,
    requests: MessageOutbox<CountedFd>,
    script: ScriptedSession,
}

impl ScriptedConnection {
    fn connected() -> Self {
        let mut wire = Self::default();
        wire.client.version(&mut wire.requests);
        let agreed = wire.exchange(|reply| match reply.answer {
            Ok(ReplyContents::Version { capabilities, .. }) => capabilities.write_multiple,
            other => panic!("{other:?}"),
        });
        assert_eq!(agreed, Some(true));
        wire
    }

    fn deliver(&mut self) {
        while let Some(chunk) = self.requests.chunk() {
            self.script.receive(chunk.bytes, chunk.fds.to_vec()).unwrap();
            let sent = chunk.bytes.len();
            self.requests.sent(sent);
        }
        while let Some(chunk) = self.script.out.chunk() {
            self.client.push(chunk.bytes, chunk.fds.to_vec()).unwrap();
            let sent = chunk.bytes.len();
            self.script.out.sent(sent);
        }
    }

    fn exchange<T>(&mut self, check: impl FnOnce(ServerReply<'_, CountedFd>) -> T) -> T {
        self.deliver();
        check(self.client.next_reply().unwrap().expect("a reply must arrive"))
    }

    fn done(&mut self) {
        self.exchange(|reply| assert_eq!(reply.answer, Ok(ReplyContents::Done)));
    }
}

#[test]
fn client_reads_regions_and_interrupts_of_the_device() {
    let mut wire = ScriptedConnection::connected();
    wire.script.device.mapped = true;
    wire.client.device_info(&mut wire.requests);
    let info = DeviceInfo { flags: 3, regions: 9, irqs: 5 };
    wire.exchange(|reply| assert_eq!(reply.answer, Ok(ReplyContents::DeviceInfo(info))));
    wire.client.irq_info(&mut wire.requests, 2);
    wire.exchange(|reply| assert_eq!(reply.answer, Ok(ReplyContents::Irq(IrqInfo { count: 3, flags: 1 }))));

    wire.client.region_info(&mut wire.requests, 0, 32);
    let room = wire.exchange(|reply| match reply.answer {
        Ok(ReplyContents::Region(region)) if region.sparse.is_empty() => region.argsz,
        other => panic!("{other:?}"),
    });
    wire.client.region_info(&mut wire.requests, 0, room);
    wire.exchange(|reply| {
        let Ok(ReplyContents::Region(region)) = reply.answer else { panic!("not a region") };
        assert_eq!((region.size, region.offset), (0x4000, 0x10000));
        assert_eq!(region.sparse, [SparseArea { offset: 0x2000, size: 0x2000 }]);
        assert_eq!(reply.fds.iter().map(|fd| **fd).collect::<Vec<_>>(), [77]);
    });
}

#[test]
fn client_reads_and_posted_writes_reach_the_device() {
    let mut wire = ScriptedConnection::connected();
    wire.script.device.bar0 = vec![0; 0x4000];
    wire.client.write_posted(&mut wire.requests, 0, 0, &[1, 2]);
    wire.client.write_multi_posted(&mut wire.requests, &[(0, 2, &[3]), (0, 3, &[4])]);
    wire.client.write(&mut wire.requests, 0, 4, &[5, 6]);
    wire.done();
    let id = wire.client.read(&mut wire.requests, 0, 0, 6);
    wire.exchange(|reply| {
        assert_eq!((reply.id, reply.command), (id, Command::RegionRead));
        assert_eq!(reply.answer, Ok(ReplyContents::Data(&[1, 2, 3, 4, 5, 6])));
    });
    assert_eq!(wire.client.pending(), 0);
    let counters = wire.script.session.counters();
    assert_eq!((counters.posted_writes, counters.synchronous_writes), (3, 1));
}

#[test]
fn client_sends_file_descriptors_with_dma_maps_and_interrupts() {
    let mut wire = ScriptedConnection::connected();
    let low = ClientDmaWindow { iova: 0, size: 0x1000, offset: 0, writable: true };
    let rom = ClientDmaWindow { iova: 0x1000, size: 0x1000, offset: 0, writable: false };
    // All at once: the outbox sends messages with descriptors separately.
    wire.client.dma_map(&mut wire.requests, low, Some(Rc::new(5)));
    wire.client.dma_map(&mut wire.requests, rom, None);
    wire.client.assign_irqs(&mut wire.requests, 2, 0, vec![Rc::new(6), Rc::new(7)]);
    wire.client.deassign_irqs(&mut wire.requests, 2, 0, 1);
    wire.client.disable_irqs(&mut wire.requests, 2);
    wire.client.dma_unmap(&mut wire.requests, 0, 0x1000);
    wire.client.dma_unmap_all(&mut wire.requests);
    wire.client.reset(&mut wire.requests);
    wire.deliver();
    let said = wire.script.said();
    assert_eq!(
        said,
        [
            "map 0x0+0x1000 true Some((5, 0))",
            "map 0x1000+0x1000 false None",
            "Assign { index: 2, start: 0, fds: [6, 7] }",
            "Deassign { index: 2, vectors: 0..1 }",
            "Disable { index: 2 }",
            "unmap 0x0+0x1000",
            "unmap 0x1000+0x1000",
            "reset",
        ]
    );
    for _ in 0..8 {
        assert_eq!(wire.client.next_reply().unwrap().unwrap().answer, Ok(ReplyContents::Done));
    }
    assert!(wire.client.next_reply().unwrap().is_none());
}

#[test]
fn error_reply_of_the_server_is_returned_to_the_client() {
    let mut wire = ScriptedConnection::connected();
    let window = ClientDmaWindow { iova: 0, size: 0x2000, offset: 0, writable: true };
    wire.client.dma_map(&mut wire.requests, window, None);
    wire.exchange(|reply| assert_eq!(reply.answer, Ok(ReplyContents::Done)));
    wire.client.dma_unmap(&mut wire.requests, 0, 0x1000);
    wire.exchange(|reply| assert_eq!(reply.answer, Err(Errno::ENOENT), "the range cuts the window"));
    wire.client.region_info(&mut wire.requests, 99, 32);
    wire.exchange(|reply| assert_eq!(reply.answer, Err(Errno::EINVAL)));
}

/// Creates a client that has sent a read of four bytes (message id 0), and waits for the reply.
fn waiting() -> Client<CountedFd> {
    let mut client = Client::new();
    client.read(&mut MessageOutbox::<CountedFd>::new(), 0, 0, 4);
    client
}

#[track_caller]
fn gives_up(bytes: &[u8], error: ServerViolation) {
    let mut client = waiting();
    client.push(bytes, []).unwrap();
    assert_eq!(client.next_reply().map(|_| ()), Err(error));
}

#[test]
fn client_ends_its_connection_after_an_invalid_reply() {
    let malformed = ServerViolation::MalformedReply(Command::RegionRead);
    gives_up(&message(0, 9, REPLY, &[0; 15]), malformed);
    gives_up(&message(0, 9, REPLY, &words(&[0, 0, 0, 4])), malformed);
    gives_up(&message(0, 9, REPLY, &words(&[0, 0, 0, u32::MAX, 0])), malformed);
    gives_up(&message(0, 9, REPLY, &vec![0; 2 << 20]), malformed);
    gives_up(&message(1, 9, REPLY, &[0; 20]), ServerViolation::UnexpectedReply { id: 1, command: 9 });
    gives_up(&message(0, 10, REPLY, &[0; 20]), ServerViolation::UnexpectedReply { id: 0, command: 10 });
    gives_up(&message(0, 11, 0, &[0; 16]), ServerViolation::UnexpectedRequest(11));
    let short = ProtocolError::SizeBelowHeader { size: 3 };
    gives_up(&sized_message(0, 9, REPLY, 3, &[]), ServerViolation::Protocol(short));
}

#[test]
fn region_capability_list_with_an_invalid_link_is_refused() {
    let region = |cap_offset, next, areas| {
        let info = words(&[64, 0b1111, 0, cap_offset, 0x4000, 0, 0, 0]);
        [info, words(&[0x10001, next, areas, 0]), vec![0; 16]].concat()
    };
    for (cap_offset, next, areas) in
        [(32, 32, 1), (32, 8, 1), (80, 0, 1), (u32::MAX, 0, 1), (32, 0, u32::MAX)]
    {
        let mut client: Client<CountedFd> = Client::new();
        client.region_info(&mut MessageOutbox::<CountedFd>::new(), 0, 64);
        client.push(&message(0, 5, REPLY, &region(cap_offset, next, areas)), []).unwrap();
        let error = client.next_reply().map(|_| ()).unwrap_err();
        assert_eq!(error, ServerViolation::MalformedReply(Command::DeviceGetRegionInfo));
    }
}

#[test]
fn client_reads_a_reply_that_arrives_in_single_bytes() {
    let mut client = waiting();
    let reply = message(0, 9, REPLY | ERROR, &[]);
    for byte in &reply[..15] {
        client.push(&[*byte], []).unwrap();
        assert!(client.next_reply().unwrap().is_none());
    }
    client.push(&reply[15..], []).unwrap();
    assert_eq!(client.next_reply().unwrap().unwrap().answer, Err(Errno(0)));
}
