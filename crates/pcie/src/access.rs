//! Configuration requests as software makes them: a function, an offset, one to four bytes. Left out: how a
//! request is routed to the function (ECAM, type 0 and type 1).

use crate::Function;

/// Whatever routes configuration requests to the functions of one device.
pub trait ConfigAccess {
    /// Reads `size` (1, 2 or 4) bytes of the function's configuration space, little endian, in the low bits.
    /// A function that does not exist, an offset beyond 4 KiB and any other size read as all ones.
    fn config_read(&mut self, function: Function, offset: u16, size: u8) -> u32;

    /// Writes the low `size` (1, 2 or 4) bytes of `value`. Where nothing answers, nothing happens.
    fn config_write(&mut self, function: Function, offset: u16, size: u8, value: u32);
}
