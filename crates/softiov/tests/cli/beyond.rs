//! Tests two machines, each with a host, whose uplinks a tunnel joins. The machines are two network namespaces with a
//! cable between them, and run the commands of the user guide in their order.

use crate::guide::GUIDE;
use crate::process::{SOFTIOV, ServeProcess, eventually, finish, softiov};
use crate::survival::attach_as;
use embedded_guest::EmbeddedGuest;
use host::test_support::{OtherNetworkNamespace, skipped};
use linux_guest::OpenVSwitch;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use tempfile::{TempDir, tempdir};

/// Number of bytes in a TCP flow: at most what the kernel buffers for a slow switch. The guests' TCP sends a whole
/// window at once and recovers slowly from losses.
const FLOW: u64 = 64 << 10;
/// Addresses that the user guide gives the two machines.
const ADDRESSES: [&str; 2] = ["192.0.2.1", "192.0.2.2"];

/// Process of a test that is killed when this value is dropped.
struct TestProcess(Child);

impl Drop for TestProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A network namespace that stands for a machine, with a folder of its own.
struct SimulatedMachine {
    /// Processes of Open vSwitch, dropped before the namespace.
    switch: Vec<TestProcess>,
    namespace: OtherNetworkNamespace,
    folder: TempDir,
    number: usize,
}

impl SimulatedMachine {
    fn new(number: usize) -> Self {
        let namespace = OtherNetworkNamespace::new();
        let machine = Self { switch: Vec::new(), namespace, folder: tempdir().unwrap(), number };
        fs::create_dir(machine.folder.path().join("bin")).unwrap();
        machine.tool("softiov", &format!("{SOFTIOV} \"$@\" --runtime-dir {}", machine.sockets().display()));
        machine
    }

    fn pid(&self) -> u32 {
        self.namespace.pid()
    }

    fn port(&self) -> String {
        format!("pf{}", self.number)
    }

    fn sockets(&self) -> PathBuf {
        self.folder.path().join("sockets")
    }

    /// Creates an executable `name` that runs `command`, in the folder of programs of the simulated machine.
    fn tool(&self, name: &str, command: &str) {
        let path = self.folder.path().join("bin").join(name);
        fs::write(&path, format!("#!/bin/sh\nexec {command}\n")).unwrap();
        fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).unwrap();
    }

    /// Returns a command that runs in the machine's network namespace.
    fn command(&self, program: &str) -> Command {
        self.namespace.command(program)
    }

    /// Runs a script on the simulated machine and returns its output. The first machine has the addresses of the
    /// guide, the second has them exchanged.
    #[track_caller]
    fn run(&self, script: &str) -> String {
        let script = match self.number {
            0 => script.to_owned(),
            _ => script
                .replace(ADDRESSES[0], "ME")
                .replace(ADDRESSES[1], ADDRESSES[0])
                .replace("ME", ADDRESSES[1]),
        };
        let path = format!("{}:{}", self.folder.path().join("bin").display(), std::env::var("PATH").unwrap());
        let said = finish(self.command("sh").args(["-exc", &script]).env("PATH", path));
        assert_eq!(said.status, Some(0), "{script}\n{}{}", said.out, said.err);
        said.out
    }

    /// Starts a host on the simulated machine. Its port has a name, and so addresses, of its own: addresses derive from
    /// the name and from the machine's id, which both namespaces share.
    fn serve(&self, config: &str) -> ServeProcess {
        let file = self.folder.path().join("softiov.toml");
        let port = format!("[[port]]\nname = \"{}\"\n", self.port());
        fs::write(&file, config.replace("[[port]]\n", &port)).unwrap();
        ServeProcess::spawn(&self.folder, self.command(SOFTIOV).arg("serve").arg("--config").arg(file))
    }

    /// Returns the number of frames that the host's port dropped because they were too long.
    fn too_long(&self) -> u64 {
        let said = softiov(&self.sockets(), &["port", "show", &self.port(), "--json"]).out;
        let port: serde_json::Value = serde_json::from_str(&said).unwrap();
        port["uplink_status"]["drops"]["too_long"].as_u64().unwrap()
    }
}

/// Creates two simulated machines, joined by a veth pair as the cable. Without network namespaces, skips the test and
/// returns `None`.
fn two_machines(what: &str) -> Option<[SimulatedMachine; 2]> {
    let may = finish(Command::new("unshare").args(["-n", "ip", "link", "add", "probe0", "type", "veth"]));
    if may.status != Some(0) {
        skipped(what, &format!("a network namespace with a veth pair is not available: {}", may.err.trim()));
        return None;
    }
    let machines = [SimulatedMachine::new(0), SimulatedMachine::new(1)];
    machines[0].run(&format!("ip link add eth0 type veth peer name eth0 netns {}", machines[1].pid()));
    for machine in &machines {
        machine.run("ip addr add 192.0.2.1/24 dev eth0; ip link set eth0 up");
    }
    Some(machines)
}

/// Returns the code blocks of a language in a section of the user guide.
fn blocks(heading: &str, language: &str) -> Vec<&'static str> {
    let (_, section) = GUIDE.split_once(&format!("\n### {heading}\n")).expect("the section is there");
    let section = section.split("\n##").next().unwrap();
    let opening = format!("```{language}\n");
    let rests = section.split(&opening).skip(1);
    rests.map(|rest| rest.split("```").next().unwrap()).collect()
}

