//! Operations of the virtual channel, by number. The operations of unsupported features (iWARP, traffic classes,
//! flow rules) are missing.

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// Operation of a virtchnl message.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum VirtchnlOpcode { $($(#[$doc])* $name = $number,)* }

        impl VirtchnlOpcode {
            /// Every operation, in the order of [`VirtchnlOpcode::index`].
            pub const ALL: &[VirtchnlOpcode] = &[$(VirtchnlOpcode::$name,)*];

            /// Returns the operation that a number stands for, or `None` if the number is unknown.
            #[must_use]
            pub const fn of(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// Returns the operation's name in counters and tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

ops! {
    /// Operation: asks for the version of the virtchnl messages.
    Version = 1, "version";
    /// Operation: resets the VF. The PF sends no reply.
    ResetVf = 2, "reset";
    /// Operation: asks for the VF's resources.
    GetVfResources = 3, "resources";
    /// Operation: sets up the rings of a VF's queues.
    ConfigVsiQueues = 6, "queues";
    /// Operation: maps a VF's queues to interrupt vectors.
    ConfigIrqMap = 7, "irq-map";
    /// Operation: enables queues of the VF.
    EnableQueues = 8, "enable";
    /// Operation: disables queues of the VF.
    DisableQueues = 9, "disable";
    /// Operation: adds MAC addresses that the VF receives by.
    AddEthAddr = 10, "add-address";
    /// Operation: removes MAC addresses that the VF receives by.
    DelEthAddr = 11, "delete-address";
    /// Operation: adds the VF to VLANs.
    AddVlan = 12, "add-vlan";
    /// Operation: removes the VF from VLANs.
    DelVlan = 13, "delete-vlan";
    /// Operation: sets the VF's promiscuous reception.
    ConfigPromiscuousMode = 14, "promiscuity";
    /// Operation: asks for the counters of the VF.
    GetStats = 15, "statistics";
    /// Operation: reports an event from the PF to the VF, such as a change of the link.
    Event = 17, "event";
    /// Operation: selects the RSS hash function.
    ConfigRssHfunc = 18, "hash-function";
    /// Operation: sets the RSS key.
    ConfigRssKey = 23, "hash-key";
    /// Operation: sets the RSS lookup table.
    ConfigRssLut = 24, "hash-table";
    /// Operation: asks for the packet types that can be hashed.
    GetRssHenaCaps = 25, "hash-types";
    /// Operation: selects the packet types that are hashed.
    SetRssHena = 26, "set-hash-types";
    /// Operation: enables stripping of VLAN tags from received frames.
    EnableVlanStripping = 27, "strip";
    /// Operation: disables stripping of VLAN tags from received frames.
    DisableVlanStripping = 28, "no-strip";
    /// Operation: requests another number of queue pairs.
    RequestQueues = 29, "request-queues";
    /// Operation: asks for the supported formats of receive descriptors.
    GetSupportedRxdids = 44, "descriptors";
    /// Operation: asks for the VLAN capabilities.
    GetOffloadVlanV2Caps = 51, "vlan-v2";
    /// Operation: adds the VF to VLANs, given with the ether types of tags.
    AddVlanV2 = 52, "add-vlan-v2";
    /// Operation: removes the VF from VLANs, given with the ether types of tags.
    DelVlanV2 = 53, "delete-vlan-v2";
    /// Operation: enables stripping of VLAN tags, given their ether types.
    EnableVlanStrippingV2 = 54, "strip-v2";
    /// Operation: disables stripping of VLAN tags, given their ether types.
    DisableVlanStrippingV2 = 55, "no-strip-v2";
    /// Operation: enables insertion of VLAN tags, given their ether types.
    EnableVlanInsertionV2 = 56, "insert-v2";
    /// Operation: disables insertion of VLAN tags, given their ether types.
    DisableVlanInsertionV2 = 57, "no-insert-v2";
    /// Operation: enables ranges of the VF's queues.
    EnableQueuesV2 = 107, "enable-v2";
    /// Operation: disables ranges of the VF's queues.
    DisableQueuesV2 = 108, "disable-v2";
}

impl VirtchnlOpcode {
    /// Returns the operation's number in `virtchnl.h`.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns the operation's index in [`VirtchnlOpcode::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|op| *op == self).unwrap_or(0)
    }
}
