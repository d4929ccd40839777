//! Experiments in virtual time: a sweep of points, a row of metrics for each, figures and one report of it all.
//!
//! | module | what it is |
//! |---|---|
//! | [`experiment`] | an experiment as data: axes, metrics, figures, and the function that runs one point |
//! | [`catalogue`] | experiments and settings together |
//! | [`experiments`] | the experiments there are |
//! | [`calibrate`] | constants fitted to published values, and how far off they leave the model |
//! | [`here`] | constants measured on the machine at hand, and what they predict |
//! | [`row`], [`named`], [`value`] | what a point is called and what it found |
//! | [`runner`] | points in parallel, rows in order, rows kept and found again |
//! | [`figure`] | charts, and the SVG that shows them |
//! | [`report`] | one HTML file, CSV and JSON beside it |
//!
//! The same seed gives the same rows, byte for byte, however many jobs run them and however they are divided.
//! Left out: real time. What a run took is said on standard error and is in no row.
#![forbid(unsafe_code)]

pub mod calibrate;
pub mod catalogue;
pub mod experiment;
pub mod experiments;
pub mod figure;
mod hash;
pub mod here;
pub mod machine;
pub mod named;
pub mod report;
pub mod row;
pub mod runner;
#[cfg(test)]
mod synthetic;
pub mod value;

/// The version of whoever finds rows: the release, and a hash of the sources that decide what is found, without their
/// comments and tests.
pub const VERSION: &str = concat!(env!("CARGO_PKG_VERSION"), "+", env!("LAB_SOURCES"));
