//! Pairs of guests with virtio-net on one port of SoftIOV, beside a pair on QEMU's own taps and a bridge: they exchange TCP
//! streams with the network beyond the uplink and with each other. Then the network sends frames of one segment only, as a
//! network card receives them, which shows the effect of `gro`.

use super::contender::MeasuredGuest;
use super::{measure, rows, table, take_turns};
use crate::report::LinuxCheckOutcome;
use crate::world::LinuxTestbed;
use anyhow::Result;

/// Measures the pairs, first with segments of any size from the network, then with one segment in each frame.
pub(crate) fn of_virtio_guests_take_turns(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    measure(world, |wire| {
        let contenders = MeasuredGuest::pairs_of_virtio(world, wire)?;
        for (title, segments) in [("pairs of guests", None), ("one segment in a frame", Some(1))] {
            wire.limit_segments(segments)?;
            let named = take_turns(&contenders, wire)?;
            table::print(title, contenders[0].accel(), &rows(&named));
        }
        contenders.into_iter().try_for_each(MeasuredGuest::end)
    })
}
