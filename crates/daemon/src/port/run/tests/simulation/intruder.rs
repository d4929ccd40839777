//! Hostile VMM of a simulation: it attaches to the socket of a guest's function and sends messages of vfio-user or
//! vhost-user, right ones, wrong ones and parts of one, with file descriptors. It may leave the replies unread.

use super::super::message;
use super::super::requests::front_end_message;
use super::function::GuestPlace;
use crate::config::file::CardFamily;
use host::shared::SharedMemory;
use host::socket::{ReceivedFds, SocketReceiveResult, SocketSendResult, StreamSocket};
use std::os::fd::{AsFd, BorrowedFd};
use vfio_client::RAM_BASE;

/// Text of the version message (vfio-user).
const VERSION: &[u8] = b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":8,\"max_data_xfer_size\":1048576}}\0";
/// Numbers of the commands of a vfio-user client, and of ones that only a server sends or that do not exist.
const COMMANDS: std::ops::Range<u16> = 1..18;
/// Numbers of the requests of a vhost-user front end, and of ones that do not exist.
const REQUESTS: std::ops::Range<u32> = 1..45;
/// Bytes of the memory that the intruder shares.
const MEMORY: u64 = 64 << 10;

/// Hostile VMM that is attached.
#[derive(Debug)]
pub(super) struct Intruder {
    stream: StreamSocket,
    memory: SharedMemory,
    family: CardFamily,
    /// True if it takes replies from its socket.
    reads: bool,
    /// Number of messages that it has sent.
    messages: u16,
}

impl Intruder {
    /// Attaches to the function at a place. Returns `None` if the host dies meanwhile.
    pub(super) fn attach(place: &GuestPlace, family: CardFamily, random: &mut fastrand::Rng) -> Option<Self> {
        let stream = StreamSocket::connect(&place.host.borrow().socket(place.index.into())).ok()?;
        let memory = SharedMemory::new(MEMORY).expect("memory of an intruder");
        Some(Self { stream, memory, family, reads: random.bool(), messages: 0 })
    }

    /// Sends a number of messages, and lets the host work as `work` does after some. Returns the number that the host's socket
    /// took.
    pub(super) fn send(
        &mut self,
        random: &mut fastrand::Rng,
        messages: usize,
        mut work: impl FnMut(),
    ) -> u64 {
        let mut taken = 0;
        for _ in 0..messages {
            let message = match self.family {
                CardFamily::Virtio => vhost_user(random),
                CardFamily::I82576 | CardFamily::Avf => self.vfio_user(random),
            };
            // A part of a message may be the last that the host hears.
            let end = if random.u32(0..20) == 0 { random.usize(1..=message.len()) } else { message.len() };
            let fds = vec![self.memory.as_fd(); [0, 0, 1, 1, 2, 9][random.usize(0..6)]];
            match self.stream.send(&message[..end], &fds) {
                Ok(SocketSendResult::Bytes(_)) => taken += 1,
                Ok(SocketSendResult::WouldBlock) => {}
                Ok(SocketSendResult::Closed) | Err(_) => break,
            }
            if random.bool() {
                work();
                self.read();
            }
        }
        taken
    }

    /// Begins a session as a guest's VMM does.
    pub(super) fn begin(&self) {
        if self.family != CardFamily::Virtio {
            self.send_one(&message(1, 1, VERSION), &[]);
        }
    }

    /// Shares its memory at the address of a guest's memory, and waits for no reply.
    pub(super) fn share_memory(&self) {
        let message = match self.family {
            CardFamily::Virtio => front_end_message(5, &region()),
            CardFamily::I82576 | CardFamily::Avf => message(2, 2, &window()),
        };
        self.send_one(&message, &[self.memory.as_fd()]);
    }

