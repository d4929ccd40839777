//! Errors of opening an uplink, with remedies.

use host::confine::SandboxError;
use host::packet::PacketSocketError;
use host::socket::SocketFileError;
use host::tap::TapError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Reason why an uplink cannot be opened.
#[derive(Debug, Error)]
pub enum UplinkError {
    /// The configured name is invalid for a network interface.
    #[error("cannot open the uplink: {0}")]
    Name(#[from] host::tap::InvalidInterfaceName),
    /// The tap cannot be opened or configured.
    #[error("cannot open the uplink: {0}")]
    Tap(#[from] TapError),
    /// The packet socket on the interface cannot be opened.
    #[error("cannot open the uplink: {0}")]
    Packet(#[from] PacketSocketError),
    /// The interface cannot be used by AF_XDP.
    #[error(
        "cannot open the uplink with AF_XDP: {0}; set xdp = \"best-effort\", so that the host can use a packet socket"
    )]
    Xdp(String),
    /// Changes of the uplink's interface cannot be watched.
    #[error(
        "uplink: cannot watch the interface: {0}; the host needs netlink sockets \
         (in a systemd unit, AF_NETLINK in RestrictAddressFamilies=)"
    )]
    Watch(io::Error),
    /// The socket at which the uplink listens for another process cannot be opened.
    #[error("cannot open the uplink: {0}")]
    Listen(#[from] SocketFileError),
    /// The recording to replay cannot be opened.
    #[error("uplink: cannot replay {}: {source}{}", path.display(), readable(source))]
    Replay {
        /// Path of the file to replay.
        path: PathBuf,
        /// Error from opening the file to replay.
        source: io::Error,
    },
    /// The file to record the uplink's frames to cannot be opened.
    #[error(
        "record: cannot record to {}: {source}; with Landlock, the host writes only to directories that its \
         configuration named at the start", path.display()
    )]
    Record {
        /// Path of the file to record to.
        path: PathBuf,
        /// Error from opening the file to record to.
        source: io::Error,
    },
    /// Creating an epoll instance or an eventfd for the uplink fails.
    #[error("uplink: cannot create an epoll instance or an eventfd: {0}; check the limit of open files")]
    System(#[from] io::Error),
    /// Starting or confining the uplink's thread fails.
    #[error("cannot open the uplink: {0}")]
    Thread(#[from] SandboxError),
}

/// Returns the likely cause and the remedy if a recording to replay cannot be read.
fn readable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; the host's user may not read the recording, or Landlock prevents it. With Landlock, the host reads \
             recordings in the directory of its configuration file, and recordings that the file named at the start. \
             Move the recording there, restart the host with the recording in the file, or use --landlock false"
        }
        _ => "",
    }
}
