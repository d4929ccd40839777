//! Management of the ports, on the control thread, which holds the configuration and makes every change of the
//! configuration. `control` has the control socket, and `port` carries out the commands to a port.

mod apply;
mod difference;
mod import;
mod outcome;
mod ports;
mod refit;
mod transition;

pub(crate) use ports::RunningPorts;

use crate::config::{HostConfig, VfConfig};
use crate::control::problem::ProblemKind;
use crate::control::protocol::{
    ControlAnswer, ControlRequest, ControlRequestFailure, SettingsCommand, UpgradeResult,
};
use crate::control::status::PortStatus;
use crate::events;
use crate::port::PortThreadCommand;
use crate::settings::{LinkLocalPolicy, PortSettings, SettingLayers, SettingsGroup, VfSettings};
use crate::store::StateFile;
use host::poll::ThreadWaker;
use outcome::{ControlRequestResult, unavailable};
use policy::PortPolicy;
use std::fmt::Display;
use std::sync::mpsc;
use std::time::Duration;

/// Manager of the running host: its configuration, and its ports. It serves the control requests.
#[derive(Debug)]
pub(crate) struct HostManager {
    config: HostConfig,
    state_file: StateFile,
    ports: RunningPorts,
    /// Channel of requests to the host's main thread, and the waker of that thread.
    orders: (mpsc::Sender<MainThreadRequest>, ThreadWaker),
}

/// Request of the control thread that only the host's main thread can carry out.
#[derive(Debug)]
pub enum MainThreadRequest {
    /// Hand over to a new process of the host. The answer is the new process's id, or the reason why this process
    /// continues.
    Upgrade(mpsc::Sender<Result<u32, UpgradeFailure>>),
}

/// Reason why a hand-over to a new process has failed.
#[derive(Debug)]
pub enum UpgradeFailure {
    /// The new process, or this one, refuses.
    Refused(String),
    /// A signal to this process comes first: a later attempt may succeed.
    PutOff(String),
}

impl From<UpgradeFailure> for ControlRequestFailure {
    fn from(failure: UpgradeFailure) -> Self {
        match failure {
            UpgradeFailure::Refused(reason) => refused(reason),
            UpgradeFailure::PutOff(reason) => Self::new(ProblemKind::Busy, reason),
        }
    }
}

/// Timeout of a whole hand-over to a new process.
const HAND_OVER: Duration = Duration::from_secs(20);
/// Refusal of an upgrade while the state file is not known to have the settings in force.
const UNCERTAIN: &str = "the state file may hold a change that the host has refused, and a new process would apply it; make the \
    folder of the state file writable, and repeat the upgrade";

impl HostManager {
    pub(crate) fn new(
        config: HostConfig,
        ports: RunningPorts,
        orders: (mpsc::Sender<MainThreadRequest>, ThreadWaker),
    ) -> Self {
        let state_file = StateFile::new(ports.disk_wait().clone());
        Self { config, state_file, ports, orders }
    }

    /// Has the main thread hand over the host to a new process, and waits for the outcome.
    fn upgrade(&mut self) -> ControlRequestResult<UpgradeResult> {
        // The new process reads the state file.
        self.state_file.keep(&self.config, &self.config).map_err(refused)?;
        if self.state_file.is_uncertain() {
            return Err(refused(UNCERTAIN));
        }
        // The new process may have a port of the same name, and would resume the clients that this one disconnects.
        self.ports.await_ends(|_| true)?;
        let (answer, receiver) = mpsc::channel();
        let (orders, waker) = &self.orders;
        if orders.send(MainThreadRequest::Upgrade(answer)).is_err() {
            return Err(unavailable());
        }
        waker.wake();
        let outcome = receiver.recv_timeout(HAND_OVER).map_err(|_| unavailable())?;
        Ok(UpgradeResult { pid: outcome? })
    }

