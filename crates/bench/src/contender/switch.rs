//! Open vSwitch with DPDK: its database, the switch with two ports, and a flow in each direction. It forwards for
//! testpmd (`peers`), and for a guest whose traffic is measured beside other guests'. It does not learn addresses.

use super::peers::prefix;
use super::telemetry;
use crate::machine::huge_pages::HugePages;
use crate::machine::process::LoggedProcess;
use crate::machine::processors::ProcessorAssignment;
use anyhow::{Context, Result, anyhow, bail, ensure};
use host::namespace::{enter_network, enter_new_network};
use linux_guest::HostDpdk;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// Kind of a port of Open vSwitch, with the port's name.
#[derive(Debug, Clone, Copy)]
pub enum OpenVswitchPort {
    /// vhost-user port of this name. The switch connects to the socket `NAME.sock` in its folder as soon as the socket
    /// exists.
    VhostUser(&'static str),
    /// Tap interface of this name. The switch creates the tap, and reads and writes it with system calls.
    Interface(&'static str),
}

impl OpenVswitchPort {
    fn name(self) -> &'static str {
        match self {
            Self::VhostUser(name) | Self::Interface(name) => name,
        }
    }
}

/// Configuration of an Open vSwitch process.
#[derive(Debug)]
pub struct OpenVswitchConfig<'a> {
    /// Debian's Open vSwitch with DPDK.
    pub dpdk: &'a HostDpdk,
    /// Huge pages for the switch's memory; without any, the switch uses ordinary pages.
    pub huge: &'a HugePages,
    /// Processors of the switch, which forwards on the forwarder's processor, and does everything else on the
    /// generator's.
    pub processors: ProcessorAssignment,
    /// Folder for the sockets and logs of Open vSwitch.
    pub folder: &'a Path,
    /// Ports between which Open vSwitch forwards.
    pub ports: [OpenVswitchPort; 2],
    /// True to offer checksum offload and TSO to the guests.
    pub offloads: bool,
    /// Network namespace for the switch's interfaces; `None` for a new namespace.
    pub namespace: Option<&'a Path>,
}

/// Processes of an Open vSwitch that forwards between two ports: the switch and its database.
#[derive(Debug)]
pub struct OpenVswitchProcess {
    /// Process of the switch. Dropped before the database's process.
    process: LoggedProcess,
    _database: LoggedProcess,
    prefix: String,
}

impl OpenVswitchProcess {
    /// Starts Open vSwitch with its database and flows.
    ///
    /// # Errors
    /// A program ends or refuses its arguments, with its message; or the namespace requires more privileges.
    pub fn start(setup: &OpenVswitchConfig<'_>) -> Result<Self> {
        let schema = setup.dpdk.switch_schema();
        setup.run("usr/bin/ovsdb-tool", &["create", &setup.at("conf.db"), &schema.display().to_string()])?;
        let remote = format!("--remote=punix:{}", setup.at("db.sock"));
        let mut database = setup.dpdk.switch_program("usr/sbin/ovsdb-server");
        let database = setup.spawn(database.args([setup.at("conf.db"), remote]), "database")?;
        setup.wait("db.sock", &database)?;
        let prefix = prefix();
        setup.configure(&prefix)?;
        let process = setup.switch()?;
        setup.wait("bridge.mgmt", &process)?;
        setup.direct().with_context(|| process.log())?;
        Ok(Self { process, _database: database, prefix })
    }

    /// Returns the process of the switch, without that of its database.
    #[must_use]
    pub fn process(&self) -> &LoggedProcess {
        &self.process
    }
}

impl Drop for OpenVswitchProcess {
    fn drop(&mut self) {
        // DPDK leaves files behind that are of no further use.
        let _ = fs::remove_dir_all(telemetry::folder(&self.prefix));
    }
}

