//! Simulates memory and interrupts of guests. The memory may have holes, and may change while the card reads it.

use pcie::{Bus, DmaFault, Function, Iova};
use plane::frame::HEADROOM;
use plane::{UnsegmentedPacketLayout, UplinkWire};
use std::collections::{HashMap, VecDeque};
use std::ops::Range;

/// Memory and interrupts of all guests.
#[derive(Debug, Clone, Default)]
pub(crate) struct GuestsBus {
    pub(crate) memories: Vec<Vec<u8>>,
    /// Interrupts that the card has sent: number of the VF, and number of the ring (which is the MSI-X vector).
    pub(crate) calls: Vec<(u8, u16)>,
    /// Number of memory accesses by the card.
    pub(crate) accesses: usize,
    /// Holes in the guests' memory: number of the VF, and range of addresses without memory.
    pub(crate) holes: Vec<(u8, Range<u64>)>,
    /// Number of accesses by the card after which the holes in guest memory appear.
    pub(crate) holes_after: usize,
    /// Number of refused accesses after which the holes in guest memory vanish; 0 for holes that stay.
    pub(crate) holes_last: usize,
    /// Guest that changes its memory whenever the card reads: VF, changed address range, and state of the random number
    /// generator.
    pub(crate) turmoil: Option<(u8, Range<u64>, u32)>,
    /// Byte that a VF's driver changes before each of the card's reads, and back before the next: VF, address, and the bits
    /// that change.
    pub(crate) toggled: Option<(u8, u64, u8)>,
    /// Bytes that a VF's driver stores while the card runs: number of the card's accesses before the store, VF, address
    /// and bytes.
    pub(crate) late: Option<(usize, u8, u64, Vec<u8>)>,
    /// Words of the rings' records.
    pub(crate) records: HashMap<(Function, u8, usize), u64>,
}

impl GuestsBus {
    fn range(&mut self, function: Function, iova: Iova, length: usize) -> Result<&mut [u8], DmaFault> {
        let fault = DmaFault { function, iova };
        let Function::Vf(n) = function else { return Err(fault) };
        self.accesses += 1;
        if let Some((_, vf, place, bytes)) = self.late.take_if(|late| self.accesses > late.0) {
            self.memories[usize::from(vf)][place as usize..][..bytes.len()].copy_from_slice(&bytes);
        }
        let end = iova.checked_add(length as u64).ok_or(fault)?;
        let holed = |(vf, hole): &(u8, Range<u64>)| *vf == n && iova < hole.end && hole.start < end;
        if self.accesses > self.holes_after && self.holes.iter().any(holed) {
            if self.holes_last > 0 {
                self.holes_last -= 1;
                if self.holes_last == 0 {
                    self.holes.clear();
                }
            }
            return Err(fault);
        }
        let memory = self.memories.get_mut(usize::from(n)).ok_or(fault)?;
        let start = usize::try_from(iova).unwrap_or(usize::MAX);
        memory.get_mut(start..start.saturating_add(length)).ok_or(fault)
    }

    /// Changes the bytes of memory that the accessing function's guest changes while the card reads.
    fn stir(&mut self, function: Function) {
        if let Some((vf, place, bits)) = self.toggled.filter(|(vf, ..)| Function::Vf(*vf) == function) {
            self.memories[usize::from(vf)][place as usize] ^= bits;
        }
        let Some((vf, range, state)) = self.turmoil.as_mut().filter(|(vf, ..)| Function::Vf(*vf) == function)
        else {
            return;
        };
        // Xorshift (Marsaglia): any sequence that a failing test can repeat.
        *state ^= *state << 13;
        *state ^= *state >> 17;
        *state ^= *state << 5;
        let place = range.start + u64::from(*state >> 8) % (range.end - range.start);
        self.memories[usize::from(*vf)][place as usize] ^= *state as u8;
    }
}

impl Bus for GuestsBus {
    fn dma_read(&mut self, function: Function, iova: Iova, into: &mut [u8]) -> Result<(), DmaFault> {
        self.stir(function);
        into.copy_from_slice(self.range(function, iova, into.len())?);
        Ok(())
    }

    fn dma_write(&mut self, function: Function, iova: Iova, from: &[u8]) -> Result<(), DmaFault> {
        self.range(function, iova, from.len())?.copy_from_slice(from);
        Ok(())
    }

    fn record_ring(&mut self, (function, ring): (Function, u8), first: usize, words: &[u64]) {
        let places = (first..).map(|at| (function, ring, at));
        self.records.extend(places.zip(words.iter().copied()));
    }

    fn recorded_ring(&mut self, (function, ring): (Function, u8), first: usize, into: &mut [u64]) {
        for (at, word) in (first..).zip(into) {
            *word = self.records.get(&(function, ring, at)).copied().unwrap_or(0);
        }
    }

    fn msix(&mut self, function: Function, vector: u16) {
        let Function::Vf(n) = function else { panic!("only VFs interrupt") };
        self.calls.push((n, vector));
    }
}

/// Simulated uplink: a test puts received frames in and takes sent frames out.
#[derive(Debug, Clone, Default)]
pub(crate) struct TestWire {
    pub(crate) sent: Vec<Vec<u8>>,
    pub(crate) arriving: VecDeque<Vec<u8>>,
    /// Unsegmented packet that the uplink delivers next, behind headroom, as a Linux kernel passes it to user space.
    pub(crate) large: Option<(Vec<u8>, UnsegmentedPacketLayout)>,
    /// Number of segments of the unsegmented packet that the card has received.
    taken: u32,
    /// True if the uplink takes packets that are not segmented.
    pub(crate) takes_uncut: bool,
}

impl UplinkWire for TestWire {
    fn transmit(&mut self, frame: &[u8]) -> bool {
        self.sent.push(frame.to_vec());
        true
    }

    fn takes_uncut(&self) -> bool {
        self.takes_uncut
    }

    fn transmit_uncut(&mut self, packet: &[u8], _uncut: &UnsegmentedPacketLayout) -> bool {
        self.transmit(packet)
    }

    fn receive(&mut self, into: &mut [u8]) -> Option<usize> {
        if let Some((packet, layout)) = &self.large {
            let mut segments =
                offload::uncut::segments(layout, &packet[HEADROOM..]).unwrap().skip(self.taken);
            if let Some(length) = segments.write_next(into) {
                self.taken += 1;
                return Some(length);
            }
            (self.large, self.taken) = (None, 0);
        }
        let frame = self.arriving.pop_front()?;
        into[..frame.len()].copy_from_slice(&frame);
        Some(frame.len())
    }

    fn uncut(&mut self) -> Option<(&mut [u8], UnsegmentedPacketLayout)> {
        self.large.as_mut().filter(|_| self.taken == 0).map(|(packet, layout)| (&mut packet[..], *layout))
    }

    fn pass_uncut(&mut self) {
        self.large = None;
    }
}
