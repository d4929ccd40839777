//! Draws the key of a port's table of stations beyond the uplink.

use std::hash::{BuildHasher, RandomState};

/// Returns a random number, which stations beyond the uplink cannot guess.
pub(super) fn random_key() -> u64 {
    // The standard library draws its keys from the kernel's random numbers.
    RandomState::new().hash_one(())
}
