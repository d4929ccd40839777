//! Messages to the keeper process about changes of kept file descriptors. A message that the keeper process does not take in time
//! is sent again later.

use super::FileDescriptorStoreContents;
use crate::clock::now;
use keeper::KeeperConnection;
use std::io;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

impl FileDescriptorStoreContents {
    /// Sends the keeper process the file descriptor that this name has now, or the removal of the name.
    pub(super) fn changed(&mut self, name: &str) {
        if let Some(untold) = &mut self.untold {
            untold.insert(name.to_owned());
            return;
        }
        // A keeper that did not take a message in time would delay each of many others as long.
        if !self.late.is_empty() && !self.has_room_within(Duration::ZERO) {
            return self.note_late(name);
        }
        self.send_change(name);
        self.send_late(Duration::ZERO);
    }

    /// Sends the keeper process the file descriptor that this name has now, or the removal of the name, and notes the name if the
    /// keeper does not take the message in time.
    fn send_change(&mut self, name: &str) {
        self.late.remove(name);
        let told = self.store.as_ref().map(|store| match self.shelf.get(name) {
            Some(fd) => store.keep(name, fd.as_fd()),
            None => store.forget(name),
        });
        if matches!(&told, Some(Err(error)) if error.kind() == io::ErrorKind::WouldBlock) {
            self.note_late(name);
        }
        self.heed(told);
    }

    /// Notes that the keeper process did not take the last change of a name in time.
    pub(super) fn note_late(&mut self, name: &str) {
        let is_held = self.store.as_ref().is_some_and(|store| store.holds(name));
        if is_held || self.store.is_some() && self.shelf.get(name).is_some() {
            self.late.insert(name.to_owned());
        } else {
            self.late.remove(name);
        }
    }

    /// Sends the keeper process the changes that it did not take in time. Waits at most `time` for room for them.
    pub(super) fn send_late(&mut self, time: Duration) {
        let began = Instant::now();
        // A withheld change must not come with an earlier one of the same name.
        while self.untold.is_none()
            && let Some(name) = self.late.first().cloned()
            && self.has_room_within(time.saturating_sub(began.elapsed()))
        {
            self.send_change(&name);
            if self.late.contains(&name) {
                return;
            }
        }
    }

    /// Waits at most `time` until there is room for a message to the keeper process.
    fn has_room_within(&self, time: Duration) -> bool {
        self.store.as_ref().is_some_and(|store| store.has_room_within(time))
    }

    /// Sends the keeper process a message by the function `what`, and logs a failure.
    pub(super) fn tell(&mut self, what: impl FnOnce(&KeeperConnection) -> io::Result<()>) {
        let told = self.store.as_ref().map(what);
        self.heed(told);
        self.send_late(Duration::ZERO);
    }

    /// Logs a failed message to the keeper process, and drops the connection if the keeper is gone.
    fn heed(&mut self, told: Option<io::Result<()>>) {
        let Some(Err(error)) = told else { return };
        let refused = matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::QuotaExceeded);
        if !refused && error.kind() != io::ErrorKind::WouldBlock {
            self.store = None;
            self.late.clear();
        }
        let Some(suppressed) = self.complaints.allow(now()) else { return };
        let consequence = "if this process dies now, its guests lose their VFs";
        if refused {
            tracing::error!(%error, suppressed, "the keeper process cannot hold a file descriptor; {consequence}");
        } else {
            tracing::error!(
                %error,
                suppressed,
                late = self.late.len(),
                "the keeper process does not answer; late messages are sent again, and {consequence}"
            );
        }
    }
}
