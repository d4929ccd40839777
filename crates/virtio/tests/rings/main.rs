//! Tests both sides of split and packed rings in one memory: rules of the standard, exchanges across wraps, hostile
//! drivers, devices at fault, and notifications in every order of events.

mod crash;
mod driver;
mod driver_rules;
mod dropped;
mod exchange;
mod hostile;
mod interleaving;
mod memory;
mod notifications;
mod packed_rules;
mod queue;
mod record;
mod split_rules;
mod torn;
