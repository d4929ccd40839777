//! The traits of a family of cards in bursts: its next descriptors, a port's receive queue, and its descriptor formats. Left out: the
//! way of a frame (`burst`, `deliver`), and frames that travel alone (`packets`).

use crate::places::Places;
use crate::posted::Posted;
use crate::ring::Ring;
use alloc::boxed::Box;
use core::ops::RangeInclusive;
use offload::plain::{Insertion, Plain, PlainKind};
use pcie::{Bus, Function, Hint};
use plane::frame::Sealed;
use plane::switch::Reason;
use plane::{Port, Sender, Sink};

/// Bytes of a transmit descriptor of every family.
pub(crate) const DESCRIPTOR: usize = 16;

/// A family's transmit descriptors. The first word is the address of the buffer.
pub trait TxFormat {
    /// Bytes that a plain frame may have, check sequence excluded.
    const LENGTHS: RangeInclusive<u32>;

    /// Returns the bytes of a frame that is this descriptor alone and asks for nothing but to be sent; `None` for every other
    /// descriptor. `second` is its second word.
    fn plain(second: u64) -> Option<u32>;

    /// Returns the bytes of a frame that is this descriptor alone and may ask for checksums: those of [`Card::insertion`].
    #[inline]
    fn summed(second: u64) -> Option<u32> {
        Self::plain(second)
    }
}

/// Receive descriptors of the frames of a run, as a family writes them.
pub trait RxFormat: Copy {
    /// Returns the words of the descriptor of a plain frame; those that the ring's descriptors have not count for nothing.
    fn words(self, found: PlainKind, hash: Option<u32>, length: u32) -> [u64; 4];
}

/// Properties that all frames of a run have for their receiver.
#[derive(Debug, Clone, Copy)]
pub struct Terms {
    /// The tag that was taken out of the frames.
    pub tag: Option<u16>,
    /// No exact filter knows the frames' destination.
    pub inexact: bool,
    /// The frames come from the uplink.
    pub from_uplink: bool,
}

/// The receive queue of a plain frame, and its hash if the port has it hashed.
pub type Spread = (u8, Option<u32>);

/// A receive queue that takes plain frames.
#[derive(Debug)]
pub struct Receiver<'a, B, S> {
    /// Its posted descriptors.
    pub posted: &'a mut Posted,
    /// Its ring.
    pub ring: Ring,
    /// Maximum number of descriptors to fill, posted or not.
    pub room: usize,
    /// Bytes of the longest frame that one buffer takes.
    pub longest: usize,
    /// The owner of its ring and buffers.
    pub function: Function,
    /// The bus.
    pub bus: &'a mut B,
    /// The words of its descriptors.
    pub format: S,
}

/// A card whose rings are worked in bursts.
pub trait Card: Sink {
    /// The bus.
    type Bus: Bus;
    /// Transmit descriptors.
    type TxFormat: TxFormat;
    /// Receive descriptors.
    type RxFormat: RxFormat;

    /// Descriptors that a burst has read and not used are not read again for the packet that they make.
    const KEEPS_DESCRIPTORS: bool = false;

    /// Returns the place of the card's private memory, which is empty while frames pass. It may be empty before.
    fn places(&mut self) -> &mut Option<Box<Places>>;

    /// Returns true if no frame travels in a burst. Tests compare bursts with the careful way.
    fn is_careful(&self) -> bool {
        false
    }

    /// Returns true if plain frames may be received after one look at their heads; else every frame is sent alone.
    fn judges(&self) -> bool;

    /// Returns up to `most` pending descriptors of a queue, from the next one on; none while a packet is unfinished.
    fn next(&mut self, sender: Sender, most: usize) -> &[[u8; DESCRIPTOR]];

    /// The frames of the first `count` of these descriptors have left: they are given back, those that ask for it as done.
    fn pass(&mut self, sender: Sender, count: usize);

    /// The owner of a queue's buffers, the hint where these are, and the bus.
    fn source(&mut self, sender: Sender) -> (Function, &mut Hint, &mut Self::Bus);

    /// Returns the checksums that the descriptor at a place of [`Card::next`] asks for; `None` if they are not those of a plain frame.
    fn insertion(&self, sender: Sender, at: usize) -> Option<Insertion> {
        let _ = (sender, at);
        None
    }

    /// Inserts the checksums that the descriptor at a place of [`Card::next`] asks for, whatever they are.
    ///
    /// # Errors
    /// The frame does not fit the request. It is unchanged, and the family takes its descriptor in its own way.
    fn insert(&self, sender: Sender, at: usize, frame: &mut [u8]) -> Result<Option<Sealed>, Misfit> {
        let _ = (sender, at, frame);
        Ok(None)
    }

    /// The plane has refused a frame.
    fn refused(&mut self, sender: Sender, reason: Reason);

    /// Returns true if a port spreads frames over several queues.
    #[inline]
    fn spreads(&self, port: Port) -> bool {
        let _ = port;
        false
    }

    /// The queue of a frame for a port.
    #[inline]
    fn spread(&mut self, port: Port, frame: &Plain<'_>) -> Spread {
        let _ = (port, frame);
        (0, None)
    }

    /// A port's receive queue; `None` if it does not run, or has to look closely at frames.
    fn receiver(
        &mut self,
        port: Port,
        queue: u8,
        terms: Terms,
    ) -> Option<Receiver<'_, Self::Bus, Self::RxFormat>>;

    /// Counts frames, and their bytes in sum, that a receive queue has got.
    #[inline]
    fn received(&mut self, port: Port, queue: u8, frames: usize, bytes: u64) {
        let _ = (port, queue, frames, bytes);
    }
}

/// A frame does not fit the checksums that were asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Misfit;
