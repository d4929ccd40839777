//! Store of a host's kept file descriptors, by name. The next thread of a port uses them, or the successor process
//! after an upgrade or a crash. If there is a keeper process, it holds copies.
//!
//! Calls may block while the keeper is busy, so a port's thread makes none while clients wait for it.

mod claim;
mod messages;
#[cfg(test)]
mod tests;

use crate::clock::now;
use crate::limit::LogRateLimit;
use claim::NameClaims;
pub(crate) use claim::{ClaimRank, NameHolder};
use keeper::{HandOverChannel, KeeperConnection, KeptFileDescriptors};
use std::collections::{BTreeSet, HashSet};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::{Duration, Instant};

/// Maximum number of log lines per minute about failed messages to the keeper process. A guest can cause such messages
/// again and again.
const COMPLAINTS: u32 = 5;
/// Longest wait before a hand-over for messages that the keeper process did not take in time.
const LATE_TIMEOUT: Duration = Duration::from_secs(2);

/// Store of the host's kept file descriptors by name, shared by the host's threads.
#[derive(Debug, Clone)]
pub struct FileDescriptorStore(Arc<Mutex<FileDescriptorStoreContents>>);

#[derive(Debug)]
struct FileDescriptorStoreContents {
    shelf: KeptFileDescriptors,
    store: Option<KeeperConnection>,
    /// Claims to names of file descriptors, also to names without a descriptor.
    claims: NameClaims,
    /// Names of file descriptors that have changed since [`FileDescriptorStore::withhold`] or
    /// [`FileDescriptorStore::give`]. The keeper process is not notified of these changes until either host process
    /// serves the ports alone.
    untold: Option<BTreeSet<String>>,
    /// Names of file descriptors whose last change the keeper process did not take in time. This process or the keeper holds a
    /// descriptor under each of them, which bounds their number.
    late: BTreeSet<String>,
    complaints: LogRateLimit,
}

impl Default for FileDescriptorStore {
    fn default() -> Self {
        Self::new(KeptFileDescriptors::default(), None)
    }
}

impl FileDescriptorStore {
    /// Creates a store from the file descriptors of the previous host process and the connection to the keeper process.
    #[must_use]
    pub fn new(shelf: KeptFileDescriptors, store: Option<KeeperConnection>) -> Self {
        let complaints = LogRateLimit::per_minute(COMPLAINTS);
        let claims = NameClaims::default();
        let (untold, late) = (None, BTreeSet::new());
        let contents = FileDescriptorStoreContents { shelf, store, claims, untold, late, complaints };
        Self(Arc::new(Mutex::new(contents)))
    }

