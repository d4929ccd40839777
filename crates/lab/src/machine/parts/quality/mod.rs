//! What makes an assigned device as good as an own one (Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR
//! 2009): each rule as a state machine of its own.
//!
//! | module | what it is |
//! |---|---|
//! | `audio` | an audio device and its player under Xen's credit scheduler, and a real-time class above it |
//! | `reset` | how a device is reset before it changes its owner |
//! | `intx` | a guest's interrupt line, from a device that sends messages |
//! | `memory_types` | a guest's caching, from what the host's tables can say |
//! | `holes` | registers that tell a driver where the device really is, and pages that hide it |

pub mod audio;
pub mod holes;
pub mod intx;
pub mod memory_types;
pub mod reset;
