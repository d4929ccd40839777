//! Tests the card with model drivers of both ring formats: frames, offloads, merged receive buffers, policy, hostile
//! guests.

mod announcements;
mod bursts;
mod bus;
mod coalesce;
mod conversation;
mod driver;
mod exchange;
mod hostile;
mod learning;
mod logs;
mod machine;
mod moderation;
mod notifications;
mod offloads;
mod packets;
mod parts;
mod paused;
#[path = "../../../plane/src/tests/pings.rs"]
mod pings;
mod policies;
mod receive_faults;
mod shares;
mod shorthand;
mod transmit_faults;
#[path = "../../../plane/src/tests/trunks.rs"]
mod trunks;

/// Returns the Ethernet address of VF `n`.
pub(crate) fn address(n: u8) -> [u8; 6] {
    [0x02, 0, 0, 0, 0, n]
}
