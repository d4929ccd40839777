//! Real host for tests, in a temporary folder, with requests to it over its control socket.

use daemon::config::HostConfig;
use daemon::config::file::ConfigFile;
use daemon::control::client::ControlClientError;
use daemon::control::client::ask;
use daemon::control::protocol::{
    ApplyRequest, ConfigDifference, ControlAnswer, ControlRequest, SettingsCommand,
};
use daemon::control::status::{LinkState, PortStatus, VfStatus};
use daemon::settings::{PortSettings, VfSettings};
use daemon::{ReadyHost, RunningHost};
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::Duration;
use tempfile::TempDir;

/// Time for which paused ports wait for the successor process in [`LiveHost::hand_over`], longer than any machine
/// needs.
const ASIDE: Duration = Duration::from_secs(60);

/// Running host of a test, in a temporary folder, with the port pf0.
pub(crate) struct LiveHost {
    host: Option<RunningHost>,
    folder: TempDir,
}

impl LiveHost {
    /// Starts a host whose only port has default values: seven VFs, no uplink.
    pub(crate) fn start() -> Self {
        Self::with("")
    }

    /// Starts a host with the configuration `text`. The host has no state folder, so changes are lost at its
    /// end.
    pub(crate) fn with(text: &str) -> Self {
        Self::start_in(tempfile::tempdir().unwrap(), HostConfig::parse(text).unwrap())
    }

    /// Starts a host with the configuration `text`, and with a state folder that stores changes by commands.
    pub(crate) fn keeping(text: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let mut file = HostConfig::parse(text).unwrap();
        file.state_dir = Some(folder.path().join("state"));
        Self::start_in(folder, file)
    }

    fn start_in(folder: TempDir, file: ConfigFile) -> Self {
        let host = RunningHost::start(HostConfig::check(file, folder.path()).unwrap()).unwrap();
        Self { host: Some(host), folder }
    }

    /// Starts a host with the configuration `text` whose sockets are in `folder`. `before` receives the configuration
    /// before the start.
    pub(crate) fn begin(text: &str, folder: TempDir, before: impl FnOnce(&HostConfig)) -> Self {
        let config = HostConfig::check(HostConfig::parse(text).unwrap(), folder.path()).unwrap();
        before(&config);
        Self { host: Some(RunningHost::start(config).unwrap()), folder }
    }

    /// Replaces the host by a successor process with the configuration `text`, which takes all clients over, as
    /// `softiov upgrade` does.
    pub(crate) fn hand_over(&mut self, text: &str) {
        self.hand_over_while(text, || {});
    }

    /// Replaces the host as [`Self::hand_over`] does, and calls `paused` while no process serves the ports.
    pub(crate) fn hand_over_while(&mut self, text: &str, paused: impl FnOnce()) {
        let config = HostConfig::check(HostConfig::parse(text).unwrap(), self.folder.path()).unwrap();
        let host = self.host.take().unwrap();
        assert!(host.pause(ASIDE), "a port cannot pause");
        paused();
        let ready = ReadyHost::succeed(config, host.vault()).unwrap();
        host.leave(ASIDE);
        self.host = Some(ready.start().unwrap());
    }

    /// Pauses the host for a successor process with the configuration `text`, which opens the ports and gives up. This host
    /// continues.
    pub(crate) fn refuse_hand_over(&mut self, text: &str) {
        let config = HostConfig::check(HostConfig::parse(text).unwrap(), self.folder.path()).unwrap();
        let host = self.host.as_ref().unwrap();
        assert!(host.pause(ASIDE), "a port cannot pause");
        drop(ReadyHost::succeed(config, host.vault()).unwrap());
        host.resume();
    }

    /// Returns true if the host keeps a file descriptor with this name for its successor process.
    pub(crate) fn keeps(&self, name: &str) -> bool {
        self.kept(name).is_some()
    }

    /// Returns a copy of the file descriptor that the host keeps under this name for its successor process.
    pub(crate) fn kept(&self, name: &str) -> Option<OwnedFd> {
        self.host.as_ref().unwrap().vault().copy(name)
    }

    /// Returns the path of a VF's vfio-user socket, by the VF's index.
    pub(crate) fn socket(&self, vf: u8) -> PathBuf {
        self.folder.path().join(format!("pf0vf{vf}/vf.sock"))
    }

    /// Returns the path of a VF's vfio-user socket, by the VF's name.
    pub(crate) fn socket_of(&self, name: &str) -> PathBuf {
        self.folder.path().join(name).join("vf.sock")
    }

    /// Returns the path of the PF's vfio-user socket. A guest drives the PF.
    pub(crate) fn pf_socket(&self) -> PathBuf {
        self.folder.path().join("pf0/pf.sock")
    }

