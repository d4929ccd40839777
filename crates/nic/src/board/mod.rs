//! What a board has beside the switch of frames: the NVM, the PHY, the clock, and a timer. Each is a state;
//! `function` has the registers by which drivers reach it. Left out: LEDs, flash, management.

pub(crate) mod clock;
pub(crate) mod nvm;
pub(crate) mod phy;
#[cfg(test)]
mod tests;
pub(crate) mod timer;
