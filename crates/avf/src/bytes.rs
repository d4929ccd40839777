//! Reads and writes little-endian fields of messages in order. Callers check lengths first: a read past the end gives
//! zeros.

use alloc::vec::Vec;

/// Reader of the little-endian fields of a message.
#[derive(Debug)]
pub struct MessageFieldReader<'a>(&'a [u8]);

impl<'a> MessageFieldReader<'a> {
    pub(crate) fn new(bytes: &'a [u8]) -> Self {
        Self(bytes)
    }

    pub(crate) fn array<const N: usize>(&mut self) -> [u8; N] {
        match self.0.split_first_chunk() {
            Some((field, rest)) => {
                self.0 = rest;
                *field
            }
            None => {
                self.0 = &[];
                [0; N]
            }
        }
    }

    pub(crate) fn u8(&mut self) -> u8 {
        u8::from_le_bytes(self.array())
    }

    pub(crate) fn u16(&mut self) -> u16 {
        u16::from_le_bytes(self.array())
    }

    pub(crate) fn u32(&mut self) -> u32 {
        u32::from_le_bytes(self.array())
    }

    pub(crate) fn u64(&mut self) -> u64 {
        u64::from_le_bytes(self.array())
    }
}

/// Writer of the little-endian fields of a message.
pub(crate) trait MessageFieldWriter {
    fn put<const N: usize>(&mut self, field: [u8; N]) -> &mut Self;

    fn zeros(&mut self, count: usize) -> &mut Self;

    fn u8(&mut self, value: u8) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    fn u16(&mut self, value: u16) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    /// Writes the number of a list's elements to a message. A message has 4 KB at most, so the number fits.
    fn count(&mut self, elements: usize) -> &mut Self {
        self.u16(u16::try_from(elements).unwrap_or(u16::MAX))
    }

    fn u32(&mut self, value: u32) -> &mut Self {
        self.put(value.to_le_bytes())
    }

    fn u64(&mut self, value: u64) -> &mut Self {
        self.put(value.to_le_bytes())
    }
}

impl MessageFieldWriter for Vec<u8> {
    fn put<const N: usize>(&mut self, field: [u8; N]) -> &mut Self {
        self.extend_from_slice(&field);
        self
    }

    fn zeros(&mut self, count: usize) -> &mut Self {
        self.resize(self.len() + count, 0);
        self
    }
}
