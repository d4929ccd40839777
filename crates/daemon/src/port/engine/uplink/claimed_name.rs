//! Keeps an uplink's file descriptor for the successor process. Several uplinks of a port may use one name of the store, each for
//! a time: the uplink in use, and one that is prepared for a change or was replaced by one.

use crate::vault::{ClaimRank, NameHolder, PortFileDescriptorStore};
use std::os::fd::{BorrowedFd, OwnedFd};

/// Name of the store under which an uplink keeps its file descriptor once it has claimed the name. It does not replace or
/// forget the descriptor of an uplink that has a higher claim.
#[derive(Debug)]
pub(super) struct ClaimedName {
    store: PortFileDescriptorStore,
    name: String,
    holder: NameHolder,
}

impl ClaimedName {
    pub(super) fn new(store: &PortFileDescriptorStore, name: &str) -> Self {
        Self { store: store.clone(), name: name.to_owned(), holder: NameHolder::new() }
    }

    /// Keeps the file descriptor of a prepared uplink if none is kept under the name. The claim of an uplink in use takes the
    /// name, also a claim that is carried out later.
    pub(super) fn keep_if_free(&self, fd: BorrowedFd<'_>) {
        if self.store.copy_named(&self.name).is_none() {
            self.claim(ClaimRank::PREPARED);
            self.keep(fd);
        }
    }

    /// Claims the name, unless it has a claim of a higher rank.
    pub(super) fn claim(&self, rank: ClaimRank) {
        self.store.claim(&self.name, self.holder, rank);
    }

    /// Returns a copy of the file descriptor that is kept under the name, by any uplink.
    pub(super) fn copy(&self) -> Option<OwnedFd> {
        self.store.copy_named(&self.name)
    }

    /// Keeps the file descriptor in place of the former one. Does nothing without a claim to the name.
    pub(super) fn keep(&self, fd: BorrowedFd<'_>) {
        self.store.keep_claimed(&self.name, self.holder, fd);
    }

    /// Drops the kept file descriptor. Does nothing without a claim to the name.
    pub(super) fn forget(&self) {
        self.store.forget_claimed(&self.name, self.holder);
    }
}

#[cfg(test)]
mod tests {
    use super::ClaimedName;
    use crate::vault::{ClaimRank, FileDescriptorStore, PortFileDescriptorStore};
    use std::fs::File;
    use std::io::Read;
    use std::os::fd::AsFd;

    /// Store of a port, with two uplinks that keep their descriptors under one name.
    struct TwoUplinks {
        store: PortFileDescriptorStore,
        running: ClaimedName,
        prepared: ClaimedName,
    }

    impl TwoUplinks {
        /// Creates the uplinks. The running one has kept its descriptor.
        fn new() -> Self {
            let store = PortFileDescriptorStore::new(&FileDescriptorStore::default(), "pf0");
            let [running, prepared] = [(); 2].map(|()| ClaimedName::new(&store, "stream"));
            running.keep_if_free(file("running").as_fd());
            Self { store, running, prepared }
        }

        /// Returns the name of the uplink whose descriptor is kept.
        fn kept(&self) -> Option<String> {
            let mut text = String::new();
            File::from(self.store.copy_named("stream")?).read_to_string(&mut text).unwrap();
            Some(text)
        }
    }

    /// Returns a descriptor from which `text` can be read once.
    fn file(text: &str) -> std::io::PipeReader {
        let (reader, mut writer) = std::io::pipe().unwrap();
        std::io::Write::write_all(&mut writer, text.as_bytes()).unwrap();
        reader
    }

    #[test]
    fn uplink_of_a_refused_change_leaves_the_kept_descriptor() {
        let uplinks = TwoUplinks::new();
        uplinks.prepared.keep_if_free(file("prepared").as_fd());
        uplinks.prepared.keep(file("prepared").as_fd());
        uplinks.prepared.forget();
        assert_eq!(uplinks.kept().as_deref(), Some("running"));
    }

    #[test]
    fn descriptor_is_not_replaced_or_forgotten_by_a_former_uplink() {
        let uplinks = TwoUplinks::new();
        uplinks.prepared.claim(ClaimRank::next());
        uplinks.prepared.keep(file("prepared").as_fd());
        uplinks.running.keep(file("running").as_fd());
        uplinks.running.forget();
        assert_eq!(uplinks.kept().as_deref(), Some("prepared"));
        uplinks.prepared.forget();
        assert_eq!(uplinks.kept(), None);
    }

    #[test]
    fn uplink_in_use_takes_a_free_name_that_a_prepared_one_has_got() {
        let uplinks = TwoUplinks::new();
        let change = ClaimRank::next();
        uplinks.running.forget();
        let third = ClaimedName::new(&uplinks.store, "stream");
        third.keep_if_free(file("third").as_fd());
        assert_eq!(uplinks.kept().as_deref(), Some("third"));
        uplinks.prepared.claim(change);
        uplinks.prepared.keep(file("prepared").as_fd());
        third.forget();
        assert_eq!(uplinks.kept().as_deref(), Some("prepared"));
    }

    #[test]
    fn claim_that_is_carried_out_late_takes_no_name() {
        let uplinks = TwoUplinks::new();
        let (change, way_back) = (ClaimRank::next(), ClaimRank::next());
        uplinks.running.claim(way_back);
        uplinks.prepared.claim(change);
        uplinks.prepared.keep(file("prepared").as_fd());
        uplinks.prepared.forget();
        assert_eq!(uplinks.kept().as_deref(), Some("running"));
    }
}
