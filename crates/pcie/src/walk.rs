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
