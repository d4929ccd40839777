//! Copies of descriptors under names, for whoever goes on when a port's thread or the whole process dies: kept here,
//! and by a keeper outside if there is one.
//!
//! Calls may block while the keeper is busy, so a port's thread makes none while clients wait for it.

use crate::clock::now;
use crate::limit::Limit;
use host::keep::{Line, Shelf, Store};
use std::collections::BTreeSet;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Failures to keep something that are logged a minute: a guest can have the host keep descriptors again and again.
const COMPLAINTS: u32 = 5;

/// The host's descriptors.
#[derive(Debug, Clone)]
pub struct Vault(Arc<Mutex<Contents>>);

#[derive(Debug)]
struct Contents {
    shelf: Shelf,
    store: Option<Store>,
    /// While a successor has been given everything: names under which something has changed since. The keeper is not told,
    /// because it keeps for the successor by now.
    untold: Option<BTreeSet<String>>,
    complaints: Limit,
}

impl Default for Vault {
    fn default() -> Self {
        Self::new(Shelf::default(), None)
    }
}

impl Vault {
    /// What a predecessor has left, and who keeps it outside.
    #[must_use]
    pub fn new(shelf: Shelf, store: Option<Store>) -> Self {
        let complaints = Limit::per_minute(COMPLAINTS);
        Self(Arc::new(Mutex::new(Contents { shelf, store, untold: None, complaints })))
    }

    /// Keeps a copy of a descriptor under a name, in the place of what was there.
    ///
    /// # Errors
    /// The process is out of descriptors. A keeper that is gone is no error: the host goes on without.
    pub fn keep(&self, name: &str, fd: BorrowedFd<'_>) -> io::Result<()> {
        let copy = fd.try_clone_to_owned()?;
        let mut contents = self.contents();
        let before = contents.shelf.put(name, copy);
        contents.changed(name);
        drop(contents);
        drop(before);
        Ok(())
    }

    /// Gives up what is kept under a name.
    pub fn forget(&self, name: &str) {
        let mut contents = self.contents();
        let done = contents.shelf.take(name);
        if done.is_some() {
            contents.changed(name);
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
            let done = contents.shelf.take(&name);
            contents.changed(&name);
            done
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

    /// Has the successor ended that was started last, and goes on keeping outside what is kept here.
    pub fn abandon(&self) {
        let mut contents = self.contents();
        contents.tell(Store::abandon);
        let untold = contents.untold.take().unwrap_or_default();
        untold.iter().for_each(|name| contents.changed(name));
    }

    /// Gives everything to a successor, and under a name of its own the keeper's socket. What changes here from now on the
    /// keeper is not told, unless the successor is [abandoned](Self::abandon).
    ///
    /// # Errors
    /// The successor is gone.
    pub fn give(&self, successor: &Line, keeper: &str) -> io::Result<()> {
        let mut contents = self.contents();
        contents.untold.get_or_insert_default();
        let store = contents.store.iter().map(|store| (keeper, store.as_fd()));
        successor.give(contents.shelf.iter().chain(store))
    }

    /// A thread that panicked with the lock has left whole descriptors behind.
    fn contents(&self) -> MutexGuard<'_, Contents> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Contents {
    /// Something else is kept under this name from now on, or nothing.
    fn changed(&mut self, name: &str) {
        if let Some(untold) = &mut self.untold {
            untold.insert(name.to_owned());
            return;
        }
        let told = self.store.as_ref().map(|store| match self.shelf.get(name) {
            Some(fd) => store.keep(name, fd.as_fd()),
            None => store.forget(name),
        });
        self.heed(told);
    }

    /// Tells the keeper something.
    fn tell(&mut self, what: impl FnOnce(&Store) -> io::Result<()>) {
        let told = self.store.as_ref().map(what);
        self.heed(told);
    }

    /// Gives up a keeper that is gone.
    fn heed(&mut self, told: Option<io::Result<()>>) {
        let Some(Err(error)) = told else { return };
        if !matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::WouldBlock) {
            self.store = None;
        }
        if let Some(suppressed) = self.complaints.allow(now()) {
            tracing::error!(
                %error,
                suppressed,
                "the keeper does not answer; if this process dies now, its guests lose their VFs"
            );
        }
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
        self.keep_named(&name(number), fd);
    }

    pub(crate) fn forget(&self, number: u64) {
        self.forget_named(&name(number));
    }

    pub(crate) fn copy(&self, number: u64) -> Option<OwnedFd> {
        self.copy_named(&name(number))
    }

    /// Gives up every number but those that are needed. Answers what that was.
    pub(crate) fn forget_others(&self, needed: &[u64]) -> Vec<OwnedFd> {
        let needed: Vec<String> = needed.iter().map(|number| self.inside(&name(*number))).collect();
        self.vault.forget_others(&self.inside("#"), |name| needed.iter().any(|one| one == name))
    }

    /// Keeps a descriptor under a name within the port. A failure is logged, as with [`keep`](Self::keep).
    pub(crate) fn keep_named(&self, name: &str, fd: BorrowedFd<'_>) {
        let Err(error) = self.vault.keep(&self.inside(name), fd) else { return };
        if let Some(suppressed) = self.vault.contents().complaints.allow(now()) {
            tracing::error!(port = self.port, %error, suppressed, "a descriptor cannot be kept for a successor");
        }
    }

    pub(crate) fn forget_named(&self, name: &str) {
        self.vault.forget(&self.inside(name));
    }

    /// Gives up what is kept under names that begin so, but for one.
    pub(crate) fn forget_named_others(&self, prefix: &str, needed: &str) {
        let needed = self.inside(needed);
        self.vault.forget_others(&self.inside(prefix), |name| name == needed);
    }

    pub(crate) fn copy_named(&self, name: &str) -> Option<OwnedFd> {
        self.vault.copy(&self.inside(name))
    }

    /// Gives up everything of the port.
    pub(crate) fn forget_all(&self) {
        self.vault.forget_others(&self.inside(""), |_| false);
    }

    /// A name within the port as the vault knows it.
    fn inside(&self, name: &str) -> String {
        format!("{}.{name}", self.port)
    }
}

/// What a number is called within its port.
fn name(number: u64) -> String {
    format!("#{number}")
}
