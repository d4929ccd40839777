//! Engine of messages on a VF's socket: vfio-user for the 82576 and AVF, vhost-user for virtio.

use crate::family::AttackedFamily;
use crate::field::{Field, FieldValues, encode};
use crate::host_process::address;
use anyhow::{Context, Result, bail, ensure};
use host::eventfd::EventFd;
use host::shared::create_memory_file;
use rustix::net::{SendAncillaryBuffer, SendAncillaryMessage, SendFlags, sendmsg};
use std::fs::File;
use std::io::{ErrorKind, IoSlice, Read};
use std::mem::MaybeUninit;
use std::net::Shutdown;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Timeout of the host's reply, and of its end of a connection. A check of liveness, not of speed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Bytes of the memory file that a message shares.
pub const MEMORY: u64 = 1 << 20;

/// File that goes with a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttachedFile {
    /// Memory file of [`MEMORY`] bytes.
    Memory,
    /// Memory file of [`MEMORY`] bytes that its owner can shrink.
    UnsealedMemory,
    /// Memory file of 1 GiB without a page.
    SparseMemory,
    /// Memory file without a byte.
    EmptyMemory,
    /// Eventfd.
    Eventfd,
    /// Writing end of a pipe.
    Pipe,
    /// UNIX socket.
    Socket,
    /// Character device `/dev/null`.
    Null,
    /// Root folder.
    Folder,
}

/// Answer that a step expects.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExpectedAnswer {
    /// Reply without an error.
    Accepted,
    /// Reply with an error.
    Refused,
    /// Reply with or without an error.
    Reply,
    /// End of the connection; replies before it are ignored.
    End,
}

