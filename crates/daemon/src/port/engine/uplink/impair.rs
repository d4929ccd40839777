//! Impairment of an uplink: delays, drops and reorders frames, like a longer or less reliable line. A seeded random
//! generator decides, so that the same frames get the same result. All memory is allocated when impairment is enabled.
//! The card limits rates.

use crate::config::impair::ImpairmentConfig;
use fastrand::Rng;
use i82576::Time;
use i82576::ids::MAX_FRAME;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Maximum number of delayed frames in each direction. Further frames are dropped, as on a line with a full buffer.
const FRAMES: usize = 512;

/// Decision about a frame on an impaired uplink.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ImpairmentVerdict {
    /// Delivers the frame without a delay.
    Now,
    /// Delivers the frame after a delay.
    Later,
    /// Drops the frame, as a lossy line would.
    Lost,
}

/// Impairment (loss, delay and reordering) of both directions of an uplink.
#[derive(Debug)]
pub(crate) struct Impairment {
    config: ImpairmentConfig,
    random: Rng,
    pub(super) out: DelayLine,
    pub(super) back: DelayLine,
    /// Number of frames that the impairment has dropped, by chance or for lack of room.
    pub(super) lost: u64,
}

impl Impairment {
    pub(crate) fn new(config: ImpairmentConfig) -> Self {
        let random = Rng::with_seed(config.seed);
        Self { config, random, out: DelayLine::new(), back: DelayLine::new(), lost: 0 }
    }

    /// Decides whether a frame to the uplink is passed, delayed or dropped, and keeps a delayed one.
    pub(super) fn send(&mut self, frame: &[u8], now: Time) -> ImpairmentVerdict {
        self.decide(frame, now, |of| &mut of.out)
    }

    /// Decides whether a frame from the uplink is passed, delayed or dropped, and keeps a delayed one.
    pub(super) fn receive(&mut self, frame: &[u8], now: Time) -> ImpairmentVerdict {
        self.decide(frame, now, |of| &mut of.back)
    }

    /// Decides whether a frame is passed, delayed or dropped, and queues a delayed frame of its direction.
    fn decide(
        &mut self,
        frame: &[u8],
        now: Time,
        line: impl FnOnce(&mut Self) -> &mut DelayLine,
    ) -> ImpairmentVerdict {
        let fate = self.fate();
        let has_room = self.due(fate, now).is_none_or(|due| line(self).push(frame, due));
        let fate = if has_room { fate } else { ImpairmentVerdict::Lost };
        self.lost += u64::from(fate == ImpairmentVerdict::Lost);
        fate
    }

    /// Returns the time when the next delayed frame is due, in either direction.
    pub(super) fn next(&self) -> Option<Time> {
        [self.out.next(), self.back.next()].into_iter().flatten().min()
    }

    fn fate(&mut self) -> ImpairmentVerdict {
        let ImpairmentConfig { loss, reorder, delay, .. } = self.config;
        // Each frame takes two random numbers whatever they are used for, so that one setting does not change
        // another's results.
        let [first, second] =
            [self.random.u32(..ImpairmentConfig::MILLION), self.random.u32(..ImpairmentConfig::MILLION)];
        match () {
            () if first < loss => ImpairmentVerdict::Lost,
            () if delay.is_zero() || second < reorder => ImpairmentVerdict::Now,
            () => ImpairmentVerdict::Later,
        }
    }

    fn due(&mut self, fate: ImpairmentVerdict, now: Time) -> Option<Time> {
        let ImpairmentConfig { delay, jitter, .. } = self.config;
        let span = jitter.as_nanos() as u64;
        let more = self.random.u64(0..=2 * span);
        let after = delay.as_nanos() as u64 + more - span;
        (fate == ImpairmentVerdict::Later).then(|| Time::from_nanos(now.as_nanos() + after))
    }
}

/// Delayed frames of one direction, by the time when they are due.
#[derive(Debug)]
pub(super) struct DelayLine {
    places: Box<[u8]>,
    lengths: [usize; FRAMES],
    free: Vec<usize>,
    due: BinaryHeap<Reverse<(Time, u64, usize)>>,
    sent: u64,
}

