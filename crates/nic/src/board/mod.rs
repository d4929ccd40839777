//! Parts of the card beside the switch and its queues: the NVM, the PHY, the clock, and a timer. Drivers reach them
//! through the registers in `function`. There are no LEDs, no flash and no management controller.

pub(crate) mod clock;
pub(crate) mod nvm;
pub(crate) mod phy;
#[cfg(test)]
mod tests;
pub(crate) mod timer;
