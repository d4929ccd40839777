//! Tests of vfio-user messages in pieces: a stream may be divided between any two bytes, and a hand-over may come
//! between any two pieces.

use crate::support::live::LiveHost;
use crate::support::machine::{BAR0, BAR3, CONFIG, MSIX};
use crate::support::ram::{GuestRam, SIZE};
use crate::support::raw::{RawVfioUserConnection, access, dma_map, dma_unmap, message};
use crate::support::{PATIENCE, eventually};
use host::eventfd::EventFd;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};
use vfio_user::wire::Command;

const FAMILIES: [&str; 2] = ["[[port]]\nvfs = 7\n", "[[port]]\nfamily = \"avf\"\nvfs = 7\n"];
const NO_REPLY: u32 = 1 << 4;

/// Message of a vfio-user client, with its name and the kind of file descriptor that is sent with it.
struct MessageWithFileDescriptor {
    name: &'static str,
    bytes: Vec<u8>,
    with: SentFileDescriptorKind,
}

/// Kind of file descriptor that is sent with a vfio-user message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SentFileDescriptorKind {
    Nothing,
    Memory,
    EventFd,
}

fn store(region: u32, offset: u64, data: &[u8]) -> Vec<u8> {
    [access(region, offset, data.len() as u32), data.to_vec()].concat()
}

/// Returns the body of a DEVICE_SET_IRQS message for MSI-X vectors: size, flags, index, start and count.
fn irqs(flags: u32, start: u32, count: u32) -> Vec<u8> {
    [20, flags, MSIX, start, count].map(u32::to_le_bytes).concat()
}

/// Returns one vfio-user message of every kind, in an order in which all valid ones succeed.
fn conversation() -> Vec<MessageWithFileDescriptor> {
    let version = b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":16,\"write_multiple\":true}}\0";
    let fixed = |argsz: u32, index: u32, length| {
        let mut body = [argsz, 0, index].map(u32::to_le_bytes).concat();
        body.resize(length, 0);
        body
    };
    let entry = |data: u32| [&store(BAR3, 4, &data.to_le_bytes())[..], &[0; 4]].concat();
    let several = [&2_u64.to_le_bytes()[..], &entry(0x1234), &entry(0x5678)].concat();
    let plain = |name, command, flags, body: &[u8]| MessageWithFileDescriptor {
        name,
        bytes: message(7, command, flags, body),
        with: SentFileDescriptorKind::Nothing,
    };
    vec![
        plain("version", Command::Version, 0, version),
        plain("device info", Command::DeviceGetInfo, 0, &fixed(16, 0, 16)),
        plain("region info", Command::DeviceGetRegionInfo, 0, &fixed(32, 0, 32)),
        plain("irq info", Command::DeviceGetIrqInfo, 0, &fixed(16, MSIX, 16)),
        MessageWithFileDescriptor {
            name: "map",
            bytes: dma_map(0, SIZE),
            with: SentFileDescriptorKind::Memory,
        },
        MessageWithFileDescriptor {
            name: "map without memory",
            bytes: dma_map(SIZE, 0x1000),
            with: SentFileDescriptorKind::Nothing,
        },
        MessageWithFileDescriptor {
            name: "unmap",
            bytes: dma_unmap(SIZE, 0x1000),
            with: SentFileDescriptorKind::Nothing,
        },
        MessageWithFileDescriptor {
            name: "assign",
            bytes: message(7, Command::DeviceSetIrqs, 0, &irqs(0x24, 1, 1)),
            with: SentFileDescriptorKind::EventFd,
        },
        plain("trigger", Command::DeviceSetIrqs, 0, &irqs(0x21, 1, 1)),
        plain("store", Command::RegionWrite, 0, &store(BAR3, 0x10, &[0xab; 4])),
        plain("posted store", Command::RegionWrite, NO_REPLY, &store(BAR3, 0x14, &[0xcd; 4])),
        plain("several stores", Command::RegionWriteMulti, 0, &several),
        plain("long store", Command::RegionWrite, 0, &store(BAR3, 0, &[0x5a; 16_384])),
        plain("load", Command::RegionRead, 0, &access(BAR3, 0, 64)),
        plain("configuration", Command::RegionRead, 0, &access(CONFIG, 0, 256)),
        plain("too long", Command::DeviceGetInfo, 0, &[0; 3000]),
        plain("unknown flags", Command::DeviceGetInfo, 7, &[0; 16]),
        plain("reset", Command::DeviceReset, 0, &[]),
    ]
}

/// vfio-user client that sends a message in pieces, and the memory and eventfd that it passes to the host.
struct PiecewiseClient {
    raw: RawVfioUserConnection,
    ram: GuestRam,
    eventfd: EventFd,
}

