//! Bounds of virtio rings: positions of packed rings, layouts, descriptors.

use crate::{bound, bytes16};
use virtio::descriptor::{PackedDescriptor, SplitDescriptor};
use virtio::layout::{MAX_SIZE, RingAddresses};
use virtio::packed::{PackedLayout, PackedPosition};
use virtio::split::SplitLayout;

/// Returns true if the part of `bytes` bytes at `address` ends within the address space.
fn ends(address: u64, bytes: u64) -> bool {
    address <= u64::MAX - bytes
}

bound! {
    /// A packed position stays within the ring, and changes its wrap counter exactly at the ring's end.
    fn packed_after(position: u16, slots: u16, size: u16)
    if (1..=32_768).contains(&size) && position & 0x7fff < size && slots <= size; {
        let before = PackedPosition::from_bits(position);
        let after = before.after(slots, size);
        let sum = u32::from(before.index()) + u32::from(slots);
        let turned = after.wrap() != before.wrap();
        let place = u32::from(after.index()) + if turned { u32::from(size) } else { 0 };
        [after.index() < size && place == sum, after.index() < size && !turned]
    }
}

bound! {
    /// vhost-user's ring base returns the packed position that it was made of.
    fn packed_vhost_base(position: u16) if true; {
        let position = PackedPosition::from_bits(position);
        let base = position.vhost_base();
        let same = PackedPosition::from_vhost_base(base) == position;
        [same && base >> 16 == base & 0xffff, same && base >> 16 == 0]
    }
}

bound! {
    /// No flags mark a packed descriptor as available in both rounds; those of an available descriptor do in one, those
    /// of a used descriptor in none.
    fn packed_flags(position: u16, flags: u16) if true; {
        let this = PackedPosition::from_bits(position);
        let other = PackedPosition::from_bits(position ^ 0x8000);
        let once = !(this.is_available(flags) && other.is_available(flags));
        let own = this.is_available(this.available_flags()) && !other.is_available(this.available_flags());
        let used = !this.is_available(this.used_flags()) && !other.is_available(this.used_flags());
        [once && own && used, once && own && this.is_available(flags)]
    }
}

bound! {
    /// All parts of an accepted split ring are inside the address space, and its size is a power of two.
    fn split_layout(size: u32, descriptors: u64, driver: u64, device: u64) if true; {
        let Ok(layout) = SplitLayout::new(size, RingAddresses { descriptors, driver, device }) else { return 3 };
        let entries = u64::from(size);
        let parts = ends(descriptors, 16 * entries) && ends(driver, 6 + 2 * entries) && ends(device, 6 + 8 * entries);
        let power = size & (size - 1) == 0 && u32::from(layout.size()) == size;
        let aligned = descriptors & 15 == 0 && driver & 1 == 0 && device & 3 == 0;
        [parts && power && aligned && size <= MAX_SIZE, parts && power && size < MAX_SIZE]
    }
}

bound! {
    /// All parts of an accepted packed ring are inside the address space, and its size is 1 to 32,768.
    fn packed_layout(size: u32, descriptors: u64, driver: u64, device: u64) if true; {
        let Ok(layout) = PackedLayout::new(size, RingAddresses { descriptors, driver, device }) else { return 3 };
        let parts = ends(descriptors, 16 * u64::from(size)) && ends(driver, 4) && ends(device, 4);
        let within = (1..=MAX_SIZE).contains(&size) && u32::from(layout.size()) == size;
        [parts && within, parts && within && size & (size - 1) == 0]
    }
}

bound! {
    /// Any 16 bytes are a split descriptor, and its bytes are the same again.
    fn split_descriptor(first: u64, second: u64) if true; {
        let raw = bytes16(first, second);
        let descriptor = SplitDescriptor::parse(&raw);
        let same = descriptor.emit() == raw && descriptor.address == first;
        [same, same && descriptor.length >> 31 == 0]
    }
}

bound! {
    /// Any 16 bytes are a packed descriptor, and its bytes are the same again.
    fn packed_descriptor(first: u64, second: u64) if true; {
        let raw = bytes16(first, second);
        let descriptor = PackedDescriptor::parse(&raw);
        let same = descriptor.emit() == raw && descriptor.address == first;
        [same, same && descriptor.id == descriptor.flags]
    }
}
