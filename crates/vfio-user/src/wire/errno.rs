//! Error numbers of replies: Linux values, on any machine.

use core::fmt;

/// UNIX error number of a reply. Never zero in a reply: clients treat zero as success.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Errno(pub u32);

impl Errno {
    /// ENOENT: the named object does not exist.
    pub const ENOENT: Self = Self(2);
    /// EIO: input/output error; also stands for a failure without a number.
    pub const EIO: Self = Self(5);
    /// ENOMEM: memory is exhausted.
    pub const ENOMEM: Self = Self(12);
    /// EACCES: permission is denied.
    pub const EACCES: Self = Self(13);
    /// EEXIST: the entry exists already.
    pub const EEXIST: Self = Self(17);
    /// EINVAL: the request is malformed or unknown.
    pub const EINVAL: Self = Self(22);
    /// ENOSPC: a limit is reached.
    pub const ENOSPC: Self = Self(28);
    /// EOPNOTSUPP: the request is not supported.
    pub const ENOTSUP: Self = Self(95);

    /// Returns the error number for a reply's header.
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
