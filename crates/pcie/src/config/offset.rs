//! Offsets and bits of the type 0 header (PCIe base specification, 7.5.1).

/// Offset of the vendor id word.
pub const VENDOR: u16 = 0x00;
/// Offset of the device id word.
pub const DEVICE: u16 = 0x02;
/// Offset of the command word.
pub const COMMAND: u16 = 0x04;
/// Offset of the status word.
pub const STATUS: u16 = 0x06;
/// Offset of the revision byte; the class code fills the other three bytes of the dword.
pub const REVISION: u16 = 0x08;
/// Offset of the cache line size byte, without effect on a PCIe function.
pub const CACHE_LINE: u16 = 0x0c;
/// Offset of the first of six base address registers.
pub const BAR0: u16 = 0x10;
/// Offset of the subsystem vendor id word; the subsystem id follows.
pub const SUBSYSTEM_VENDOR: u16 = 0x2c;
/// Offset of the expansion ROM base address.
pub const ROM: u16 = 0x30;
/// Offset of the pointer to the first capability, a byte.
pub const CAPABILITIES: u16 = 0x34;
/// Offset of the interrupt line byte, a scratch register for firmware.
pub const INTERRUPT_LINE: u16 = 0x3c;
/// Offset of the interrupt pin byte: 0 none, 1 INTA.
pub const INTERRUPT_PIN: u16 = 0x3d;

/// PCI command register bit: I/O space enable.
pub const COMMAND_IO: u16 = 1 << 0;
/// PCI command register bit: memory space enable.
pub const COMMAND_MEMORY: u16 = 1 << 1;
/// PCI command register bit: bus master enable, for requests including MSI and MSI-X messages.
pub const COMMAND_BUS_MASTER: u16 = 1 << 2;
/// PCI command register bit: parity error response.
pub const COMMAND_PARITY: u16 = 1 << 6;
/// PCI command register bit: system error reporting.
pub const COMMAND_SERR: u16 = 1 << 8;
/// PCI command register bit: INTx disable.
pub const COMMAND_INTX_DISABLE: u16 = 1 << 10;
/// PCI status register bit: the function's pin is raised, or would be if it were not disabled.
pub(crate) const STATUS_INTERRUPT: u16 = 1 << 3;
/// PCI status register bit: the function has a list of capabilities.
pub(crate) const STATUS_CAPABILITIES: u16 = 1 << 4;
/// Status bits of errors, all write-1-to-clear.
pub(crate) const STATUS_ERRORS: u16 = 0xf900;
