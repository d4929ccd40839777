//! Bounds of the 82576's descriptors, which guests write, and of buffer sizes in its registers.

use crate::{bound, bytes16};
use i82576::bits::{rctl, srrctl};
use i82576::descriptor::legacy::{LegacyRxWriteBack, LegacyTxDescriptor};
use i82576::descriptor::orders::RawDataDescriptor;
use i82576::descriptor::rx::{AdvancedRxWriteBack, PostedRxDescriptor};
use i82576::descriptor::tx::{self, AnyTxDescriptor, REPORT};

bound! {
    /// A transmit descriptor that the short cut takes for a plain frame is one: a whole packet in one buffer, no offload.
    fn i82576_plain_length(first: u64, second: u64) if true; {
        let Some(length) = tx::plain_length(second) else { return 3 };
        let AnyTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else { return 0 };
        let asks = data.insert_vlan || data.segment || data.time_stamp;
        let sums = data.insert_ip_checksum || data.insert_l4_checksum;
        let plain = data.end_of_packet && !asks && !sums;
        [plain && length == u32::from(data.length), plain && length < 1 << 15]
    }
}

bound! {
    /// The short cut takes every transmit descriptor of a plain frame in the advanced format.
    fn i82576_plain_length_is_complete(first: u64, second: u64) if true; {
        let AnyTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else { return 3 };
        let asks = data.insert_vlan || data.segment || data.time_stamp;
        let sums = data.insert_ip_checksum || data.insert_l4_checksum;
        let plain = data.end_of_packet && !asks && !sums;
        let taken = tx::plain_length(second).is_some();
        [taken == plain, taken == data.end_of_packet]
    }
}

bound! {
    /// A transmit descriptor that the short cut takes for a frame with checksums has no other offload.
    fn i82576_summed_length(first: u64, second: u64) if true; {
        let taken = tx::summed_length(second);
        let AnyTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else {
            return u8::from(taken.is_none()) | 2;
        };
        let plain = data.end_of_packet && !data.insert_vlan && !data.segment && !data.time_stamp;
        let length = plain.then_some(u32::from(data.length));
        [taken == length, taken == length && !data.insert_l4_checksum]
    }
}

bound! {
    /// The buffer of a transmit descriptor is that of its parsed form, in each format.
    fn i82576_tx_buffer(first: u64, second: u64) if true; {
        let raw = bytes16(first, second);
        let fields = tx::buffer(&raw).map(|buffer| (buffer.address, buffer.length, buffer.end_of_packet));
        let parsed = match tx::parse(&raw) {
            AnyTxDescriptor::Data(data) => Some((data.address, data.length, data.end_of_packet)),
            AnyTxDescriptor::Legacy(legacy) => Some((legacy.address, legacy.length, legacy.end_of_packet)),
            AnyTxDescriptor::Context(_) | AnyTxDescriptor::Other => None,
        };
        [fields == parsed, fields == parsed && fields.is_some()]
    }
}

bound! {
    /// A data descriptor has a payload below 2^18 bytes and a context below 8, and is the same after it was written.
    fn i82576_tx_data(first: u64, second: u64) if true; {
        let AnyTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else { return 3 };
        let same = tx::parse(&data.emit()) == AnyTxDescriptor::Data(data);
        [same && data.payload_length < 1 << 18 && data.context < 8, same && data.context < 7]
    }
}

bound! {
    /// A context descriptor has header lengths below 128, 512 and 256 bytes, and is the same after it was written.
    fn i82576_tx_context(first: u64, second: u64) if true; {
        let AnyTxDescriptor::Context(context) = tx::parse(&bytes16(first, second)) else { return 3 };
        let same = tx::parse(&context.emit()) == AnyTxDescriptor::Context(context);
        let lengths = context.mac_length < 128 && context.ip_length < 512 && context.index < 8;
        [same && lengths, same && context.mac_length < 64]
    }
}

