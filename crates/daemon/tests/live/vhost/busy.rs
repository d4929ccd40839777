//! Tests of a virtio port that polls its guests' rings.

use super::guest::{VirtioGuest, exchange};
use crate::support::live::LiveHost;
use host::eventfd::EventFd;

#[test]
fn busy_virtio_port_forwards_frames_without_notifications() {
    let live = LiveHost::with("[[port]]\nfamily = \"virtio\"\nwait = \"busy\"\n");
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    // From here on no notification of the driver reaches the host.
    a.transmit.kick = EventFd::new().unwrap();
    for round in 0..1_000_u16 {
        a.send(&round.to_be_bytes());
        b.wait_for(&round.to_be_bytes());
    }
}
