//! Experiments in virtual time: sweeps of points, a row of metrics per point, figures, and one report.
//!
//! | module | contents |
//! |---|---|
//! | [`experiment`] | an experiment as data: axes, metrics, figures, and the function that runs one point |
//! | [`catalogue`] | experiments and settings |
//! | [`experiments`] | all experiments |
//! | [`calibrate`] | constants fitted to published values, with residuals |
//! | [`here`] | constants measured on this machine, with predictions from them |
//! | [`compare`] | two models over the values that papers state |
//! | [`explain`] | where the cycles of a row went |
//! | [`row`], [`named`], [`value`] | parameters and metrics of a point |
//! | [`machine_file`] | machines as files: schema, check, and text |
//! | [`runner`] | running points in parallel, ordering rows, storing and reusing them |
//! | [`dataset`] | rows as CSV with a codebook |
//! | [`report`] | one HTML file with the rows as charts, with CSV and JSON beside it |
//!
//! The same seed gives byte-identical rows, for any number of jobs and any division into parts. Real time is
//! only reported on standard error and is in no row.
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod catalogue;
pub mod compare;
mod csv;
pub mod dataset;
pub mod experiment;
pub mod experiments;
pub mod explain;
mod hash;
pub mod here;
pub mod machine;
pub mod machine_file;
pub mod named;
pub mod report;
pub mod row;
pub mod runner;
mod similar;
#[cfg(test)]
mod synthetic;
pub mod value;

/// Version of the lab's model: the release, and a hash of the sources that determine results, without their
/// comments and tests.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("LAB_SOURCES"));
