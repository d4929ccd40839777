//! Checks a running host: its process, its uplinks, its VFs and their clients.

use super::finding::DoctorFinding;
use crate::output::escape_controls;
use daemon::config::file::CardFamily;
use daemon::control::client::ControlClientError;
use daemon::control::status::{ConnectedVmm, FunctionStatus, LinkState, PortStatus, VfStatus};
use daemon::control::uplink::UplinkState;
use std::fs;
use std::path::Path;

/// Share of a VF's frames dropped for lack of a receive descriptor, in percent, from which on the VF is
/// reported.
const LOST_PERCENT: u64 = 1;

/// State and limits of a host's process; `None` where the kernel does not report one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct ProcessLimits {
    /// Mode of the system call filter (`Seccomp:` in /proc/PID/status).
    pub(super) seccomp: Option<u32>,
    /// Limit and use of the memory of the host's control group, bytes.
    pub(super) memory: Option<(u64, u64)>,
    /// CPU quota of the process and the quota's period, microseconds (cpu.max).
    pub(super) processors: Option<(u64, u64)>,
    /// Limit and number of the host's open file descriptors.
    pub(super) files: Option<(u64, u64)>,
    /// Error that kept the host's limits from being read.
    pub(super) unread: Option<String>,
}

impl ProcessLimits {
    /// Reads the limits of process `pid`; all are `None` if that process is not softiov.
    pub(super) fn read(pid: i32) -> Self {
        let text = |path: String| fs::read_to_string(path).ok();
        if text(format!("/proc/{pid}/comm")).is_none_or(|name| name.trim() != "softiov") {
            return Self::default();
        }
        let status = text(format!("/proc/{pid}/status")).unwrap_or_default();
        let seccomp = status.lines().find_map(|line| line.strip_prefix("Seccomp:")?.trim().parse().ok());
        let group = text(format!("/proc/{pid}/cgroup")).unwrap_or_default();
        let group = group.lines().find_map(|line| line.strip_prefix("0::")).unwrap_or_default().to_owned();
        let word = |file: &str, n: usize| {
            let text = text(format!("/sys/fs/cgroup{group}/{file}"))?;
            text.split_whitespace().nth(n)?.parse().ok()
        };
        let [of_limits, of_files] = ["limits", "fd"].map(|name| format!("/proc/{pid}/{name}"));
        let (limits, files) = (fs::read_to_string(&of_limits), fs::read_dir(&of_files));
        let why = |path, error: Option<&std::io::Error>| error.map(|error| format!("{path}: {error}"));
        let unread = why(&of_limits, limits.as_ref().err()).or(why(&of_files, files.as_ref().err()));
        let limits = limits.unwrap_or_default();
        let limit = limits.lines().find_map(|line| line.strip_prefix("Max open files"));
        let limit = limit.and_then(|rest| rest.split_whitespace().next()?.parse().ok());
        let files = files.ok().map(|files| files.count() as u64);
        Self {
            seccomp,
            memory: word("memory.max", 0).zip(word("memory.current", 0)),
            processors: word("cpu.max", 0).zip(word("cpu.max", 1)),
            files: limit.zip(files),
            unread,
        }
    }

    pub(super) fn judge(&self) -> Vec<DoctorFinding> {
        let mut findings = Vec::new();
        match self.seccomp {
            Some(0) => findings.push(DoctorFinding::warning(
                "seccomp",
                "the host's system calls are not filtered",
                "start the host with --seccomp true",
            )),
            Some(_) => findings.push(DoctorFinding::ok("seccomp", "the host's system calls are filtered")),
            None => {}
        }
        if let Some((most, now)) = self.memory {
            let seen = format!("the host's control group uses {} of {} MiB", now >> 20, most >> 20);
            findings.push(if now > most / 10 * 9 {
                let remedy = "raise MemoryMax=, or start QEMU with prealloc=on: guest pages that the card touches \
                                            first are charged to the host";
                DoctorFinding::warning("cgroup", seen, remedy)
            } else {
                DoctorFinding::ok("cgroup", seen)
            });
        }
        findings.extend(self.processors.map(processors));
        findings.extend(self.files.map(files));
        findings.extend(self.unread.as_deref().map(|why| {
            let seen = format!("cannot read the host's limits: {why}");
            DoctorFinding::warning("files", seen, "run this command as the host's user, or as root")
        }));
        findings
    }
}

