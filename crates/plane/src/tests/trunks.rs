//! Trunks in memory between the parts of a divided card, for the tests of each family that can be divided.

use plane::{FrameTrunk, PortIndex, TrunkBatch};
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

/// Number of VFs, and number of parts that share them.
pub(crate) const VFS: u8 = 4;
pub(crate) const PARTS: usize = 3;
/// Number of frames in a trunk.
pub(crate) const ROOM: usize = 64;

/// Batches that a trunk holds, in order.
pub(crate) type Trunk = VecDeque<TrunkBatch>;

/// Trunks between all parts, by receiving part, and the part of each VF.
#[derive(Debug, Default)]
pub(crate) struct Trunks {
    pub(crate) batches: [[Trunk; PARTS]; PARTS],
    pub(crate) homes: [usize; VFS as usize],
}

/// Returns the number of frames in a trunk.
pub(crate) fn frames_in(trunk: &Trunk) -> usize {
    trunk.iter().map(TrunkBatch::len).sum()
}

/// Sending end of a part's trunks.
#[derive(Debug)]
pub(crate) struct TrunkEnd {
    from: usize,
    trunks: Arc<Mutex<Trunks>>,
    /// Batch of each part that takes the next frames.
    open: [TrunkBatch; PARTS],
}

impl TrunkEnd {
    pub(crate) fn new(from: usize, trunks: &Arc<Mutex<Trunks>>) -> Self {
        Self { from, trunks: trunks.clone(), open: Default::default() }
    }
}

impl FrameTrunk for TrunkEnd {
    fn batch(&mut self, port: PortIndex, _bytes: usize) -> Option<&mut TrunkBatch> {
        let trunks = self.trunks.lock().unwrap();
        let to = trunks.homes[usize::from(port.get())];
        let open = &mut self.open[to];
        (open.len() + frames_in(&trunks.batches[to][self.from]) < ROOM).then_some(open)
    }

    fn flush(&mut self) -> bool {
        let mut trunks = self.trunks.lock().unwrap();
        for (open, trunks) in self.open.iter_mut().zip(&mut trunks.batches) {
            if !open.is_empty() {
                trunks[self.from].push_back(std::mem::take(open));
            }
        }
        false
    }
}

/// Random numbers that a failing test can repeat: Marsaglia's xorshift.
pub(crate) struct RandomNumbers(u32);

impl RandomNumbers {
    pub(crate) fn new() -> Self {
        Self(1)
    }

    /// Returns the next number, below `below`.
    pub(crate) fn next(&mut self, below: u32) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        (self.0 >> 8) % below
    }
}

/// Numbers of the frames that each VF has sent to each other one, and of those that have arrived there.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NumberedFrames([[u32; VFS as usize]; VFS as usize]);

impl NumberedFrames {
    /// Returns the number of the next frame from one VF to another.
    pub(crate) fn next(&mut self, from: u8, to: u8) -> u32 {
        let next = &mut self.0[usize::from(from)][usize::from(to)];
        *next += 1;
        *next - 1
    }

    /// Returns how many frames a VF has got.
    pub(crate) fn to(&self, vf: u8) -> u32 {
        self.0.iter().map(|row| row[usize::from(vf)]).sum()
    }
}
