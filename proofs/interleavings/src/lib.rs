//! Models of words that threads of the product share. loom runs each model in every order of the threads' steps, and lets
//! each load return every value that the orderings allow.
//!
//! A model includes the product's source file, with loom's atomics in place of the standard library's. Its control
//! includes the same file with weaker atomics, which loom must refute.

#![cfg(test)]
#![expect(clippy::duplicate_mod, reason = "a control includes the same file as its model")]

mod bell;
mod exchange;
mod log;
mod sigbus;
mod swapped;
mod xdp;
