//! Eventfds: interrupts to guests, and wake-ups between threads.
//!
//! A client may send any descriptor as an interrupt. Writing to a full pipe or to a socket could block, or put
//! bytes where they do harm. So descriptors other than eventfds are refused, by the name the kernel gives them.
//!
//! A signal must not block either. An eventfd blocks when its counter is full, unless `O_NONBLOCK` is set. That
//! flag belongs to the open file, which the client shares, so setting it also changes the client's blocking reads;
//! QEMU and Cloud Hypervisor set it themselves, and KVM's irqfd ignores it. The flag is set on adoption, but the
//! client may clear it again: [`EventFdNotifier`] signals without depending on it and raises all interrupts to clients.
//! [`EventFd::signal`] is for eventfds that no client shares.

mod aio;
mod notifier;
#[cfg(any(test, feature = "test-support"))]
mod spare;

pub use notifier::EventFdNotifier;

use crate::limits;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::event::{EventfdFlags, eventfd};
use rustix::fs::{CWD, OFlags, fcntl_getfl, fcntl_setfl, readlinkat};
use rustix::io::Errno;

/// Reason why a file descriptor was refused as an eventfd.
#[derive(Debug, thiserror::Error)]
pub enum EventFdError {
    /// The file descriptor is a pipe, a socket, a file or another object.
    #[error("the file descriptor that the client sent for an interrupt is not an eventfd")]
    NotAnEventFd,
    /// The kernel did not report the kind of the file descriptor.
    #[error("cannot read the kind of the client's file descriptor for an interrupt from /proc/self/fd: {0}")]
    System(io::Error),
}

impl EventFdError {
    /// Returns the errno of the reply to the client that sent the file descriptor.
    #[must_use]
    pub fn errno(&self) -> i32 {
        match self {
            Self::NotAnEventFd => Errno::INVAL.raw_os_error(),
            Self::System(error) => error.raw_os_error().unwrap_or(Errno::IO.raw_os_error()),
        }
    }

    /// Returns the action by which the administrator or user can remove the error.
    #[must_use]
    pub fn remedy(&self) -> &'static str {
        match self {
            Self::NotAnEventFd => "use a VMM that signals interrupts by eventfds, as QEMU does",
            Self::System(error) if error.kind() == io::ErrorKind::NotFound => {
                "mount /proc where the host runs"
            }
            Self::System(error) => limits::remedy(error)
                .unwrap_or("let the host read /proc/self/fd: check the host's confinement"),
        }
    }
}

/// Returns true if a file descriptor is an eventfd.
#[must_use]
pub fn is_eventfd(fd: BorrowedFd<'_>) -> bool {
    is_kind(fd) == Ok(true)
}

fn is_kind(fd: BorrowedFd<'_>) -> Result<bool, Errno> {
    let path = format!("/proc/self/fd/{}", fd.as_raw_fd());
    // No file can have this name: the kernel's names of files begin with a slash.
    Ok(readlinkat(CWD, path, Vec::new())?.as_bytes() == b"anon_inode:[eventfd]")
}

/// Kernel's counter (eventfd) that wakes its reader while it is above zero.
#[derive(Debug)]
pub struct EventFd(OwnedFd);

impl EventFd {
    /// Creates an eventfd with count 0 that is closed on exec.
    ///
    /// # Errors
    /// The process or the system is out of descriptors.
    pub fn new() -> io::Result<Self> {
        let made = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK);
        made.map(Self).map_err(|errno| limits::with_remedy("cannot create an eventfd", errno))
    }

    /// Adopts a client's file descriptor and makes it non-blocking. Refuses descriptors other than eventfds.
    ///
    /// # Errors
    /// See [`EventFdError`].
    pub fn adopt(fd: OwnedFd) -> Result<Self, EventFdError> {
        let system = |errno: Errno| EventFdError::System(errno.into());
        if !is_kind(fd.as_fd()).map_err(system)? {
            return Err(EventFdError::NotAnEventFd);
        }
        let event = Self(fd);
        event.keep_from_blocking().map_err(system)?;
        Ok(event)
    }

    /// Sets `O_NONBLOCK` on the eventfd again if another owner of the open file has cleared it.
    #[inline]
    fn keep_from_blocking(&self) -> Result<(), Errno> {
        let flags = fcntl_getfl(&self.0)?;
        if flags.contains(OFlags::NONBLOCK) { Ok(()) } else { fcntl_setfl(&self.0, flags | OFlags::NONBLOCK) }
    }

    /// Adds one to the eventfd's counter. A full counter already wakes its reader. An error is ignored: a client that
    /// breaks its own eventfd loses only its own interrupts.
    #[inline]
    pub fn signal(&self) {
        if self.keep_from_blocking().is_ok() {
            let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
        }
    }

    /// Resets the eventfd's counter to zero and returns the counter's previous value.
    #[inline]
    pub fn drain(&self) -> u64 {
        let mut count = [0; size_of::<u64>()];
        match rustix::io::read(&self.0, &mut count) {
            Ok(read) if read == count.len() => u64::from_ne_bytes(count),
            _ => 0,
        }
    }
}

