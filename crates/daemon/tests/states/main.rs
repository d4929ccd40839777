//! The state of a card with its PF driver and its SR-IOV manager: set aside, written, read back and continued; kept from
//! version to version; and damaged. Left out: a live port around it.

mod avf;
mod conversation;
mod damage;
mod kept;
mod poke;
mod world;
