//! Layout of a frame in the buffers of a receive queue: buffer sizes, descriptor format (SRRCTL, RCTL), and the bytes
//! for the header buffer. The rules are in the 82576 datasheet, 7.1.5, table of header splitting.
//!
//! The replication formats (types 3 and 4) are not implemented, since no driver uses them. Such a queue uses packet
//! buffers only and leaves SPH clear.

use crate::file::RegisterFile;
use i82576::QueueIndex;
use i82576::bits::{rctl, srrctl};
use i82576::register::{RCTL, psrtype, rx, rx_block};

/// Longest header that is split off, bytes: HDRLEN has ten bits.
const MAX_HEADER: usize = 0x3ff;

/// Descriptor format of a receive queue, with the use of its header buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ReceiveDescriptorFormat {
    Legacy,
    OneBuffer,
    /// The header buffer gets headers that the parser knows and that fit.
    Split,
    /// The header buffer is filled first, with unknown headers too.
    AlwaysSplit,
}

/// Sizes and format of a receive queue's buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct BufferSettings {
    /// Size of a packet buffer in bytes, never 0.
    pub(super) packet: usize,
    /// Size of a header buffer in bytes.
    header: usize,
    format: ReceiveDescriptorFormat,
    /// Kinds of frames whose headers are split off (PSRTYPE).
    pub(super) split: u32,
}

/// Division of a frame between header and packet buffers, and the header fields of its first descriptor.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct FrameLayout {
    /// Number of the frame's bytes in the header buffer.
    pub(super) header: usize,
    /// Header length that the descriptor reports (HDRLEN).
    pub(super) header_length: u16,
    /// True if the headers were found, and HDRLEN is their length (SPH).
    pub(super) split: bool,
    /// True if the headers are longer than the header buffer (HBO).
    pub(super) overflow: bool,
}

impl BufferSettings {
    /// Decodes a queue's buffer sizes and descriptor format from its registers.
    #[must_use]
    pub(super) fn of(file: &RegisterFile, queue: QueueIndex) -> Self {
        let control = file.get(rx_block(queue) + rx::SRRCTL);
        let packet = match srrctl::packet_buffer(control) {
            0 => rctl::buffer_size(file.get(RCTL)),
            bytes => bytes,
        };
        let header = srrctl::header_buffer(control).min(MAX_HEADER);
        let format = match srrctl::descriptor_type(control) {
            srrctl::LEGACY => ReceiveDescriptorFormat::Legacy,
            srrctl::HEADER_SPLIT if header > 0 => ReceiveDescriptorFormat::Split,
            srrctl::ALWAYS_SPLIT if header > 0 => ReceiveDescriptorFormat::AlwaysSplit,
            _ => ReceiveDescriptorFormat::OneBuffer,
        };
        let splits = matches!(format, ReceiveDescriptorFormat::Split | ReceiveDescriptorFormat::AlwaysSplit);
        let split = if splits { file.get(psrtype(queue.pool())) } else { 0 };
        Self { packet, header, format, split }
    }

    /// Returns true if descriptors are written back in the legacy format.
    #[must_use]
    pub(super) fn is_legacy(&self) -> bool {
        self.format == ReceiveDescriptorFormat::Legacy
    }

    /// Returns the length in bytes of the longest frame in one packet buffer under the advanced format without header
    /// buffers; 0 in the other formats.
    #[must_use]
    pub(super) fn whole(&self) -> usize {
        if self.format == ReceiveDescriptorFormat::OneBuffer { self.packet } else { 0 }
    }

    /// Returns the number of packet buffers that `bytes` bytes need: at least one, since an empty part needs a
    /// descriptor too.
    #[must_use]
    pub(super) fn needed(&self, bytes: usize) -> usize {
        bytes.div_ceil(self.packet).max(1)
    }

    /// Divides a frame of `frame` bytes of which `headers` bytes may be split off (0 for none).
    #[must_use]
    pub(super) fn lay(&self, frame: usize, headers: usize) -> FrameLayout {
        let always = match self.format {
            ReceiveDescriptorFormat::Legacy | ReceiveDescriptorFormat::OneBuffer => {
                return FrameLayout::default();
            }
            ReceiveDescriptorFormat::Split => false,
            ReceiveDescriptorFormat::AlwaysSplit => true,
        };
        let filled = if always { self.header.min(frame) } else { 0 };
        let split = (1..=MAX_HEADER).contains(&headers);
        // A frame that fits the header buffer whole is not divided, though its headers are known.
        if always && frame <= self.header || !split {
            return FrameLayout { header: filled, header_length: filled as u16, ..FrameLayout::default() };
        }
        let overflow = headers > self.header;
        let header = if overflow { filled } else { headers.min(frame) };
        FrameLayout { header, header_length: headers as u16, split, overflow }
    }
}

#[cfg(test)]
mod tests {
    use super::{BufferSettings, FrameLayout, ReceiveDescriptorFormat};

    /// Returns buffer settings of a descriptor format with header buffers of 128 bytes.
    fn buffers(format: ReceiveDescriptorFormat) -> BufferSettings {
        BufferSettings { packet: 2048, header: 128, format, split: 0 }
    }

    const NONE: FrameLayout = FrameLayout { header: 0, header_length: 0, split: false, overflow: false };

    #[test]
    fn one_buffer_and_legacy_formats_use_no_header_buffer() {
        for format in [ReceiveDescriptorFormat::Legacy, ReceiveDescriptorFormat::OneBuffer] {
            assert_eq!(buffers(format).lay(1500, 54), NONE);
        }
    }

    #[test]
    fn header_split_separates_only_known_headers_that_fit() {
        let split = buffers(ReceiveDescriptorFormat::Split);
        assert_eq!(split.lay(1500, 0), NONE);
        assert_eq!(
            split.lay(1500, 54),
            FrameLayout { header: 54, header_length: 54, split: true, overflow: false }
        );
        assert_eq!(
            split.lay(1500, 128),
            FrameLayout { header: 128, header_length: 128, split: true, overflow: false }
        );
        assert_eq!(
            split.lay(1500, 129),
            FrameLayout { header: 0, header_length: 129, split: true, overflow: true }
        );
        assert_eq!(split.lay(1500, 1024), NONE, "HDRLEN has ten bits");
    }

    #[test]
    fn always_split_format_fills_the_header_buffer_first() {
        let always = buffers(ReceiveDescriptorFormat::AlwaysSplit);
        assert_eq!(
            always.lay(128, 54),
            FrameLayout { header: 128, header_length: 128, ..NONE },
            "the whole frame fits"
        );
        assert_eq!(always.lay(60, 0), FrameLayout { header: 60, header_length: 60, ..NONE });
        assert_eq!(always.lay(129, 0), FrameLayout { header: 128, header_length: 128, ..NONE });
        assert_eq!(
            always.lay(129, 54),
            FrameLayout { header: 54, header_length: 54, split: true, overflow: false }
        );
        assert_eq!(
            always.lay(500, 200),
            FrameLayout { header: 128, header_length: 200, split: true, overflow: true }
        );
    }
}
