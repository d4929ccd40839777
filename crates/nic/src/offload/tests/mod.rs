//! The offloads against an independent packet library: what it builds is understood, what the card makes it
//! accepts.

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
use i82576::descriptor::tx::{self, Context, Data, Transmit};
use offload::Headers;
use offload::segment::{Error, FlagMasks, Segmenter};

pub(super) fn parsed(frame: &[u8]) -> Headers {
    Headers::parse(frame)
}

/// Prepares a packet for cutting as its first data descriptor and context say.
pub(super) fn segmenter<'a>(
    packet: &'a [u8],
    data: &Data,
    context: &Context,
) -> Result<Segmenter<'a>, Error> {
    Segmenter::new(packet, &request(data.into(), context), context.mss, FlagMasks::DEFAULT)
}

/// Descriptors of the right kind with arbitrary contents.
pub(super) fn descriptors(mut data: [u8; 16], mut context: [u8; 16]) -> (Data, Context) {
    data[10] = data[10] & 0x0f | 0x30;
    context[10] = context[10] & 0x0f | 0x20;
    data[11] |= 0x20;
    context[11] |= 0x20;
    match (tx::parse(&data), tx::parse(&context)) {
        (Transmit::Data(data), Transmit::Context(context)) => (data, context),
        other => panic!("{other:?}"),
    }
}
