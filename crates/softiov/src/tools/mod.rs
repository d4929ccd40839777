//! Commands in the words of tools that Linux administrators know: the same grammar, output, errors and exit codes,
//! for the ports and VFs of a running host in place of the kernel's interfaces.

pub(crate) mod devlink;
pub(crate) mod ethtool;
pub(crate) mod ip;
pub(crate) mod lspci;
mod tool_exit;