impl PiecewiseClient {
    fn connect(live: &LiveHost, vf: u8) -> Self {
        Self {
            raw: RawVfioUserConnection::connect(&live.socket(vf)),
            ram: GuestRam::new(),
            eventfd: EventFd::new().unwrap(),
        }
    }

    /// Sends the bytes `from..to` of a message in pieces of `piece` bytes. The message's file descriptor goes with its
    /// first byte.
    fn send(&mut self, message: &MessageWithFileDescriptor, from: usize, to: usize, piece: usize) {
        for (part, at) in message.bytes[from..to].chunks(piece).zip((from..).step_by(piece)) {
            let memory = self.ram.fd();
            let fd = match message.with {
                SentFileDescriptorKind::Memory if at == 0 => memory.as_fd(),
                SentFileDescriptorKind::EventFd if at == 0 => self.eventfd.as_fd(),
                _ => {
                    self.raw.send(part);
                    continue;
                }
            };
            self.raw.send_with(part, &[fd]);
        }
    }

    /// Receives the host's reply to a message; `None` if the message requests no reply.
    fn reply(&mut self, message: &MessageWithFileDescriptor) -> Option<(u32, Vec<u8>)> {
        let posted = message.bytes[8] & NO_REPLY as u8 != 0;
        (!posted)
            .then(|| self.raw.reply().unwrap_or_else(|| panic!("no reply to the message {:?}", message.name)))
    }

    /// Checks that the host has received the file descriptor of a message exactly once: one shareable window, or one
    /// signal of the eventfd.
    fn has_its_descriptor(&self, live: &LiveHost, vf: u8, message: &MessageWithFileDescriptor) {
        match message.name {
            "map" => assert_eq!(live.show(vf).peer.as_ref().map(|peer| peer.shareable), Some(1)),
            // A successor process signals a vector that had no eventfd, since its predecessor may not have.
            "assign" => assert!(self.eventfd.drain() <= 1),
            "trigger" => assert_eq!(self.eventfd.drain(), 1),
            _ => {}
        }
    }
}

/// Sends messages whole on VF 6, and returns the host's replies, with which those to messages in pieces are compared.
fn expected(live: &LiveHost, messages: &[MessageWithFileDescriptor]) -> Vec<Option<(u32, Vec<u8>)>> {
    let mut client = PiecewiseClient::connect(live, 6);
    let whole = |message: &MessageWithFileDescriptor| {
        client.send(message, 0, message.bytes.len(), usize::MAX);
        client.reply(message)
    };
    messages.iter().map(whole).collect()
}

#[test]
fn vfio_user_message_sent_in_pieces_is_served() {
    for family in FAMILIES {
        let (live, messages) = (LiveHost::with(family), conversation());
        let expected = expected(&live, &messages);
        for (vf, piece) in (0..).zip([1, 2, 3, 250, 1400]) {
            let mut client = PiecewiseClient::connect(&live, vf);
            for (message, expected) in messages.iter().zip(&expected) {
                client.send(message, 0, message.bytes.len(), piece);
                assert_eq!(client.reply(message), *expected, "{} by {piece}", message.name);
                client.has_its_descriptor(&live, vf, message);
            }
        }
    }
}

#[test]
fn message_longer_than_the_socket_buffer_is_received_whole() {
    for family in FAMILIES {
        let live = LiveHost::with(family);
        let messages = conversation();
        let expected = expected(&live, &messages);
        let mut client = PiecewiseClient::connect(&live, 0);
        // The kernel raises this to 4,608 bytes, which hold two pieces.
        rustix::net::sockopt::set_socket_send_buffer_size(client.raw.stream(), 1).unwrap();
        for (message, expected) in messages.iter().zip(&expected) {
            client.send(message, 0, message.bytes.len().min(400), 1);
            client.send(message, message.bytes.len().min(400), message.bytes.len(), 1400);
            assert_eq!(client.reply(message), *expected, "{}", message.name);
            client.has_its_descriptor(&live, 0, message);
        }
        let store = message(7, Command::RegionWrite, 0, &store(BAR0, 0, &[0xff; 100_000]));
        let long = MessageWithFileDescriptor {
            name: "longest",
            bytes: store,
            with: SentFileDescriptorKind::Nothing,
        };
        client.send(&long, 0, long.bytes.len(), 1400);
        assert_eq!(client.reply(&long).map(|(error, _)| error), Some(0));
    }
}

