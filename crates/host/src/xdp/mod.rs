//! AF_XDP: whole Ethernet frames to and from a network interface that is there, by rings and memory that are shared with the
//! kernel (Documentation/networking/af_xdp.rst).
//!
//! A small program on the interface ([`Program`]) hands each frame to the socket of the queue by which it came. In
//! [`Mode::NativeWithZerocopy`] the interface's own driver writes it to our memory; else the kernel copies it. Frames leave by
//! the first queue's socket, with one call of the kernel for a burst, and past the interface's queueing discipline.
//! Promiscuous mode is on meanwhile. When the process ends, however it does, the kernel takes the program off again.
//!
//! Left out: frames in several chunks, so that none is longer than [`LONGEST`]; what the interface knows of a frame beside its
//! bytes (a missing checksum, a VLAN tag that it has taken off); queues that an interface gets later.

#![expect(unsafe_code, reason = "memory shared with the kernel, and bpf(2), are untyped")]

mod memory;
mod program;
mod queue;
mod ring;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::links::Links;
use crate::packet::{Hold, Lost, PacketError};
use crate::poll::{Interest, Poller};
use crate::tap::InterfaceName;
pub(crate) use program::LATER;
pub use program::Program;
use program::{Attachment, MAX_QUEUES};
pub use queue::Arrived;
use queue::{Queue, Socket};

/// The longest frame, bytes, either way.
pub const LONGEST: usize = memory::ROOM;
/// Of what an MTU leaves out: the header of Ethernet, and a VLAN tag.
const HEADERS: u32 = 14 + 4;
/// Frames of a queue before it is another's turn.
const TURN: u32 = 64;
/// The pause between two attempts to get a queue that somebody else has. Each takes the memory of a queue.
const RETRY: Duration = Duration::from_millis(50);

/// How frames pass between interface and sockets. The words are Open vSwitch's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The driver runs the program, and moves frames to and from our memory itself.
    NativeWithZerocopy,
    /// The driver runs the program, and the kernel copies.
    Native,
    /// The kernel runs the program, after it has made a packet of the frame, and copies.
    Generic,
}

impl Mode {
    /// All of them, the best first.
    pub const ALL: [Self; 3] = [Self::NativeWithZerocopy, Self::Native, Self::Generic];
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NativeWithZerocopy => "native-with-zerocopy",
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

/// Why an interface cannot be had by AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// It cannot be had at all.
    #[error(transparent)]
    Interface(#[from] PacketError),
    /// Frames of its MTU are longer than [`LONGEST`].
    #[error("interface {name} has MTU {mtu}; AF_XDP takes {} at most", LONGEST as u32 - HEADERS)]
    Mtu {
        /// The interface.
        name: InterfaceName,
        /// Its MTU, bytes.
        mtu: u32,
    },
    /// In no mode that was asked for.
    #[error("interface {name} by AF_XDP: {reasons}")]
    Refused {
        /// The interface.
        name: InterfaceName,
        /// Why, for each mode.
        reasons: String,
        /// Somebody has its queues, a program on it, or all memory that may be locked, now.
        busy: bool,
    },
}

impl XdpError {
    /// Somebody has its queues, a program on it, or all memory that may be locked, now.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Refused { busy: true, .. })
    }
}

/// Why not in one mode.
struct Refusal {
    step: &'static str,
    source: io::Error,
}

/// An interface that was attached to.
#[derive(Debug)]
pub struct XdpInterface {
    /// Before the sockets, so that no frame goes to one that is closed.
    _program: Attachment,
    mode: Mode,
    poller: Poller,
    sockets: Vec<Arc<Socket>>,
    frames: Mutex<Option<Frames>>,
    hold: Hold,
}

