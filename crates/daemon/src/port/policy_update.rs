//! Policy updates: new policies of a running port and its VFs, as the control thread decides. A port checks an update
//! first, and then applies it whole or not at all. New VFs come with an update. VFs are withdrawn by another command,
//! because their clients cannot be brought back. `management` keeps the policies and coordinates the ports.

use super::clients::endpoint::FunctionEndpoint;
use super::clients::listening::{FunctionSocketConfig, kept_listener};
use super::engine::bus::FunctionResources;
use super::engine::family::not_offered;
use super::error::PortStartError;
use crate::config::VfConfig;
use crate::confine::ThreadSandboxes;
use crate::vault::PortFileDescriptorStore;
use policy::{PortPolicy, VfPolicy};

/// New policies of a port and of the VFs that it offers, by index. VFs with higher indices are about to be withdrawn.
#[derive(Debug, Clone)]
pub struct PortPolicyUpdate {
    /// New policy of the port.
    pub policy: PortPolicy,
    /// New policies of the VFs, by index.
    pub vfs: Vec<VfPolicyUpdate>,
}

/// New policy of one VF, and the request to quarantine or release the VF.
#[derive(Debug, Clone, Copy)]
pub struct VfPolicyUpdate {
    /// New policy of the VF.
    pub policy: VfPolicy,
    /// Request to quarantine the VF (`true`) or to release it (`false`). `None` changes nothing.
    pub quarantine: Option<bool>,
}

/// A VF's open socket and other resources, ready for a port to offer the VF. Opening them may take time, so no
/// port's thread does it.
#[derive(Debug)]
pub struct PreparedVf {
    pub(super) config: VfConfig,
    pub(super) endpoint: FunctionEndpoint,
    pub(super) resources: FunctionResources,
}

impl PreparedVf {
    /// Opens the sockets of new VFs, and takes the resources that their functions need.
    ///
    /// # Errors
    /// [`PortStartError::Socket`], [`PortStartError::Engine`].
    pub(crate) fn open_all(
        vfs: &[VfConfig],
        vault: &PortFileDescriptorStore,
        threads: &ThreadSandboxes,
    ) -> Result<Vec<Self>, PortStartError> {
        let functions: Vec<_> = vfs.iter().map(|vf| vf.index.function()).collect();
        let resources = FunctionResources::take(&functions, vault.port(), &threads.helper)?;
        let open = |(vf, resources): (&VfConfig, FunctionResources)| {
            Ok(Self { config: vf.clone(), endpoint: FunctionSocketConfig::of_vf(vf).open(vault)?, resources })
        };
        vfs.iter().zip(resources).map(open).collect()
    }

    /// Releases the kept listening sockets of VFs that no port offers.
    pub(crate) fn forget(vfs: &[VfConfig], vault: &PortFileDescriptorStore) {
        vfs.iter().for_each(|vf| vault.forget_named(&kept_listener(&vf.name)));
    }
}

impl PortPolicyUpdate {
    /// Returns a policy for each VF, at least `offered` of them. VFs that the update lacks get a policy under which
    /// they move no frame.
    pub(super) fn policies(&self, offered: usize) -> Vec<VfPolicy> {
        let mut policies: Vec<_> = self.vfs.iter().map(|vf| vf.policy).collect();
        policies.resize_with(offered.max(policies.len()), not_offered);
        policies
    }
}
