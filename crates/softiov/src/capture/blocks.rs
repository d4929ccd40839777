//! Splits a stream of pcapng bytes into whole blocks.

use anyhow::ensure;

/// Largest accepted pcapng block, bytes: a packet before TCP segmentation, and its options.
const LONGEST: usize = 1 << 18;
/// Block type of an Enhanced Packet Block (pcapng 4.3).
const PACKET: u32 = 6;

/// Whole block of a pcapng stream. The flag is true if the block holds a packet.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct PcapngBlock {
    pub(super) is_packet: bool,
    pub(super) bytes: Vec<u8>,
}

/// Received bytes that are not yet a whole pcapng block.
#[derive(Debug, Default)]
pub(super) struct PcapngBlockBuffer(Vec<u8>);

impl PcapngBlockBuffer {
    pub(super) fn push(&mut self, piece: &[u8]) {
        self.0.extend(piece);
    }

    /// Takes the next pcapng block out of the received bytes; `None` until all of the block has arrived.
    ///
    /// # Errors
    /// The bytes are not pcapng.
    pub(super) fn next(&mut self) -> anyhow::Result<Option<PcapngBlock>> {
        let Some(head) = self.0.first_chunk::<8>() else { return Ok(None) };
        let word = |at: usize| u32::from_le_bytes([0, 1, 2, 3].map(|n| head[at + n]));
        let (kind, length) = (word(0), word(4) as usize);
        ensure!(
            (12..=LONGEST).contains(&length),
            "the host's capture is not pcapng (block of {length} bytes); check that host and command have \
             the same version"
        );
        if self.0.len() < length {
            return Ok(None);
        }
        let rest = self.0.split_off(length);
        let bytes = std::mem::replace(&mut self.0, rest);
        Ok(Some(PcapngBlock { is_packet: kind == PACKET, bytes }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn block(kind: u32, length: u32) -> Vec<u8> {
        let mut bytes = [kind.to_le_bytes(), length.to_le_bytes()].concat();
        bytes.resize(length as usize, 7);
        bytes
    }

    #[test]
    fn pcapng_blocks_are_whole_for_any_chunk_size() {
        let file = [block(1, 20), block(PACKET, 12), block(PACKET, 100)].concat();
        for piece in 1..file.len() {
            let (mut blocks, mut found) = (PcapngBlockBuffer::default(), Vec::new());
            for bytes in file.chunks(piece) {
                blocks.push(bytes);
                found.extend(std::iter::from_fn(|| blocks.next().unwrap()));
            }
            assert_eq!(
                found.iter().map(|one| one.is_packet).collect::<Vec<_>>(),
                [false, true, true],
                "{piece}"
            );
            assert_eq!(found.into_iter().flat_map(|one| one.bytes).collect::<Vec<_>>(), file);
        }
    }

    #[test]
    fn bytes_other_than_pcapng_blocks_are_refused() {
        for length in [0, 11, LONGEST as u32 + 1] {
            let mut blocks = PcapngBlockBuffer::default();
            blocks.push(&[1_u32.to_le_bytes(), length.to_le_bytes()].concat());
            assert!(blocks.next().is_err(), "{length}");
        }
    }
}
