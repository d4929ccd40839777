//! Names of network interfaces (`dev_valid_name` of the kernel, and no templates).

use std::fmt;
use std::str::FromStr;

/// The kernel's IFNAMSIZ is 16, with the final zero.
const MAX: usize = 15;

/// A name the kernel takes as it is: 1 to 15 bytes, printable, without `/`, `:`, `%` or spaces.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InterfaceName(String);

/// The name cannot be that of an interface.
#[derive(Clone, Debug, thiserror::Error, PartialEq, Eq)]
#[error(
    "{0:?} cannot name an interface: 1 to {MAX} printable ASCII characters, \
     no '/', ':', '%' or space, not '.' or '..'"
)]
pub struct InvalidName(String);

impl InterfaceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for InterfaceName {
    type Err = InvalidName;

    fn from_str(name: &str) -> Result<Self, InvalidName> {
        // A percent sign would make the kernel invent a name, and an empty one too.
        let plain = name.bytes().all(|byte| byte.is_ascii_graphic() && !b"/:%".contains(&byte));
        let valid = plain && (1..=MAX).contains(&name.len()) && name != "." && name != "..";
        if valid { Ok(Self(name.to_owned())) } else { Err(InvalidName(name.to_owned())) }
    }
}

impl fmt::Display for InterfaceName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}
