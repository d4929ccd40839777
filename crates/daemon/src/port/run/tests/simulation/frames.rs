//! Frames of the simulation. Each names its sender, its receiver and its number, and its bytes follow from these, so
//! that a receiver detects a wrong byte, a repeated frame, and a frame for another guest.

use i82576::MacAddress;

/// EtherType for local experiments (IEEE 802).
const ETHERTYPE: [u8; 2] = [0x88, 0xb5];
/// Begins each frame's payload. Memory of a guest has it only within frames that the guest may see.
pub(super) const MAGIC: [u8; 8] = *b"SoftIOV~";
/// Bytes before the pattern: Ethernet header, magic, stamp.
const HEADER: usize = 14 + 8 + 16;

/// Sender, receiver and number of a frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct FrameStamp {
    pub(super) from: u16,
    pub(super) to: u16,
    /// Number of times that the sender has attached.
    pub(super) life: u32,
    pub(super) number: u64,
}

impl FrameStamp {
    pub(super) fn frame(&self, to: MacAddress, from: MacAddress, length: usize) -> Vec<u8> {
        let mut frame = [&to.0[..], &from.0, &ETHERTYPE, &MAGIC].concat();
        frame.extend(self.from.to_le_bytes());
        frame.extend(self.to.to_le_bytes());
        frame.extend(self.life.to_le_bytes());
        frame.extend(self.number.to_le_bytes());
        frame.extend((HEADER..length).map(|at| self.byte(at)));
        frame
    }

    /// Reads the stamp that begins at the magic of a payload.
    pub(super) fn of_payload(payload: &[u8]) -> Option<Self> {
        let stamp = payload.strip_prefix(&MAGIC)?.get(..16)?;
        let part = |at: usize| u16::from_le_bytes([stamp[at], stamp[at + 1]]);
        let life = u32::from_le_bytes(stamp[4..8].try_into().ok()?);
        let number = u64::from_le_bytes(stamp[8..16].try_into().ok()?);
        Some(Self { from: part(0), to: part(2), life, number })
    }

    /// Reads the stamp of a received frame, whose every byte must be the sender's. Returns `Err` for a frame with a
    /// wrong byte, and `None` for a frame of another kind.
    pub(super) fn read(frame: &[u8]) -> Result<Option<Self>, String> {
        if frame.get(12..14) != Some(&ETHERTYPE) {
            return Ok(None);
        }
        let stamp = frame.get(14..).and_then(Self::of_payload);
        let stamp = stamp.ok_or_else(|| format!("a frame of {} bytes without a stamp", frame.len()))?;
        let wrong = (HEADER..frame.len()).find(|at| frame[*at] != stamp.byte(*at));
        match wrong {
            // A short frame ends with zeros, up to the least length of Ethernet.
            Some(at) if frame.len() > 60 || frame[at..].iter().any(|byte| *byte != 0) => {
                Err(format!("byte {at} of {stamp:?} is wrong"))
            }
            _ => Ok(Some(stamp)),
        }
    }

    fn byte(&self, at: usize) -> u8 {
        (self.number as usize * 31 + usize::from(self.from) * 7 + at) as u8
    }
}
