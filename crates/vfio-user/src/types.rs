//! Types that vfio-user client and server share, without wire layout.

/// Properties of a device, as the reply to `DEVICE_GET_INFO` states them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceInfo {
    /// Flags of the device, see [`device_flags`](crate::wire::device_flags).
    pub flags: u32,
    /// Number of the device's regions; a PCI function has 9, and QEMU requires at least 8.
    pub regions: u32,
    /// Number of the device's interrupt types; a PCI function has 5, and QEMU requires at least 3.
    pub irqs: u32,
}

/// Properties of an interrupt type, as the reply to `DEVICE_GET_IRQ_INFO` states them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct IrqInfo {
    /// Number of interrupt vectors of the interrupt type.
    pub count: u32,
    /// Flags of the interrupt type, see [`irq_flags`](crate::wire::irq_flags).
    pub flags: u32,
}

/// Part of a device's region that the client may map into its memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SparseArea {
    /// Offset of the mappable part from the start of the region in bytes.
    pub offset: u64,
    /// Size of the mappable part in bytes.
    pub size: u64,
}
