//! Tests the device's side of split and packed rings against model drivers in one memory: rules of the standard,
//! exchanges across wraps, hostile drivers, and notifications in every order of events.

mod driver;
mod exchange;
mod hostile;
mod interleaving;
mod memory;
mod notifications;
mod packed_rules;
mod queue;
mod split_rules;
mod torn;