/// Step of an attack by messages.
#[derive(Debug, Clone, Copy)]
pub enum SocketStep {
    /// Negotiates the protocol's version and features, as a well-behaved client does.
    Greet,
    /// Sends a message: command or request number, flags, body, files.
    Message(u32, u32, &'static [Field], &'static [AttachedFile]),
    /// Sends bytes, with files at the first byte.
    Bytes(&'static [Field], &'static [AttachedFile]),
    /// Waits for an answer.
    Expect(ExpectedAnswer),
    /// Stores fields at an offset of the memory file that was sent last.
    Store(u64, &'static [Field]),
    /// Compares the memory file that was sent last with fields, from an offset on.
    Check(u64, &'static [Field]),
    /// Changes the length of the memory file that was sent last.
    Truncate(u64),
    /// Signals the eventfd that was sent last.
    Kick,
    /// Carries out steps that several cases share.
    Steps(&'static [SocketStep]),
    /// Repeats steps.
    Repeat(u32, &'static [SocketStep]),
    /// Closes the connection, and connects again.
    Reconnect,
    /// Closes the connection, and connects to the VF of a neighbour instead.
    ConnectToNeighbour,
    /// Ends the sending direction, and keeps the receiving one open.
    EndSending,
}

/// Sockets of a family's VFs that an attack may use.
#[derive(Debug, Clone)]
pub struct AttackedSockets {
    /// Family of the VFs behind the sockets.
    pub family: AttackedFamily,
    /// Socket of the attacked VF.
    pub own: PathBuf,
    /// Socket of a neighbour's VF, which its client uses.
    pub neighbour: PathBuf,
}

/// Carries out an attack by messages. Returns the connection, which stays open.
///
/// # Errors
/// An expected answer does not come, or a file cannot be created.
pub fn attack(sockets: &AttackedSockets, steps: &[SocketStep]) -> Result<SocketAttack> {
    let stream = connect(&sockets.own)?;
    let mut attack = SocketAttack { stream, sockets: sockets.clone(), memory: None, eventfd: None };
    attack.run(steps)?;
    Ok(attack)
}

/// Connection of an attack. Dropping this value closes it.
#[derive(Debug)]
pub struct SocketAttack {
    stream: UnixStream,
    sockets: AttackedSockets,
    /// Memory file and eventfd that were sent last.
    memory: Option<OwnedFd>,
    eventfd: Option<EventFd>,
}

impl SocketAttack {
    /// Carries out more steps.
    ///
    /// # Errors
    /// An expected answer does not come, or a file cannot be created.
    pub fn run(&mut self, steps: &[SocketStep]) -> Result<()> {
        for (number, step) in (1..).zip(steps) {
            self.step(step).with_context(|| format!("step {number}, {step:?}"))?;
        }
        Ok(())
    }

    /// Returns the connection's socket.
    #[must_use]
    pub fn into_socket(self) -> OwnedFd {
        self.stream.into()
    }

    fn step(&mut self, step: &SocketStep) -> Result<()> {
        let own = |vf| address(self.sockets.family, vf);
        let values = FieldValues { own_mac: own(0), neighbour_mac: own(1), ..FieldValues::default() };
        match *step {
            SocketStep::Greet => self.greet(),
            SocketStep::Message(code, flags, body, files) => {
                let message = self.format().message(code, flags, &encode(body, &values));
                self.send(&message, files)
            }
            SocketStep::Bytes(fields, files) => self.send(&encode(fields, &values), files),
            SocketStep::Expect(answer) => self.expect(answer),
            SocketStep::Store(offset, fields) => {
                let bytes = encode(fields, &values);
                Ok(File::from(self.memory()?).write_all_at(&bytes, offset)?)
            }
            SocketStep::Check(offset, fields) => self.check(offset, &encode(fields, &values)),
            SocketStep::Truncate(length) => Ok(File::from(self.memory()?).set_len(length)?),
            SocketStep::Kick => {
                self.eventfd.as_ref().context("the case has sent an eventfd")?.signal();
                Ok(())
            }
            SocketStep::Steps(steps) => self.run(steps),
            SocketStep::Repeat(times, steps) => (0..times).try_for_each(|_| self.run(steps)),
            SocketStep::Reconnect => {
                self.stream = connect(&self.sockets.own)?;
                Ok(())
            }
            SocketStep::ConnectToNeighbour => {
                self.stream = connect(&self.sockets.neighbour)?;
                Ok(())
            }
            SocketStep::EndSending => Ok(self.stream.shutdown(Shutdown::Write)?),
        }
    }

    fn format(&self) -> MessageFormat {
        match self.sockets.family {
            AttackedFamily::Virtio => MessageFormat::VhostUser,
            AttackedFamily::I82576 | AttackedFamily::Avf => MessageFormat::VfioUser,
        }
    }

    fn greet(&mut self) -> Result<()> {
        for &(code, flags, body, answer) in self.format().greeting() {
            let message = self.format().message(code, flags, body);
            self.send(&message, &[])?;
            if let Some(answer) = answer {
                self.expect(answer)?;
            }
        }
        Ok(())
    }

    /// Returns the memory file that was sent last.
    fn memory(&self) -> Result<OwnedFd> {
        Ok(self.memory.as_ref().context("the case has sent a memory file")?.try_clone()?)
    }

    fn check(&self, offset: u64, expected: &[u8]) -> Result<()> {
        let mut found = vec![0; expected.len()];
        File::from(self.memory()?).read_exact_at(&mut found, offset)?;
        ensure!(found == expected, "the memory at {offset:#x} has {found:x?}, expected {expected:x?}");
        Ok(())
    }

    /// Opens a file that goes with a message, and keeps memory and eventfds for later steps.
    fn open(&mut self, file: AttachedFile) -> Result<OwnedFd> {
        let opened = open(file)?;
        match file {
            AttachedFile::Memory | AttachedFile::UnsealedMemory | AttachedFile::SparseMemory => {
                self.memory = Some(opened.try_clone()?);
            }
            AttachedFile::Eventfd => self.eventfd = Some(EventFd::adopt(opened.try_clone()?)?),
            _ => {}
        }
        Ok(opened)
    }

    /// Sends all bytes. The host may have ended the connection already: a later step notices that.
    fn send(&mut self, bytes: &[u8], files: &[AttachedFile]) -> Result<()> {
        let files = files.iter().map(|file| self.open(*file)).collect::<Result<Vec<_>>>()?;
        let fds: Vec<_> = files.iter().map(AsFd::as_fd).collect();
        let mut space = vec![MaybeUninit::uninit(); SendAncillaryMessage::ScmRights(&fds).size()];
        let mut sent = 0;
        while sent < bytes.len() {
            let mut control = SendAncillaryBuffer::new(&mut space);
            // Only the first part carries the files.
            ensure!(sent > 0 || fds.is_empty() || control.push(SendAncillaryMessage::ScmRights(&fds)));
            let part = [IoSlice::new(&bytes[sent..])];
            match sendmsg(&self.stream, &part, &mut control, SendFlags::NOSIGNAL) {
                Ok(count) => sent += count,
                Err(rustix::io::Errno::PIPE | rustix::io::Errno::CONNRESET) => return Ok(()),
                Err(rustix::io::Errno::AGAIN) => bail!("the host does not read within {PATIENCE:?}"),
                Err(error) => return Err(error.into()),
            }
        }
        Ok(())
    }

    fn expect(&mut self, expected: ExpectedAnswer) -> Result<()> {
        loop {
            let reply = self.reply()?;
            match (expected, reply) {
                (ExpectedAnswer::End, None) => return Ok(()),
                (ExpectedAnswer::End, Some(_)) => {}
                (_, None) => bail!("the host ended the connection; expected {expected:?}"),
                (ExpectedAnswer::Accepted, Some(error)) => {
                    ensure!(error == 0, "the host refused the request with error {error}");
                    return Ok(());
                }
                (ExpectedAnswer::Refused, Some(error)) => {
                    ensure!(error != 0, "the host accepted the request");
                    return Ok(());
                }
                (ExpectedAnswer::Reply, Some(_)) => return Ok(()),
            }
        }
    }

    /// Returns the error of the next reply, 0 without an error; `None` at the end of the connection.
    fn reply(&mut self) -> Result<Option<u64>> {
        let format = self.format();
        let mut header = vec![0; format.header()];
        if !self.read(&mut header)? {
            return Ok(None);
        }
        let mut body = vec![0; format.body(&header)?];
        if !self.read(&mut body)? {
            return Ok(None);
        }
        Ok(Some(format.error(&header, &body)))
    }

    /// Fills a buffer. Returns false at the end of the connection.
    fn read(&mut self, into: &mut [u8]) -> Result<bool> {
        match self.stream.read_exact(into) {
            Ok(()) => Ok(true),
            Err(error) if matches!(error.kind(), ErrorKind::UnexpectedEof | ErrorKind::ConnectionReset) => {
                Ok(false)
            }
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                bail!("neither a reply nor the end of the connection within {PATIENCE:?}")
            }
            Err(error) => Err(error.into()),
        }
    }
}

fn connect(path: &Path) -> Result<UnixStream> {
    let stream =
        UnixStream::connect(path).with_context(|| format!("cannot connect to {}", path.display()))?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    Ok(stream)
}

fn open(file: AttachedFile) -> Result<OwnedFd> {
    Ok(match file {
        AttachedFile::Memory => create_memory_file(MEMORY)?,
        AttachedFile::SparseMemory => create_memory_file(1 << 30)?,
        AttachedFile::EmptyMemory => unsealed_memory(0)?,
        AttachedFile::UnsealedMemory => unsealed_memory(MEMORY)?,
        AttachedFile::Eventfd => EventFd::new()?.as_fd().try_clone_to_owned()?,
        AttachedFile::Pipe => std::io::pipe()?.1.into(),
        AttachedFile::Socket => UnixStream::pair()?.0.into(),
        AttachedFile::Null => File::open("/dev/null")?.into(),
        AttachedFile::Folder => File::open("/")?.into(),
    })
}

/// Creates a memory file whose length can change.
fn unsealed_memory(length: u64) -> Result<OwnedFd> {
    let file = rustix::fs::memfd_create("attack", rustix::fs::MemfdFlags::CLOEXEC)?;
    rustix::fs::ftruncate(&file, length)?;
    Ok(file)
}

/// Message of a greeting: code, flags, body, and the answer, if one comes.
type GreetingMessage = (u32, u32, &'static [u8], Option<ExpectedAnswer>);

/// Layout of the messages on a socket.
#[derive(Debug, Clone, Copy)]
enum MessageFormat {
    VfioUser,
    VhostUser,
}

impl MessageFormat {
    /// Returns the messages of a well-behaved client's greeting.
    fn greeting(self) -> &'static [GreetingMessage] {
        match self {
            Self::VfioUser => &[(
                1,
                0,
                b"\0\0\x01\0{\"capabilities\":{\"max_msg_fds\":16,\"write_multiple\":true}}\0",
                Some(ExpectedAnswer::Accepted),
            )],
            // GET_FEATURES, GET_PROTOCOL_FEATURES, SET_PROTOCOL_FEATURES with REPLY_ACK, SET_OWNER.
            Self::VhostUser => &[
                (1, 0, b"", Some(ExpectedAnswer::Reply)),
                (15, 0, b"", Some(ExpectedAnswer::Reply)),
                (16, 0, &[8, 0, 0, 0, 0, 0, 0, 0], None),
                (3, 8, b"", Some(ExpectedAnswer::Accepted)),
            ],
        }
    }

    fn message(self, code: u32, flags: u32, body: &[u8]) -> Vec<u8> {
        let length = body.len() as u32;
        let header = match self {
            Self::VfioUser => [code << 16, 16 + length, flags, 0].map(u32::to_le_bytes).concat(),
            // The lowest bits of the flags are the protocol's version.
            Self::VhostUser => [code, flags | 1, length].map(u32::to_le_bytes).concat(),
        };
        [&header, body].concat()
    }

    fn header(self) -> usize {
        match self {
            Self::VfioUser => 16,
            Self::VhostUser => 12,
        }
    }

    /// Returns the length of a reply's body from its header.
    fn body(self, header: &[u8]) -> Result<usize> {
        let length = match self {
            Self::VfioUser => word(header, 4).checked_sub(16).context("a reply shorter than its header")?,
            Self::VhostUser => word(header, 8),
        };
        ensure!(length <= 2 << 20, "a reply of {length} bytes");
        Ok(length as usize)
    }

    /// Returns the error of a reply. A reply with data has none.
    fn error(self, header: &[u8], body: &[u8]) -> u64 {
        match self {
            Self::VfioUser => word(header, 12).into(),
            // An acknowledgement is a number of 64 bits. Replies with data are expected as `Reply`.
            Self::VhostUser => body.try_into().map_or(0, u64::from_le_bytes),
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}