    /// Carries out a control request, and returns the answer.
    pub(crate) fn handle(&mut self, request: ControlRequest) -> ControlRequestResult<ControlAnswer> {
        match request {
            ControlRequest::PortList => {
                let names = self.config.ports.iter().map(|port| port.name.as_str());
                let serving = names.filter(|name| !self.ports.is_given_up(name));
                let statuses = serving.map(|name| self.status(name));
                Ok(ControlAnswer::Ports(statuses.collect::<Result<_, _>>()?))
            }
            ControlRequest::PortShow { port } => self.show_port(&port),
            ControlRequest::PortFunctions { port } => {
                self.find_port(&port)?;
                self.ports.ask(&port, PortThreadCommand::Functions).map(ControlAnswer::Functions)
            }
            ControlRequest::PortSet { port, change } => {
                self.set_port(&port, &change)?;
                self.show_port(&port)
            }
            ControlRequest::PortReset { port } => {
                self.find_port(&port)?;
                let reset = self.ports.ask(&port, PortThreadCommand::Reset)?;
                reset.map_err(refused)?;
                self.show_port(&port)
            }
            // A PF that a guest drives has no VFs, so its port's name stands for it here.
            ControlRequest::VfShow { vf } if self.config.ports.iter().any(|port| port.name == vf) => {
                self.show_port(&vf)
            }
            ControlRequest::VfShow { vf } => self.show_vf(&vf),
            ControlRequest::VfSet { vf, change } => {
                self.set_vf(&vf, &change)?;
                self.show_vf(&vf)
            }
            ControlRequest::VfImport { vf, import } => {
                self.import_vf(&vf, import)?;
                self.show_vf(&vf)
            }
            ControlRequest::VfDisconnect { vf } => {
                let (port, found) = self.find_vf(&vf)?;
                let index = found.index;
                let disconnect = |answer| PortThreadCommand::Disconnect(index, answer);
                // The status names the client that the port disconnects.
                let status = self.ports.ask(&port, disconnect)?.map_err(refused)?;
                vf_of(self.with_origins(status), &vf)
            }
            ControlRequest::VfFlight { vf } => {
                let (port, found) = self.find_vf(&vf)?;
                let index = found.index;
                let taken = self.ports.ask(&port, |answer| PortThreadCommand::Flight(index, answer))?;
                Ok(ControlAnswer::Flight(taken.ok_or_else(unavailable)?.named()))
            }
            ControlRequest::Events { after } => Ok(ControlAnswer::Recent(events::after(after))),
            ControlRequest::Upgrade => self.upgrade().map(ControlAnswer::Upgraded),
            ControlRequest::Apply(file) => self.apply(&file).map(ControlAnswer::Difference),
        }
    }

    /// Returns a port's status with the origins of its settings, which the port itself does not know.
    fn status(&self, name: &str) -> ControlRequestResult<PortStatus> {
        self.ports.ask(name, PortThreadCommand::Status).map(|status| self.with_origins(status))
    }

    fn with_origins(&self, mut status: PortStatus) -> PortStatus {
        if let Some(port) = self.config.ports.iter().find(|port| port.name == status.name) {
            status.origins = port.layers.origins();
            for (vf, config) in status.vfs.iter_mut().zip(&port.vfs) {
                vf.origins = config.layers.origins();
            }
        }
        status
    }

    fn show_port(&self, name: &str) -> ControlRequestResult<ControlAnswer> {
        self.find_port(name)?;
        Ok(ControlAnswer::Port(Box::new(self.status(name)?)))
    }

    fn show_vf(&self, name: &str) -> ControlRequestResult<ControlAnswer> {
        let (port, _) = self.find_vf(name)?;
        vf_of(self.status(&port)?, name)
    }

    fn find_port(&self, name: &str) -> ControlRequestResult<()> {
        let mut names = self.config.ports.iter().map(|port| port.name.as_str());
        if names.clone().any(|known| known == name) {
            return Ok(());
        }
        let known: Vec<&str> = names.by_ref().collect();
        Err(no_such_name("port", name, &known))
    }