#[test]
fn hand_over_between_two_pieces_of_a_message_loses_no_byte() {
    for family in FAMILIES {
        let (mut live, messages) = (LiveHost::with(family), conversation());
        let expected = expected(&live, &messages);
        let mut clients: Vec<_> = (0..6).map(|vf| PiecewiseClient::connect(&live, vf)).collect();
        for (message, expected) in messages.iter().zip(&expected) {
            let length = message.bytes.len();
            let cuts = [1, 15, 16, 17, length / 2, length - 1].map(|cut| cut.min(length - 1));
            for (client, cut) in clients.iter_mut().zip(cuts) {
                client.send(message, 0, cut, cut.div_ceil(2));
            }
            if message.name == "version" {
                // A new client is not kept by the vault until it is shown.
                let is_shown = |vf| live.show(vf).function.hint.is_some();
                eventually("the host has kept all clients' descriptors", || (0..6).all(is_shown));
            }
            live.hand_over(family);
            for ((client, cut), vf) in clients.iter_mut().zip(cuts).zip(0..) {
                client.send(message, cut, length, (length - cut).div_ceil(2));
                assert_eq!(client.reply(message), *expected, "{} cut at {cut}", message.name);
                client.has_its_descriptor(&live, vf, message);
            }
        }
        assert!(live.is_whole());
    }
}

#[test]
fn pipe_sent_with_a_message_piece_is_refused_after_hand_over() {
    let mut live = LiveHost::with(FAMILIES[0]);
    let mut raw = RawVfioUserConnection::greet(&live.socket(0));
    let map = dma_map(0, 0x1000);
    let (pipe, _other) = rustix::pipe::pipe().unwrap();
    raw.send_with(&map[..20], &[pipe.as_fd()]);
    eventually("the host has read the message piece", || {
        live.show(0).function.hint.is_some_and(|hint| hint.contains("received 20 "))
    });
    live.hand_over(FAMILIES[0]);
    raw.send(&map[20..]);
    assert_ne!(raw.reply().map(|(error, _)| error), Some(0), "a pipe was mapped");
}

#[test]
fn descriptors_of_a_finished_message_join_no_later_message() {
    let mut live = LiveHost::with(FAMILIES[0]);
    let messages = conversation();
    let named = |name: &str| messages.iter().find(|message| message.name == name).unwrap();
    let (map, assign, trigger) = (named("map"), named("assign"), named("trigger"));
    let mut client = PiecewiseClient {
        raw: RawVfioUserConnection::greet(&live.socket(0)),
        ram: GuestRam::new(),
        eventfd: EventFd::new().unwrap(),
    };
    // The rest arrives while the host keeps the first piece's descriptor.
    for _ in 0..200 {
        client.send(map, 0, map.bytes.len(), 20);
        assert_eq!(client.reply(map).map(|(error, _)| error), Some(0));
        client.raw.send(&dma_unmap(0, SIZE));
        assert_eq!(client.raw.reply().map(|(error, _)| error), Some(0));
    }
    client.send(assign, 0, 20, 20);
    eventually("the status shows the incomplete message", || {
        live.show(0).function.hint.is_some_and(|hint| hint.contains("received 20 "))
    });
    live.hand_over(FAMILIES[0]);
    client.send(assign, 20, assign.bytes.len(), 20);
    assert_eq!(client.reply(assign).map(|(error, _)| error), Some(0), "the eventfd is not its own");
    client.has_its_descriptor(&live, 0, assign);
    client.send(trigger, 0, trigger.bytes.len(), usize::MAX);
    client.reply(trigger);
    client.has_its_descriptor(&live, 0, trigger);
}

#[test]
fn client_that_stops_within_a_message_is_disconnected() {
    let live = LiveHost::with(FAMILIES[0]);
    let (mut stopped, mut idle) =
        (RawVfioUserConnection::greet(&live.socket(0)), RawVfioUserConnection::greet(&live.socket(1)));
    let map = dma_map(0, 0x1000);
    stopped.send(&map[..20]);
    let began = Instant::now();
    let hint = || live.show(0).function.hint.unwrap_or_default();
    eventually("the hint shows the incomplete message", || {
        hint().contains("received 20 of 48 bytes of a message")
    });
    stopped.send(&map[20..30]);
    eventually("more bytes arrive", || !hint().contains("20 of 48"));
    let mut over = false;
    while !over && began.elapsed() < PATIENCE {
        std::thread::sleep(Duration::from_millis(100));
        over = live.show(0).peer.is_none();
    }
    assert!(over && began.elapsed() > Duration::from_secs(29), "{:?}", began.elapsed());
    stopped.wait_for_end();
    idle.send(&dma_map(0, 0x1000));
    assert_eq!(idle.reply().map(|(error, _)| error), Some(0), "an idle client between messages is cut off");
}
