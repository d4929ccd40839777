//! Machines with a column in the cost table.

/// Machine with a column in the cost table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum MachineModel {
    /// Xeon 5500 (Nehalem-EP) under Xen 3.4 (Dong et al., HPCA 2010).
    Nehalem,
    /// Sapphire Rapids server processor under KVM with a current kernel. Most values are estimates near published ones
    /// of other processors. No stepping, kernel version or mitigation is modelled.
    Modern,
    /// Opteron 250 under Xen 2.0.6 (Willmann et al., HPCA 2007): one core without SMT, 1 MB of cache, an on-chip memory
    /// controller.
    Opteron,
    /// Skylake-class machine under a thin hypervisor (Iida et al.), which handles interrupts in its own way.
    Skylake,
    /// Xeon E5405 under Xen (Zhang et al.): two pairs of cores, each with its own cache; memory and devices behind a
    /// chipset hub.
    Harpertown,
    /// Xeon at 2.4 GHz under Xen 2.0.6 (Menon et al., ATC 2006): one core without SMT in use, a small cache, a
    /// front-side bus.
    Prestonia,
    /// Server of 2009 with an IOMMU and a 10 Gb/s card under Xen 3 (Dong et al., SYSTOR 2009). Our excerpt of the paper
    /// does not name the processor. The values are those of the Xeon 5500, of the same year, except the back end's.
    Server2009,
}

impl MachineModel {
    /// All machines, in the order of the columns.
    pub const ALL: [MachineModel; 7] = [
        MachineModel::Nehalem,
        MachineModel::Modern,
        MachineModel::Opteron,
        MachineModel::Skylake,
        MachineModel::Harpertown,
        MachineModel::Prestonia,
        MachineModel::Server2009,
    ];

    /// Returns the machine's name in files and on command lines.
    pub const fn name(self) -> &'static str {
        match self {
            MachineModel::Nehalem => "nehalem",
            MachineModel::Modern => "modern",
            MachineModel::Opteron => "opteron",
            MachineModel::Skylake => "skylake",
            MachineModel::Harpertown => "harpertown",
            MachineModel::Prestonia => "prestonia",
            MachineModel::Server2009 => "server-2009",
        }
    }

    /// Returns the machine whose values apply where this machine has no cell. Returns `None` for a machine with all
    /// cells.
    pub const fn base(self) -> Option<MachineModel> {
        match self {
            MachineModel::Nehalem | MachineModel::Modern => None,
            MachineModel::Skylake => Some(MachineModel::Modern),
            MachineModel::Opteron
            | MachineModel::Harpertown
            | MachineModel::Prestonia
            | MachineModel::Server2009 => Some(MachineModel::Nehalem),
        }
    }
}
