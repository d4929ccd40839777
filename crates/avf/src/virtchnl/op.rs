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

            /// Returns the operation of a number; `None` if it is unknown.
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
    /// Asks for the version of the messages.
    Version = 1, "version";
    /// Resets the VF. The PF sends no reply.
    ResetVf = 2, "reset";
    /// Asks for the VF's resources.
    GetVfResources = 3, "resources";
    /// Sets up the rings of queues.
    ConfigVsiQueues = 6, "queues";
    /// Maps queues to vectors.
    ConfigIrqMap = 7, "irq-map";
    /// Enables queues of the VF.
    EnableQueues = 8, "enable";
    /// Disables queues of the VF.
    DisableQueues = 9, "disable";
    /// Adds MAC addresses that the VF receives.
    AddEthAddr = 10, "add-address";
    /// Removes MAC addresses that the VF receives.
    DelEthAddr = 11, "delete-address";
    /// Adds the VF to VLANs.
    AddVlan = 12, "add-vlan";
    /// Removes the VF from VLANs.
    DelVlan = 13, "delete-vlan";
    /// Sets promiscuous reception.
    ConfigPromiscuousMode = 14, "promiscuity";
    /// Asks for the counters of the VF.
    GetStats = 15, "statistics";
    /// Reports an event from the PF to the VF, such as a change of the link.
    Event = 17, "event";
    /// Selects the RSS hash function.
    ConfigRssHfunc = 18, "hash-function";
    /// Sets the RSS key.
    ConfigRssKey = 23, "hash-key";
    /// Sets the RSS lookup table.
    ConfigRssLut = 24, "hash-table";
    /// Asks for the packet types that can be hashed.
    GetRssHenaCaps = 25, "hash-types";
    /// Selects the packet types that are hashed.
    SetRssHena = 26, "set-hash-types";
    /// Enables stripping of tags from received frames.
    EnableVlanStripping = 27, "strip";
    /// Disables stripping of VLAN tags from received frames.
    DisableVlanStripping = 28, "no-strip";
    /// Requests another number of queue pairs.
    RequestQueues = 29, "request-queues";
    /// Asks for the supported formats of receive descriptors.
    GetSupportedRxdids = 44, "descriptors";
    /// Asks for the VLAN capabilities.
    GetOffloadVlanV2Caps = 51, "vlan-v2";
    /// Joins VLANs, with the ether types of tags.
    AddVlanV2 = 52, "add-vlan-v2";
    /// Leaves VLANs, with the ether types of tags.
    DelVlanV2 = 53, "delete-vlan-v2";
    /// Enables stripping of tags, with their ether types.
    EnableVlanStrippingV2 = 54, "strip-v2";
    /// Disables stripping of tags, with their ether types.
    DisableVlanStrippingV2 = 55, "no-strip-v2";
    /// Enables insertion of tags, with their ether types.
    EnableVlanInsertionV2 = 56, "insert-v2";
    /// Disables insertion of tags, with their ether types.
    DisableVlanInsertionV2 = 57, "no-insert-v2";
    /// Enables ranges of the VF's queues.
    EnableQueuesV2 = 107, "enable-v2";
    /// Disables ranges of the VF's queues.
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