    /// Returns the state folder, in which a host started by [`Self::keeping`] stores changes.
    pub(crate) fn state_dir(&self) -> PathBuf {
        self.folder.path().join("state")
    }

    /// Returns the path of the host's control socket.
    pub(crate) fn control_socket(&self) -> PathBuf {
        self.folder.path().join("control/control.sock")
    }

    /// Returns the status of a VF, as `softiov vf show` does.
    pub(crate) fn show(&self, vf: u8) -> VfStatus {
        self.ask_vf(ControlRequest::VfShow { vf: format!("pf0vf{vf}") })
    }

    /// Sets the link of a VF, as `softiov vf set --state` does.
    pub(crate) fn set(&self, vf: u8, state: LinkState) -> VfStatus {
        self.change(vf, VfSettings::link(state))
    }

    /// Changes settings of a VF, as `softiov vf set` does.
    pub(crate) fn change(&self, vf: u8, change: VfSettings) -> VfStatus {
        self.ask_vf(ControlRequest::VfSet {
            vf: format!("pf0vf{vf}"),
            change: SettingsCommand::volatile(change),
        })
    }

    /// Requests a change of a VF that the host must refuse, and returns the reason, as `softiov vf set`
    /// prints it.
    pub(crate) fn refusal(&self, vf: u8, change: VfSettings) -> String {
        let request =
            ControlRequest::VfSet { vf: format!("pf0vf{vf}"), change: SettingsCommand::volatile(change) };
        ask(&self.control_socket(), request).expect_err("the host refuses the change").to_string()
    }

    /// Disconnects a VF's client, as `softiov vf disconnect` does.
    pub(crate) fn disconnect(&self, vf: u8) -> Result<ControlAnswer, ControlClientError> {
        ask(&self.control_socket(), ControlRequest::VfDisconnect { vf: format!("pf0vf{vf}") })
    }

    fn ask_vf(&self, request: ControlRequest) -> VfStatus {
        match ask(&self.control_socket(), request).unwrap() {
            ControlAnswer::Vf(status) => *status,
            other => panic!("unexpected answer to vf.show: {other:?}"),
        }
    }

    /// Returns the status of the first port, as `softiov vf list` shows it.
    pub(crate) fn port(&self) -> PortStatus {
        match ask(&self.control_socket(), ControlRequest::PortList).unwrap() {
            ControlAnswer::Ports(mut ports) => ports.remove(0),
            other => panic!("unexpected answer to port.list: {other:?}"),
        }
    }

    /// Changes settings of the port, as `softiov port set` does.
    pub(crate) fn change_port(&self, change: PortSettings) -> Result<PortStatus, ControlClientError> {
        self.ask_port(ControlRequest::PortSet {
            port: "pf0".into(),
            change: SettingsCommand::volatile(change),
        })
    }

    /// Returns the status of a port, as `softiov port show` does.
    pub(crate) fn show_port(&self, name: &str) -> PortStatus {
        self.ask_port(ControlRequest::PortShow { port: name.into() }).unwrap()
    }

    /// Applies a configuration file, as `softiov apply` does.
    pub(crate) fn apply(&self, text: &str) -> Result<ConfigDifference, ControlClientError> {
        let file = ApplyRequest { name: "new.toml".into(), text: text.into(), ..ApplyRequest::default() };
        let state_dir = Some(self.state_dir());
        match ask(&self.control_socket(), ControlRequest::Apply(ApplyRequest { state_dir, ..file }))? {
            ControlAnswer::Difference(difference) => Ok(difference),
            other => panic!("unexpected answer to apply: {other:?}"),
        }
    }

    /// Resets the port, as `softiov port reset` does.
    pub(crate) fn reset_port(&self) -> Result<PortStatus, ControlClientError> {
        self.ask_port(ControlRequest::PortReset { port: "pf0".into() })
    }

    fn ask_port(&self, request: ControlRequest) -> Result<PortStatus, ControlClientError> {
        match ask(&self.control_socket(), request)? {
            ControlAnswer::Port(port) => Ok(*port),
            other => panic!("unexpected answer to a request about a port: {other:?}"),
        }
    }

    /// Returns true if every thread of the host still runs.
    pub(crate) fn is_whole(&self) -> bool {
        self.host.as_ref().is_some_and(RunningHost::is_whole)
    }

    /// Ends the host, and returns the files that remain in its folders.
    pub(crate) fn stop(mut self) -> Vec<PathBuf> {
        drop(self.host.take());
        let paths = |folder: &Path| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
        paths(self.folder.path()).flat_map(|folder| paths(&folder)).collect()
    }
}
