//! Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR 2009: rt-audio, reset-ladder,
//! intx-emulation, memory-types, driver-holes, direct-net, direct-disk. These test rules, not costs; the
//! calibrated values are the player's work and the back end's. Of a graphics card only the frame-buffer
//! location register is modelled.

mod audio;
mod direct;
mod holes;
mod intx;
mod memory_types;
mod reset;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] =
    &[direct::NET, direct::DISK, audio::AUDIO, reset::RESET, intx::INTX, memory_types::TYPES, holes::HOLES];
