//! Tests the offloads against an independent packet library: the card understands the library's frames, and the library
//! accepts the card's.

#[path = "../../../../offload/src/tests/frames.rs"]
mod frames;
mod nested;
mod plain;
mod receive;
mod rss;
mod sealed;
mod segment;
mod transmit;

use super::transmit::request;
use i82576::descriptor::tx::{self, AdvancedContextDescriptor, AdvancedDataDescriptor, AnyTxDescriptor};
use offload::FrameHeaders;
use offload::segment::{SegmentationError, Segmenter, TcpFlagMasks};

pub(super) fn parsed(frame: &[u8]) -> FrameHeaders {
    FrameHeaders::parse(frame)
}

/// Creates the segmenter of a packet, as its first data descriptor and its context request.
pub(super) fn segmenter<'a>(
    packet: &'a [u8],
    data: &AdvancedDataDescriptor,
    context: &AdvancedContextDescriptor,
) -> Result<Segmenter<'a>, SegmentationError> {
    Segmenter::new(packet, &request(data.into(), context), context.mss, TcpFlagMasks::DEFAULT)
}

/// Parses random bytes as a data descriptor and a context descriptor, after setting their types.
pub(super) fn descriptors(
    mut data: [u8; 16],
    mut context: [u8; 16],
) -> (AdvancedDataDescriptor, AdvancedContextDescriptor) {
    data[10] = data[10] & 0x0f | 0x30;
    context[10] = context[10] & 0x0f | 0x20;
    data[11] |= 0x20;
    context[11] |= 0x20;
    match (tx::parse(&data), tx::parse(&context)) {
        (AnyTxDescriptor::Data(data), AnyTxDescriptor::Context(context)) => (data, context),
        other => panic!("expected a data and a context descriptor, parsed {other:?}"),
    }
}
