//! UNIX stream sockets that never block and carry descriptors: the transport under vfio-user.
//!
//! [`Listener`] owns a socket file; [`Stream`] is one connection; [`FdBatch`] bounds what a peer can make
//! this process hold; [`ReplyLog`] is what a successor of this process can go on sending. Bytes are just bytes here. Left out: messages, retries, and waiting ([`crate::poll`]).

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
