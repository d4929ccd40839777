//! Memory of a modelled guest, which records the device's accesses.

use virtio::memory::{MemoryFault, RingMemory};

/// Bytes of the modelled guest's memory, which holds rings and tables. Buffers may lie outside of it.
pub(crate) const SIZE: usize = 0x2_0000;
/// Address of a ring's descriptor area in the test memory. The addresses of driver area and device area
/// follow.
pub(crate) const DESCRIPTORS: u64 = 0x1000;
pub(crate) const DRIVER: u64 = 0x4000;
pub(crate) const DEVICE: u64 = 0x5000;
/// Address of the first indirect table in the test memory. The next constant is the distance between two
/// tables.
pub(crate) const TABLES: u64 = 0x8000;
pub(crate) const TABLE: u64 = 16 * 32;

/// Memory of a modelled guest, and the device's accesses since [`forget`](Self::forget) was called.
pub(crate) struct GuestMemory {
    pub(crate) bytes: Vec<u8>,
    /// Number of the device's read requests. The next field is the number of bytes read by them.
    pub(crate) reads: usize,
    pub(crate) read_bytes: usize,
    /// Address and length of each write request of the device.
    pub(crate) writes: Vec<(u64, usize)>,
    /// State of the random number generator for the changes that the guest makes after each read; 0 for no
    /// changes.
    pub(crate) turmoil: u64,
}

impl GuestMemory {
    pub(crate) fn new() -> Self {
        Self { bytes: vec![0; SIZE], reads: 0, read_bytes: 0, writes: Vec::new(), turmoil: 0 }
    }

    fn range(&mut self, address: u64, length: usize) -> Result<&mut [u8], MemoryFault> {
        let start = usize::try_from(address).unwrap_or(usize::MAX);
        self.bytes.get_mut(start..start.saturating_add(length)).ok_or(MemoryFault { address })
    }

    /// Stores bytes into the memory as the guest.
    pub(crate) fn store(&mut self, address: u64, bytes: &[u8]) {
        self.range(address, bytes.len()).unwrap().copy_from_slice(bytes);
    }

    /// Loads bytes from the memory as the guest.
    pub(crate) fn load<const N: usize>(&mut self, address: u64) -> [u8; N] {
        self.range(address, N).unwrap().try_into().unwrap()
    }

    pub(crate) fn load_u16(&mut self, address: u64) -> u16 {
        u16::from_le_bytes(self.load(address))
    }

    /// Clears the record of the device's accesses.
    pub(crate) fn forget(&mut self) {
        (self.reads, self.read_bytes) = (0, 0);
        self.writes.clear();
    }

    /// Changes a random byte of a ring or table, as a hostile guest may.
    fn disturb(&mut self) {
        if self.turmoil == 0 {
            return;
        }
        // Xorshift; the same numbers in each run.
        let mut next = || {
            self.turmoil ^= self.turmoil << 13;
            self.turmoil ^= self.turmoil >> 7;
            self.turmoil ^= self.turmoil << 17;
            self.turmoil
        };
        let (place, value) = (next() as usize % SIZE, next() as u8);
        self.bytes[place] = value;
    }
}

impl RingMemory for GuestMemory {
    fn read(&mut self, address: u64, into: &mut [u8]) -> Result<(), MemoryFault> {
        self.reads += 1;
        self.read_bytes += into.len();
        into.copy_from_slice(self.range(address, into.len())?);
        self.disturb();
        Ok(())
    }

    fn write(&mut self, address: u64, from: &[u8]) -> Result<(), MemoryFault> {
        self.range(address, from.len())?.copy_from_slice(from);
        self.writes.push((address, from.len()));
        Ok(())
    }
}
