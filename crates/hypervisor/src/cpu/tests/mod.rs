//! Tests of the processors' rules, with a driver of the protocol.

mod conservation;
mod rules;
mod world;
