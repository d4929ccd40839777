//! Names of network interfaces, as the kernel accepts them (`dev_valid_name`), without templates.

use std::fmt;
use std::str::FromStr;

/// Maximum length of an interface name in bytes: the kernel's IFNAMSIZ is 16, with the terminating zero.
const MAX: usize = 15;

/// Interface name that the kernel uses literally: 1 to 15 bytes, printable, without `/`, `:`, `%` or spaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceName(String);

/// Error: the text is no valid name of a network interface.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} cannot name an interface: 1 to {MAX} printable ASCII characters, \
     no '/', ':', '%' or space, not '.' or '..'"
)]
pub struct InvalidInterfaceName(String);

impl InterfaceName {
    /// Returns the interface name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterfaceName {
    type Err = InvalidInterfaceName;

    fn from_str(name: &str) -> Result<Self, InvalidInterfaceName> {
        // A percent sign or an empty name would make the kernel choose a name.
        let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
        let valid = plain && (1..=MAX).contains(&name.len()) && name != "." && name != "..";
        if valid { Ok(Self(name.to_owned())) } else { Err(InvalidInterfaceName(name.to_owned())) }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
