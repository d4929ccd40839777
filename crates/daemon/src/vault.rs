//! Copies of descriptors under names, for whoever goes on when a port's thread or the whole process dies: kept here,
//! and by a keeper outside if there is one.
//!
//! Calls may block while the keeper is busy, so a port's thread makes none while clients wait for it.

use host::keep::{Line, Shelf, Store};
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The host's descriptors.
#[derive(Debug, Clone, Default)]
pub struct Vault(Arc<Mutex<Contents>>);

#[derive(Debug, Default)]
struct Contents {
    shelf: Shelf,
    store: Option<Store>,
}

impl Vault {
    /// What a predecessor has left, and who keeps it outside.
    #[must_use]
    pub fn new(shelf: Shelf, store: Option<Store>) -> Self {
        Self(Arc::new(Mutex::new(Contents { shelf, store })))
    }

    /// Keeps a copy of a descriptor under a name, in the place of what was there.
    ///
    /// # Errors
    /// The process is out of descriptors. A keeper that is gone is no error: the host goes on without.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        let copy = fd.try_clone_to_owned()?;
        let mut contents = self.contents();
        contents.tell(|store| store.keep(name, fd));
        let before = contents.shelf.put(name, copy);
        drop(contents);
        drop(before);
        Ok(())
    }

    /// Gives up what is kept under a name.
    pub fn forget(&self, name: &str) {
        let mut contents = self.contents();
        let done = contents.shelf.take(name);
        if done.is_some() {
            contents.tell(|store| store.forget(name));
        }
        // The last close of a guest's memory takes seconds, and others need not wait for it.
        drop(contents);
        drop(done);
    }

    /// Gives up what is kept under names that begin so, but for those that are still needed. Answers what that was.
    pub fn forget_others(&self, prefix: &str, needed: impl Fn(&str) -> bool) -> Vec<OwnedFd> {
        let mut contents = self.contents();
        let ours = |name: &&str| name.starts_with(prefix) && !needed(name);
        let names: Vec<String> =
            contents.shelf.iter().map(|(name, _)| name).filter(ours).map(str::to_owned).collect();
        let forget = |name: String| {
            contents.tell(|store| store.forget(&name));
            contents.shelf.take(&name)
        };
        names.into_iter().filter_map(forget).collect()
    }

    /// A copy of what is kept under a name.
    #[must_use]
    pub fn copy(&self, name: &str) -> Option<OwnedFd> {
        self.contents().shelf.get(name)?.try_clone_to_owned().ok()
    }

    /// Whether somebody outside keeps what is kept here.
    #[must_use]
    pub fn is_kept(&self) -> bool {
        self.contents().store.is_some()
    }

    /// Says something about this process to the keeper, if there is one.
    pub fn say(&self, text: &str) {
        self.contents().tell(|store| store.say(text));
    }

    /// Has the keeper start a successor; `None` if nobody keeps what is here.
    ///
    /// # Errors
    /// The keeper is gone.
    pub fn succeed(&self) -> io::Result<Option<Line>> {
        self.contents().store.as_ref().map(Store::succeed).transpose()
    }

    /// Has the successor ended that was started last.
    pub fn abandon(&self) {
        self.contents().tell(Store::abandon);
    }

    /// Gives everything to a successor, and under a name of its own the keeper's socket.
    ///
    /// # Errors
    /// The successor is gone.
    pub fn give(&self, successor: &Line, keeper: &str) -> io::Result<()> {
        let contents = self.contents();
        let store = contents.store.iter().map(|store| (keeper, store.as_fd()));
        successor.give(contents.shelf.iter().chain(store))
    }

    /// A thread that panicked with the lock has left whole descriptors behind.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    /// Tells the keeper something; one that is gone is given up.
    fn tell(&mut self, what: impl FnOnce(&Store) -> io::Result<()>) {
        let Some(Err(error)) = self.store.as_ref().map(what) else { return };
        if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::WouldBlock) {
            self.store = None;
        }
        tracing::error!(%error, "the keeper does not answer; if this process dies now, its guests lose their VFs");
    }
}

/// The part of the vault that belongs to one port: descriptors by number.
#[derive(Debug, Clone)]
pub(crate) struct PortVault {
    vault: Vault,
    port: String,
}

impl PortVault {
    pub(crate) fn new(vault: &Vault, port: &str) -> Self {
        Self { vault: vault.clone(), port: port.to_owned() }
    }

    /// The port's name.
    pub(crate) fn port(&self) -> &str {
        &self.port
    }

    /// Keeps a descriptor under a number. A failure is logged: its loss shows only if the port dies.
    pub(crate) fn keep(&self, number: u64, fd: BorrowedFd<'_>) {
        if let Err(error) = self.vault.keep(&self.name(number), fd) {
            tracing::error!(port = self.port, %error, "a descriptor cannot be kept for a successor");
        }
    }

    pub(crate) fn forget(&self, number: u64) {
        self.vault.forget(&self.name(number));
    }

    pub(crate) fn copy(&self, number: u64) -> Option<OwnedFd> {
        self.vault.copy(&self.name(number))
    }

    /// Gives up every number but those that are needed. Answers what that was.
    pub(crate) fn forget_others(&self, needed: &[u64]) -> Vec<OwnedFd> {
        let needed: Vec<String> = needed.iter().map(|number| self.name(*number)).collect();
        self.vault.forget_others(&format!("{}.#", self.port), |name| needed.iter().any(|one| one == name))
    }

    /// Keeps a descriptor under a name within the port.
    pub(crate) fn keep_named(&self, name: &str, fd: BorrowedFd<'_>) {
        if let Err(error) = self.vault.keep(&format!("{}.{name}", self.port), fd) {
            tracing::error!(port = self.port, %error, "a descriptor cannot be kept for a successor");
        }
    }

    pub(crate) fn forget_named(&self, name: &str) {
        self.vault.forget(&format!("{}.{name}", self.port));
    }

    pub(crate) fn copy_named(&self, name: &str) -> Option<OwnedFd> {
        self.vault.copy(&format!("{}.{name}", self.port))
    }

    /// Gives up everything of the port.
    pub(crate) fn forget_all(&self) {
        self.vault.forget_others(&format!("{}.", self.port), |_| false);
    }

    fn name(&self, number: u64) -> String {
        format!("{}.#{number}", self.port)
    }
}