    /// Keeps a copy of a file descriptor under a name, in place of the former one.
    ///
    /// # Errors
    /// The process is out of descriptors. A keeper that is gone is no error: the host continues without it.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        self.keep_if(name, fd, |_| true)
    }

    /// Keeps a copy of a file descriptor as [`Self::keep`] does, if `may` returns true.
    fn keep_if(
        &self,
        name: &str,
        fd: BorrowedFd<'_>,
        may: impl FnOnce(&FileDescriptorStoreContents) -> bool,
    ) -> io::Result<()> {
        let copy = fd.try_clone_to_owned()?;
        let mut contents = self.contents();
        if !may(&contents) {
            return Ok(());
        }
        let before = contents.shelf.put(name, copy);
        contents.changed(name);
        drop(contents);
        drop(before);
        Ok(())
    }

    /// Drops the kept file descriptor with this name.
    pub fn forget(&self, name: &str) {
        self.forget_if(name, |_| true);
    }

    /// Drops the kept file descriptor with this name, if `may` returns true.
    fn forget_if(&self, name: &str, may: impl FnOnce(&FileDescriptorStoreContents) -> bool) {
        let mut contents = self.contents();
        if !may(&contents) {
            return;
        }
        let done = contents.take(name);
        // The last close of a guest's memory takes seconds, so the lock is released first.
        drop(contents);
        drop(done);
    }

    /// Drops the kept file descriptors whose names have this prefix, except needed ones. Returns the dropped
    /// descriptors.
    pub fn forget_others(&self, prefix: &str, needed: impl Fn(&str) -> bool) -> Vec<OwnedFd> {
        let mut contents = self.contents();
        let ours = |name: &&str| name.starts_with(prefix) && !needed(name);
        let names: Vec<String> =
            contents.shelf.iter().map(|(name, _)| name).filter(ours).map(str::to_owned).collect();
        names.into_iter().filter_map(|name| contents.take(&name)).collect()
    }

    /// Drops the kept file descriptors of ports other than these. Returns the dropped descriptors. Names without a dot belong to
    /// the host.
    pub(crate) fn forget_other_ports(&self, ports: &[&str]) -> Vec<OwnedFd> {
        self.forget_others("", |name| name.split_once('.').is_none_or(|(port, _)| ports.contains(&port)))
    }

    /// Returns a copy of the kept file descriptor with this name.
    #[must_use]
    pub fn copy(&self, name: &str) -> Option<OwnedFd> {
        self.contents().shelf.get(name)?.try_clone_to_owned().ok()
    }

    /// Returns true if a keeper process holds the file descriptors, too.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.contents().store.is_some()
    }

    /// Sends the keeper process a message about the state of this process, if there is a keeper.
    pub fn say(&self, text: &str) {
        self.contents().tell(|store| store.say(text));
    }

    /// Asks the keeper process to start the process that replaces this host. Returns `None` without a keeper.
    ///
    /// # Errors
    /// The keeper is gone.
    pub fn succeed(&self) -> io::Result<Option<HandOverChannel>> {
        let mut contents = self.contents();
        let successor = contents.store.as_ref().map(KeeperConnection::succeed).transpose();
        // The successor does not know which file descriptors the keeper process lacks.
        contents.send_late(LATE_TIMEOUT);
        successor
    }

    /// Sends the keeper process the changes that it did not take in time, until it has no room for one. Call it from time to time:
    /// another message may not follow for long.
    pub fn send_late(&self) {
        match self.0.try_lock() {
            Ok(mut contents) => contents.send_late(Duration::ZERO),
            Err(TryLockError::Poisoned(contents)) => contents.into_inner().send_late(Duration::ZERO),
            // A thread that waits for the keeper holds the lock.
            Err(TryLockError::WouldBlock) => {}
        }
    }

    /// Sends the keeper process no change from now on. Ports save their clients for a successor process while their guests
    /// wait, and [`Self::give`] passes every descriptor to the successor itself. A successor may still be refused, and then the
    /// keeper must hold the predecessor's descriptors.
    pub fn withhold(&self) {
        self.contents().untold.get_or_insert_default();
    }

    /// Sends the keeper process the changes since [`Self::withhold`], and later ones at once. Returns false if that takes longer than
    /// `time`; the rest is sent later.
    pub fn tell_withheld(&self, time: Duration) -> bool {
        let began = Instant::now();
        let mut contents = self.contents();
        let mut in_time = true;
        for name in contents.untold.take().unwrap_or_default() {
            if in_time {
                contents.changed(&name);
                in_time = began.elapsed() <= time;
            } else {
                contents.note_late(&name);
            }
        }
        contents.send_late(time.saturating_sub(began.elapsed()));
        in_time && contents.late.is_empty()
    }

    /// Makes the keeper process end the last successor process, and sends it the file descriptors that have changed
    /// meanwhile.
    pub fn abandon(&self) {
        let mut contents = self.contents();
        contents.tell(KeeperConnection::abandon);
        let untold = contents.untold.take().unwrap_or_default();
        untold.iter().for_each(|name| contents.changed(name));
    }

    /// Sends every kept file descriptor to the successor process, with the keeper's socket under a name of its own.
    /// Later changes are not sent to the keeper process, unless the successor is [abandoned](Self::abandon).
    ///
    /// # Errors
    /// The successor is gone.
    pub fn give(&self, successor: &HandOverChannel, keeper: &str) -> io::Result<()> {
        let mut contents = self.contents();
        contents.untold.get_or_insert_default();
        // First, since a successor without it would have no keeper.
        let store = contents.store.iter().map(|store| (keeper, store.as_fd()));
        successor.give(store.chain(contents.shelf.iter()))
    }

    /// Locks the store's contents, also after a panic: every kept file descriptor is whole.
    fn contents(&self) -> MutexGuard<'_, FileDescriptorStoreContents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl FileDescriptorStoreContents {
    /// Removes the kept file descriptor with this name, and the claim to the name. Returns the descriptor.
    fn take(&mut self, name: &str) -> Option<OwnedFd> {
        self.claims.remove(name);
        let done = self.shelf.take(name)?;
        self.changed(name);
        Some(done)
    }
}

