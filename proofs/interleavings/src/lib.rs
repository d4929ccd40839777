//! Models of words that threads of the product share. loom runs each model in every order of the threads' steps, and lets
//! each load return every value that the orderings allow.
//!
//! A model includes the product's source file, with loom's atomics in place of the standard library's. Its control
//! includes the same file with weaker atomics, which loom must refute.

#![cfg(test)]
#![expect(clippy::duplicate_mod, reason = "a control includes the same file as its model")]

extern crate alloc;

mod bell;
mod exchange;
mod log;
// Public, since the pages of registers use one function of the product's file.
#[path = "../../../crates/pcie/src/low.rs"]
pub mod low;
mod pages;
mod sigbus;
mod swapped;
mod xdp;
