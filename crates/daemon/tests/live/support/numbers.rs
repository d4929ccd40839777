//! Numbered frames between guests of any family, by which a test finds lost and overtaken frames.

use super::eventually;

/// Number of frames that each guest sends, at least.
pub(crate) const FRAMES: u32 = 2_000;
/// Number of frames on their way from each guest, so that no receive ring is ever full.
const WINDOW: u32 = 8;

/// Guest that exchanges numbered frames with others.
pub(crate) trait NumberedGuest {
    /// Sends a broadcast.
    fn send(&mut self, payload: &[u8]);

    /// Returns the payloads of the frames that have arrived since the last call. They may be padded.
    fn take(&mut self) -> Vec<Vec<u8>>;
}

/// Sends [`FRAMES`] numbered frames from each guest to all others, and checks that none is lost or overtaken.
pub(crate) fn exchange_numbers<G: NumberedGuest>(guests: &mut [G]) {
    exchange_numbers_until(guests, || true);
}

/// Sends numbered frames from each guest to all others, [`FRAMES`] or more, until `is_over` returns true. Checks that none is lost or
/// overtaken. Returns the number of frames that each guest has sent.
pub(crate) fn exchange_numbers_until<G: NumberedGuest>(
    guests: &mut [G],
    mut is_over: impl FnMut() -> bool,
) -> u32 {
    let count = guests.len();
    let mut frames = None;
    let mut arrived = vec![vec![0; count]; count];
    let mut sent = vec![0; count];
    eventually("all frames arrive", || {
        if frames.is_none() && is_over() {
            frames = sent.iter().copied().max().map(|most| FRAMES.max(most));
        }
        let limit = frames.unwrap_or(u32::MAX);
        for (from, guest) in guests.iter_mut().enumerate() {
            let least = (0..count).filter(|to| *to != from).map(|to| arrived[to][from]).min().unwrap();
            while sent[from] < limit.min(least + WINDOW) {
                guest.send(&[&[from as u8][..], &sent[from].to_be_bytes()].concat());
                sent[from] += 1;
            }
        }
        for (to, guest) in guests.iter_mut().enumerate() {
            for payload in guest.take() {
                let number = u32::from_be_bytes([payload[1], payload[2], payload[3], payload[4]]);
                let from = usize::from(payload[0]);
                assert_eq!(number, arrived[to][from], "from guest {from} to guest {to}");
                arrived[to][from] += 1;
            }
        }
        (0..count).all(|to| (0..count).all(|from| from == to || arrived[to][from] == limit))
    });
    sent[0]
}