/// Store of one port's kept file descriptors, by number or name: a part of the host's store.
#[derive(Debug, Clone)]
pub(crate) struct PortFileDescriptorStore {
    vault: FileDescriptorStore,
    port: String,
}

impl PortFileDescriptorStore {
    pub(crate) fn new(vault: &FileDescriptorStore, port: &str) -> Self {
        Self { vault: vault.clone(), port: port.to_owned() }
    }

    /// Returns the name of the port that keeps file descriptors.
    pub(crate) fn port(&self) -> &str {
        &self.port
    }

    /// Keeps a file descriptor of the port under a number. A failure is only logged: it matters if the port dies.
    pub(crate) fn keep(&self, number: u64, fd: BorrowedFd<'_>) {
        self.keep_named(&name(number), fd);
    }

    pub(crate) fn forget(&self, number: u64) {
        self.forget_named(&name(number));
    }

    pub(crate) fn copy(&self, number: u64) -> Option<OwnedFd> {
        self.copy_named(&name(number))
    }

    /// Drops every numbered file descriptor of the port except the needed ones. Returns the dropped ones.
    pub(crate) fn forget_others(&self, needed: &[u64]) -> Vec<OwnedFd> {
        let needed: HashSet<String> = needed.iter().map(|number| self.inside(&name(*number))).collect();
        self.vault.forget_others(&self.inside("#"), |name| needed.contains(name))
    }

    /// Keeps a file descriptor of the port under a name. A failure is only logged, as in [`keep`](Self::keep).
    pub(crate) fn keep_named(&self, name: &str, fd: BorrowedFd<'_>) {
        self.keep_if(name, fd, |_, _| true);
    }

    /// Keeps a file descriptor of the port under a name, if `may` returns true for that name in the host's store.
    fn keep_if(
        &self,
        name: &str,
        fd: BorrowedFd<'_>,
        may: impl FnOnce(&FileDescriptorStoreContents, &str) -> bool,
    ) {
        let name = self.inside(name);
        let Err(error) = self.vault.keep_if(&name, fd, |contents| may(contents, &name)) else { return };
        if let Some(suppressed) = self.vault.contents().complaints.allow(now()) {
            tracing::error!(
                port = self.port,
                %error,
                suppressed,
                "the keeper process did not accept a file descriptor; if this process dies now, guests of the port may \
                 lose their VFs"
            );
        }
    }

    /// Claims a name for a holder, unless the name has a claim of a higher rank.
    pub(crate) fn claim(&self, name: &str, holder: NameHolder, rank: ClaimRank) {
        self.vault.contents().claims.claim(&self.inside(name), holder, rank);
    }

    /// Keeps a file descriptor of the port under a name, if the holder has the highest claim to the name.
    pub(crate) fn keep_claimed(&self, name: &str, holder: NameHolder, fd: BorrowedFd<'_>) {
        self.keep_if(name, fd, |contents, name| contents.claims.is_of(name, holder));
    }

    /// Drops the kept file descriptor with this name, if the holder has the highest claim to the name.
    pub(crate) fn forget_claimed(&self, name: &str, holder: NameHolder) {
        let name = self.inside(name);
        self.vault.forget_if(&name, |contents| contents.claims.is_of(&name, holder));
    }

    pub(crate) fn forget_named(&self, name: &str) {
        self.vault.forget(&self.inside(name));
    }

    /// Drops the port's kept file descriptors whose names have this prefix, except needed ones.
    pub(crate) fn forget_named_others(&self, prefix: &str, needed: &[String]) {
        let needed: HashSet<String> = needed.iter().map(|name| self.inside(name)).collect();
        self.vault.forget_others(&self.inside(prefix), |name| needed.contains(name));
    }

    pub(crate) fn copy_named(&self, name: &str) -> Option<OwnedFd> {
        self.vault.copy(&self.inside(name))
    }

    /// Drops all kept file descriptors of the port.
    pub(crate) fn forget_all(&self) {
        self.vault.forget_others(&self.inside(""), |_| false);
    }

    /// Returns the name in the host's store of a file descriptor that the port keeps under `name`.
    fn inside(&self, name: &str) -> String {
        format!("{}.{name}", self.port)
    }
}

/// Returns the name for a file descriptor that the port keeps under a number.
fn name(number: u64) -> String {
    format!("#{number}")
}
