//! Numbers of the front end's requests, with the protocol feature that each request needs.

use crate::features::protocol;

/// Request that a front end of a network device may send ("Front-end message types" in the specification).
///
/// Missing, and so unknown to a session: IOTLB, endianness, crypto, postcopy, GPU, in-band kicks, shared objects and the
/// transfer of device state.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub enum RequestCode {
    /// Request: returns the feature bits of the device.
    GetFeatures = 1,
    /// Request: sets the feature bits that the driver has accepted.
    SetFeatures = 2,
    /// Request: marks the sender as the owner of the session.
    SetOwner = 3,
    /// Request: disables all rings (deprecated).
    ResetOwner = 4,
    /// Request: replaces all memory regions.
    SetMemTable = 5,
    /// Request: sets the memory that logs dirty pages.
    SetLogBase = 6,
    /// Request: sets the eventfd that reports changes of the log.
    SetLogFd = 7,
    /// Request: sets the size of a ring.
    SetVringNum = 8,
    /// Request: sets the addresses of a ring.
    SetVringAddr = 9,
    /// Request: sets the position of a ring.
    SetVringBase = 10,
    /// Request: stops a ring and returns its position.
    GetVringBase = 11,
    /// Request: sets the eventfd by which the guest reports new descriptors.
    SetVringKick = 12,
    /// Request: sets the eventfd that interrupts the guest.
    SetVringCall = 13,
    /// Request: sets the eventfd that reports an error of a ring.
    SetVringErr = 14,
    /// Request: returns the offered protocol features.
    GetProtocolFeatures = 15,
    /// Request: sets the protocol features that the front end uses.
    SetProtocolFeatures = 16,
    /// Request: returns the number of queues.
    GetQueueNum = 17,
    /// Request: enables or disables a ring.
    SetVringEnable = 18,
    /// Request: asks for a broadcast of the guest's address after a migration.
    SendRarp = 19,
    /// Request: reports the maximum transmission unit that the guest sees.
    NetSetMtu = 20,
    /// Request: sets the socket for requests by the back end.
    SetBackendReqFd = 21,
    /// Request: reads the device's configuration space.
    GetConfig = 24,
    /// Request: writes the device's configuration space.
    SetConfig = 25,
    /// Request: asks for shared memory that records unfinished descriptors.
    GetInflightFd = 31,
    /// Request: returns the shared memory that records unfinished descriptors.
    SetInflightFd = 32,
    /// Request: resets the device.
    ResetDevice = 34,
    /// Request: returns the maximum number of memory regions.
    GetMaxMemSlots = 36,
    /// Request: adds a memory region.
    AddMemReg = 37,
    /// Request: removes a memory region.
    RemMemReg = 38,
    /// Request: sets the device status of virtio.
    SetStatus = 39,
    /// Request: returns the device status of virtio.
    GetStatus = 40,
}

impl RequestCode {
    /// Requests of a network device, in the order of their numbers.
    pub const ALL: [Self; 31] = [
        Self::GetFeatures,
        Self::SetFeatures,
        Self::SetOwner,
        Self::ResetOwner,
        Self::SetMemTable,
        Self::SetLogBase,
        Self::SetLogFd,
        Self::SetVringNum,
        Self::SetVringAddr,
        Self::SetVringBase,
        Self::GetVringBase,
        Self::SetVringKick,
        Self::SetVringCall,
        Self::SetVringErr,
        Self::GetProtocolFeatures,
        Self::SetProtocolFeatures,
        Self::GetQueueNum,
        Self::SetVringEnable,
        Self::SendRarp,
        Self::NetSetMtu,
        Self::SetBackendReqFd,
        Self::GetConfig,
        Self::SetConfig,
        Self::GetInflightFd,
        Self::SetInflightFd,
        Self::ResetDevice,
        Self::GetMaxMemSlots,
        Self::AddMemReg,
        Self::RemMemReg,
        Self::SetStatus,
        Self::GetStatus,
    ];

    /// Returns the request that a number on the wire stands for, or `None` if a network device has no such request.
    pub fn from_number(number: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|code| code.number() == number)
    }

    /// Returns the request's number on the wire.
    pub const fn number(self) -> u32 {
        self as u32
    }

    /// Returns true if the request has a reply of its own, which replaces an acknowledgement.
    pub const fn has_reply(self) -> bool {
        matches!(
            self,
            Self::GetFeatures
                | Self::GetProtocolFeatures
                | Self::GetVringBase
                | Self::GetQueueNum
                | Self::GetConfig
                | Self::GetInflightFd
                | Self::GetMaxMemSlots
                | Self::GetStatus
                | Self::SetLogBase
        )
    }

    /// Returns the bit of the protocol feature that the request needs, or `None` if it needs none.
    ///
    /// `SET_VRING_ENABLE` needs none either: QEMU sends it before it has acknowledged feature bit 30.
    pub const fn needed_feature(self) -> Option<u32> {
        Some(match self {
            Self::SetLogBase | Self::SetLogFd => protocol::LOG_SHMFD,
            Self::SendRarp => protocol::RARP,
            Self::NetSetMtu => protocol::MTU,
            Self::SetBackendReqFd => protocol::BACKEND_REQ,
            Self::GetConfig | Self::SetConfig => protocol::CONFIG,
            Self::GetInflightFd | Self::SetInflightFd => protocol::INFLIGHT_SHMFD,
            Self::ResetDevice => protocol::RESET_DEVICE,
            Self::GetMaxMemSlots | Self::AddMemReg | Self::RemMemReg => protocol::CONFIGURE_MEM_SLOTS,
            Self::SetStatus | Self::GetStatus => protocol::STATUS,
            _ => return None,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vhost_user_request_numbers_match_the_specification() {
        let numbers: alloc::vec::Vec<_> = RequestCode::ALL.into_iter().map(RequestCode::number).collect();
        assert!(numbers.iter().copied().eq((1..=21).chain([24, 25, 31, 32, 34]).chain(36..=40)));
        for code in RequestCode::ALL {
            assert_eq!(RequestCode::from_number(code.number()), Some(code));
        }
        for unknown in [0, 22, 23, 26, 30, 33, 35, 41, 44, u32::MAX] {
            assert_eq!(RequestCode::from_number(unknown), None);
        }
    }
}
