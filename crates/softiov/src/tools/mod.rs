//! Offers commands in the words of tools that Linux administrators know, for the ports and VFs of a running host in
//! place of the kernel's interfaces. Grammar, output, errors and exit codes are the tools'.

pub(crate) mod devlink;
pub(crate) mod ethtool;
pub(crate) mod ip;
pub(crate) mod lspci;
mod tool_exit;
