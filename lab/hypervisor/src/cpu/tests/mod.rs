//! Tests of the rules of processor threads, virtual CPUs and schedulers, with a driver of the machine's
//! protocol.

mod conservation;
mod rules;
mod world;
