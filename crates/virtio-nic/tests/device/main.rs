//! The card with model drivers of both ring formats: frames, offloads, merged receive buffers, policy, hostile guests.

mod driver;
mod exchange;
mod machine;
mod offloads;
mod policies;

/// Returns the Ethernet address of VF `n`.
pub(crate) fn address(n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, n]
}
