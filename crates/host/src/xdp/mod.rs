//! AF_XDP: whole Ethernet frames to and from an existing network interface, by rings and memory shared with the
//! kernel (Documentation/networking/af_xdp.rst).
//!
//! A small program on the interface ([`XdpProgram`]) passes each frame to its queue's socket. In
//! [`XdpTransferMode::NativeWithZerocopy`] the interface's driver writes it to this process's memory; else the kernel
//! copies it. Frames are sent by the first queue's socket, with one system call per burst, bypassing the interface's
//! queueing discipline. Promiscuous mode is on meanwhile. When the process ends in any way, the kernel removes the
//! program.
//!
//! Limits: no frame is longer than [`LONGEST`], since frames in several chunks are not supported; the driver's
//! metadata (a missing checksum, a removed VLAN tag) is not available; queues added later are not used.

#![expect(unsafe_code, reason = "memory shared with the kernel, and bpf(2), are untyped")]

mod entries;
mod memory;
mod program;
mod queue;
mod queues;
mod ring;
#[cfg(test)]
mod ring_tests;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use crate::links::LinkMonitor;
use crate::packet::{InterfaceHoldSocket, PacketSocketError};
use crate::poll::{PollInterest, Poller};
use crate::tap::InterfaceName;
pub(crate) use program::LATER;
pub use program::XdpProgram;
use program::{MAX_QUEUES, XdpProgramLink};
pub use queue::XdpReceiveResult;
use queue::{XdpQueue, XdpSocket};
pub use queues::XdpQueues;

/// Maximum length of a frame in bytes, received or sent by AF_XDP.
pub const LONGEST: usize = memory::ROOM;
/// Bytes of Ethernet header and VLAN tag, which an MTU excludes.
const HEADERS: u32 = 14 + 4;
/// Pause between two attempts to bind a queue that another process holds. Each attempt allocates memory for a queue.
const RETRY: Duration = Duration::from_millis(50);

/// Transfer mode between interface and sockets, with Open vSwitch's names.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum XdpTransferMode {
    /// The interface's driver runs the XDP program, and accesses the UMEM itself.
    NativeWithZerocopy,
    /// The interface's driver runs the XDP program, and the kernel copies frames.
    Native,
    /// The kernel runs the XDP program on its socket buffers, and copies frames.
    Generic,
}

impl XdpTransferMode {
    /// All modes of transfer between an interface and AF_XDP sockets, the fastest first.
    pub const ALL: [Self; 3] = [Self::NativeWithZerocopy, Self::Native, Self::Generic];
}

impl fmt::Display for XdpTransferMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NativeWithZerocopy => "native-with-zerocopy",
            Self::Native => "native",
            Self::Generic => "generic",
        })
    }
}

/// Reason why an interface cannot be used by AF_XDP.
#[derive(Debug, thiserror::Error)]
pub enum XdpError {
    /// The interface is missing, carries no Ethernet, or may not be opened.
    #[error(transparent)]
    Interface(#[from] PacketSocketError),
    /// The interface's MTU permits frames that exceed [`LONGEST`].
    #[error("interface {name} has MTU {mtu}; AF_XDP permits {} at most", LONGEST as u32 - HEADERS)]
    Mtu {
        /// Name of the interface whose MTU is too large.
        name: InterfaceName,
        /// MTU of the interface in bytes.
        mtu: u32,
    },
    /// Every requested AF_XDP transfer mode failed.
    #[error("cannot open interface {name} by AF_XDP: {reasons}")]
    Refused {
        /// Name of the interface that AF_XDP cannot use.
        name: InterfaceName,
        /// Reason why each transfer mode failed.
        reasons: String,
        /// True if another process holds the interface's queues, a program on the interface, or the lockable memory, so
        /// that a retry may succeed.
        busy: bool,
    },
}

impl XdpError {
    /// Returns true if another process holds the interface's queues, a program on the interface, or the lockable
    /// memory.
    #[must_use]
    pub fn is_busy(&self) -> bool {
        matches!(self, Self::Refused { busy: true, .. })
    }
}

/// Reason why AF_XDP is not available in one transfer mode.
struct XdpModeFailure {
    step: &'static str,
    source: io::Error,
}

/// Interface that AF_XDP sockets and a program are attached to.
#[derive(Debug)]
pub struct XdpInterface {
    /// BPF program attached to the interface. Dropped before the sockets, so that no frame goes to a closed one.
    _program: XdpProgramLink,
    mode: XdpTransferMode,
    poller: Poller,
    sockets: Vec<Arc<XdpSocket>>,
    frames: Mutex<Option<XdpQueues>>,
    hold: InterfaceHoldSocket,
}

impl XdpInterface {
    /// Attaches to the interface of this name in the first available transfer mode. Waits up to `patience` for
    /// resources in use: the kernel frees those of an ended process, or of an earlier attempt, a moment later.
    ///
    /// # Errors
    /// See [`XdpError`].
    pub fn open(
        name: &InterfaceName,
        program: &XdpProgram,
        modes: &[XdpTransferMode],
        patience: Duration,
    ) -> Result<Self, XdpError> {
        let hold = InterfaceHoldSocket::open(name)?;
        let link = LinkMonitor::new().and_then(|mut links| links.look_up(name.as_str()));
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

    fn new(
        hold: InterfaceHoldSocket,
        attachment: XdpProgramLink,
        mode: XdpTransferMode,
        queues: Vec<XdpQueue>,
    ) -> io::Result<Self> {
        let poller = Poller::new()?;
        let sockets: Vec<_> = queues.iter().map(XdpQueue::socket).collect();
        for socket in &sockets {
            poller.add(&**socket, 0, PollInterest::READ)?;
        }
        let frames = Mutex::new(Some(XdpQueues::new(queues)));
        Ok(Self { _program: attachment, mode, poller, sockets, frames, hold })
    }

    /// Returns the AF_XDP transfer mode of the interface.
    #[must_use]
    pub fn mode(&self) -> XdpTransferMode {
        self.mode
    }

    /// Returns the number of the interface's queues.
    #[must_use]
    pub fn queues(&self) -> usize {
        self.sockets.len()
    }

    /// Returns the queues of an AF_XDP interface, which receive and send frames, at the first call; later `None`.
    #[must_use]
    pub fn take_frames(&self) -> Option<XdpQueues> {
        self.frames.lock().unwrap_or_else(PoisonError::into_inner).take()
    }

    /// Returns the interface's current name, or `None` if it was deleted.
    #[must_use]
    pub fn interface(&self) -> Option<String> {
        self.hold.interface()
    }

    /// Returns a descriptor by which another process can check that the interface exists
    /// ([`InterfaceHoldSocket::held_by`]). The descriptor does not prevent the interface's deletion.
    #[must_use]
    pub fn hold(&self) -> BorrowedFd<'_> {
        self.hold.as_fd()
    }

