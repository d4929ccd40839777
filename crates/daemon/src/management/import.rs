//! Import of a VF: the policy and the counters of a VF of another host, whose guest moves here.

use super::outcome::ControlRequestResult;
use super::{HostManager, refused};
use crate::control::export::{VfExport, VfImport};
use crate::control::protocol::SettingsCommand;
use crate::port::PortThreadCommand;
use crate::settings::VfSettings;
use policy::Offence;

impl HostManager {
    /// Imports a VF: applies its settings, or changes nothing, and then its counters, which cannot be refused.
    pub(super) fn import_vf(&mut self, name: &str, import: VfImport) -> ControlRequestResult<()> {
        let (port, found) = self.find_vf(name)?;
        let index = found.index;
        let VfImport { export: VfExport { name: exported, settings, counters, .. }, volatile } = import;
        let is_known = |kind: &String| Offence::ALL.iter().any(|offence| offence.name() == kind);
        if let Some(kind) = counters.offences.keys().find(|kind| !is_known(kind)) {
            return Err(refused(format!(
                "cannot import {exported:?} to {name}: {kind:?} is no kind of offence that this version counts; remove it from \
                 `offences` in the export"
            )));
        }
        // A quarantine of this host ends only by a command of its own administrator.
        let quarantine = settings.quarantine.filter(|on| *on);
        let set = VfSettings { quarantine, ..settings };
        self.set_vf(name, &SettingsCommand { volatile, ..SettingsCommand::kept(set) })?;
        self.ports.ask(&port, |answer| PortThreadCommand::Import(index, Box::new(counters), answer))
    }
}
