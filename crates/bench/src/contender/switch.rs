//! Open vSwitch with DPDK inside, as a peer's forwarder: its database, the switch with two vhost-user ports, and a flow in
//! each direction. Left out: the frames, which testpmd generates (`peers`), and MAC learning.

use super::peers::prefix;
use super::telemetry;
use crate::machine::huge_pages::HugePages;
use crate::machine::process::Process;
use crate::machine::processors::Processors;
use anyhow::{Context, Result, anyhow, bail, ensure};
use host::namespace::enter_new_network;
use linux_guest::HostDpdk;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(30);

/// A switch that forwards between two ports.
#[derive(Debug)]
pub(super) struct Switch {
    /// The switch before its database, which ends last.
    pub(super) process: Process,
    _database: Process,
    prefix: String,
}

/// Where its sockets and logs are, and what it is started with.
struct Site<'a> {
    dpdk: &'a HostDpdk,
    folder: &'a Path,
}

impl Switch {
    /// Starts it. Its ports become clients of the sockets `v0.sock` and `v1.sock` in the folder as soon as there are any.
    pub(super) fn start(
        dpdk: &HostDpdk,
        huge: &HugePages,
        processors: Processors,
        folder: &Path,
    ) -> Result<Self> {
        let site = Site { dpdk, folder };
        let schema = dpdk.switch_schema();
        site.run("usr/bin/ovsdb-tool", &["create", &site.at("conf.db"), &schema.display().to_string()])?;
        let remote = format!("--remote=punix:{}", site.at("db.sock"));
        let mut database = dpdk.switch_program("usr/sbin/ovsdb-server");
        let database = site.spawn(database.args([site.at("conf.db"), remote]), "database")?;
        site.wait("db.sock", &database)?;
        // Open vSwitch adds `--in-memory` itself, which does not go together with small pages.
        let small = "--no-huge --legacy-mem -m 512";
        let memory = if huge.is_there() { "--single-file-segments -m 512" } else { small };
        let prefix = prefix();
        let pool = dpdk.pool();
        let extra = format!("--no-pci {memory} --file-prefix={prefix} -d {}", pool.display());
        let mask = |processor: usize| format!("{:#x}", 1_u64 << processor);
        site.vsctl(&[
            "set",
            "Open_vSwitch",
            ".",
            "other_config:dpdk-init=true",
            // Else it wants room for 262,144 frames.
            "other_config:per-port-memory=true",
            &format!("other_config:dpdk-lcore-mask={}", mask(processors.generator)),
            &format!("other_config:pmd-cpu-mask={}", mask(processors.forwarder)),
            &format!("other_config:dpdk-extra=\"{extra}\""),
        ])?;
        site.vsctl(&["add-br", "bridge", "--", "set", "bridge", "bridge", "datapath_type=netdev"])?;
        for port in ["v0", "v1"] {
            let path = format!("options:vhost-server-path={}", site.at(&format!("{port}.sock")));
            let kind = "type=dpdkvhostuserclient";
            site.vsctl(&["add-port", "bridge", port, "--", "set", "Interface", port, kind, &path])?;
        }
        let process = site.switch()?;
        site.wait("bridge.mgmt", &process)?;
        let said = || process.log();
        site.ofctl(&["del-flows", "bridge"]).with_context(said)?;
        site.ofctl(&["add-flow", "bridge", "in_port=v0,actions=output:v1"]).with_context(said)?;
        site.ofctl(&["add-flow", "bridge", "in_port=v1,actions=output:v0"]).with_context(said)?;
        Ok(Self { process, _database: database, prefix })
    }
}

impl Drop for Switch {
    fn drop(&mut self) {
        // What it leaves there is of no use to anybody.
        let _ = fs::remove_dir_all(telemetry::folder(&self.prefix));
    }
}

impl Site<'_> {
    fn at(&self, name: &str) -> String {
        self.folder.join(name).display().to_string()
    }

    /// The switch, in a network namespace of its own: it makes interfaces for itself.
    fn switch(&self) -> Result<Process> {
        let mut command = self.dpdk.switch();
        command.args([&format!("unix:{}", self.at("db.sock")), "-vconsole:info"]);
        let start = || {
            enter_new_network().context("a network namespace takes root or CAP_SYS_ADMIN")?;
            self.spawn(&mut command, "switch")
        };
        let started = thread::scope(|scope| scope.spawn(start).join());
        started.map_err(|_| anyhow!("the thread that starts the switch has panicked"))?
    }

    fn spawn(&self, command: &mut Command, name: &str) -> Result<Process> {
        let log = self.folder.join(format!("{name}.log"));
        let file = File::create(&log)?;
        let child = self.here(command).stdin(Stdio::null()).stdout(file.try_clone()?).stderr(file).spawn()?;
        Ok(Process::new(child, log))
    }

    /// The command with all of Open vSwitch's folders in this one.
    fn here<'c>(&self, command: &'c mut Command) -> &'c mut Command {
        for folder in ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"] {
            command.env(folder, self.folder);
        }
        command
    }

    fn wait(&self, socket: &str, process: &Process) -> Result<()> {
        let begun = Instant::now();
        while !self.folder.join(socket).exists() {
            if begun.elapsed() > PATIENCE {
                bail!("Open vSwitch does not start:\n{}", process.log());
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
        ensure!(output.status.success(), "{program} {}: {}", words.join(" "), said.trim());
        Ok(())
    }
}
