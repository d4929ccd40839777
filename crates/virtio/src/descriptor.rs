//! Descriptors of split and packed rings: 16 bytes, little endian (sections 2.7.5 and 2.8.13). The two formats differ
//! in the last four bytes.

/// Bytes of a ring descriptor.
pub const SIZE: usize = 16;

/// Flags of ring descriptors.
pub mod flag {
    /// Descriptor flag: the chain continues, at index `next` in a split ring, in the following slot in a packed ring.
    pub const NEXT: u16 = 1;
    /// Descriptor flag: the device writes the buffer; without the flag it reads the buffer.
    pub const WRITE: u16 = 2;
    /// Descriptor flag: the buffer is an indirect table of descriptors.
    pub const INDIRECT: u16 = 4;
    /// Descriptor flag of a packed ring: equals the driver's wrap counter in an available descriptor (section 2.8.1).
    pub const AVAIL: u16 = 1 << 7;
    /// Descriptor flag of a packed ring: equals the device's wrap counter in a used descriptor (section 2.8.1).
    pub const USED: u16 = 1 << 15;
}

/// Descriptor of a split ring (section 2.7.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SplitDescriptor {
    /// Address of the descriptor's buffer.
    pub address: u64,
    /// Length of the descriptor's buffer in bytes.
    pub length: u32,
    /// Flags of the split descriptor: [`flag::NEXT`], [`flag::WRITE`], [`flag::INDIRECT`].
    pub flags: u16,
    /// Index of the chain's next descriptor, if [`flag::NEXT`] is set.
    pub next: u16,
}

impl SplitDescriptor {
    /// Parses a split descriptor from its bytes.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        let (address, length, [flags, next]) = fields(raw);
        Self { address, length, flags, next }
    }

    /// Returns the split descriptor as the driver writes it.
    #[must_use]
    pub fn emit(&self) -> [u8; SIZE] {
        bytes(self.address, self.length, [self.flags, self.next])
    }
}

/// Descriptor of a packed ring (section 2.8.13).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct PackedDescriptor {
    /// Address of the descriptor's buffer. Unused in a used descriptor.
    pub address: u64,
    /// Length of the descriptor's buffer in bytes; in a used descriptor the number of bytes that the device wrote.
    pub length: u32,
    /// Buffer id of the packed descriptor. In a list of descriptors only the last one has it.
    pub id: u16,
    /// Flags of the packed descriptor: all of [`flag`].
    pub flags: u16,
}

impl PackedDescriptor {
    /// Parses a packed descriptor from its bytes.
    #[must_use]
    #[inline]
    pub fn parse(raw: &[u8; SIZE]) -> Self {
        let (address, length, [id, flags]) = fields(raw);
        Self { address, length, id, flags }
    }

    /// Returns the packed descriptor's bytes.
    #[must_use]
    #[inline]
    pub fn emit(&self) -> [u8; SIZE] {
        bytes(self.address, self.length, [self.id, self.flags])
    }
}

#[inline]
fn fields(raw: &[u8; SIZE]) -> (u64, u32, [u16; 2]) {
    let all = u128::from_le_bytes(*raw);
    (all as u64, (all >> 64) as u32, [(all >> 96) as u16, (all >> 112) as u16])
}

#[inline]
fn bytes(address: u64, length: u32, [third, fourth]: [u16; 2]) -> [u8; SIZE] {
    let upper = u64::from(length) | u64::from(third) << 32 | u64::from(fourth) << 48;
    (u128::from(address) | u128::from(upper) << 64).to_le_bytes()
}

#[cfg(test)]
mod tests {
    use super::{PackedDescriptor, SplitDescriptor};

    const RAW: [u8; 16] = [0x88, 0x77, 0x66, 0x55, 0x44, 0x33, 0x22, 0x11, 4, 3, 2, 1, 0x0a, 0, 0x0c, 0x80];

    #[test]
    fn split_ring_descriptor_has_flags_before_next_index() {
        let parsed = SplitDescriptor::parse(&RAW);
        let (address, length) = (0x1122_3344_5566_7788, 0x0102_0304);
        assert_eq!(parsed, SplitDescriptor { address, length, flags: 0x0a, next: 0x800c });
        assert_eq!(parsed.emit(), RAW);
    }

    #[test]
    fn packed_ring_descriptor_has_its_buffer_id_before_flags() {
        let parsed = PackedDescriptor::parse(&RAW);
        let (address, length) = (0x1122_3344_5566_7788, 0x0102_0304);
        assert_eq!(parsed, PackedDescriptor { address, length, id: 0x0a, flags: 0x800c });
        assert_eq!(parsed.emit(), RAW);
    }
}