    /// Returns the configuration of a VF, and the name of its port.
    fn find_vf(&self, name: &str) -> ControlRequestResult<(String, &VfConfig)> {
        let vfs = self.config.ports.iter().flat_map(|port| port.vfs.iter().map(move |vf| (port, vf)));
        if let Some((port, vf)) = vfs.clone().find(|(_, vf)| vf.name == name) {
            return Ok((port.name.clone(), vf));
        }
        let known: Vec<&str> = vfs.map(|(_, vf)| vf.name.as_str()).collect();
        Err(no_such_name("VF", name, &known))
    }

    fn set_vf(&mut self, name: &str, change: &SettingsCommand<VfSettings>) -> ControlRequestResult<()> {
        self.find_vf(name)?;
        let every = VfSettings::of(&policy::VfPolicy::default(), false).leaves();
        known_settings(
            &change.default,
            |key| every.contains_key(key),
            &every.keys().cloned().collect::<Vec<_>>(),
        )?;
        let set = change.set.clone().as_command();
        let mut next = self.config.clone();
        if let Some(vf) = next.vf_mut(name) {
            change_layers(&mut vf.layers, &set, change);
        }
        let lets_out = set.quarantine == Some(false) || change.default.iter().any(|key| key == "quarantine");
        next.resolve().map_err(refused)?;
        self.transition_to(next, lets_out.then_some(name))
    }

    fn set_port(&mut self, name: &str, change: &SettingsCommand<PortSettings>) -> ControlRequestResult<()> {
        self.find_port(name)?;
        let every = PortSettings::of(&PortPolicy::default(), LinkLocalPolicy::default(), 1).leaves();
        let mirror = |key: &str| key.strip_prefix("mirror.").is_some_and(|rule| rule.parse::<u8>().is_ok());
        let mut keys: Vec<String> = every.keys().cloned().collect();
        keys.push("mirror.N".to_owned());
        known_settings(&change.default, |key| every.contains_key(key) || mirror(key), &keys)?;
        let mut next = self.config.clone();
        let Some(port) = next.port_mut(name) else { return Err(unavailable()) };
        if port.pf_socket.is_some() {
            return Err(refused(
                "a guest drives this port's PF, and only the guest can change settings of the port",
            ));
        }
        change_layers(&mut port.layers, &change.set, change);
        next.resolve().map_err(refused)?;
        self.transition_to(next, None)
    }
}

/// Returns the answer with the status of one of a port's VFs.
fn vf_of(port: PortStatus, name: &str) -> ControlRequestResult<ControlAnswer> {
    let vf = port.vfs.into_iter().find(|vf| vf.name == name);
    Ok(ControlAnswer::Vf(Box::new(vf.ok_or_else(unavailable)?)))
}

/// Changes the settings of a VF or port as a command says: removes values first, then sets new ones.
fn change_layers<S: SettingsGroup>(layers: &mut SettingLayers, set: &S, change: &SettingsCommand<S>) {
    layers.forget(&change.default);
    layers.change(set.leaves(), change.volatile);
}

/// Checks that a command names only known settings.
fn known_settings(
    named: &[String],
    is_known: impl Fn(&str) -> bool,
    all: &[String],
) -> ControlRequestResult<()> {
    match named.iter().find(|key| !is_known(key)) {
        Some(key) => Err(refused(format!("{key:?} is not a setting; valid settings are {}", all.join(", ")))),
        None => Ok(()),
    }
}

fn no_such_name(kind: &str, name: &str, known: &[&str]) -> ControlRequestFailure {
    let message = format!("no {kind} is named {name:?}; valid names are {}", known.join(", "));
    ControlRequestFailure::new(ProblemKind::NoSuchName, message)
}

fn refused(why: impl Display) -> ControlRequestFailure {
    ControlRequestFailure::new(ProblemKind::Refused, why.to_string())
}
