//! Models of guest kernels: interrupts, NAPI, sockets and programs, around the unchanged drivers.
//!
//! - [`platform`]: the machine interface a kernel needs; the lab's machine implements it and charges its
//!   costs;
//! - [`device`]: the driver interface a kernel needs of its network device, a VF or another;
//! - [`kernel`]: the kernel as a sequence of steps, each short enough to be one turn on a processor;
//! - [`socket`]: a receive buffer that can overflow;
//! - [`packet`]: the few header fields that a receiver looks at.
//!
//! Kernel work that costs no time on the path of a frame is not modelled.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod device;
pub mod kernel;
pub mod packet;
pub mod platform;
pub mod socket;

pub use device::{DeviceEvents, NetworkDevice};
pub use kernel::{KernelConfig, KernelModel, ProgramWorkload, SenderConfig, TickMode};
pub use platform::{DeviceAccessOutcome, InterruptSource, KernelPlatform};
