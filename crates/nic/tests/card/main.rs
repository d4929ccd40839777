//! Tests of the card by the rules of the 82576 datasheet. A test writes registers, puts descriptors into memory, polls the
//! card, and checks the frames, memory requests and messages that come out. Drivers have tests in a crate of their own;
//! the pure parts (`offload`, `switch`) have tests beside their code.

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
#[path = "../../../plane/src/tests/pings.rs"]
mod pings;
mod police;
mod random;
mod receive;
mod registers;
mod reset_scope;
mod resets;
mod set_aside;
mod shares;
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
