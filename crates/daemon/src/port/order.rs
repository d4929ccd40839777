//! Orders: what the control thread has decided for a running port, checked first and carried out whole or not at all.
//! VFs come with an order; they are withdrawn apart from it, because their clients cannot be brought back. Left out:
//! what is kept, and what other ports do.

use super::clients::listening::Place;
use super::engine::bus::Means;
use super::engine::family::not_offered;
use super::error::PortError;
use crate::config::VfConfig;
use crate::confine::Threads;
use crate::vault::PortVault;
use host::socket::Listener;
use policy::{PortPolicy, VfPolicy};

/// The policies of a port and of the VFs that it offers, by index. VFs beyond them are about to be withdrawn.
#[derive(Debug, Clone)]
pub struct Order {
    /// The port's.
    pub policy: PortPolicy,
    /// The VFs'.
    pub vfs: Vec<VfOrder>,
}

/// What is decided for a VF.
#[derive(Debug, Clone, Copy)]
pub struct VfOrder {
    /// Its policy.
    pub policy: VfPolicy,
    /// Quarantine it, or release it; or leave it as it is.
    pub quarantine: Option<bool>,
}

/// A VF's socket and what else it takes, ready for a port to offer it. Opening one may take time, so no port does it.
#[derive(Debug)]
pub struct OpenVf {
    pub(super) config: VfConfig,
    pub(super) listener: Listener,
    pub(super) means: Means,
}

impl OpenVf {
    /// Makes the sockets of VFs, and takes what their functions need.
    ///
    /// # Errors
    /// [`PortError::Socket`], [`PortError::Engine`].
    pub(crate) fn open_all(
        vfs: &[VfConfig],
        vault: &PortVault,
        threads: &Threads,
    ) -> Result<Vec<Self>, PortError> {
        let functions: Vec<_> = vfs.iter().map(|vf| vf.index.function()).collect();
        let means = Means::take(&functions, vault.port(), &threads.helper)?;
        let open = |(vf, means): (&VfConfig, Means)| {
            Ok(Self { config: vf.clone(), listener: Place::of_vf(vf).listen(vault)?, means })
        };
        vfs.iter().zip(means).map(open).collect()
    }
}

impl Order {
    /// A policy for each VF that guests may have had of `offered`, and for those to come.
    pub(super) fn policies(&self, offered: usize) -> Vec<VfPolicy> {
        let mut policies: Vec<_> = self.vfs.iter().map(|vf| vf.policy).collect();
        policies.resize_with(offered.max(policies.len()), not_offered);
        policies
    }
}
