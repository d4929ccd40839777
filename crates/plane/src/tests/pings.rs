//! Pings of two VFs beside a flood of broadcasts, for the tests of each family.

/// Number of pings.
const PINGS: usize = 1_000;

/// Card with three VFs, of which the first floods.
pub(crate) trait FloodedCard {
    /// Fills the transmit ring of VF 0 with broadcast packets that the card cuts into segments.
    fn flood(&mut self);

    /// Puts a frame from a VF to another into its ring.
    fn send(&mut self, from: u8, to: u8);

    /// Takes a VF's received frames, posts their descriptors again, and returns the number of those from `source`.
    fn take_from(&mut self, vf: u8, source: u8) -> usize;

    /// Polls the card once. Returns the number of frames that leave by the uplink.
    fn poll(&mut self) -> usize;

    /// Returns the number of a VF's frames that have found no descriptor.
    fn lost(&mut self, vf: u8) -> u64;
}

/// Checks that a VF whose ring is always full of broadcasts cut into small segments loses two others less than 1 % of their
/// pings. The others' drivers read their rings in every sixteenth poll, so most of the broadcasts find no descriptor.
pub(crate) fn check_pings_beside_broadcasts(card: &mut impl FloodedCard) {
    let (mut answers, mut broadcasts) = (0, 0);
    for visit in 0..PINGS + 2 {
        answers += card.take_from(1, 2);
        let pings = card.take_from(2, 1);
        for poll in 0..16 {
            card.flood();
            // Frames begin at each time since the drivers have read their rings.
            for (from, to, count) in [(1, 2, usize::from(visit < PINGS)), (2, 1, pings)] {
                (0..count * usize::from(poll == visit % 16)).for_each(|_| card.send(from, to));
            }
            broadcasts += card.poll();
        }
    }
    let lost = card.lost(1);
    assert!(lost > broadcasts as u64 / 2, "of {broadcasts} broadcasts only {lost} find no descriptor");
    assert!(answers > PINGS * 99 / 100, "{} of {PINGS} pings lost", PINGS - answers);
}
