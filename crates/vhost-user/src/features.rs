//! Feature bits of the protocol, and the few feature bits of the device that a session interprets.

/// Numbers of the protocol feature bits ("Protocol features" in the specification).
pub mod protocol {
    /// Protocol feature bit: several queue pairs, and `GET_QUEUE_NUM`.
    pub const MQ: u32 = 0;
    /// Protocol feature bit: a migration log in shared memory.
    pub const LOG_SHMFD: u32 = 1;
    /// Protocol feature bit: `SEND_RARP`.
    pub const RARP: u32 = 2;
    /// Protocol feature bit: acknowledgements on request.
    pub const REPLY_ACK: u32 = 3;
    /// Protocol feature bit: `NET_SET_MTU`.
    pub const MTU: u32 = 4;
    /// Protocol feature bit: requests by the back end.
    pub const BACKEND_REQ: u32 = 5;
    /// Protocol feature bit: accesses to the configuration space.
    pub const CONFIG: u32 = 9;
    /// Protocol feature bit: shared memory that records unfinished descriptors.
    pub const INFLIGHT_SHMFD: u32 = 12;
    /// Protocol feature bit: `RESET_DEVICE`.
    pub const RESET_DEVICE: u32 = 13;
    /// Protocol feature bit: kicks by message.
    pub const INBAND_NOTIFICATIONS: u32 = 14;
    /// Protocol feature bit: memory regions that are added and removed one by one.
    pub const CONFIGURE_MEM_SLOTS: u32 = 15;
    /// Protocol feature bit: `SET_STATUS` and `GET_STATUS`.
    pub const STATUS: u32 = 16;
    /// Protocol feature bit: memory regions as Xen shares them.
    pub const XEN_MMAP: u32 = 17;

    /// Protocol features that a [`BackendSession`](crate::backend::BackendSession) supports, as a mask.
    ///
    /// QEMU accepts every offered bit that it knows, also bits 14 and 17, which it does not implement. So a session
    /// offers what is implemented, and nothing else.
    pub const SUPPORTED: u64 =
        OFFERED_TO_NET | 1 << LOG_SHMFD | 1 << CONFIG | 1 << INFLIGHT_SHMFD | 1 << RESET_DEVICE;

    /// Protocol features that every network back end should offer, as a mask.
    ///
    /// | bit | feature | QEMU | Cloud Hypervisor | virtio-user |
    /// |---|---|---|---|---|
    /// | 0 | MQ | uses it | uses it | uses it |
    /// | 1 | LOG_SHMFD | cannot migrate without it | uses it | |
    /// | 2 | RARP | uses it for guests without ANNOUNCE | | |
    /// | 3 | REPLY_ACK | uses it | uses it | uses it |
    /// | 4 | MTU | uses it with `host_mtu` | | |
    /// | 9 | CONFIG | warns, and masks it | reads MAC and MTU once | |
    /// | 12 | INFLIGHT_SHMFD | accepts it, never uses it | uses it | |
    /// | 15 | CONFIGURE_MEM_SLOTS | uses it | uses it | |
    /// | 16 | STATUS | uses it | | uses it |
    ///
    /// Bits 1, 9, 12 and 13 depend on the back end: it must log its writes, have a configuration space, record
    /// unfinished descriptors or have none ([`inflight`](crate::inflight)), or reset on request.
    pub const OFFERED_TO_NET: u64 =
        1 << MQ | 1 << RARP | 1 << REPLY_ACK | 1 << MTU | 1 << CONFIGURE_MEM_SLOTS | 1 << STATUS;
}

/// Feature bits of the device that a session interprets, as masks. The session passes all others through to the host.
pub mod device {
    /// Device feature: writes to guest memory are logged (`VHOST_F_LOG_ALL`, bit 26).
    pub const LOG_ALL: u64 = 1 << 26;
    /// Device feature: rings have event indexes (`VIRTIO_F_EVENT_IDX`, bit 29).
    pub const EVENT_IDX: u64 = 1 << 29;
    /// Device feature: protocol features exist (`VHOST_USER_F_PROTOCOL_FEATURES`, bit 30). Without it rings are enabled
    /// at once.
    pub const PROTOCOL_FEATURES: u64 = 1 << 30;
    /// Device feature: rings are packed (`VIRTIO_F_RING_PACKED`, bit 34).
    pub const RING_PACKED: u64 = 1 << 34;
}

#[cfg(test)]
mod tests {
    use super::protocol;

    #[test]
    fn protocol_features_for_xen_and_in_band_kicks_are_unsupported() {
        let never =
            1 << protocol::INBAND_NOTIFICATIONS | 1 << protocol::XEN_MMAP | 1 << protocol::BACKEND_REQ;
        assert_eq!(protocol::SUPPORTED & never, 0);
        assert_eq!(protocol::OFFERED_TO_NET, 0x1_801d);
    }
}