/// Checks the CPU quota of the host's control group: a throttled port delays guests, and QEMU drops a device
/// that is silent for 5 s.
fn processors((time, period): (u64, u64)) -> DoctorFinding {
    let seen = format!("the host's control group may use {time} us of CPU time per {period} us");
    if time < period {
        let remedy = "raise CPUQuota= to 100% per port plus 50%: guests wait while the quota is used up";
        return DoctorFinding::warning("cgroup", seen, remedy);
    }
    DoctorFinding::ok("cgroup", seen)
}

fn files((most, now): (u64, u64)) -> DoctorFinding {
    let seen = format!("the host has {now} of {most} file descriptors open");
    if now > most / 10 * 9 {
        let remedy = "raise LimitNOFILE= or ulimit -Hn: a guest takes one per memory file and per interrupt";
        return DoctorFinding::warning("files", seen, remedy);
    }
    DoctorFinding::ok("files", seen)
}

/// Returns the `softiov doctor` finding for a host that does not answer.
pub(super) fn unreachable(error: &ControlClientError, socket: &Path) -> DoctorFinding {
    let remedy = match error {
        ControlClientError::Unreachable { source, .. }
            if source.kind() == std::io::ErrorKind::PermissionDenied =>
        {
            "run this command as the host's user, or admit your group: control = { group = \"...\" }"
        }
        ControlClientError::Unreachable { .. } => {
            "start a host with `softiov serve`, or name the running one with --config or --runtime-dir"
        }
        _ => "read the host's log; if host and command differ in version, run `softiov upgrade`",
    };
    let seen = match error {
        ControlClientError::Unreachable { source, .. } => {
            format!("no host answers at {}: {source}", socket.display())
        }
        other => format!("{}: {other}", socket.display()),
    };
    DoctorFinding::problem("host", seen, remedy)
}

pub(super) fn ports(ports: &[PortStatus]) -> Vec<DoctorFinding> {
    ports.iter().flat_map(port).collect()
}

fn port(port: &PortStatus) -> Vec<DoctorFinding> {
    let mut findings = vec![uplink(port)];
    if let Some(pf) = &port.pf {
        findings.extend(client(&port.name, pf));
    }
    findings.extend(port.vfs.iter().flat_map(|one| vf(one, port.family_of(one))));
    findings
}

fn uplink(port: &PortStatus) -> DoctorFinding {
    let name = &port.name;
    let seen = format!("{name}: uplink {}", port.uplink);
    let Some(status) = &port.uplink_status else {
        return match port.link {
            true => DoctorFinding::ok("port", seen),
            false => DoctorFinding::warning(
                "port",
                format!("{seen}, no link"),
                format!("run `softiov port show {name}`"),
            ),
        };
    };
    let (kind, interface) = (&status.kind, &status.name);
    match status.state {
        UplinkState::Gone => DoctorFinding::problem(
            "port",
            format!("{seen}: {}", absence_of(kind)),
            remedy_of(kind, interface),
        ),
        UplinkState::Down => DoctorFinding::problem(
            "port",
            format!("{seen}: the {kind} is down"),
            format!("ip link set {interface} up"),
        ),
        UplinkState::Up if status.drops.too_long > 0 => DoctorFinding::warning(
            "port",
            format!("{seen}: {} frames were longer than the {kind}'s MTU", status.drops.too_long),
            format!("raise the MTU (ip link set {interface} mtu N), or lower the guests' MTU"),
        ),
        UplinkState::Up => DoctorFinding::ok("port", seen),
    }
}

/// Returns the probable cause of the absence of an uplink of this kind.
fn absence_of(kind: &str) -> &'static str {
    match kind {
        "tap" => "the tap was deleted",
        "wire" => "no other port has this wire as its uplink",
        "stream" => "no process is connected to the stream",
        _ => "the interface does not exist",
    }
}

/// Returns the remedy for the absence of an uplink of this kind and name.
fn remedy_of(kind: &str, name: &str) -> String {
    match kind {
        "tap" => format!("run `ip tuntap add {name} mode tap`; the host then attaches to the tap again"),
        "wire" => "run `softiov port list`: the other port may have failed".to_owned(),
        "stream" => format!("start the process that uses {name}"),
        _ => format!("create {name} again; the host then attaches to the interface again"),
    }
}

