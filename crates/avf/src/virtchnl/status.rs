//! How a request went. Left out: raw numbers of errors of Linux, which some PFs send and a VF takes for a failure.

/// A status, as the reply's cookie carries it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    /// Done.
    Success,
    /// Something in the request makes no sense, or is not granted.
    Param,
    /// No room.
    NoMemory,
    /// The reply is to another request.
    OpcodeMismatch,
    /// There is no such VF.
    InvalidVf,
    /// The mailbox failed.
    AdminQueue,
    /// There is no such operation here.
    NotSupported,
    /// Anything else.
    Other(i32),
}

impl Status {
    /// Its number.
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

    /// The status of a number.
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

    /// The cookie of a descriptor.
    #[must_use]
    pub const fn cookie(self) -> u32 {
        self.number().cast_unsigned()
    }
}
