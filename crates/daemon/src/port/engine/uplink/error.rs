//! Why an uplink cannot be had, and what helps.

use host::confine::ConfineError;
use host::packet::PacketError;
use host::socket::BindError;
use host::tap::TapError;
use std::io;
use std::path::PathBuf;
use thiserror::Error;

/// Why an uplink cannot be had.
#[derive(Debug, Error)]
pub enum UplinkError {
    /// The name is not an interface's.
    #[error("uplink: {0}")]
    Name(#[from] host::tap::InvalidName),
    /// The tap cannot be opened or configured.
    #[error("uplink: {0}")]
    Tap(#[from] TapError),
    /// The interface cannot be used.
    #[error("uplink: {0}")]
    Packet(#[from] PacketError),
    /// The interface cannot be had by AF_XDP.
    #[error("uplink: {0}; xdp = \"best-effort\" goes on with a packet socket")]
    Xdp(String),
    /// The interface cannot be watched.
    #[error(
        "uplink: cannot watch the interface: {0}; the host needs netlink sockets \
         (in a systemd unit, AF_NETLINK in RestrictAddressFamilies=)"
    )]
    Watch(io::Error),
    /// The socket that another process is to connect to.
    #[error("uplink: {0}")]
    Listen(#[from] BindError),
    /// The file that is to be played.
    #[error("uplink: cannot play {}: {source}{}", path.display(), readable(source))]
    Replay {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// The file to be recorded to.
    #[error(
        "record: cannot record to {}: {source}; a host with Landlock writes to folders only that its configuration named \
         when it started", path.display()
    )]
    Record {
        /// The file.
        path: PathBuf,
        /// Why not.
        source: io::Error,
    },
    /// epoll or eventfd.
    #[error("uplink: cannot wait for it: {0}")]
    System(#[from] io::Error),
    /// There is no thread to watch it.
    #[error("uplink: {0}")]
    Thread(#[from] ConfineError),
}

/// Returns the cause and the remedy if a recording cannot be read.
fn readable(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::PermissionDenied => {
            "; either the host's user may not read it, or Landlock keeps it out of reach: a host with Landlock reads recordings in \
             the folder of its configuration file, and those that the file named when it started. Move it there, or start the host \
             again with it in the file, or with --landlock false"
        }
        _ => "",
    }
}