impl AsFd for EventFd {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl From<EventFd> for OwnedFd {
    fn from(event: EventFd) -> Self {
        event.0
    }
}

#[cfg(test)]
mod tests {
    use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

    use super::*;

    #[test]
    fn signals_of_an_eventfd_add_up_until_they_are_read() {
        let event = EventFd::new().unwrap();
        assert_eq!(event.drain(), 0);
        event.signal();
        event.signal();
        assert_eq!((event.drain(), event.drain()), (2, 0));
    }

    #[test]
    fn signal_to_an_eventfd_with_a_full_counter_does_not_block() {
        let event = EventFd::new().unwrap();
        rustix::io::write(&event, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        event.signal();
        assert_eq!(event.drain(), u64::MAX - 1);
    }

    #[test]
    fn signal_to_full_eventfd_without_nonblock_flag_does_not_block() {
        let theirs = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        let ours = EventFd::adopt(theirs.try_clone().unwrap()).unwrap();
        rustix::io::write(&theirs, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        fcntl_setfl(&theirs, fcntl_getfl(&theirs).unwrap() - OFlags::NONBLOCK).unwrap();
        let (done, waits) = std::sync::mpsc::channel();
        std::thread::spawn(move || {
            ours.signal();
            done.send(())
        });
        let patience = std::time::Duration::from_secs(60);
        assert!(waits.recv_timeout(patience).is_ok(), "the write must not wait for the client");
    }

    #[test]
    fn adopted_eventfd_becomes_non_blocking() {
        let blocking = eventfd(0, EventfdFlags::CLOEXEC).unwrap();
        rustix::io::write(&blocking, &(u64::MAX - 1).to_ne_bytes()).unwrap();
        let event = EventFd::adopt(blocking).unwrap();
        event.signal();
        assert_eq!((event.drain(), event.drain()), (u64::MAX - 1, 0));
    }

    #[test]
    fn semaphore_eventfd_read_counts_down_by_one() {
        let event = EventFd::adopt(eventfd(2, EventfdFlags::SEMAPHORE).unwrap()).unwrap();
        assert_eq!((event.drain(), event.drain(), event.drain()), (1, 1, 0));
    }

    #[test]
    fn file_descriptor_other_than_an_eventfd_is_refused() {
        let (pipe, _) = rustix::pipe::pipe().unwrap();
        let (socket, _) =
            socketpair(AddressFamily::UNIX, SocketType::STREAM, SocketFlags::CLOEXEC, None).unwrap();
        let memory =
            rustix::fs::memfd_create("anon_inode:[eventfd]", rustix::fs::MemfdFlags::CLOEXEC).unwrap();
        let epoll = rustix::event::epoll::create(rustix::event::epoll::CreateFlags::CLOEXEC).unwrap();
        let file = tempfile::tempfile().unwrap();
        for fd in [pipe, socket, memory, epoll, file.into()] {
            let refused = EventFd::adopt(fd).unwrap_err();
            assert!(matches!(refused, EventFdError::NotAnEventFd));
            assert_eq!(refused.errno(), libc::EINVAL);
            assert!(refused.remedy().contains("VMM"));
        }
    }

    #[test]
    fn eventfd_error_without_proc_says_to_mount_proc() {
        let refused = EventFdError::System(Errno::NOENT.into());
        assert!(refused.to_string().contains("/proc/self/fd: No such file"), "{refused}");
        assert_eq!(refused.remedy(), "mount /proc where the host runs");
    }

    #[test]
    fn eventfd_closed_by_the_client_can_still_be_signalled() {
        let ours = EventFd::new().unwrap();
        let theirs = ours.as_fd().try_clone_to_owned().unwrap();
        drop(ours);
        let event = EventFd::adopt(theirs).unwrap();
        event.signal();
        assert_eq!(event.drain(), 1);
    }
}
