//! Guest kernels, modelled: interrupts, NAPI, sockets and programs, with the drivers as they are.
//!
//! - [`platform`]: what a kernel needs of the machine below it; the lab's machine implements it and charges;
//! - [`device`]: what a kernel asks of its network device's driver, be it the VF's or another;
//! - [`kernel`]: the kernel as a sequence of steps, each short enough to be one turn on a processor;
//! - [`socket`]: a receive buffer that can overflow;
//! - [`packet`]: the few header fields that a receiver looks at.
//!
//! Left out: everything a kernel does that costs no time on a frame's way.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod device;
pub mod kernel;
pub mod packet;
pub mod platform;
pub mod socket;

pub use device::{Device, Heard};
pub use kernel::{Kernel, Load, Sending, Spec, Tick};
pub use platform::{Access, Interrupt, Platform};