impl XdpInterface {
    /// Attaches to the interface of this name in the first of these modes that can be had. What somebody else has of it is
    /// waited for so long: the kernel frees what a process had that has ended, and what was tried before, a moment later.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn open(
        name: &InterfaceName,
        program: &Program,
        modes: &[Mode],
        patience: Duration,
    ) -> Result<Self, XdpError> {
        let hold = Hold::open(name)?;
        let link = Links::new().and_then(|mut links| links.look_up(name.as_str()));
        if let Some(mtu) =
            link.ok().flatten().map(|link| link.mtu).filter(|mtu| mtu + HEADERS > LONGEST as u32)
        {
            return Err(XdpError::Mtu { name: name.clone(), mtu });
        }
        let until = Instant::now() + patience;
        let (mut reasons, mut busy) = (Vec::new(), false);
        for mode in modes.iter().copied() {
            match attach(&hold, program, mode, until) {
                Ok((attachment, queues)) => {
                    return Self::new(hold, attachment, mode, queues).map_err(|source| XdpError::Refused {
                        name: name.clone(),
                        reasons: source.to_string(),
                        busy: false,
                    });
                }
                Err(refusal) => {
                    busy |= refusal.is_busy();
                    reasons.push(format!("{mode}: {refusal}"));
                }
            }
        }
        Err(XdpError::Refused { name: name.clone(), reasons: reasons.join("; "), busy })
    }

    fn new(hold: Hold, attachment: Attachment, mode: Mode, queues: Vec<Queue>) -> io::Result<Self> {
        let poller = Poller::new()?;
        let sockets: Vec<_> = queues.iter().map(Queue::socket).collect();
        for socket in &sockets {
            poller.add(&**socket, 0, Interest::READ)?;
        }
        let frames = Mutex::new(Some(Frames { queues, next: 0, turn: TURN, broken: false }));
        Ok(Self { _program: attachment, mode, poller, sockets, frames, hold })
    }

    /// How frames pass.
    #[must_use]
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// How many queues it has.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.sockets.len()
    }

    /// What moves its frames; `None` if somebody has that already.
    #[must_use]
    pub fn take_frames(&self) -> Option<Frames> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// What the interface is called now; `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        self.hold.interface()
    }

    /// What shows another process whether the interface is still there ([`Hold::is_held`]), and does not keep it.
    #[must_use]
    pub fn hold(&self) -> BorrowedFd<'_> {
        self.hold.as_fd()
    }

    /// Frames that came and were lost since it was opened: the port was late, or they were longer than [`LONGEST`].
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.missed()).sum()
    }
}

/// Readable when a frame has come.
impl AsFd for XdpInterface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Moves frames. Nothing of it waits.
#[derive(Debug)]
pub struct Frames {
    queues: Vec<Queue>,
    /// Where it is looked next, and for how many more frames.
    next: usize,
    turn: u32,
    /// An index or an address in a ring was out of range.
    broken: bool,
}

impl Frames {
    /// The next frame; `None` if none of the queues has one now. They take turns, so that a flood of one holds up no other.
    ///
    /// # Errors
    /// A ring holds an index or an address that is out of range; the interface must be attached to anew.
    pub fn receive(&mut self, into: &mut [u8]) -> io::Result<Option<Arrived>> {
        if self.broken {
            return Err(broken());
        }
        if self.turn == 0 {
            self.pass_on();
        }
        for _ in 0..self.queues.len() {
            let Some(queue) = self.queues.get_mut(self.next) else { break };
            match queue.receive(into) {
                Ok(Some(arrived)) => {
                    self.turn -= 1;
                    return Ok(Some(arrived));
                }
                Ok(None) => self.pass_on(),
                Err(ring::Broken) => return Err(broken()),
            }
        }
        Ok(None)
    }

    /// It is the next queue's turn.
    fn pass_on(&mut self) {
        (self.next, self.turn) = ((self.next + 1) % self.queues.len().max(1), TURN);
    }

