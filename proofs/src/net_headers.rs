//! Bounds of the headers of virtio packets (`virtio::net`).

use crate::bound;
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, NetHeaderFormat};

/// Longest packet of the bounds in bytes. The cards take 65,550 bytes.
const LONGEST: u32 = 1 << 20;

/// Returns the header of twelve bytes in two words.
fn header(first: u64, second: u32) -> NetHeader {
    let (first, second) = (first.to_le_bytes(), second.to_le_bytes());
    NetHeader::parse(&core::array::from_fn(|at| if at < 8 { first[at] } else { second[at - 8] }))
}

bound! {
    /// An accepted packet header has its checksum field inside the packet, and segments of at least one byte.
    fn net_header_check(first: u64, second: u32, length: u32, features: u64) if length <= LONGEST; {
        let length = length as usize;
        let accepted = VirtioFeatures::from_bits(features);
        let Ok(request) = header(first, second).check(length, accepted) else { return 3 };
        let inside = request.checksum.is_none_or(|checksum| checksum.field() + 2 <= length);
        let ordered = request.checksum.is_none_or(|checksum| checksum.start() <= checksum.field());
        let summed = request.segmentation.is_none() || request.checksum.is_some();
        let twin = request.checksum.is_none_or(|checksum| checksum.field() + 4 <= length);
        [inside && ordered && summed, twin]
    }
}

bound! {
    /// An accepted packet header requests nothing that the driver has not negotiated.
    fn net_header_negotiated(first: u64, second: u32, length: u32, features: u64) if length <= LONGEST; {
        use VirtioFeatures as F;
        let accepted = F::from_bits(features);
        let Ok(request) = header(first, second).check(length as usize, accepted) else { return 3 };
        let any = F::HOST_TSO4.with(F::HOST_TSO6).with(F::HOST_UFO).with(F::HOST_USO);
        let summed = request.checksum.is_none() || accepted.contains(F::CSUM);
        let cut = request.segmentation.is_none_or(|cut| {
            accepted.intersects(any) && (!cut.ecn || accepted.contains(F::HOST_ECN))
        });
        [summed && cut, summed && request.segmentation.is_none()]
    }
}

bound! {
    /// A checked request is the same after it was written for a receiver and read again.
    fn net_header_received(first: u64, second: u32, length: u32, features: u64) if length <= LONGEST; {
        let (length, accepted) = (length as usize, VirtioFeatures::from_bits(features));
        let Ok(request) = header(first, second).check(length, accepted) else { return 3 };
        let again = NetHeader::parse(&request.received(0, 1).emit()).check(length, accepted);
        let same = again == Ok(request);
        [same, same && request.checksum.is_none()]
    }
}

bound! {
    /// Any 12 bytes are a packet header, and its bytes are the same again.
    fn net_header_bytes(first: u64, second: u32) if true; {
        let header = header(first, second);
        let raw = header.emit();
        let same = raw[..8] == first.to_le_bytes() && raw[8..] == second.to_le_bytes();
        [same, same && header.header_length == header.gso_size]
    }
}

bound! {
    /// The header of a packet has 10 or 12 bytes, and 12 with any feature of version 1 or of merged buffers.
    fn net_header_format(features: u64) if true; {
        let features = VirtioFeatures::from_bits(features);
        let size = NetHeaderFormat::of(features).size();
        let modern = features.contains(VirtioFeatures::VERSION_1);
        [(size == 10 || size == 12) && (!modern || size == 12), modern == (size == 12)]
    }
}