impl OpenVswitchConfig<'_> {
    /// Writes the switch's configuration into the database.
    fn configure(&self, prefix: &str) -> Result<()> {
        // Open vSwitch adds `--in-memory` itself, which conflicts with small pages.
        let small = "--no-huge --legacy-mem -m 512";
        let memory = if self.huge.is_there() { "--single-file-segments -m 512" } else { small };
        let pool = self.dpdk.pool();
        let extra = format!("--no-pci {memory} --file-prefix={prefix} -d {}", pool.display());
        let mask = |processor: usize| format!("{:#x}", 1_u64 << processor);
        self.vsctl(&[
            "set",
            "Open_vSwitch",
            ".",
            "other_config:dpdk-init=true",
            // Without this it requires memory for 262,144 frames.
            "other_config:per-port-memory=true",
            &format!("other_config:userspace-tso-enable={}", self.offloads),
            &format!("other_config:dpdk-lcore-mask={}", mask(self.processors.generator)),
            &format!("other_config:pmd-cpu-mask={}", mask(self.processors.forwarder)),
            &format!("other_config:dpdk-extra=\"{extra}\""),
        ])?;
        self.vsctl(&["add-br", "bridge", "--", "set", "bridge", "bridge", "datapath_type=netdev"])?;
        for port in self.ports {
            let name = port.name();
            let path = format!("options:vhost-server-path={}", self.at(&format!("{name}.sock")));
            let kind: &[&str] = match port {
                OpenVswitchPort::VhostUser(_) => &["type=dpdkvhostuserclient", &path],
                OpenVswitchPort::Interface(_) => &["type=internal"],
            };
            self.vsctl(&[&["add-port", "bridge", name, "--", "set", "Interface", name], kind].concat())?;
        }
        Ok(())
    }

    /// Adds a flow from each port of the switch to the other.
    fn direct(&self) -> Result<()> {
        let [one, other] = self.ports.map(OpenVswitchPort::name);
        self.ofctl(&["del-flows", "bridge"])?;
        for (from, to) in [(one, other), (other, one)] {
            self.ofctl(&["add-flow", "bridge", &format!("in_port={from},actions=output:{to}")])?;
        }
        Ok(())
    }

    fn at(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// Starts the switch in the network namespace in which it creates its interfaces.
    fn switch(&self) -> Result<LoggedProcess> {
        let mut command = self.dpdk.switch();
        command.args([&format!("unix:{}", self.at("db.sock")), "-vconsole:info"]);
        let start = || {
            let entered = self.namespace.map_or_else(enter_new_network, enter_network);
            entered.context("cannot create a network namespace without root or CAP_SYS_ADMIN")?;
            self.spawn(&mut command, "switch")
        };
        let started = thread::scope(|scope| scope.spawn(start).join());
        started.map_err(|_| anyhow!("the thread that starts Open vSwitch panicked"))?
    }

    fn spawn(&self, command: &mut Command, name: &str) -> Result<LoggedProcess> {
        let log = self.folder.join(format!("{name}.log"));
        let file = File::create(&log)?;
        let child = self.here(command).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
        Ok(LoggedProcess::new(child, log))
    }

    /// Sets all folders that a program of Open vSwitch uses to the folder of this switch.
    fn here<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for folder in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(folder, self.folder);
        }
        command
    }

    fn wait(&self, socket: &str, process: &LoggedProcess) -> Result<()> {
        let begun = Instant::now();
        while !self.folder.join(socket).exists() {
            if begun.elapsed() > PATIENCE {
                bail!("Open vSwitch did not start; its log:\n{}", process.log());
            }
            thread::sleep(Duration::from_millis(20));
        }
        Ok(())
    }

    fn vsctl(&self, words: &[&str]) -> Result<()> {
        let database = format!("--db=unix:{}", self.at("db.sock"));
        self.run("usr/bin/ovs-vsctl", &[&[database.as_str(), "--no-wait"], words].concat())
    }

    fn ofctl(&self, words: &[&str]) -> Result<()> {
        self.run("usr/bin/ovs-ofctl", words)
    }

    fn run(&self, program: &str, words: &[&str]) -> Result<()> {
        let output = self.here(self.dpdk.switch_program(program).args(words)).output()?;
        let said = String::from_utf8_lossy(&output.stderr);
        ensure!(output.status.success(), "`{program} {}` failed: {}", words.join(" "), said.trim());
        Ok(())
    }
}
