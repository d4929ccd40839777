//! The card: a pure state machine, one folder per stop of a frame.
#![no_std]
#![forbid(unsafe_code)]

extern crate alloc;

pub mod file;
