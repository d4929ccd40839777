//! Both drivers against the card in one process: the PF driver answers through its admin queues, the VF driver goes through
//! its mailbox, frames move from ring to ring. And the card alone, against guests that do not behave.

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
mod poke;
mod received;
mod resets;
mod runs;
mod set_aside;
mod switched;
mod world;
