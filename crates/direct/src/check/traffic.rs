//! Frames between VFs of the port, which the switch inside has to deliver. Left out: filters, offloads.

use super::frames::{Amiss, frame};
use super::{Outcome, Station, World};

/// From the shortest frame on the wire to the longest ordinary one.
const LENGTHS: [usize; 7] = [60, 61, 64, 128, 576, 1513, 1514];

pub(super) fn unicast(world: &mut World) -> Outcome {
    let (a, b) = match world.pair() {
        Ok(pair) => pair,
        Err(skipped) => return skipped,
    };
    Outcome::from(
        each_length(a, b)
            .and_then(|()| each_length(b, a))
            .map(|()| format!("{} frames each way", LENGTHS.len())),
    )
}

fn each_length(from: &mut Station, to: &mut Station) -> Result<(), Amiss> {
    for (serial, length) in (0..).zip(LENGTHS) {
        from.send(to.vf.mac(), serial, length)?;
        to.expect(&frame(to.vf.mac(), from.vf.mac(), serial, length), serial)?;
    }
    from.expect_nothing()
}
