//! The operations, by number. Left out: operations of parts that are not offered (iWARP, traffic classes, flow rules).

macro_rules! ops {
    ($($(#[$doc:meta])* $name:ident = $number:literal, $text:literal;)*) => {
        /// An operation.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u32)]
        pub enum Op { $($(#[$doc])* $name = $number,)* }

        impl Op {
            /// Every operation, in the order of [`Op::index`].
            pub const ALL: &[Op] = &[$(Op::$name,)*];

            /// The operation of a number, if it is one of these.
            #[must_use]
            pub const fn of(number: u32) -> Option<Self> {
                match number { $($number => Some(Self::$name),)* _ => None }
            }

            /// A name for tables.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $(Self::$name => $text,)* }
            }
        }
    };
}

ops! {
    /// Which version do you speak?
    Version = 1, "version";
    /// Reset me. There is no reply.
    ResetVf = 2, "reset";
    /// What do I have?
    GetVfResources = 3, "resources";
    /// These are my rings.
    ConfigVsiQueues = 6, "queues";
    /// These queues raise these vectors.
    ConfigIrqMap = 7, "irq-map";
    /// Switch queues on.
    EnableQueues = 8, "enable";
    /// Switch queues off.
    DisableQueues = 9, "disable";
    /// Receive by these addresses, too.
    AddEthAddr = 10, "add-address";
    /// Not by these any more.
    DelEthAddr = 11, "delete-address";
    /// Join these VLANs.
    AddVlan = 12, "add-vlan";
    /// Leave these VLANs.
    DelVlan = 13, "delete-vlan";
    /// Receive everything.
    ConfigPromiscuousMode = 14, "promiscuity";
    /// What did I send and receive?
    GetStats = 15, "statistics";
    /// From the PF: something has happened.
    Event = 17, "event";
    /// How the hash is made.
    ConfigRssHfunc = 18, "hash-function";
    /// The key of the hash.
    ConfigRssKey = 23, "hash-key";
    /// The table of the hash.
    ConfigRssLut = 24, "hash-table";
    /// Which packet types can be hashed?
    GetRssHenaCaps = 25, "hash-types";
    /// Hash these packet types.
    SetRssHena = 26, "set-hash-types";
    /// Take tags out of received frames.
    EnableVlanStripping = 27, "strip";
    /// Leave tags in.
    DisableVlanStripping = 28, "no-strip";
    /// I want another number of queue pairs.
    RequestQueues = 29, "request-queues";
    /// Which forms of receive descriptors are there?
    GetSupportedRxdids = 44, "descriptors";
    /// What can be done with tags?
    GetOffloadVlanV2Caps = 51, "vlan-v2";
    /// Join VLANs, with their types.
    AddVlanV2 = 52, "add-vlan-v2";
    /// Leave VLANs, with their types.
    DelVlanV2 = 53, "delete-vlan-v2";
    /// Take tags out, with their types.
    EnableVlanStrippingV2 = 54, "strip-v2";
    /// Leave them in.
    DisableVlanStrippingV2 = 55, "no-strip-v2";
    /// Put tags in, with their types.
    EnableVlanInsertionV2 = 56, "insert-v2";
    /// Put none in.
    DisableVlanInsertionV2 = 57, "no-insert-v2";
    /// Switch ranges of queues on.
    EnableQueuesV2 = 107, "enable-v2";
    /// Switch ranges of queues off.
    DisableQueuesV2 = 108, "disable-v2";
}

impl Op {
    /// Its number.
    #[must_use]
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Its place in [`Op::ALL`].
    #[must_use]
    pub fn index(self) -> usize {
        Self::ALL.iter().position(|op| *op == self).unwrap_or(0)
    }
}
