//! Bounds of the descriptors and numbers of AVF cards, which guests write.

use crate::{bound, bytes16};
use avf::admin::AdminQueueDescriptor;
use avf::descriptor::rx::{RxDescriptorFormat, RxWriteBack};
use avf::descriptor::tx::{self, ParsedTxDescriptor, TxIpHeaderKind, TxL4Checksum};
use avf::packet_type;
use avf::virtchnl::VirtchnlStatus;

/// Returns 32 bytes from four words.
fn bytes32(words: [u64; 4]) -> [u8; 32] {
    let [low, high] = [bytes16(words[0], words[1]), bytes16(words[2], words[3])];
    core::array::from_fn(|at| if at < 16 { low[at] } else { high[at - 16] })
}

bound! {
    /// A data descriptor has a buffer below 16 KiB and headers of at most 254, 508 and 60 bytes, and is the same after it
    /// was written.
    fn avf_tx_data(first: u64, second: u64) if true; {
        let ParsedTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else { return 3 };
        let same = tx::parse(&data.emit()) == ParsedTxDescriptor::Data(data);
        let headers = data.mac_length <= 254 && data.ip_length <= 508 && data.l4_length <= 60;
        [same && headers && data.length < 1 << 14, same && data.length < 1 << 13]
    }
}

bound! {
    /// A context descriptor has a payload below 2^18 bytes and an MSS below 2^14, and is the same after it was written.
    fn avf_tx_context(first: u64, second: u64) if true; {
        let ParsedTxDescriptor::Context(context) = tx::parse(&bytes16(first, second)) else { return 3 };
        let same = tx::parse(&context.emit()) == ParsedTxDescriptor::Context(context);
        [same && context.payload < 1 << 18 && context.mss < 1 << 14, same && context.mss > 0]
    }
}

bound! {
    /// The short cut takes exactly the data descriptors of whole packets without an offload.
    fn avf_plain_length(first: u64, second: u64) if true; {
        let taken = tx::plain_length(second);
        let ParsedTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else {
            return u8::from(taken.is_none()) | 2;
        };
        let alone = data.end_of_packet && data.tag.is_none() && !data.dummy;
        let sums = data.ip != TxIpHeaderKind::None || data.l4 != TxL4Checksum::None;
        let length = (alone && !sums).then_some(u32::from(data.length));
        [taken == length, taken == alone.then_some(u32::from(data.length))]
    }
}

bound! {
    /// The short cut for frames with checksums takes exactly the data descriptors of whole packets without another
    /// offload.
    fn avf_summed_length(first: u64, second: u64) if true; {
        let taken = tx::summed_length(second);
        let ParsedTxDescriptor::Data(data) = tx::parse(&bytes16(first, second)) else {
            return u8::from(taken.is_none()) | 2;
        };
        let alone = data.end_of_packet && data.tag.is_none() && !data.dummy;
        [taken == alone.then_some(u32::from(data.length)), taken.is_some() == data.end_of_packet]
    }
}

bound! {
    /// A write-back in the legacy format has a length below 16 KiB, and is the same after it was written.
    fn avf_rx_legacy(first: u64, second: u64) if true; {
        let form = RxDescriptorFormat::Legacy;
        let Some(back) = RxWriteBack::parse(&bytes32([first, second, 0, 0]), form) else { return 3 };
        let same = RxWriteBack::parse(&back.emit(form), form) == Some(back);
        [same && back.length < 1 << 14, same && back.hash.is_none()]
    }
}

bound! {
    /// A write-back in a flexible format has a length below 16 KiB, and is the same after it was written.
    fn avf_rx_flexible(first: u64, second: u64) if true; {
        let form = RxDescriptorFormat::Flex(2);
        let Some(back) = RxWriteBack::parse(&bytes32([first, second, 0, 0]), form) else { return 3 };
        let same = RxWriteBack::parse(&back.emit(form), form) == Some(back);
        [same && back.length < 1 << 14, same && back.tag.is_none()]
    }
}

bound! {
    /// A write-back in the late flexible format has a length below 16 KiB, and is the same after it was written.
    fn avf_rx_flexible_late(first: u64, second: u64, fourth: u64) if true; {
        let form = RxDescriptorFormat::FlexLate;
        let Some(back) = RxWriteBack::parse(&bytes32([first, second, 0, fourth]), form) else { return 3 };
        let same = RxWriteBack::parse(&back.emit(form), form) == Some(back);
        [same && back.length < 1 << 14, same && !back.damaged]
    }
}

bound! {
    /// A format number names a format with the same number, or none: descriptors have 16 or 32 bytes.
    fn avf_rx_format(number: u8, flexible: u8) if flexible < 2; {
        let form = RxDescriptorFormat::of(number, flexible == 1);
        let sized = form.is_none_or(|form| form.size() == 32 || (form.size() == 16 && number == 0));
        let named = form.is_none_or(|form| if flexible == 1 { form.number() == number } else { form.number() == 1 });
        [sized && named && (flexible == 1 || form.is_some()), sized && form.is_some()]
    }
}

bound! {
    /// Any 32 bytes are an admin queue's descriptor, and its bytes are the same again.
    fn avf_admin_descriptor(first: u64, second: u64, third: u64, fourth: u64) if true; {
        let raw = bytes32([first, second, third, fourth]);
        let descriptor = AdminQueueDescriptor::parse(&raw);
        let same = descriptor.emit() == raw;
        [same && u64::from(descriptor.flags) == first & 0xffff, same && descriptor.address == fourth]
    }
}

bound! {
    /// A packet type of an IP packet is the type of its parts.
    fn avf_packet_type(number: u8) if true; {
        let Some((ip, payload)) = packet_type::parse(number) else { return 3 };
        let same = packet_type::ip(ip, payload) == number;
        let hashed = packet_type::hash_type(ip, payload);
        [same && hashed & (hashed - 1) == 0, same && number < 88]
    }
}

bound! {
    /// A request's status is the same number again.
    fn avf_status(number: u32) if true; {
        let status = VirtchnlStatus::of(number.cast_signed());
        let same = status.number() == number.cast_signed() && status.cookie() == number;
        [same, same && !matches!(status, VirtchnlStatus::Param)]
    }
}
