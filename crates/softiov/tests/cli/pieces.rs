//! Tests a host that is killed while its clients are in the middle of a message. Tests of the daemon cover every kind
//! of message, and hand-overs.

use crate::process::{PATIENCE, ServeProcess, eventually, softiov};
use host::eventfd::EventFd;
use host::socket::StreamSocket;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::process::{Signal, kill_process};
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;
use tempfile::tempdir;

const VFS: u8 = 6;
/// Number of the VFIO region (BAR) with the MSI-X table, in an 82576 VF and in an AVF.
const TABLE: u32 = 3;
const MEMORY: u64 = 1 << 20;

/// Number of the vfio-user command VERSION in a message's header. The numbers of further commands follow.
const VERSION: u16 = 1;
const DMA_MAP: u16 = 2;
const SET_IRQS: u16 = 8;
const REGION_READ: u16 = 9;
const REGION_WRITE: u16 = 10;

fn message(command: u16, body: &[u8]) -> Vec<u8> {
    let size = 16 + body.len() as u32;
    [&[7, 0][..], &command.to_le_bytes(), &size.to_le_bytes(), &[0; 8], body].concat()
}

fn words(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

struct RawVfioUserClient {
    stream: UnixStream,
    memory: OwnedFd,
    eventfd: EventFd,
}

impl RawVfioUserClient {
    fn connect(serve: &ServeProcess, vf: u8) -> Self {
        let stream = UnixStream::connect(serve.folder().join(format!("pf0vf{vf}/vf.sock"))).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        let memory = memfd_create("guest", MemfdFlags::CLOEXEC).unwrap();
        ftruncate(&memory, MEMORY).unwrap();
        Self { stream, memory, eventfd: EventFd::new().unwrap() }
    }

    /// Sends the first piece of a message, with the file descriptor (memory or eventfd) that its command carries.
    fn begin(&self, command: u16, piece: &[u8]) {
        let fds = match command {
            DMA_MAP => vec![self.memory.as_fd()],
            SET_IRQS => vec![self.eventfd.as_fd()],
            _ => Vec::new(),
        };
        let copy = StreamSocket::adopt(OwnedFd::from(self.stream.try_clone().unwrap())).unwrap();
        copy.send(piece, &fds).unwrap();
        self.stream.set_nonblocking(false).unwrap();
    }

    /// Receives the server's next reply, which must not be an error, and returns the reply's body.
    fn reply(&mut self) -> Vec<u8> {
        let mut header = [0; 16];
        self.stream.read_exact(&mut header).unwrap();
        let word = |at: usize| u32::from_le_bytes(std::array::from_fn(|n| header[at + n]));
        assert_eq!(word(12), 0, "the request was refused");
        let mut body = vec![0; word(4) as usize - 16];
        self.stream.read_exact(&mut body).unwrap();
        body
    }
}

/// Kills the host, and waits until the keeper process has started another one that serves.
fn replace_host(serve: &ServeProcess) {
    let host = serve.hosts()[0];
    kill_process(host, Signal::KILL).unwrap();
    eventually("another host serves", || {
        !serve.hosts().contains(&host) && softiov(serve.folder(), &["vf", "list"]).status == Some(0)
    });
}

#[test]
fn host_killed_between_two_message_pieces_loses_no_byte() {
    let access = [words(&[0, 0, TABLE]), words(&[64])].concat();
    let store = [&access[..], &[0x5a; 64]].concat();
    let map = [words(&[32, 3]), [0, 0, MEMORY].map(u64::to_le_bytes).concat()].concat();
    let conversation = [
        message(VERSION, b"\0\0\x01\0{}\0"),
        message(DMA_MAP, &map),
        message(SET_IRQS, &words(&[20, 0x24, 2, 1, 1])),
        message(REGION_WRITE, &store),
        message(REGION_READ, &access),
    ];
    for family in ["82576", "avf"] {
        let folder = tempdir().unwrap();
        let config = folder.path().join("softiov.toml");
        std::fs::write(&config, format!("[[port]]\nfamily = \"{family}\"\nvfs = {VFS}\n")).unwrap();
        let serve = ServeProcess::start(&folder, &["--config", config.to_str().unwrap()]);
        let mut clients: Vec<_> = (0..VFS).map(|vf| RawVfioUserClient::connect(&serve, vf)).collect();
        // Kills before a piece is read, while it is, and after.
        let rests = [0, 0, 1, 5, 50].map(Duration::from_millis);
        let mut replies = Vec::new();
        for (message, rest) in conversation.iter().zip(rests) {
            let command = u16::from_le_bytes([message[2], message[3]]);
            let cuts = [1, 15, 16, 17, message.len() / 2, message.len() - 1];
            for (client, cut) in clients.iter().zip(cuts) {
                client.begin(command, &message[..cut]);
            }
            if command == VERSION {
                // A client that has just connected is not with the keeper yet; one that is shown in the middle of a
                // message is.
                let is_shown = |vf: u8| {
                    let shown = softiov(serve.folder(), &["vf", "show", &format!("pf0vf{vf}")]);
                    shown.out.contains("bytes of a message, and nothing more")
                };
                eventually("all are kept", || (0..VFS).all(is_shown));
            }
            std::thread::sleep(rest);
            replace_host(&serve);
            for (client, cut) in clients.iter_mut().zip(cuts) {
                client.stream.write_all(&message[cut..]).unwrap();
            }
            replies = clients.iter_mut().map(RawVfioUserClient::reply).collect();
        }
        for (vf, (client, reply)) in clients.iter_mut().zip(replies).enumerate() {
            // The lowest two bits of an entry are 0, and its last word has only the mask.
            assert_eq!(reply[17..28], [0x5a; 11], "VF {vf}: the table reads as written");
            client.eventfd.drain();
            client.stream.write_all(&message(SET_IRQS, &words(&[20, 0x21, 2, 1, 1]))).unwrap();
            client.reply();
            // A new host also signals each vector once, so that a guest checks its rings.
            assert!(client.eventfd.drain() > 0, "VF {vf}: eventfd signalled");
        }
        let said = softiov(serve.folder(), &["vf", "list", "--json"]).out;
        assert_eq!(said.matches("\"shareable\": 1").count(), usize::from(VFS), "{said}");
    }
}
