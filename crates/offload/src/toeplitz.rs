//! The Toeplitz hash of a packet's addresses and ports, by which frames are spread over queues (Microsoft published
//! the algorithm and its test vectors). The card chooses the packets to hash, and the queue of a hash.

/// Number of half-bytes in the longest hash input: two IPv6 addresses and two ports.
const NIBBLES: usize = 72;

/// Toeplitz hash function with a fixed key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Toeplitz {
    /// Contribution to the hash of each value of each half-byte of the input.
    contributions: [[u32; 16]; NIBBLES],
}

impl Toeplitz {
    /// Creates the hash function of a key, of which 40 bytes count; missing bytes are zero.
    #[must_use]
    pub fn new(key: &[u8]) -> Self {
        // Bit `b` of the input (from the most significant of the first byte) contributes key bits `b..b + 32`.
        let window = |bit: usize| {
            let bytes: [u8; 8] = core::array::from_fn(|i| key.get(bit / 8 + i).copied().unwrap_or(0));
            (u64::from_be_bytes(bytes) << (bit % 8) >> 32) as u32
        };
        let contributions = core::array::from_fn(|nibble| {
            core::array::from_fn(|value| {
                let bits = (0..4).filter(|bit| value & (8 >> bit) != 0);
                bits.fold(0, |sum, bit| sum ^ window(4 * nibble + bit))
            })
        });
        Self { contributions }
    }

    /// Returns the hash of both addresses, the sender's first, and both ports; empty ports are not hashed.
    #[must_use]
    #[inline]
    pub fn hash(&self, addresses: &[u8], ports: &[u8]) -> u32 {
        let bytes = addresses.iter().chain(ports);
        bytes.zip(self.contributions.as_chunks::<2>().0).fold(0, |hash, (byte, [high, low])| {
            hash ^ high[usize::from(byte >> 4)] ^ low[usize::from(byte & 0xf)]
        })
    }

    /// Returns a hash that both directions of a conversation share: it hashes the difference of the two addresses,
    /// and of the two ports, each twice (Linux calls it symmetric-xor).
    #[must_use]
    pub fn hash_symmetric(&self, addresses: &[u8], ports: &[u8]) -> u32 {
        let (mut both, mut of_ports) = ([0; 32], [0; 4]);
        let length = differ(addresses, &mut both);
        let count = differ(ports, &mut of_ports);
        self.hash(&both[..length], &of_ports[..count])
    }
}

/// Writes the difference (XOR) of the halves of `pair` twice. Returns the number of bytes written.
fn differ(pair: &[u8], into: &mut [u8]) -> usize {
    let half = (pair.len() / 2).min(into.len() / 2);
    let (one, other) = pair.split_at(pair.len() / 2);
    let (first, second) = into.split_at_mut(half);
    for ((first, second), (one, other)) in first.iter_mut().zip(second).zip(one.iter().zip(other)) {
        (*first, *second) = (one ^ other, one ^ other);
    }
    2 * half
}

#[cfg(test)]
mod tests {
    use super::Toeplitz;

    /// Hash key of Microsoft's test vectors.
    const KEY: [u8; 40] = [
        0x6d, 0x5a, 0x56, 0xda, 0x25, 0x5b, 0x0e, 0xc2, 0x41, 0x67, 0x25, 0x3d, 0x43, 0xa3, 0x8f, 0xb0, 0xd0,
        0xca, 0x2b, 0xcb, 0xae, 0x7b, 0x30, 0xb4, 0x77, 0xcb, 0x2d, 0xa3, 0x80, 0x30, 0xf2, 0x0c, 0x6a, 0x42,
        0xb7, 0x3b, 0xbe, 0xac, 0x01, 0xfa,
    ];

    #[test]
    fn toeplitz_hash_of_microsofts_first_example_is_as_published() {
        let (addresses, ports) =
            ([66, 9, 149, 187, 161, 142, 100, 80], [2794_u16, 1766].map(u16::to_be_bytes));
        let hash = Toeplitz::new(&KEY);
        assert_eq!(hash.hash(&addresses, &[]), 0x323e_8fc2);
        assert_eq!(hash.hash(&addresses, ports.as_flattened()), 0x51cc_c178);
    }

    #[test]
    fn toeplitz_key_bytes_beyond_forty_have_no_effect() {
        let long = [&KEY[..], &[7; 12]].concat();
        assert_eq!(Toeplitz::new(&long), Toeplitz::new(&KEY));
    }

    #[test]
    fn symmetric_toeplitz_hash_is_equal_in_both_directions() {
        let hash = Toeplitz::new(&KEY);
        let there = hash.hash_symmetric(&[10, 0, 0, 1, 10, 0, 0, 2], &[1, 2, 3, 4]);
        let back = hash.hash_symmetric(&[10, 0, 0, 2, 10, 0, 0, 1], &[3, 4, 1, 2]);
        assert_eq!(there, back);
        assert_ne!(there, hash.hash_symmetric(&[10, 0, 0, 2, 10, 0, 0, 1], &[3, 4, 1, 5]));
    }
}