    /// Returns the number of received frames dropped since the interface was opened: those that the port took too late,
    /// and those longer than [`LONGEST`].
    #[must_use]
    pub fn missed(&self) -> u64 {
        self.sockets.iter().map(|socket| socket.missed()).sum()
    }
}

/// Returns a descriptor that is readable when a frame has arrived on the interface.
impl AsFd for XdpInterface {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.poller.as_fd()
    }
}

/// Binds an AF_XDP socket to each queue, adds the sockets to the program's map, and attaches the program to the
/// interface.
fn attach(
    hold: &InterfaceHoldSocket,
    program: &XdpProgram,
    mode: XdpTransferMode,
    until: Instant,
) -> Result<(XdpProgramLink, Vec<XdpQueue>), XdpModeFailure> {
    let queues = queues(hold.index(), mode == XdpTransferMode::NativeWithZerocopy, until)?;
    for (number, queue) in (0..).zip(&queues) {
        let set = program.set_socket(number, queue.socket().as_fd());
        set.map_err(|source| XdpModeFailure {
            step: "cannot add a socket to the map of the XDP program",
            source,
        })?;
    }
    let attachment = retry_while_busy(until, || program.attach(hold.index(), mode));
    let attachment = attachment.map_err(|source| XdpModeFailure {
        step: "cannot attach the XDP program to the interface",
        source,
    })?;
    Ok((attachment, queues))
}

/// Binds an AF_XDP socket to each existing queue of an interface.
fn queues(interface: u32, zerocopy: bool, until: Instant) -> Result<Vec<XdpQueue>, XdpModeFailure> {
    let mut queues = Vec::new();
    for number in 0..=MAX_QUEUES {
        match retry_while_busy(until, || socket_of(interface, number, zerocopy)) {
            Ok(None) => break,
            Ok(Some(_)) if number == MAX_QUEUES => {
                return Err(XdpModeFailure {
                    step: "the interface has more than 16 queues (ethtool -L NAME combined 16)",
                    source: io::Error::from(io::ErrorKind::Unsupported),
                });
            }
            Ok(Some(queue)) => queues.push(queue),
            Err(source) => {
                return Err(XdpModeFailure {
                    step: "cannot bind a socket to a queue of the interface",
                    source,
                });
            }
        }
    }
    Ok(queues)
}

/// Binds an AF_XDP socket to a queue. Returns `None` if the interface lacks the queue; every interface has a first
/// queue. The error alone does not prove that a queue is missing: a driver may return the same error for a queue that
/// it refuses, and memory may be short.
fn socket_of(interface: u32, number: u32, zerocopy: bool) -> io::Result<Option<XdpQueue>> {
    match queue::open(interface, number, zerocopy) {
        Err(error) if number == 0 => Err(error),
        Err(error) if queue::is_beyond(&error) && !zerocopy => Ok(None),
        Err(_) if !queue::exists(interface, number) => Ok(None),
        other => other.map(Some),
    }
}

/// Repeats an attempt to attach to an interface while a resource is in use, until the time `until`.
fn retry_while_busy<T>(until: Instant, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    loop {
        match attempt() {
            Err(error) if is_busy(&error) && Instant::now() < until => thread::sleep(RETRY),
            other => return other,
        }
    }
}

/// Returns true if another process holds the requested resource, or the lockable memory, which the kernel frees a
/// moment after a socket is closed.
fn is_busy(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EBUSY | libc::EEXIST | libc::ENOBUFS))
}

impl XdpModeFailure {
    fn is_busy(&self) -> bool {
        is_busy(&self.source)
    }
}

impl fmt::Display for XdpModeFailure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let remedy = match self.source.raw_os_error() {
            Some(libc::EPERM | libc::EACCES) => {
                "; AF_XDP needs root, or CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF"
            }
            Some(libc::EBUSY | libc::EEXIST) => {
                "; another program uses the interface (ip link set dev NAME xdp off)"
            }
            Some(libc::ENOBUFS | libc::ENOMEM) => {
                "; raise the limit of locked memory (LimitMEMLOCK= of the host's unit)"
            }
            Some(libc::EAFNOSUPPORT) => {
                "; the kernel has no AF_XDP, or RestrictAddressFamilies= of the host's unit does not list \
                 AF_XDP"
            }
            _ => "",
        };
        write!(f, "{}: {}{remedy}", self.step, self.source)
    }
}
