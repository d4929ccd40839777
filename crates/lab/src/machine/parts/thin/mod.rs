//! A thin hypervisor's PF driver that takes no interrupt (Iida et al., on BitVisor).
//!
//! | module | what it is |
//! |---|---|
//! | `admin` | the admin receive queue of an X710-style card, as its driver reads it from memory |
//! | `monitor` | the thread that serves requests of VFs at VM exits |
//!
//! Left out: what a request asks for, and the admin send queue.

pub(crate) mod admin;
pub(crate) mod monitor;
#[cfg(test)]
mod tests;
