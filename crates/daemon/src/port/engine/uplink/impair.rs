//! Frames on their way over an uplink, delayed, lost and put out of order, as a longer or worse line would do it. A seeded
//! generator decides, so that the same frames meet the same fate. Everything that is needed for it is set aside when it
//! is switched on. Left out: rates, which the card has.

use crate::config::impair::Impair;
use fastrand::Rng;
use i82576::Time;
use i82576::ids::MAX_FRAME;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

/// Frames that are on their way in a direction at once. More are lost, as on a line whose buffer is full.
const FRAMES: usize = 512;

/// What becomes of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It goes on at once.
    Now,
    /// It is on its way, and arrives later.
    Later,
    /// It is lost.
    Lost,
}

/// Both directions.
#[derive(Debug)]
pub(crate) struct Impairment {
    config: Impair,
    random: Rng,
    pub(super) out: Line,
    pub(super) back: Line,
    /// Frames that were lost by chance, or for want of room.
    pub(super) lost: u64,
}

impl Impairment {
    pub(crate) fn new(config: Impair) -> Self {
        let random = Rng::with_seed(config.seed);
        Self { config, random, out: Line::new(), back: Line::new(), lost: 0 }
    }

    /// A frame leaves for the uplink.
    pub(super) fn send(&mut self, frame: &[u8], now: Time) -> Fate {
        self.meet(frame, now, |of| &mut of.out)
    }

    /// A frame comes from the uplink.
    pub(super) fn receive(&mut self, frame: &[u8], now: Time) -> Fate {
        self.meet(frame, now, |of| &mut of.back)
    }

    /// Decides about a frame, and puts one that arrives later on its line.
    fn meet(&mut self, frame: &[u8], now: Time, line: impl FnOnce(&mut Self) -> &mut Line) -> Fate {
        let fate = self.fate();
        let has_room = self.due(fate, now).is_none_or(|due| line(self).push(frame, due));
        let fate = if has_room { fate } else { Fate::Lost };
        self.lost += u64::from(fate == Fate::Lost);
        fate
    }

    /// When the next frame arrives, in either direction.
    pub(super) fn next(&self) -> Option<Time> {
        [self.out.next(), self.back.next()].into_iter().flatten().min()
    }

    fn fate(&mut self) -> Fate {
        let Impair { loss, reorder, delay, .. } = self.config;
        // Two numbers for each frame, whatever they are for, so that one setting moves no other.
        let [first, second] = [self.random.u32(..Impair::MILLION), self.random.u32(..Impair::MILLION)];
        match () {
            () if first < loss => Fate::Lost,
            () if delay.is_zero() || second < reorder => Fate::Now,
            () => Fate::Later,
        }
    }

    fn due(&mut self, fate: Fate, now: Time) -> Option<Time> {
        let Impair { delay, jitter, .. } = self.config;
        let span = jitter.as_nanos() as u64;
        let more = self.random.u64(0..=2 * span);
        let after = delay.as_nanos() as u64 + more - span;
        (fate == Fate::Later).then(|| Time::from_nanos(now.as_nanos() + after))
    }
}

/// One direction: frames in the order in which they arrive.
#[derive(Debug)]
pub(super) struct Line {
    places: Box<[u8]>,
    lengths: [usize; FRAMES],
    free: Vec<usize>,
    due: BinaryHeap<Reverse<(Time, u64, usize)>>,
    sent: u64,
}

impl Line {
    fn new() -> Self {
        Self {
            places: vec![0; FRAMES * MAX_FRAME].into(),
            lengths: [0; FRAMES],
            free: (0..FRAMES).collect(),
            due: BinaryHeap::with_capacity(FRAMES),
            sent: 0,
        }
    }

    /// A frame is on its way, to arrive at a moment; `false` if there is no room for it.
    fn push(&mut self, frame: &[u8], due: Time) -> bool {
        let Some(place) = self.free.pop_if(|_| frame.len() <= MAX_FRAME) else { return false };
        self.places[place * MAX_FRAME..][..frame.len()].copy_from_slice(frame);
        self.lengths[place] = frame.len();
        // Of those that arrive at once, the first comes first.
        self.sent += 1;
        self.due.push(Reverse((due, self.sent, place)));
        true
    }

    /// Returns the next frame, if it has arrived.
    pub(super) fn pop(&mut self, now: Time) -> Option<&[u8]> {
        let Reverse((due, _, place)) = *self.due.peek()?;
        if due > now {
            return None;
        }
        self.due.pop();
        self.free.push(place);
        Some(&self.places[place * MAX_FRAME..][..self.lengths[place]])
    }

    /// When it arrives.
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
        Impairment::new(Impair { delay, jitter: delay / 2, loss, reorder, seed: 7 })
    }

    fn fates(mut of: Impairment, count: usize) -> Vec<Fate> {
        (0..count).map(|_| of.send(&[1; 60], NOW)).collect()
    }

    #[test]
    fn the_same_frames_meet_the_same_fate_with_the_same_seed() {
        let fates = |seed| {
            let mut of = impairment(200_000, 300_000, 1_000_000);
            of.random = Rng::with_seed(seed);
            fates(of, 300)
        };
        assert_eq!(fates(1), fates(1));
        assert_ne!(fates(1), fates(2));
    }

    #[test]
    fn as_many_are_lost_as_is_asked_for() {
        for (loss, expected) in [(0, 0..=0), (100_000, 900..=1_100), (1_000_000, 10_000..=10_000)] {
            let mut of = impairment(loss, 0, 0);
            let lost = (0..10_000).filter(|_| of.send(&[1; 60], NOW) == Fate::Lost).count();
            assert!(expected.contains(&lost), "{lost} of 10,000 with {loss}");
            assert_eq!(of.lost, lost as u64);
        }
    }

    #[test]
    fn frames_arrive_when_they_are_due_and_as_they_were() {
        let mut of = impairment(0, 0, 20_000);
        let frames: Vec<Vec<u8>> = (0..100).map(|n| vec![n; 60 + usize::from(n)]).collect();
        assert!(frames.iter().all(|frame| of.receive(frame, NOW) == Fate::Later));
        assert_eq!(of.back.pop(NOW), None, "not before half of the delay");
        let mut arrived = Vec::new();
        while let Some(next) = of.next() {
            arrived.extend(of.back.pop(next).map(<[u8]>::to_vec));
        }
        assert_ne!(arrived, frames, "jitter puts them out of order");
        arrived.sort();
        assert_eq!(arrived, frames);
    }

    #[test]
    fn what_finds_no_room_on_the_line_is_lost_and_no_more() {
        let mut of = impairment(0, 0, 1_000_000);
        let fates = (0..FRAMES + 9).map(|_| of.send(&[1; 60], NOW)).collect::<Vec<_>>();
        assert!(fates[..FRAMES].iter().all(|fate| *fate == Fate::Later));
        assert!(fates[FRAMES..].iter().all(|fate| *fate == Fate::Lost));
        assert_eq!((of.lost, of.receive(&[0; MAX_FRAME + 1], NOW)), (9, Fate::Lost));
    }
}