impl DelayLine {
    fn new() -> Self {
        Self {
            places: vec![0; FRAMES * MAX_FRAME].into(),
            lengths: [0; FRAMES],
            free: (0..FRAMES).collect(),
            due: BinaryHeap::with_capacity(FRAMES),
            sent: 0,
        }
    }

    /// Queues a delayed frame until its due time. Returns `false` if there is no room.
    fn push(&mut self, frame: &[u8], due: Time) -> bool {
        let Some(place) = self.free.pop_if(|_| frame.len() <= MAX_FRAME) else { return false };
        self.places[place * MAX_FRAME..][..frame.len()].copy_from_slice(frame);
        self.lengths[place] = frame.len();
        // The sequence number orders frames that are due at the same time.
        self.sent += 1;
        self.due.push(Reverse((due, self.sent, place)));
        true
    }

    /// Returns the next delayed frame, if the frame is due.
    pub(super) fn pop(&mut self, now: Time) -> Option<&[u8]> {
        let Reverse((due, _, place)) = *self.due.peek()?;
        if due > now {
            return None;
        }
        self.due.pop();
        self.free.push(place);
        Some(&self.places[place * MAX_FRAME..][..self.lengths[place]])
    }

    /// Returns the time when the next delayed frame is due.
    fn next(&self) -> Option<Time> {
        self.due.peek().map(|Reverse((due, ..))| *due)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const NOW: Time = Time::from_nanos(1_000_000_000);

    fn impairment(loss: u32, reorder: u32, delay_us: u64) -> Impairment {
        let delay = Duration::from_micros(delay_us);
        Impairment::new(ImpairmentConfig { delay, jitter: delay / 2, loss, reorder, seed: 7 })
    }

    fn fates(mut of: Impairment, count: usize) -> Vec<ImpairmentVerdict> {
        (0..count).map(|_| of.send(&[1; 60], NOW)).collect()
    }

    #[test]
    fn equal_impairment_seeds_drop_and_delay_the_same_frames() {
        let fates = |seed| {
            let mut of = impairment(200_000, 300_000, 1_000_000);
            of.random = Rng::with_seed(seed);
            fates(of, 300)
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
    }

    #[test]
    fn impaired_uplink_loses_frames_at_the_configured_rate() {
        for (loss, expected) in [(0, 0..=0), (100_000, 900..=1_100), (1_000_000, 10_000..=10_000)] {
            let mut of = impairment(loss, 0, 0);
            let lost = (0..10_000).filter(|_| of.send(&[1; 60], NOW) == ImpairmentVerdict::Lost).count();
            assert!(expected.contains(&lost), "{lost} of 10,000 with {loss}");
            assert_eq!(of.lost, lost as u64);
        }
    }

    #[test]
    fn delayed_frames_arrive_unchanged_when_due() {
        let mut of = impairment(0, 0, 20_000);
        let frames: Vec<Vec<u8>> = (0..100).map(|n| vec![n; 60 + usize::from(n)]).collect();
        assert!(frames.iter().all(|frame| of.receive(frame, NOW) == ImpairmentVerdict::Later));
        assert_eq!(of.back.pop(NOW), None, "no frame is due before half of the delay");
        let mut arrived = Vec::new();
        while let Some(next) = of.next() {
            arrived.extend(of.back.pop(next).map(<[u8]>::to_vec));
        }
        assert_ne!(arrived, frames, "jitter reorders frames");
        arrived.sort();
        assert_eq!(arrived, frames);
    }

    #[test]
    fn delayed_frames_beyond_the_uplink_buffer_are_dropped() {
        let mut of = impairment(0, 0, 1_000_000);
        let fates = (0..FRAMES + 9).map(|_| of.send(&[1; 60], NOW)).collect::<Vec<_>>();
        assert!(fates[..FRAMES].iter().all(|fate| *fate == ImpairmentVerdict::Later));
        assert!(fates[FRAMES..].iter().all(|fate| *fate == ImpairmentVerdict::Lost));
        assert_eq!((of.lost, of.receive(&[0; MAX_FRAME + 1], NOW)), (9, ImpairmentVerdict::Lost));
    }
}
