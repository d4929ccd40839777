//! Opens ports, uplinks and recordings for a change of the configuration, on the control thread. Their files may be on a disk that
//! does not answer.

use super::super::outcome::{ControlRequestResult, unavailable};
use super::RunningPorts;
use crate::config::PortConfig;
use crate::port::{
    PortCommandInbox, PortStartError, PortUplink, PreparedPort, SharedPortResources, UplinkError,
    UplinkPipelineStages, UplinkResources,
};
use crate::vault::PortFileDescriptorStore;

impl RunningPorts {
    /// Opens a port by its configuration, without starting its thread.
    pub(crate) fn open(
        &self,
        config: &PortConfig,
        inbox: &PortCommandInbox,
    ) -> Result<PreparedPort, PortStartError> {
        self.disk.during(|| PreparedPort::open(config, &self.vault, inbox, &self.threads, &self.common))
    }

    /// Opens an uplink for a running port.
    pub(crate) fn open_uplink(
        &self,
        config: &PortConfig,
    ) -> ControlRequestResult<Result<PortUplink, UplinkError>> {
        self.making(config, |with| PortUplink::open(config, with))
    }

    /// Opens the impairment and the recording for the uplink of a running port.
    pub(crate) fn open_stages(
        &self,
        config: &PortConfig,
    ) -> ControlRequestResult<Result<UplinkPipelineStages, UplinkError>> {
        self.making(config, |with| UplinkPipelineStages::open(config, with))
    }

    fn making<T>(
        &self,
        config: &PortConfig,
        make: impl FnOnce(&UplinkResources<'_>) -> T,
    ) -> ControlRequestResult<T> {
        let ports = self.lock();
        let port = ports.iter().find(|port| port.name == config.name && !port.ends);
        let handle = port.map(|port| port.handle.clone()).ok_or_else(unavailable)?;
        drop(ports);
        let vault = PortFileDescriptorStore::new(&self.vault, &config.name);
        let SharedPortResources { files, wires, parents, programs, .. } = &self.common;
        Ok(self.disk.during(|| {
            make(&UplinkResources {
                vault: &vault,
                port: handle.waker(),
                watcher: &self.threads.control,
                threads: handle.uplink_threads(),
                files,
                wires,
                parents,
                programs,
                now: crate::clock::now(),
            })
        }))
    }
}
