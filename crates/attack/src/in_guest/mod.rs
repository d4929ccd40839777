//! Attacks by a guest's own device: the program `attack-guest`, for authors of VMMs. It runs in a guest, as root, on any
//! model of an 82576, and carries out the same rows as `cargo xtask attack` does over a socket.
//!
//! | module | contents |
//! |---|---|
//! | [`binding`] | the device without its kernel driver, for the time of a run |
//! | [`bus`] | registers and DMA memory of a device without a driver, and the duration of accesses |
//! | [`examine`] | checks of the device after a case |
//! | [`memory_map`] | physical addresses of the machine, and the cases that name addresses |
//! | [`run`] | runs cases |
//! | [`result`] | results as a table and as JSON |
//! | [`options`] | options of the program |

pub mod binding;
pub mod bus;
pub mod examine;
pub mod memory_map;
pub mod options;
pub mod result;
pub mod run;

/// Writes a line to standard error. A closed terminal or pipe ends no run.
fn tell(line: std::fmt::Arguments<'_>) {
    use std::io::Write;
    writeln!(std::io::stderr(), "{line}").ok();
}
