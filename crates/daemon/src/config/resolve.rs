//! From what is set for ports and VFs, in the file and by command, to the policies that this makes. Left out: what the
//! file itself may say (`config`), and what the card accepts at the moment (`driver::pf`).

use super::file::Family;
use super::{Config, ConfigError, DEFAULT_VFS, PortConfig, Unique, VfConfig, value};
use crate::settings::{Layers, PortPolicy, PortSettings, SettingError, Settings, VfSettings, family};
use driver::pf::VfPolicy;

impl Config {
    /// Makes policies of everything that is set now.
    ///
    /// # Errors
    /// [`ConfigError::Value`]; some policies may be new then.
    pub fn resolve(&mut self) -> Result<(), ConfigError> {
        let mut addresses = Unique::default();
        self.ports.iter_mut().try_for_each(|port| port.resolve(&mut addresses))
    }

    /// A port by its name.
    pub fn port_mut(&mut self, name: &str) -> Option<&mut PortConfig> {
        self.ports.iter_mut().find(|port| port.name == name)
    }

    /// A VF that a port offers, by its name.
    pub fn vf_mut(&mut self, name: &str) -> Option<&mut VfConfig> {
        self.ports.iter_mut().flat_map(|port| &mut port.vfs).find(|vf| vf.name == name)
    }
}

impl PortConfig {
    fn resolve(&mut self, addresses: &mut Unique) -> Result<(), ConfigError> {
        addresses.claim("address", &self.mac.to_string(), &format!("{}.mac", self.name))?;
        if self.pf_socket.is_some() {
            self.policy = PortPolicy::default();
            return Ok(());
        }
        let settings: PortSettings = effective(&self.layers, &self.name)?;
        let count = vf_count(&self.name, self.family, settings.vfs)?;
        let mut vfs: Vec<VfConfig> = self.vfs.drain(..).chain(self.withheld.drain(..)).collect();
        self.withheld = vfs.split_off(count.min(vfs.len()));
        self.vfs = vfs;
        self.policy = settings.policy(count).map_err(|error| named(&self.name, error))?;
        self.vfs.iter_mut().try_for_each(|vf| vf.resolve(self.family, addresses))
    }

    /// Every setting and its value.
    #[must_use]
    pub fn settings(&self) -> PortSettings {
        PortSettings::of(&self.policy, self.vfs.len())
    }
}

/// How many VFs a port is to offer, if one of its family can.
pub(super) fn vf_count(port: &str, family: Family, set: Option<u8>) -> Result<usize, ConfigError> {
    let (count, most) = (usize::from(set.unwrap_or(DEFAULT_VFS)), family.most_vfs());
    if (1..=most).contains(&count) {
        return Ok(count);
    }
    let remedy = match family {
        Family::I82576 => format!("family = \"avf\" has up to {}", Family::Avf.most_vfs()),
        Family::Avf => "add a port for more".to_owned(),
    };
    let name = family.name();
    let problem = format!("{count} is not 1 to {most}, which a port with family = \"{name}\" has; {remedy}");
    Err(value(format!("{port}.vfs"), problem))
}

impl VfConfig {
    fn resolve(&mut self, family: Family, addresses: &mut Unique) -> Result<(), ConfigError> {
        let settings: VfSettings = effective(&self.layers, &self.name)?;
        let policy = settings.policy(self.own_mac);
        self.policy =
            policy.and_then(|policy| checked(policy, family)).map_err(|error| named(&self.name, error))?;
        self.mac = self.policy.mac.unwrap_or(self.own_mac);
        self.quarantine = settings.quarantine.unwrap_or(false);
        addresses.claim("address", &self.mac.to_string(), &format!("{}.mac", self.name))
    }

    /// Every setting and its value.
    #[must_use]
    pub fn settings(&self) -> VfSettings {
        VfSettings::of(&self.policy, self.quarantine)
    }
}

/// Returns a policy that a card of the family can have.
fn checked(policy: VfPolicy, family: Family) -> Result<VfPolicy, SettingError> {
    match family {
        Family::I82576 => policy.check()?,
        Family::Avf => family::avf_policy(&policy).map(drop)?,
    }
    Ok(policy)
}

fn effective<S: Settings>(layers: &Layers, name: &str) -> Result<S, ConfigError> {
    layers.effective().map_err(|error| value(name, error.to_string()))
}

fn named(owner: &str, error: SettingError) -> ConfigError {
    value(format!("{owner}.{}", error.key), error.problem)
}
