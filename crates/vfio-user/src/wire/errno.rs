//! Error numbers as they appear in replies: Linux values, whatever the machine this is built for.

use core::fmt;

/// A UNIX error number. Never zero in a reply: clients take zero for success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    /// No such entry.
    pub const ENOENT: Self = Self(2);
    /// Input/output error: what an unspecified failure becomes.
    pub const EIO: Self = Self(5);
    /// Out of memory.
    pub const ENOMEM: Self = Self(12);
    /// Permission denied.
    pub const EACCES: Self = Self(13);
    /// Already there.
    pub const EEXIST: Self = Self(17);
    /// Malformed or unknown.
    pub const EINVAL: Self = Self(22);
    /// No room for more.
    pub const ENOSPC: Self = Self(28);
    /// Understood, not offered (`EOPNOTSUPP`).
    pub const ENOTSUP: Self = Self(95);

    /// The number to put in a reply.
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
