//! Identity of a client for the log: a process by SO_PEERCRED, or a TCP client with the token. The control socket's
//! owner, group and mode, and the token, decide on access.

use std::fmt;
use tokio::net::{TcpStream, UnixStream};

/// Client at the other end of a control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CallerIdentity {
    /// Process that has connected to the control socket, with its process and user id at that time.
    Process { pid: i32, uid: u32 },
    /// Client process that the kernel does not identify.
    Unknown,
    /// TCP client that has sent the token.
    Token,
}

impl fmt::Display for CallerIdentity {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            CallerIdentity::Process { pid, uid } => write!(out, "process {pid} of user {uid}"),
            CallerIdentity::Unknown => out.write_str("a process that the kernel does not name"),
            CallerIdentity::Token => out.write_str("a client with the token"),
        }
    }
}

/// Control connection whose client is known.
pub(super) trait IdentifiedConnection {
    /// Returns the client of the control connection.
    fn caller(&self) -> CallerIdentity;
}

impl IdentifiedConnection for UnixStream {
    fn caller(&self) -> CallerIdentity {
        let named = self.peer_cred().ok().and_then(|peer| Some((peer.pid()?, peer.uid())));
        named.map_or(CallerIdentity::Unknown, |(pid, uid)| CallerIdentity::Process { pid, uid })
    }
}

impl IdentifiedConnection for TcpStream {
    fn caller(&self) -> CallerIdentity {
        CallerIdentity::Token
    }
}
