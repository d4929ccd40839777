//! Computes and checks the policies of ports and VFs from their settings in the configuration file and by command. The
//! PF driver checks later that its card accepts a policy in its present state.

use super::check::{ConfigError, UniqueConfigValues, value};
use super::file::CardFamily;
use super::vf_count::vf_count;
use super::{HostConfig, PortConfig, VfConfig};
use crate::settings::{PortSettings, SettingError, SettingLayers, SettingsGroup, VfSettings};
use pcie::MAX_VFS;
use policy::{CardFamilyLimits, PortPolicy, check_guarantees};

impl HostConfig {
    /// Computes the policies of all ports and VFs from their present settings.
    ///
    /// # Errors
    /// [`ConfigError::Value`]; some policies may have changed by then, so the caller must drop this configuration.
    pub fn resolve(&mut self) -> Result<(), ConfigError> {
        let mut addresses = UniqueConfigValues::default();
        self.ports.iter_mut().try_for_each(|port| port.resolve(&mut addresses))
    }

    /// Returns the configuration of the port with this name.
    pub fn port_mut(&mut self, name: &str) -> Option<&mut PortConfig> {
        self.ports.iter_mut().find(|port| port.name == name)
    }

    /// Returns the configuration of the offered VF with this name.
    pub fn vf_mut(&mut self, name: &str) -> Option<&mut VfConfig> {
        self.ports.iter_mut().flat_map(|port| &mut port.vfs).find(|vf| vf.name == name)
    }
}

impl PortConfig {
    fn resolve(&mut self, addresses: &mut UniqueConfigValues) -> Result<(), ConfigError> {
        addresses.claim("address", &self.mac.to_string(), &format!("{}.mac", self.name))?;
        if self.pf_socket.is_some() {
            self.policy = PortPolicy::default();
            return Ok(());
        }
        let settings: PortSettings = effective(&self.layers, &self.name)?;
        self.link_local = settings.link_local.unwrap_or_default();
        let count = vf_count(&self.name, self.family, settings.vfs)?;
        let mut vfs: Vec<VfConfig> = self.vfs.drain(..).chain(self.withheld.drain(..)).collect();
        self.withheld = vfs.split_off(count.min(vfs.len()));
        self.vfs = vfs;
        let policy = settings.policy(count).map_err(|error| named(&self.name, error))?;
        for limits in self.limits() {
            policy.check(limits).map_err(|error| named(&self.name, error.into()))?;
        }
        self.policy = policy;
        self.vfs.iter_mut().try_for_each(|vf| vf.resolve(addresses))?;
        let policies: Vec<_> = self.vfs.iter().map(|vf| vf.policy).collect();
        // The sum of all VFs is wrong, whichever VF the change is about.
        check_guarantees(&policies, self.family.limits())
            .map_err(|(_, error)| named(&self.name, error.into()))
    }

    /// Returns the settings of the port with their values in force.
    #[must_use]
    pub fn settings(&self) -> PortSettings {
        PortSettings::of(&self.policy, self.link_local, self.vfs.len())
    }

    /// Returns the configuration of each VF that the card supports, offered or not.
    pub(crate) fn all_vfs(&self) -> impl Iterator<Item = &VfConfig> {
        self.vfs.iter().chain(&self.withheld)
    }

    /// Returns the card family of each VF. A VF that the port cannot offer has the port's family.
    pub(crate) fn families(&self) -> [CardFamily; MAX_VFS] {
        let mut families = [self.family; MAX_VFS];
        self.all_vfs().for_each(|vf| families[vf.index.index()] = vf.family);
        families
    }

    /// Returns true if a VF is of another family than the port.
    pub(crate) fn is_mixed(&self) -> bool {
        self.all_vfs().any(|vf| vf.family != self.family)
    }

    /// Returns true if a VF is of this family.
    pub(crate) fn has_family(&self, family: CardFamily) -> bool {
        self.all_vfs().any(|vf| vf.family == family)
    }

    /// Returns the limits of the families that the port and its VFs have.
    pub(super) fn limits(&self) -> impl Iterator<Item = &'static CardFamilyLimits> {
        let families = [CardFamily::I82576, CardFamily::Avf, CardFamily::Virtio];
        families.into_iter().filter(|of| *of == self.family || self.has_family(*of)).map(CardFamily::limits)
    }
}

impl VfConfig {
    fn resolve(&mut self, addresses: &mut UniqueConfigValues) -> Result<(), ConfigError> {
        let settings: VfSettings = effective(&self.layers, &self.name)?;
        let policy = settings.policy(self.own_mac).map_err(|error| named(&self.name, error))?;
        policy.check(self.family.limits()).map_err(|error| named(&self.name, error.into()))?;
        self.policy = policy;
        self.mac = self.policy.mac.unwrap_or(self.own_mac);
        self.quarantine = settings.quarantine.unwrap_or(false);
        addresses.claim("address", &self.mac.to_string(), &format!("{}.mac", self.name))
    }

    /// Returns the settings of the VF with their values in force.
    #[must_use]
    pub fn settings(&self) -> VfSettings {
        VfSettings::of(&self.policy, self.quarantine)
    }
}

fn effective<S: SettingsGroup>(layers: &SettingLayers, name: &str) -> Result<S, ConfigError> {
    layers.effective().map_err(|error| value(name, error.to_string()))
}

fn named(owner: &str, error: SettingError) -> ConfigError {
    value(format!("{owner}.{}", error.key), error.problem)
}
