//! The card against the datasheet, a rule a test: registers are written, descriptors are put into memory, the
//! card is polled, and what comes out is looked at. Left out: drivers, which are tested against the card in a
//! crate of their own, and the pure parts (`offload`, `switch`), which have tests beside them.

mod allocations;
mod board;
mod bug_cases;
mod common;
mod hostile;
mod interrupt_model;
mod interrupts;
mod lateness;
mod lengths;
mod mailbox;
mod many_resets;
mod mapped;
mod mastering;
mod pacing;
mod police;
mod random;
mod receive;
mod registers;
mod reset_scope;
mod resets;
mod set_aside;
mod single_interrupt;
mod small_world;
mod stamps;
mod statistics;
mod switch_path;
mod tenants;
mod throttling;
mod timer;
mod transmit;
mod uncut;
mod urgent;
mod waiting;
mod widths;
