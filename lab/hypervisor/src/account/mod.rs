//! Accounting of processor cycles by domain and category. Guests and VM exits charge cycles; [`crate::cpu`]
//! determines the time that they take.
//!
//! The accounts balance to the cycle: charged plus idle cycles equal the number of threads times the elapsed
//! cycles, in integers. [`CycleLedgerSnapshot::check`] and [`CycleUsage::check`] verify this in every experiment.

pub mod category;
pub mod ledger;
pub mod usage;

pub use category::{ChargedCycles, CycleCategory, CycleSink};
pub use ledger::CycleLedger;
pub use usage::{CycleConservationError, CycleLedgerSnapshot, CycleUsage};