fn vf(vf: &VfStatus, family: CardFamily) -> Vec<DoctorFinding> {
    let VfStatus { name, function, conduct, active, .. } = vf;
    let mut findings: Vec<DoctorFinding> = client(name, function).into_iter().collect();
    if let Some(cause) = &conduct.quarantine {
        let remedy = format!("softiov vf set {name} --quarantine off");
        findings.push(DoctorFinding::warning("vf", format!("{name} is quarantined: {cause}"), remedy));
    }
    findings.extend(disabled(vf, family));
    findings.extend(refusal(vf));
    findings.extend(unconnected(vf));
    if function.peer.is_some() && !active && function.hint.is_none() {
        let seen = format!("{name} has a client, but no driver has enabled the VF");
        let driver = family.vf_driver();
        let remedy = format!("load {driver} in the guest (modprobe {driver}), and bring the interface up");
        findings.push(DoctorFinding::warning("vf", seen, remedy));
    }
    let lost = function.drops.rx_no_descriptors;
    if lost > (function.rx.packets + lost) / 100 * LOST_PERCENT && lost > 100 {
        let seen = format!(
            "{name}: {lost} frames dropped for lack of a receive descriptor, {} received",
            function.rx.packets
        );
        let remedy = match family {
            // The VMM decides the size of a virtio device's rings.
            CardFamily::Virtio => {
                "give the guest a longer ring (rx_queue_size=1024 of QEMU's virtio-net-pci), or more CPU"
            }
            CardFamily::I82576 | CardFamily::Avf => {
                "give the guest a longer ring (ethtool -G eth0 rx 4096), or more CPU"
            }
        };
        findings.push(DoctorFinding::warning("vf", seen, remedy));
    }
    findings
}

/// Returns a finding about a VMM that connects to a virtio VF, and that the VF refuses at the moment.
fn refusal(vf: &VfStatus) -> Option<DoctorFinding> {
    let pid = vf.function.refusals.held?;
    let (name, program) = (&vf.name, program(pid));
    let seen =
        format!("{name} refuses {program} (pid {pid}), which tries again: another VMM is attached to the VF");
    Some(DoctorFinding::warning("vf", seen, "end one of both VMMs, or give it another VF"))
}

/// Returns a line about a virtio VF that the administrator has disabled, for which front ends wait.
fn disabled(vf: &VfStatus, family: CardFamily) -> Option<DoctorFinding> {
    let disabled = family == CardFamily::Virtio && vf.settings.state == Some(LinkState::Disable);
    let name = &vf.name;
    let seen = || format!("{name} is disabled; its VMM waits until `softiov vf set {name} --state auto`");
    disabled.then(|| DoctorFinding::ok("vf", seen()))
}

/// Returns a finding about a VF whose host is not connected to the socket on which the VMM listens. None about a VF without a
/// link, because the host does not connect for a disabled VF.
fn unconnected(vf: &VfStatus) -> Option<DoctorFinding> {
    let VfStatus { name, function, .. } = vf;
    let why = function.unconnected.as_ref().filter(|_| vf.link)?;
    let seen = format!("{name} waits for the VMM's socket {}: {why}", function.socket.display());
    let remedy = format!("start the VMM with the arguments of `softiov qemu-args {name}`");
    Some(DoctorFinding::warning("vf", seen, remedy))
}

/// Returns the name of a process, or a text for a process whose name is unknown.
fn program(pid: i32) -> String {
    let program = fs::read_to_string(format!("/proc/{pid}/comm"));
    program.map_or_else(|_| "a process".to_owned(), |name| escape_controls(name.trim()))
}

/// Returns a finding about a function's client: the process on its socket, and the memory that it shares.
/// `None` without a client.
fn client(name: &str, function: &FunctionStatus) -> Option<DoctorFinding> {
    let ConnectedVmm { pid, uid, shareable_bytes, .. } = function.peer.as_ref()?;
    let program = program(*pid);
    let seen = format!("{name}: {program} (pid {pid}, uid {uid}) shares {} MiB", shareable_bytes >> 20);
    Some(match &function.hint {
        Some(hint) => DoctorFinding::problem("memory", seen, hint.clone()),
        None => DoctorFinding::ok("memory", seen),
    })
}
