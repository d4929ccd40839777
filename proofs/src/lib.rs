//! Bounds of the product's functions. Each is a C function of free numbers that calls the product's function. `cargo xtask
//! prove` executes it symbolically, for all values of the numbers. `docs/proofs.md` lists the bounds and says what a proof
//! covers.
//!
//! A bound needs at most six numbers, since these are passed in registers. It must be free of loops whose length
//! depends on a number.

mod avf_cards;
mod controls;
mod descriptors;
mod net_headers;
mod pci;
mod ring_indices;
mod vfio_regions;
mod vhost_messages;
mod virtio_rings;
mod work;

/// Defines a bound: its meaning, its free numbers, the condition under which the product calls the function, and a block
/// that returns the bound and its twin. The twin is wrong on purpose: the checker must refute it, or it proves nothing.
///
/// The C function returns the bound in bit 0 and the twin in bit 1. Both are true where the condition is false.
macro_rules! bound {
    ($(#[doc = $meaning:literal])+ fn $name:ident($($number:ident: $kind:ty),+) if $condition:expr; $body:block) => {
        $(#[doc = $meaning])+
        #[unsafe(no_mangle)]
        pub extern "C" fn $name($($number: $kind),+) -> u8 {
            if !$condition {
                return 3;
            }
            let [bound, twin]: [bool; 2] = $body;
            u8::from(bound) | u8::from(twin) << 1
        }
    };
}
pub(crate) use bound;

/// Returns 16 bytes from two words.
fn bytes16(first: u64, second: u64) -> [u8; 16] {
    (u128::from(first) | u128::from(second) << 64).to_le_bytes()
}
