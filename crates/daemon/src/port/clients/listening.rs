//! The listening socket of a function, at its place. Left out: who connects.

use crate::config::{PortConfig, VfConfig};
use crate::vault::PortVault;
use host::folder;
use host::socket::{Access, BindError, Listener};
use i82576::MacAddress;
use pcie::Function;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};

/// Why a function's socket cannot be opened.
#[derive(Debug, thiserror::Error)]
#[error("{name}: {source}")]
pub struct SocketError {
    /// The function.
    name: String,
    /// Why.
    source: BindError,
}

/// The name, address and socket of a function by the configuration.
pub(in crate::port) struct Place<'a> {
    pub(in crate::port) function: Function,
    pub(in crate::port) name: &'a str,
    pub(in crate::port) mac: MacAddress,
    pub(in crate::port) socket: &'a Path,
    pub(in crate::port) access: Access,
}

/// Returns the name under which the vault has the socket of a function.
pub(in crate::port) fn kept_listener(name: &str) -> String {
    format!("listen.{name}")
}

impl<'a> Place<'a> {
    /// Returns those of a VF.
    pub(in crate::port) fn of_vf(vf: &'a VfConfig) -> Self {
        let function = Function::Vf(vf.index.get());
        Self { function, name: &vf.name, mac: vf.mac, socket: &vf.socket, access: vf.access }
    }

    /// Returns those of each function that the port offers: the PF, or the VFs.
    pub(in crate::port) fn all(config: &'a PortConfig) -> impl Iterator<Item = Self> {
        let pf = config.pf_socket.iter().map(|socket| Self {
            function: Function::Pf,
            name: &config.name,
            mac: config.mac,
            socket,
            access: config.access,
        });
        pf.chain(config.vfs.iter().map(Self::of_vf))
    }

    /// Opens the function's socket: a predecessor's, if it has left one, else a new one.
    pub(in crate::port) fn listen(&self, vault: &PortVault) -> Result<Listener, SocketError> {
        self.bind(vault).map_err(|source| SocketError { name: self.name.to_owned(), source })
    }

    fn bind(&self, vault: &PortVault) -> Result<Listener, BindError> {
        let kept = kept_listener(self.name);
        if let Some(fd) = vault.copy_named(&kept)
            && let Some(listener) = Listener::adopt(fd, self.socket)
        {
            return Ok(listener);
        }
        let folder = self.socket.parent().unwrap_or(Path::new("/"));
        // Everybody may pass through it; the socket says who may connect.
        folder::make(folder, folder::PASSABLE)?;
        if let Some(closed) = closed_to_others(folder, self.access) {
            let (name, closed) = (self.name, closed.display());
            tracing::warn!(function = name, "who may connect cannot get there: {closed} is closed to others");
        }
        let listener = Listener::bind(self.socket, self.access)?;
        vault.keep_named(&kept, listener.as_fd());
        Ok(listener)
    }
}

/// The folder that keeps out those who are to connect, if there is one.
fn closed_to_others(folder: &Path, access: Access) -> Option<PathBuf> {
    let nobody = u32::MAX;
    match (access.owner, access.group) {
        (Some(owner), group) => folder::barrier(folder, owner, group.unwrap_or(nobody)),
        (None, Some(group)) => folder::barrier(folder, nobody, group),
        (None, None) if access.mode & 0o006 != 0 => folder::barrier(folder, nobody, nobody),
        (None, None) => None,
    }
}
