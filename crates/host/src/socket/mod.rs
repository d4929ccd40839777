//! UNIX stream sockets that never block and carry descriptors: the transport of vfio-user.
//!
//! [`Listener`] owns a socket file; [`Stream`] is one connection; [`FdBatch`] bounds the descriptors that a peer
//! can make this process hold; [`ReplyLog`] lets a successor continue sending. Messages are not interpreted here,
//! and waiting is in [`crate::poll`].

mod access;
mod fds;
mod listener;
mod peek;
mod replies;
mod stream;
#[cfg(test)]
mod tests;

pub use access::Access;
pub use fds::{FdBatch, MAX_FDS};
pub use listener::{BindError, Listener};
pub use replies::{Extent, Held, ReplyLog};
pub use stream::{Credentials, Received, Sent, Stream};
