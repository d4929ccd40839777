//! Rules of direct assignment (Dong et al., *Towards High-Quality I/O Virtualization*, SYSTOR 2009), each as
//! its own state machine.
//!
//! | module | contents |
//! |---|---|
//! | `audio` | an audio device and its player under Xen's credit scheduler, and under a real-time class |
//! | `reset` | reset of a device before it changes owners |
//! | `intx` | a guest's interrupt line, for a device that sends messages |
//! | `memory_types` | a guest's memory types under the host's |
//! | `holes` | registers that reveal a device's location, and pages that hide it |

pub mod audio;
pub mod holes;
pub mod intx;
pub mod memory_types;
pub mod reset;
