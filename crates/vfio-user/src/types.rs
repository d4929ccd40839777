//! Types of both sides, without wire layout.

/// Reply to `DEVICE_GET_INFO`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceInfo {
    /// [`device_flags`](crate::wire::device_flags).
    pub flags: u32,
    /// Number of regions; a PCI function has 9, and QEMU requires at least 8.
    pub regions: u32,
    /// Number of interrupt types; a PCI function has 5, and QEMU requires at least 3.
    pub irqs: u32,
}

/// Reply to `DEVICE_GET_IRQ_INFO`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IrqInfo {
    /// Number of vectors.
    pub count: u32,
    /// [`irq_flags`](crate::wire::irq_flags).
    pub flags: u32,
}

/// Mappable part of a region.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseArea {
    /// Offset from the start of the region in bytes.
    pub offset: u64,
    /// Size in bytes.
    pub size: u64,
}
