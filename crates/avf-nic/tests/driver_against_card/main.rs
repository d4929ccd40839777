//! Runs a PF driver and VF drivers against the card in one process. VF drivers send requests through their mailboxes,
//! the PF driver replies through its admin queues, and frames move from ring to ring. Other tests run the card against
//! hostile guests without a driver.

extern crate alloc;

mod admin_queues;
mod answers;
#[path = "../../../offload/src/tests/frames.rs"]
mod built;
mod bursts;
mod conversation;
mod damage;
mod frames;
mod grown;
mod held_back;
mod hostile;
mod interrupts;
mod leaving;
mod lengths;
mod mapped;
mod offloads;
mod pages;
mod parts;
mod paused;
#[path = "../../../plane/src/tests/pings.rs"]
mod pings;
mod poke;
mod received;
mod resets;
mod runs;
mod set_aside;
mod shares;
mod switched;
#[path = "../../../plane/src/tests/trunks.rs"]
mod trunks;
mod world;
