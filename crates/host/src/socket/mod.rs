//! UNIX stream sockets that never block and carry file descriptors: the transport of vfio-user.
//!
//! [`SocketListener`] owns a socket file; [`StreamSocket`] is one connection; [`ReceivedFds`] bounds the descriptors
//! that a peer can make this process hold; [`ReplyLog`] lets a successor continue sending. Messages are not interpreted
//! here, and waiting is in [`crate::poll`].

mod access;
mod door;
mod fds;
mod listener;
mod peek;
mod peer_file;
mod replies;
mod stream;
#[cfg(test)]
mod tests;

pub use access::SocketFilePermissions;
pub use door::ListenerDoor;
pub use fds::{MAX_FDS, ReceivedFds};
pub use listener::{SocketFileError, SocketListener};
pub use peer_file::PeerConnectError;
pub use replies::{IncompleteMessageRange, ReplyLog, UnsentReplyRange};
pub use stream::{PeerCredentials, SocketReceiveResult, SocketSendResult, StreamSocket};