    fn send_one(&self, message: &[u8], fds: &[BorrowedFd<'_>]) {
        // The host may have ended the connection.
        let _ = self.stream.send(message, fds);
    }

    /// Takes the replies, if the intruder does that at all.
    fn read(&self) {
        let mut buffer = [0; 4096];
        while self.reads
            && matches!(
                self.stream.recv(&mut buffer, &mut ReceivedFds::default()),
                Ok(SocketReceiveResult::Bytes(_))
            )
        {}
    }

    /// Draws a vfio-user message: a header of 16 bytes and a body.
    fn vfio_user(&mut self, random: &mut fastrand::Rng) -> Vec<u8> {
        self.messages += 1;
        let is_first = self.messages == 1 && random.u32(0..10) > 0;
        let command = if is_first { 1 } else { random.u16(COMMANDS) };
        let body = if command == 1 { VERSION.to_vec() } else { body_of(command, random) };
        let size = 16 + if random.u32(0..20) == 0 { random.u32(..) } else { body.len() as u32 };
        // Flags: a command, with or without a reply; rarely a reply or what is reserved.
        let flags = [0, 0, 0, 1 << 4, 1, random.u32(..)][random.usize(0..6)];
        [
            &self.messages.to_le_bytes()[..],
            &command.to_le_bytes(),
            &size.to_le_bytes(),
            &flags.to_le_bytes(),
            &[0; 4],
            &body,
        ]
        .concat()
    }
}

/// Returns the body of DMA_MAP for the memory of the intruder at the address of a guest's: its size, flags to read and write, the
/// offset in the file, the address and the bytes.
fn window() -> Vec<u8> {
    [&[32_u32, 3].map(u32::to_le_bytes).concat()[..], &[0, RAM_BASE, MEMORY].map(u64::to_le_bytes).concat()]
        .concat()
}

/// Returns the body of SET_MEM_TABLE with the memory of the intruder at the addresses of a guest's.
fn region() -> Vec<u8> {
    [1, RAM_BASE, MEMORY, 0x7f00_0000_0000, 0].map(u64::to_le_bytes).concat()
}

/// Draws the body of a vfio-user command: an address, an offset or an index in range more often than not.
fn body_of(command: u16, random: &mut fastrand::Rng) -> Vec<u8> {
    let argsz = [16, 24, 32, random.u32(..)][random.usize(0..4)].to_le_bytes();
    let flags = random.u32(0..4).to_le_bytes();
    let place = |random: &mut fastrand::Rng| {
        [0, MEMORY, random.u64(0..16) << 12, u64::MAX - 4095, random.u64(..)][random.usize(0..5)]
    };
    let bytes = [place(random), place(random), [4096, MEMORY, 0, random.u64(..)][random.usize(0..4)]];
    let places = bytes.map(u64::to_le_bytes).concat();
    let count = [1, 4, 8, 256, 4096, random.u32(..)][random.usize(0..6)];
    match command {
        2 | 3 => [&argsz[..], &flags, &places[..if command == 2 { 24 } else { 16 }]].concat(),
        4 | 5 | 7 => [&argsz[..], &flags, &random.u32(0..10).to_le_bytes(), &[0; 20]].concat(),
        8 => [
            &argsz[..],
            &[random.u8(..), 0, 0, 0],
            &random.u32(0..6).to_le_bytes(),
            &random.u32(0..9).to_le_bytes(),
            &random.u32(0..9).to_le_bytes(),
            &[1; 8],
        ]
        .concat(),
        9 | 10 => {
            let offset = [u64::from(random.u32(0..0x4000)) & !3, place(random)][random.usize(0..2)];
            let data = if command == 10 { vec![random.u8(..); count.min(4096) as usize] } else { Vec::new() };
            [&offset.to_le_bytes()[..], &random.u32(0..10).to_le_bytes(), &count.to_le_bytes(), &data]
                .concat()
        }
        13 => Vec::new(),
        _ => (0..random.usize(0..200)).map(|_| random.u8(..)).collect(),
    }
}

/// Draws a vhost-user message: a header of 12 bytes and a body.
fn vhost_user(random: &mut fastrand::Rng) -> Vec<u8> {
    // Those that begin a session come more often.
    let request =
        if random.u32(0..3) == 0 { [1, 2, 3, 15, 16][random.usize(0..5)] } else { random.u32(REQUESTS) };
    let ring = random.u32(0..4);
    let number =
        [0, 1, u64::from(random.u16(..)), 1 << random.u32(0..64), random.u64(..)][random.usize(0..5)];
    let body = match request {
        // One region of memory, or a few that overlap.
        5 => {
            let regions = random.u32(0..4);
            let region = [
                0u64,
                MEMORY,
                [0, 0x7f00_0000_0000, number][random.usize(0..3)],
                [0, number][random.usize(0..2)],
            ];
            let region = region.map(u64::to_le_bytes).concat();
            [&regions.to_le_bytes()[..], &[0; 4], &region.repeat(regions.min(8) as usize)].concat()
        }
        8 | 10 | 11 | 18 => {
            [ring, [0, 1, 16, 256, random.u32(..)][random.usize(0..5)]].map(u32::to_le_bytes).concat()
        }
        9 => {
            let address = || [0u64, 4096, 0x7f00_0000_0000, number];
            let picked = [(); 4].map(|()| address()[random.usize(0..4)]).map(u64::to_le_bytes).concat();
            [&ring.to_le_bytes()[..], &[0; 4], &picked].concat()
        }
        12..15 => (u64::from(ring) | [0, 0x100][random.usize(0..2)]).to_le_bytes().to_vec(),
        3 | 4 | 34 => Vec::new(),
        _ if random.u32(0..4) > 0 => number.to_le_bytes().to_vec(),
        _ => (0..random.usize(0..80)).map(|_| random.u8(..)).collect(),
    };
    let size = if random.u32(0..20) == 0 { random.u32(..) } else { body.len() as u32 };
    // Flags: version 1, with or without a wish for a reply.
    let flags = [1, 1, 9, random.u32(..)][random.usize(0..4)];
    [&request.to_le_bytes()[..], &u32::to_le_bytes(flags), &size.to_le_bytes(), &body].concat()
}
