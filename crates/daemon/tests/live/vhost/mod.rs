//! Tests of vhost-user clients on a port of the family virtio, over real sockets, with a front end and a guest of our
//! own.

pub(crate) mod front_end;
pub(crate) mod guest;
mod hand_over;
mod packed_ring;
pub(crate) mod refusal;

mod busy;
mod client_mode;
mod cloud_hypervisor;
mod conversation;
mod hostile;
mod inflight;
mod memory;
mod migration;
mod packed;
mod reconnection;
mod workers;

/// Configuration of a port with virtio VFs.
const PORT: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 4\n";
