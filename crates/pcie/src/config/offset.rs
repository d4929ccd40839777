//! Offsets and bits of the type 0 header (PCIe base specification, 7.5.1). Left out: bridges.

/// Vendor id, 16 bits.
pub const VENDOR: u16 = 0x00;
/// Device id, 16 bits.
pub const DEVICE: u16 = 0x02;
/// Command, 16 bits.
pub const COMMAND: u16 = 0x04;
/// Status, 16 bits.
pub const STATUS: u16 = 0x06;
/// Revision, 8 bits; the class code fills the other three bytes of the dword.
pub const REVISION: u16 = 0x08;
/// Cache line size, 8 bits, without effect on a PCIe function.
pub const CACHE_LINE: u16 = 0x0c;
/// Header type, 8 bits.
pub const HEADER_TYPE: u16 = 0x0e;
/// The first of six base address registers.
pub const BAR0: u16 = 0x10;
/// Subsystem vendor id, 16 bits; the subsystem id follows.
pub const SUBSYSTEM_VENDOR: u16 = 0x2c;
/// Expansion ROM base address.
pub const ROM: u16 = 0x30;
/// Where the list of capabilities begins, 8 bits.
pub const CAPABILITIES: u16 = 0x34;
/// Interrupt line, 8 bits of scratch for firmware.
pub const INTERRUPT_LINE: u16 = 0x3c;
/// Interrupt pin, 8 bits: 0 none, 1 INTA.
pub const INTERRUPT_PIN: u16 = 0x3d;

/// Command: the function answers I/O requests.
pub const COMMAND_IO: u16 = 1 << 0;
/// Command: the function answers memory requests.
pub const COMMAND_MEMORY: u16 = 1 << 1;
/// Command: the function may make requests, MSI and MSI-X messages included.
pub const COMMAND_BUS_MASTER: u16 = 1 << 2;
/// Command: parity error response.
pub const COMMAND_PARITY: u16 = 1 << 6;
/// Command: system error reporting.
pub const COMMAND_SERR: u16 = 1 << 8;
/// Command: the function does not assert INTx.
pub const COMMAND_INTX_DISABLE: u16 = 1 << 10;
/// Status: the function's pin is raised, or would be if it were not disabled.
pub const STATUS_INTERRUPT: u16 = 1 << 3;
/// Status: there is a list of capabilities.
pub const STATUS_CAPABILITIES: u16 = 1 << 4;
/// Status: the error bits, all write-1-to-clear.
pub const STATUS_ERRORS: u16 = 0xf900;