bound! {
    /// A legacy transmit descriptor is the same after it was written, but for positions of checksums that it does not
    /// request.
    fn i82576_tx_legacy(first: u64, second: u64) if true; {
        let AnyTxDescriptor::Legacy(legacy) = tx::parse(&bytes16(first, second)) else { return 3 };
        let again = LegacyTxDescriptor::parse(&legacy.emit());
        let data = legacy.as_data();
        let frame = data.length == legacy.length && !data.segment && data.insert_vlan == legacy.vlan_tag.is_some();
        [again == legacy && frame, frame && legacy.checksum.is_none()]
    }
}

bound! {
    /// The bits that the card tests without parsing are those of the parsed data descriptor.
    fn i82576_tx_orders(first: u64, second: u64) if true; {
        let raw = bytes16(first, second);
        let orders = RawDataDescriptor::of(&raw);
        let AnyTxDescriptor::Data(data) = tx::parse(&raw) else { return u8::from(orders.is_none()) | 2 };
        let Some(orders) = orders else { return 0 };
        let asks = orders.insert_vlan() == data.insert_vlan
            && orders.segment() == data.segment
            && orders.time_stamp() == data.time_stamp;
        let sums = orders.insert_ip_checksum() == data.insert_ip_checksum
            && orders.insert_l4_checksum() == data.insert_l4_checksum;
        [asks && sums && orders.context() == data.context, asks && orders.insert_checksum() == data.insert_l4_checksum]
    }
}

bound! {
    /// The write-back of a transmit descriptor sets the bit "done" if it was requested, and no other bit.
    fn i82576_tx_reported(first: u64, second: u64) if true; {
        let raw = bytes16(first, second);
        let report = tx::report_of(&raw);
        let reported = u128::from_le_bytes(tx::reported(raw, report));
        let changed = reported ^ u128::from_le_bytes(raw);
        let wanted = second & REPORT != 0;
        let done = reported >> 96 & 1 == 1;
        [changed & !(1 << 96) == 0 && (!wanted || done) && (wanted || changed == 0), changed == 0]
    }
}

bound! {
    /// A receive descriptor keeps both addresses, without the lowest bit of the header's.
    fn i82576_rx_posted(first: u64, second: u64) if true; {
        let posted = PostedRxDescriptor::parse(&bytes16(first, second));
        let again = PostedRxDescriptor::parse(&posted.emit()) == posted;
        [again && posted.packet == first && posted.header == second & !1, again && posted.header == second]
    }
}

bound! {
    /// A receive write-back has a header below 1,024 bytes, and is the same after it was written.
    fn i82576_rx_write_back(first: u64, second: u64) if true; {
        let Some(back) = AdvancedRxWriteBack::parse(&bytes16(first, second)) else { return 3 };
        let same = AdvancedRxWriteBack::parse(&back.emit()) == Some(back);
        [same && back.header_length < 1024 && back.packet_type < 1 << 12, same && back.header_length < 512]
    }
}

bound! {
    /// A legacy receive write-back is the same after it was written.
    fn i82576_rx_legacy_write_back(first: u64, second: u64) if true; {
        let Some(back) = LegacyRxWriteBack::parse(&bytes16(first, second)) else { return 3 };
        let same = LegacyRxWriteBack::parse(&back.emit()) == Some(back);
        [same && back.status & 0x00ff_ff00 == 0, same && back.status < 1 << 24]
    }
}

bound! {
    /// Receive buffers that registers size have at most 127 KiB, and headers at most 4,032 bytes.
    fn i82576_buffer_sizes(register: u32) if true; {
        let (packet, header) = (srrctl::packet_buffer(register), srrctl::header_buffer(register));
        let whole = packet & 1023 == 0 && header & 63 == 0;
        let port = rctl::buffer_size(register);
        let sized = (256..=16_384).contains(&port) && port & (port - 1) == 0;
        let few = srrctl::low_threshold(register) <= 496;
        [whole && packet <= 127 << 10 && header <= 4032 && sized && few, whole && packet < 127 << 10]
    }
}
