//! Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR 2009: rt-audio, reset-ladder, intx-emulation,
//! memory-types, driver-holes. Rules, not prices: nothing is calibrated but how long the player works. Graphics are not
//! claimed: of a graphics card there is the one register that tells where its memory is.

mod audio;
mod direct;
mod holes;
mod intx;
mod memory_types;
mod reset;

use crate::experiment::Experiment;

pub(super) const ALL: &[Experiment] =
    &[direct::NET, direct::DISK, audio::AUDIO, reset::RESET, intx::INTX, memory_types::TYPES, holes::HOLES];
