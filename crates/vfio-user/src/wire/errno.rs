//! Error numbers of replies: Linux values, on any machine.

use core::fmt;

/// UNIX error number. Never zero in a reply: clients treat zero as success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    /// No such entry.
    pub const ENOENT: Self = Self(2);
    /// Input/output error; also stands for a failure without a number.
    pub const EIO: Self = Self(5);
    /// Out of memory.
    pub const ENOMEM: Self = Self(12);
    /// Permission denied.
    pub const EACCES: Self = Self(13);
    /// Already exists.
    pub const EEXIST: Self = Self(17);
    /// Malformed or unknown.
    pub const EINVAL: Self = Self(22);
    /// A limit is reached.
    pub const ENOSPC: Self = Self(28);
    /// Not supported (`EOPNOTSUPP`).
    pub const ENOTSUP: Self = Self(95);

    /// Returns the number for a reply.
    pub(crate) fn to_wire(self) -> u32 {
        if self.0 == 0 { Self::EIO.0 } else { self.0 }
    }
}

impl fmt::Display for Errno {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match *self {
            Self::ENOENT => "ENOENT",
            Self::EIO => "EIO",
            Self::ENOMEM => "ENOMEM",
            Self::EACCES => "EACCES",
            Self::EEXIST => "EEXIST",
            Self::EINVAL => "EINVAL",
            Self::ENOSPC => "ENOSPC",
            Self::ENOTSUP => "ENOTSUP",
            Self(number) => return write!(f, "errno {number}"),
        };
        f.write_str(name)
    }
}

impl core::error::Error for Errno {}
