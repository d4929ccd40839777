//! Limits on the size of messages, and on the numbers in them.

/// Maximum bytes after a message's header. The longest request of a network device is a table of 32 memory regions
/// (1,032 bytes); the `vhost` crate has the same limit.
pub const MAX_BODY: usize = 4096;
/// Maximum descriptors of one message: one for each region of `SET_MEM_TABLE`. QEMU sends at most 8.
pub const MAX_MESSAGE_FDS: usize = 32;
/// Maximum bytes of one access to the configuration space (QEMU's `VHOST_USER_MAX_CONFIG_SIZE`).
pub const MAX_CONFIG: usize = 256;
/// Maximum size of a ring in descriptors (virtio 1.2, 2.7 "Split Virtqueues").
pub const MAX_RING_SIZE: u32 = 32768;
