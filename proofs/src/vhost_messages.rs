//! Bounds of the numbers in vhost-user messages.

use crate::bound;
use vhost_user::message::{LogArea, MemoryRegion, MessageHeader, RingBase};

/// Maximum offset in a file.
const FILE: u64 = i64::MAX as u64;

bound! {
    /// An accepted memory region is not empty, and ends within the address spaces and the file.
    fn vhost_memory_region(guest_address: u64, size: u64, user_address: u64, file_offset: u64) if true; {
        let region = MemoryRegion { guest_address, size, user_address, file_offset };
        if region.check().is_err() {
            return 3;
        }
        let ends = guest_address.checked_add(size).is_some() && user_address.checked_add(size).is_some();
        let file = file_offset.checked_add(size).is_some_and(|end| end <= FILE);
        [size > 0 && ends && file, ends && file && size > 1]
    }
}

bound! {
    /// A memory region that ends within the address spaces and the file is accepted.
    fn vhost_memory_region_accepts(guest_address: u64, size: u64, user_address: u64, file_offset: u64)
    if size > 0 && guest_address <= u64::MAX - size && user_address <= u64::MAX - size && file_offset <= FILE; {
        let region = MemoryRegion { guest_address, size, user_address, file_offset };
        let accepted = region.check().is_ok();
        [accepted == (size <= FILE - file_offset), accepted]
    }
}

bound! {
    /// An accepted migration log is not empty, and ends within its file.
    fn vhost_log_area(size: u64, offset: u64) if true; {
        let accepted = LogArea { size, offset }.check().is_ok();
        let fits = size > 0 && offset <= FILE && size <= FILE - offset;
        [accepted == fits, accepted == (offset <= FILE)]
    }
}

bound! {
    /// A ring's base from a message has indices below 2^15 if packed, and is the same after it was sent again.
    fn vhost_ring_base(number: u32, packed: u8) if packed < 2; {
        let base = RingBase::from_wire(number, packed == 1);
        let again = RingBase::from_wire(base.to_wire(), packed == 1);
        let within = match base {
            RingBase::Split { available } => u32::from(available) == number & 0xffff,
            RingBase::Packed { available, used } => available.index < 1 << 15 && used.index < 1 << 15,
        };
        [again == base && within, base.to_wire() == number]
    }
}

bound! {
    /// Headers of requests and replies state version 1, and only replies are replies.
    fn vhost_header(number: u32, body: u32, need_reply: u8) if need_reply < 2; {
        let request = MessageHeader::request(number, body as usize, need_reply == 1);
        let reply = request.reply(body as usize);
        let versions = request.check_version().is_ok() && reply.check_version().is_ok();
        let kinds = !request.is_reply() && reply.is_reply() && request.needs_reply() == (need_reply == 1);
        let sizes = request.size.get() == body && reply.request.get() == number;
        [versions && kinds && sizes && !reply.needs_reply(), versions && reply.needs_reply() == request.needs_reply()]
    }
}
