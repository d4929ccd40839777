//! Status of a virtchnl request. Some PFs send raw error numbers of Linux instead; a VF treats those as failures.

/// Status of a request, carried in the reply's cookie.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VirtchnlStatus {
    /// Request status: the request succeeded.
    Success,
    /// Request status: a parameter is invalid, or the request is not granted.
    Param,
    /// Request status: the PF has no memory or table entry for the request.
    NoMemory,
    /// Request status: the reply belongs to another request.
    OpcodeMismatch,
    /// Request status: the VF does not exist.
    InvalidVf,
    /// Request status: the mailbox failed.
    AdminQueue,
    /// Request status: the PF does not support the requested operation.
    NotSupported,
    /// Request status of any other number.
    Other(i32),
}

impl VirtchnlStatus {
    /// Returns the status's number in `virtchnl.h`.
    #[must_use]
    pub const fn number(self) -> i32 {
        match self {
            Self::Success => 0,
            Self::Param => -5,
            Self::NoMemory => -18,
            Self::OpcodeMismatch => -38,
            Self::InvalidVf => -40,
            Self::AdminQueue => -53,
            Self::NotSupported => -64,
            Self::Other(number) => number,
        }
    }

    /// Returns the request status that a number stands for.
    #[must_use]
    pub const fn of(number: i32) -> Self {
        match number {
            0 => Self::Success,
            -5 => Self::Param,
            -18 => Self::NoMemory,
            -38 => Self::OpcodeMismatch,
            -40 => Self::InvalidVf,
            -53 => Self::AdminQueue,
            -64 => Self::NotSupported,
            other => Self::Other(other),
        }
    }

    /// Returns the status as the cookie of a descriptor.
    #[must_use]
    pub const fn cookie(self) -> u32 {
        self.number().cast_unsigned()
    }
}
