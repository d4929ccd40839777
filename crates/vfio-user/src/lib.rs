//! The vfio-user protocol: encoding of messages, and sessions of client and server as pure state machines.
//!
//! A VMM (the *client*) uses a device in another process (the *server*) over a Unix stream socket: it requests the
//! device's description, sends guest memory and eventfds as file descriptors, and the loads and stores of its
//! guest. This crate has no socket, no clock and no descriptors of its own: it turns bytes into calls and back, and
//! a descriptor is a type parameter `F` that closes on drop (`OwnedFd` in the host, a number in tests).
//!
//! - [`wire`]: layouts and numbers;
//! - [`decoder`]: bytes to messages with their descriptors;
//! - [`outbox`]: messages to `sendmsg` calls;
//! - [`server`]: a [`ServerSession`](server::ServerSession) turns messages into calls of a
//!   [`ServedDevice`](server::ServedDevice);
//! - [`client`]: requests and their replies, for embedded guests and tests.
//!
//! Not supported: migration, dirty page tracking, ioeventfds, twin sockets, requests by the server.
//!
//! A client is treated as hostile: no byte stream makes a session panic, lose step, use more than a bounded amount
//! of memory, or do more than one message's work per call. Steady traffic allocates nothing.
//!
//! # A server's loop
//!
//! ```
//! use vfio_user::outbox::MessageOutbox;
//! use vfio_user::server::{DmaWindow, IrqChange, RegionInfo, RequestCompletion};
//! use vfio_user::server::{ServedDevice, ServerSession, SessionProgress};
//! use vfio_user::types::{DeviceInfo, IrqInfo};
//! use vfio_user::wire::{Errno, device_flags, region_flags};
//!
//! struct Scratchpad([u8; 16]);
//!
//! impl ServedDevice<i32> for Scratchpad {
//!     fn info(&self) -> DeviceInfo {
//!         DeviceInfo { flags: device_flags::PCI | device_flags::RESET, regions: 9, irqs: 5 }
//!     }
//!     fn region(&self, index: u32) -> Option<RegionInfo<'_>> {
//!         let size = if index == 0 { 16 } else { 0 };
//!         let flags = region_flags::READ | region_flags::WRITE;
//!         (index < 9).then_some(RegionInfo { size, flags, ..Default::default() })
//!     }
//!     fn region_fd(&mut self, _: u32) -> Option<i32> { None }
//!     fn irq(&self, index: u32) -> Option<IrqInfo> { (index < 5).then(IrqInfo::default) }
//!     fn read(&mut self, _: u32, offset: u64, data: &mut [u8]) {
//!         data.copy_from_slice(&self.0[offset as usize..][..data.len()]);
//!     }
//!     fn write(&mut self, _: u32, offset: u64, data: &[u8]) {
//!         self.0[offset as usize..][..data.len()].copy_from_slice(data);
//!     }
//!     fn dma_map(&mut self, _: DmaWindow<i32>) -> Result<RequestCompletion, Errno> { Ok(RequestCompletion::Now) }
//!     fn dma_unmap(&mut self, _: u64, _: u64) {}
//!     fn dma_unmap_all(&mut self) {}
//!     fn set_irqs(&mut self, _: IrqChange<i32>) -> Result<RequestCompletion, Errno> { Ok(RequestCompletion::Now) }
//!     fn reset(&mut self) -> Result<(), Errno> { self.0 = [0; 16]; Ok(()) }
//! }
//!
//! # struct Socket(Vec<Vec<u8>>, Vec<u8>);
//! # impl Socket {
//! #     fn recvmsg(&mut self) -> Option<(Vec<u8>, Vec<i32>)> { self.0.pop().map(|bytes| (bytes, vec![])) }
//! #     fn sendmsg(&mut self, bytes: &[u8], _: &[i32]) -> usize { self.1.extend(bytes); bytes.len() }
//! # }
//! # let mut socket = Socket(vec![vec![1, 0, 1, 0, 20, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0]], vec![]);
//! let mut device = Scratchpad([0; 16]);
//! let mut session = ServerSession::default();
//! let mut out = MessageOutbox::new();
//!
//! // The socket is readable. One recvmsg, one push.
//! while let Some((bytes, fds)) = socket.recvmsg() {
//!     session.push(&bytes, fds)?;
//!     while session.step(&mut device, &mut out)? == SessionProgress::Handled {}
//!     // SessionProgress::Blocked: stop reading until the socket is writable and `out` has drained.
//!     // SessionProgress::Waiting: the device returned `Later`; stop reading until `complete` was called.
//!     while let Some(chunk) = out.chunk() {
//!         let sent = socket.sendmsg(chunk.bytes, chunk.fds);
//!         out.sent(sent);
//!     }
//! }
//! // The client has disconnected: its windows and eventfds are dropped, the device stays.
//! session.close(&mut device);
//! # assert_eq!(socket.1.len(), 20);
//! # Ok::<(), vfio_user::decoder::ProtocolError>(())
//! ```
//!
//! `step` handles one message, so a loop that serves several connections can stop after any number of them. Keep
//! reading, though: QEMU does not handle a socket that accepts half a message.

#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod client;
pub mod decoder;
pub mod outbox;
pub mod server;
pub mod types;
pub mod wire;
