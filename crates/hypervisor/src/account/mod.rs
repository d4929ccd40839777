//! Where the cycles went: by the domain they were spent for and by what was done. Left out: deciding what is
//! spent (guests and exits) and when ([`crate::cpu`]).
//!
//! The books close to the cycle: whatever was charged, together with what the threads were idle for, is the
//! number of threads times the cycles that passed, in integers. [`Snapshot::check`] and [`Usage::check`] say
//! whether they do, and every experiment asks.

pub mod category;
pub mod ledger;
pub mod usage;

pub use category::{Category, Charge, Charges};
pub use ledger::Ledger;
pub use usage::{ConservationError, Snapshot, Usage};
