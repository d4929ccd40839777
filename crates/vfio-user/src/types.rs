//! What both sides call things, without wire layout.

/// The answer to `DEVICE_GET_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceInfo {
    /// [`device_flags`](crate::wire::device_flags).
    pub flags: u32,
    /// Regions, numbered from 0; a PCI function has 9, and QEMU wants at least 8.
    pub regions: u32,
    /// Interrupt types, numbered from 0; a PCI function has 5, and QEMU wants at least 3.
    pub irqs: u32,
}

/// The answer to `DEVICE_GET_IRQ_INFO`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IrqInfo {
    /// Vectors of this type.
    pub count: u32,
    /// [`irq_flags`](crate::wire::irq_flags).
    pub flags: u32,
}

/// A part of a region that may be mapped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseArea {
    /// From the start of the region.
    pub offset: u64,
    /// Bytes.
    pub size: u64,
}
