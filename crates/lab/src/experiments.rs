//! The experiments there are. Left out: how they are run and shown.

use crate::catalogue::Catalogue;
use crate::experiment::Experiment;

/// Every experiment, in the order of rows and reports.
pub const ALL: &[Experiment] = &[];

/// The experiments, and what can be set in all of them.
#[must_use]
pub fn catalogue() -> Catalogue {
    Catalogue { experiments: ALL, ..Catalogue::default() }
}