    /// Takes a frame of at most [`LONGEST`] bytes, to be sent by the next flush at the latest. Answers what was lost.
    pub fn send(&mut self, frame: &[u8]) -> Lost {
        if frame.len() > LONGEST {
            return Lost { too_long: 1, ..Lost::default() };
        }
        let lost = Lost { no_room: 1, ..Lost::default() };
        let Some(queue) = self.queues.first_mut() else { return lost };
        match queue.push(frame) {
            Ok(true) if queue.is_burst() => self.flush(),
            Ok(true) => Lost::default(),
            Ok(false) => lost,
            Err(ring::Broken) => {
                self.broken = true;
                lost
            }
        }
    }

    /// Whether the interface had no room for all of it: then it must be flushed again soon, though nothing else happens.
    #[must_use]
    pub fn has_left(&self) -> bool {
        self.queues.first().is_some_and(Queue::has_left)
    }

    /// Sends what was taken. What the interface has no room for now goes with a later flush. Answers what was lost.
    pub fn flush(&mut self) -> Lost {
        let flushed = self.queues.first_mut().map_or(Ok(Lost::default()), Queue::flush);
        self.broken |= flushed.is_err();
        flushed.unwrap_or_default()
    }
}

fn broken() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "an index of a ring is beyond the ring")
}

/// Sockets for all queues, in the map, and the program on the interface.
fn attach(
    hold: &Hold,
    program: &Program,
    mode: Mode,
    until: Instant,
) -> Result<(Attachment, Vec<Queue>), Refusal> {
    let queues = queues(hold.index(), mode == Mode::NativeWithZerocopy, until)?;
    for (number, queue) in (0..).zip(&queues) {
        let set = program.set_socket(number, queue.socket().as_fd());
        set.map_err(|source| Refusal { step: "its socket cannot be put into the program's map", source })?;
    }
    let attachment = patiently(until, || program.attach(hold.index(), mode));
    let attachment =
        attachment.map_err(|source| Refusal { step: "the program cannot be attached", source })?;
    Ok((attachment, queues))
}

/// A socket for each queue that there is.
fn queues(interface: u32, zerocopy: bool, until: Instant) -> Result<Vec<Queue>, Refusal> {
    let mut queues = Vec::new();
    for number in 0..=MAX_QUEUES {
        match patiently(until, || socket_of(interface, number, zerocopy)) {
            Ok(None) => break,
            Ok(Some(_)) if number == MAX_QUEUES => {
                return Err(Refusal {
                    step: "more than 16 queues (ethtool -L NAME combined 16)",
                    source: io::Error::from(io::ErrorKind::Unsupported),
                });
            }
            Ok(Some(queue)) => queues.push(queue),
            Err(source) => return Err(Refusal { step: "no socket can be bound to a queue", source }),
        }
    }
    Ok(queues)
}

/// A socket for a queue; `None` if the interface, which has a first one, does not have this one. A driver may say the same of
/// one that it does not want, and the memory may not do for one that is not there.
fn socket_of(interface: u32, number: u32, zerocopy: bool) -> io::Result<Option<Queue>> {
    match queue::open(interface, number, zerocopy) {
        Err(error) if number == 0 => Err(error),
        Err(error) if queue::is_beyond(&error) && !zerocopy => Ok(None),
        Err(_) if !queue::exists(interface, number) => Ok(None),
        other => other.map(Some),
    }
}

/// Tries again while it may yet be had.
fn patiently<T>(until: Instant, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(RETRY),
            other => return other,
        }
    }
}

/// Somebody has it, or memory that may be locked, which the kernel takes back a moment after a socket is closed.
fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::ENOBUFS))
}

impl Refusal {
    fn is_busy(&self) -> bool {
        is_busy(&self.source)
    }
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match self.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => "; it takes root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF",
            Some(libc::EBUSY | libc::EEXIST) => "; another program has it (ip link set dev NAME xdp off)",
            Some(libc::ENOBUFS | libc::ENOMEM) => "; it takes more locked memory (LimitMEMLOCK= in a unit)",
            Some(libc::EAFNOSUPPORT) => {
                "; the kernel has no AF_XDP, or RestrictAddressFamilies= of a unit lacks it"
            }
            _ => "",
        };
        write!(f, "{}: {}{remedy}", self.step, self.source)
    }
}
