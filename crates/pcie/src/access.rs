//! Configuration requests by software: a function, an offset, one to four bytes. The implementation routes them to
//! the function (ECAM, type 0 and type 1).

use crate::Function;

/// Router of configuration requests to the functions of one device.
pub trait ConfigAccess {
    /// Reads `size` (1, 2 or 4) bytes of the function's configuration space, little endian, in the low bits.
    /// Returns all ones for a missing function, an offset beyond 4 KiB and any other size.
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32;

    /// Writes the low `size` (1, 2 or 4) bytes of `value` to the function's configuration space. Ignores a missing
    /// function, an offset beyond 4 KiB and any other size.
    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32);
}