/// Follows a section of the guide that joins both machines by a tunnel. A flow of full frames passes between guests on
/// VLAN 100, and between untagged guests, and no frame from one pair to the other pair. Then the interface's MTU
/// becomes too small for the guests' frames.
fn joined(machines: &[SimulatedMachine; 2], heading: &str) {
    let [script] = blocks(heading, "sh")[..] else { panic!("{heading} has another block") };
    let [config] = blocks(heading, "toml")[..] else { panic!("{heading} has another configuration") };
    for machine in machines {
        machine.run(script);
    }
    let _hosts = machines.each_ref().map(|machine| machine.serve(config));
    let guest = |machine: &SimulatedMachine, vf: u8, number| {
        attach_as(&machine.sockets(), &format!("{}vf{vf}", machine.port()), number)
    };
    let [here, there] = machines;
    let (tagged, plain) = ([guest(here, 0, 0), guest(there, 0, 1)], [guest(here, 1, 2), guest(there, 1, 3)]);
    for [a, b] in [&tagged, &plain] {
        eventually("the tunnel carries", || a.ping(b.ip(), 1).unwrap().received() == 1);
        let flow = a.send_tcp(b.ip(), FLOW).unwrap();
        assert!(flow.is_intact(), "{flow:?}");
    }
    assert_eq!(tagged[0].ping(plain[1].ip(), 1).unwrap().received(), 0, "another VLAN");
    assert_eq!(machines.each_ref().map(SimulatedMachine::too_long), [0, 0]);
    too_short(here, &tagged);
}

/// Checks the guide's claim about an interface whose MTU is too small for the guests' frames: pings pass, and a large
/// transfer hangs until the MTU is raised.
fn too_short(here: &SimulatedMachine, [a, b]: &[EmbeddedGuest; 2]) {
    let [script] = blocks("Tunnel MTU", "sh")[..] else { panic!("another block") };
    here.run(script);
    eventually("the port shows the new MTU", || here.run("softiov port show pf0").contains("mtu 1446"));
    std::thread::scope(|scope| {
        let flow = scope.spawn(|| a.send_tcp(b.ip(), FLOW).unwrap());
        eventually("frames are too long", || here.too_long() > 0);
        assert_eq!(a.ping(b.ip(), 1).unwrap().received(), 1, "a ping is short");
        assert!(!flow.is_finished());
        here.run("ip link set softiov0 mtu 1500");
        let flow = flow.join().unwrap();
        assert!(flow.is_intact(), "{flow:?}");
    });
}

#[test]
fn linux_bridge_with_vxlan_joins_two_hosts() {
    let Some(machines) = two_machines("a bridge with VXLAN") else { return };
    let probe =
        finish(machines[0].command("ip").args("link add probe0 type vxlan id 1 dstport 4789".split(' ')));
    if probe.status != Some(0) {
        return skipped("a bridge with VXLAN", &format!("this kernel has no vxlan: {}", probe.err.trim()));
    }
    machines[0].run("ip link del probe0");
    joined(&machines, "Linux bridge");
}

#[test]
fn open_vswitch_with_vxlan_joins_two_hosts() {
    let Some(mut machines) = two_machines("Open vSwitch with VXLAN") else { return };
    let programs = match OpenVSwitch::prepare() {
        Ok(programs) => programs,
        Err(error) => return skipped("Open vSwitch with VXLAN", &error.to_string()),
    };
    for machine in &mut machines {
        machine.switch = start_switch(machine, &programs);
    }
    joined(&machines, "Open vSwitch");
}

/// Starts Open vSwitch on a simulated machine, and returns its processes. The database is dropped after the switch.
fn start_switch(machine: &SimulatedMachine, programs: &OpenVSwitch) -> Vec<TestProcess> {
    let folder = machine.folder.path();
    let at = |name: &str| folder.join(name).display().to_string();
    let words = |command: &Command| {
        let words = [command.get_program()].into_iter().chain(command.get_args());
        words.map(|word| word.to_str().unwrap().to_owned()).collect::<Vec<_>>().join(" ")
    };
    let made = finish(programs.tool("ovsdb-tool").arg("create").arg(at("conf.db")).arg(programs.schema()));
    assert_eq!(made.status, Some(0), "{}", made.err);
    let folders = ["OVS_RUNDIR", "OVS_LOGDIR", "OVS_DBDIR", "OVS_SYSCONFDIR"];
    let start = |command: &mut Command, socket: &str| {
        let words = words(command);
        let mut command = machine.command("sh");
        let log = fs::File::create(folder.join("ovs.log")).unwrap();
        command.args(["-c", &format!("exec {words}")]).envs(folders.map(|name| (name, folder)));
        let process = TestProcess(command.stdout(Stdio::null()).stderr(log).spawn().unwrap());
        eventually(socket, || starts(folder, socket));
        process
    };
    let remote = format!("--remote=punix:{}", at("db.sock"));
    let database = start(programs.database().arg(at("conf.db")).arg(remote), "db.sock");
    let switch = start(programs.switch().arg(format!("unix:{}", at("db.sock"))), "ovs-vswitchd.");
    machine.tool(
        "ovs-vsctl",
        &format!("{} --timeout=20 --db=unix:{} \"$@\"", words(&programs.tool("ovs-vsctl")), at("db.sock")),
    );
    vec![switch, database]
}

/// Returns true if `folder` has a file whose name starts with `name`.
fn starts(folder: &Path, name: &str) -> bool {
    let names = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name());
    names.into_iter().any(|file| file.to_str().is_some_and(|file| file.starts_with(name)))
}
