//! Opens the endpoint of a function for its clients: the listening socket, or the folder in which a VMM creates its socket.

use super::endpoint::{DialState, FunctionEndpoint};
use crate::config::file::SocketRole;
use crate::config::{PortConfig, VfConfig};
use crate::port::moments::pass_moment;
use crate::vault::PortFileDescriptorStore;
use host::folder;
use host::socket::{SocketFileError, SocketFilePermissions, SocketListener};
use i82576::MacAddress;
use pcie::Function;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Reason why a function's socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("cannot open the socket of {name}: {source}")]
pub struct FunctionSocketError {
    /// Name of the function whose socket cannot be opened.
    name: String,
    /// Reason why the socket cannot be opened.
    source: SocketFileError,
}

/// Name, MAC address and socket of a function, as configured.
pub(in crate::port) struct FunctionSocketConfig<'a> {
    pub(in crate::port) function: Function,
    pub(in crate::port) name: &'a str,
    pub(in crate::port) mac: MacAddress,
    pub(in crate::port) socket: &'a Path,
    /// Role of the host at the socket.
    pub(in crate::port) role: SocketRole,
    pub(in crate::port) access: SocketFilePermissions,
}

/// Prefix of the names of listening sockets in the file descriptor store.
pub(in crate::port) const KEPT_LISTENERS: &str = "listen.";

/// Returns the name of a function's listening socket in the file descriptor store.
pub(in crate::port) fn kept_listener(name: &str) -> String {
    format!("{KEPT_LISTENERS}{name}")
}

impl<'a> FunctionSocketConfig<'a> {
    /// Returns name, MAC address and socket of a VF.
    pub(in crate::port) fn of_vf(vf: &'a VfConfig) -> Self {
        let function = Function::Vf(vf.index.get());
        let (socket, role, access) = (&vf.socket, vf.socket_mode, vf.access);
        Self { function, name: &vf.name, mac: vf.mac, socket, role, access }
    }

    /// Returns name, MAC address and socket of each function that the port offers: of the PF, or of the VFs.
    pub(in crate::port) fn all(config: &'a PortConfig) -> impl Iterator<Item = Self> {
        let pf = config.pf_socket.iter().map(|socket| Self {
            function: Function::Pf,
            name: &config.name,
            mac: config.mac,
            socket,
            role: SocketRole::Server,
            access: config.access,
        });
        pf.chain(config.vfs.iter().map(Self::of_vf))
    }

    /// Opens the function's socket: the socket that the previous host process has left, or else a new one.
    pub(in crate::port) fn open(
        &self,
        vault: &PortFileDescriptorStore,
    ) -> Result<FunctionEndpoint, FunctionSocketError> {
        let opened = match self.role {
            SocketRole::Server => self.bind(vault).map(FunctionEndpoint::Listener),
            SocketRole::Client => self.prepare_folder(),
        };
        opened.map_err(|source| FunctionSocketError { name: self.name.to_owned(), source })
    }

    /// Creates the folder in which a VMM creates its socket, if it does not exist. Those users may create the socket whose
    /// sockets the host connects to.
    fn prepare_folder(&self) -> Result<FunctionEndpoint, SocketFileError> {
        let folder = self.socket.parent().unwrap_or(Path::new("/"));
        folder::make_shared(folder, self.access.folder_mode(), (self.access.owner, self.access.group))?;
        Ok(FunctionEndpoint::Dialer(DialState::new(self.access)))
    }

    fn bind(&self, vault: &PortFileDescriptorStore) -> Result<SocketListener, SocketFileError> {
        let kept = kept_listener(self.name);
        if let Some(fd) = vault.copy_named(&kept) {
            if let Some(listener) = SocketListener::adopt(fd, self.socket) {
                return Ok(listener);
            }
            // If this process dies before it keeps the new socket, its successor must not take the former one for that of the file.
            vault.forget_named(&kept);
        }
        let folder = self.socket.parent().unwrap_or(Path::new("/"));
        // The folder lets everyone pass. The socket's mode restricts who may connect.
        folder::make(folder, folder::PASSABLE)?;
        if let Some(closed) = closed_to_others(folder, self.access) {
            let (name, closed) = (self.name, closed.display());
            tracing::warn!(
                function = name,
                "users that may connect to the socket may not search directory {closed}; run: chmod o+x \
                 {closed}"
            );
        }
        let listener = SocketListener::bind(self.socket, self.access)?;
        pass_moment();
        vault.keep_named(&kept, listener.as_fd());
        Ok(listener)
    }
}

/// Returns the folder that users with access to the socket may not enter, if there is one.
fn closed_to_others(folder: &Path, access: SocketFilePermissions) -> Option<PathBuf> {
    // No user and no group has this id.
    let other = u32::MAX;
    match (access.owner, access.group) {
        (Some(owner), group) => folder::barrier(folder, owner, group.unwrap_or(other)),
        (None, Some(group)) => folder::barrier(folder, other, group),
        (None, None) if access.mode & 0o006 != 0 => folder::barrier(folder, other, other),
        (None, None) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::{FunctionSocketConfig, kept_listener};
    use crate::config::file::SocketRole;
    use crate::port::moments::death;
    use crate::vault::{FileDescriptorStore, PortFileDescriptorStore};
    use host::socket::SocketFilePermissions;
    use i82576::MacAddress;
    use pcie::Function;
    use std::os::unix::net::UnixStream;
    use std::panic::{AssertUnwindSafe, catch_unwind};

    #[test]
    fn death_before_a_new_socket_is_kept_leaves_no_former_one() {
        let folder = tempfile::tempdir().unwrap();
        let place = FunctionSocketConfig {
            function: Function::Vf(0),
            name: "pf0vf0",
            mac: MacAddress::default(),
            socket: &folder.path().join("vf.sock"),
            role: SocketRole::Server,
            access: SocketFilePermissions::PRIVATE,
        };
        let vault = PortFileDescriptorStore::new(&FileDescriptorStore::default(), "pf0");
        let former = place.bind(&vault).unwrap();
        assert!(vault.copy_named(&kept_listener("pf0vf0")).is_some());
        // An administrator removes the file, and the next process dies when it has created another one.
        drop(former);
        death::set(Some(0));
        assert!(catch_unwind(AssertUnwindSafe(|| place.bind(&vault))).is_err());
        death::set(None);
        let _listener = place.bind(&vault).unwrap();
        UnixStream::connect(place.socket).expect("the file is that of the listening socket");
    }
}
