//! Names of the environment variables that proptest reads. This module draws no seed.

/// Environment variable from which proptest reads its seed.
pub(crate) const SEED: &str = "PROPTEST_RNG_SEED";
/// Environment variable that keeps proptest from writing files of its own.
pub(super) const WRITES_NOTHING: &str = "PROPTEST_DISABLE_FAILURE_PERSISTENCE";
