//! Who asks: a process, as the kernel says (SO_PEERCRED), or whoever has the token. Left out: who may ask, which is the control
//! socket's owner, group and mode, and the token.

use std::fmt;
use tokio::net::{TcpStream, UnixStream};

/// The other end of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Caller {
    /// A process that has connected to the control socket, when it did.
    Process { pid: i32, uid: u32 },
    /// A process of which the kernel says no more.
    Unknown,
    /// Somebody who came over TCP with the token.
    Token,
}

impl fmt::Display for Caller {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Caller::Process { pid, uid } => write!(out, "process {pid} of user {uid}"),
            Caller::Unknown => out.write_str("a process that the kernel does not name"),
            Caller::Token => out.write_str("a client with the token"),
        }
    }
}

/// A connection that knows its other end.
pub(super) trait Known {
    /// Who is there.
    fn caller(&self) -> Caller;
}

impl Known for UnixStream {
    fn caller(&self) -> Caller {
        let named = self.peer_cred().ok().and_then(|peer| Some((peer.pid()?, peer.uid())));
        named.map_or(Caller::Unknown, |(pid, uid)| Caller::Process { pid, uid })
    }
}

impl Known for TcpStream {
    fn caller(&self) -> Caller {
        Caller::Token
    }
}
