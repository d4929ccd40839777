//! Finds a capability of a function by walking the two linked lists of configuration space, through any reader of
//! dwords. Of several capabilities with one id (vendor-specific ones) it finds the first.
//!
//! The list is data of a device: a loop or a dangling pointer ends the walk.

use crate::config::offset;
use crate::low::{low_byte, low_word};

/// Offset of the first extended capability (PCIe base specification, 7.6.3).
pub(crate) const EXTENDED_START: u16 = 0x100;
/// Maximum number of capabilities that fit the 192 bytes after the header.
const MOST: usize = 48;
/// Maximum number of extended capabilities that fit 3,840 bytes.
const MOST_EXTENDED: usize = 960;

/// Returns the offset of capability `id`. `read` returns the dword at a multiple of four.
pub fn find(mut read: impl FnMut(u16) -> u32, id: u8) -> Option<u16> {
    let status = read(offset::COMMAND) >> 16;
    if status == 0xffff || status & u32::from(offset::STATUS_CAPABILITIES) == 0 {
        return None;
    }
    let mut at = low_word(read(offset::CAPABILITIES)) & 0xfc;
    for _ in 0..MOST {
        if at < 0x40 {
            return None;
        }
        let header = read(at);
        if low_byte(header) == id {
            return Some(at);
        }
        at = low_word(header >> 8) & 0xfc;
    }
    None
}

/// Returns the offset of extended capability `id`. `read` returns the dword at a multiple of four.
pub fn find_extended(mut read: impl FnMut(u16) -> u32, id: u16) -> Option<u16> {
    let mut at = EXTENDED_START;
    for _ in 0..MOST_EXTENDED {
        let header = read(at);
        if header == 0 || header == u32::MAX {
            return None;
        }
        if low_word(header) == id {
            return Some(at);
        }
        at = low_word(header >> 20) & 0xffc;
        if at < EXTENDED_START {
            return None;
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::{MOST, MOST_EXTENDED, find, find_extended};

    /// Offsets that pointers of the tests' lists have: none, the header, and four capabilities.
    const OFFSETS: [u16; 6] = [0, 0x10, 0x40, 0x44, 0x48, 0x4c];

    #[test]
    fn capability_walk_ends_in_any_list_of_four() {
        for case in 0..6_usize.pow(5) * 2 {
            let next = |at: usize| OFFSETS[case / 2 / 6_usize.pow(at as u32) % 6];
            let ids = [1, 2, 3, if case % 2 == 0 { 4 } else { 1 }];
            let mut reads = 0;
            let read = |at: u16| {
                reads += 1;
                match at {
                    0x04 => 0x0010_0000,
                    0x34 => next(4).into(),
                    _ if at >= 0x40 => {
                        let place = usize::from((at - 0x40) / 4);
                        ids[place] | u32::from(next(place)) << 8
                    }
                    _ => panic!("offset {at:#x} is no capability"),
                }
            };
            let found = find(read, 4);
            assert!(reads <= MOST + 2);
            assert!(found.is_none_or(|at| at == 0x4c && ids[3] == 4));
        }
    }

    #[test]
    fn extended_capability_walk_ends_in_any_list_of_four() {
        let offsets = [0, 0x40, 0x100, 0x104, 0x108, 0x10c_u32];
        for case in 0..6_usize.pow(4) * 2 {
            let mut reads = 0;
            let last = if case % 2 == 0 { 4 } else { 1 };
            let read = |at: u16| {
                reads += 1;
                let place = usize::from((at - 0x100) / 4);
                [1, 2, 3, last][place] | offsets[case / 2 / 6_usize.pow(place as u32) % 6] << 20
            };
            let found = find_extended(read, 4);
            assert!(reads <= MOST_EXTENDED);
            assert!(found.is_none_or(|at| at == 0x10c && last == 4));
        }
    }
}
