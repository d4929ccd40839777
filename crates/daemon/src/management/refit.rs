//! Replacement of uplinks, links and processors of running ports (`transition` decides when).

use super::{ControlRequestResult, HostManager, refused};
use crate::config::PortConfig;
use crate::port::{PortReconfiguration, PortStartError, PortThreadCommand, PortUplink, UplinkPipelineStages};
use host::cpus::CpuList;
use std::collections::BTreeMap;

/// Changes of the uplinks, links and processors of running ports, or their former values, by port name.
pub(super) type ReconfigurationsByPort = BTreeMap<String, Box<PortReconfiguration>>;

/// Closes the uplinks and recordings in prepared changes, which no port uses.
pub(super) fn retire(refits: ReconfigurationsByPort) {
    for refit in refits.into_values() {
        refit.uplink.into_iter().for_each(PortUplink::retire);
        refit.stages.into_iter().for_each(UplinkPipelineStages::retire);
    }
}

impl HostManager {
    /// Prepares the change of a running port's uplink, link and processors, or returns `None` if all of these stay the
    /// same.
    pub(super) fn refit(
        &self,
        old: &PortConfig,
        new: &PortConfig,
    ) -> ControlRequestResult<Option<Box<PortReconfiguration>>> {
        let (same_uplink, same_stages) =
            (old.uplink == new.uplink, (&old.impair, &old.record) == (&new.impair, &new.record));
        let same_rest = (old.link, old.link_local, &old.cpus) == (new.link, new.link_local, &new.cpus);
        if same_uplink && same_stages && same_rest {
            return Ok(None);
        }
        let named = |error: PortStartError| refused(format!("cannot change port {}: {error}", new.name));
        let allowed = CpuList::allowed().map_err(refused)?;
        new.cpus.check(&allowed).map_err(|error| named(error.into()))?;
        let uplink = (!same_uplink).then(|| self.ports.open_uplink(new)).transpose()?;
        let uplink = uplink.transpose().map_err(|error| named(error.into()))?;
        let stages = (same_uplink && !same_stages).then(|| self.ports.open_stages(new)).transpose()?;
        let stages = stages.transpose().map_err(|error| named(error.into()))?;
        let PortConfig { link, link_local, .. } = *new;
        Ok(Some(Box::new(PortReconfiguration { uplink, stages, link, link_local, cpus: new.cpus.clone() })))
    }

    /// Makes the prepared changes of uplinks, links and processors. Afterwards `refits` holds the ports' former parts;
    /// or, if a port refuses, the new parts that are not in use.
    pub(super) fn put_refits_to_work(&self, refits: &mut ReconfigurationsByPort) -> ControlRequestResult<()> {
        let mut back = ReconfigurationsByPort::new();
        while let Some((name, refit)) = refits.pop_first() {
            let asked = self.ports.ask(&name, |answer| PortThreadCommand::Refit(refit, answer));
            match asked {
                Ok(Ok(before)) => drop(back.insert(name, before)),
                Ok(Err((why, given))) => {
                    refits.insert(name, given);
                    self.take_refits_back(refits, back);
                    return Err(refused(why));
                }
                Err(late) => {
                    // The port may only be late and still make the change.
                    self.open_again(&name);
                    self.take_refits_back(refits, back);
                    return Err(late);
                }
            }
        }
        *refits = back;
        Ok(())
    }

    /// Undoes the changes of ports' uplinks, links and processors, after a port has refused its change.
    pub(super) fn take_refits_back(&self, refits: &mut ReconfigurationsByPort, back: ReconfigurationsByPort) {
        for (name, before) in back {
            match self.ports.ask(&name, |answer| PortThreadCommand::Refit(before, answer)) {
                Ok(Ok(given)) => drop(refits.insert(name, given)),
                Ok(Err((why, _))) => {
                    tracing::error!(port = name, %why, "cannot undo a refused change of the port; it opens again");
                    self.open_again(&name);
                }
                Err(late) => {
                    tracing::error!(
                        port = name,
                        why = late.message,
                        "cannot undo a refused change of the port; it opens again"
                    );
                    self.open_again(&name);
                }
            }
        }
    }

    /// Makes a port open again by the configuration in force, after it has carried out the commands that wait for it.
    fn open_again(&self, name: &str) {
        // A port that was given up opens by the configuration in force in any case.
        let _ = self.ports.tell(name, PortThreadCommand::OpenAgain);
    }
}
