//! Tests segmentation as registers, contexts and data descriptors request it.

use super::segmenter;
use crate::offload::segment::flag_masks;
use alloc::vec::Vec;
use i82576::descriptor::tx::AdvancedContextDescriptor;
use offload::segment::TcpFlagMasks;
use proptest::prelude::proptest;

#[test]
fn tcp_flag_masks_of_segments_come_from_dtxtcpflg() {
    assert_eq!(flag_masks(0x0f76_0ff6, 0x0f7f), TcpFlagMasks::DEFAULT);
}

proptest! {
    #[test]
    fn segmentation_of_arbitrary_packets_does_not_panic(
        packet: Vec<u8>,
        raw_data: [u8; 16],
        raw_context: [u8; 16],
        small: bool,
    ) {
        let (data, mut context) = super::descriptors(raw_data, raw_context);
        if small {
            let mss = context.mss % 16;
            context = AdvancedContextDescriptor { mac_length: 14, ip_length: 40, l4_length: 20, mss, ..context };
        }
        let Ok(mut segmenter) = segmenter(&packet, &data, &context) else { return Ok(()) };
        let mut buffer = alloc::vec![0; segmenter.longest()];
        let expected = segmenter.count();
        let written = core::iter::from_fn(|| segmenter.write_next(&mut buffer)).count();
        assert_eq!(written, expected as usize);
    }
}
