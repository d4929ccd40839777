//! An interrupt-less PF driver of a lightweight hypervisor (Iida et al., on BitVisor).
//!
//! | module | contents |
//! |---|---|
//! | `admin` | admin receive queue of an X710-style card |
//! | `monitor` | thread that serves VF requests at VM exits |
//!
//! Request contents and the admin send queue are not modelled.

pub(crate) mod admin;
pub(crate) mod monitor;
#[cfg(test)]
mod tests;
