//! File of a client with guest memory.

use std::os::fd::OwnedFd;

use crate::memory::FileIdentity;

/// Client's file descriptor of a file with guest memory, shared by all mappings of the file.
#[derive(Debug)]
pub(super) struct ClientMemoryFile {
    pub(super) fd: OwnedFd,
    pub(super) identity: FileIdentity,
}
