//! The host and its guests: whether it answers, who holds its sockets, and what keeps frames from moving.

use super::finding::Finding;
use crate::output::plain;
use daemon::config::file::Family;
use daemon::control::client::ClientError;
use daemon::control::status::{FunctionStatus, Peer, PortStatus, VfStatus};
use daemon::control::uplink::UplinkState;
use std::fs;
use std::path::Path;

/// Of a hundred frames for a guest, so many are lost before it is worth a word.
const LOST_PERCENT: u64 = 1;

/// What is known of the host's process and its limits.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Process {
    /// The mode of its system call filter, as /proc tells it.
    pub(super) seccomp: Option<u32>,
    /// The most memory that its control group may have, and what that has now, in bytes.
    pub(super) memory: Option<(u64, u64)>,
    /// Of each period, so many microseconds of processors, and how long a period is.
    pub(super) processors: Option<(u64, u64)>,
    /// The most descriptors that it may have, and how many it has.
    pub(super) files: Option<(u64, u64)>,
    /// Why the limits are not known.
    pub(super) unread: Option<String>,
}

impl Process {
    /// Looks at a process, if it is a host.
    pub(super) fn look(pid: i32) -> Self {
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

    pub(super) fn judge(&self) -> Vec<Finding> {
        let mut findings = Vec::new();
        match self.seccomp {
            Some(0) => findings.push(Finding::warning(
                "seccomp",
                "the host's process makes any system call",
                "start it without --seccomp false and log",
            )),
            Some(_) => findings.push(Finding::ok("seccomp", "the host's system calls are filtered")),
            None => {}
        }
        if let Some((most, now)) = self.memory {
            let seen = format!("the host's control group has {} of {} MiB", now >> 20, most >> 20);
            findings.push(if now > most / 10 * 9 {
                let remedy = "raise MemoryMax=, or give QEMU's memory prealloc=on: pages of guests that the card is the \
                              first to touch are the host's";
                Finding::warning("cgroup", seen, remedy)
            } else {
                Finding::ok("cgroup", seen)
            });
        }
        findings.extend(self.processors.map(processors));
        findings.extend(self.files.map(files));
        findings.extend(self.unread.as_deref().map(|why| {
            let seen = format!("the host's limits are not known: {why}");
            Finding::warning("files", seen, "ask as the host's user, or as root")
        }));
        findings
    }
}

/// QEMU gives up a device that does not answer for five seconds, and a port's thread wants a processor when it works.
fn processors((time, period): (u64, u64)) -> Finding {
    let seen = format!("the host's control group may use {time} of each {period} us of processors");
    if time < period {
        let remedy =
            "raise CPUQuota= to 100% for each port and 50% for the rest: guests wait whenever it is used up";
        return Finding::warning("cgroup", seen, remedy);
    }
    Finding::ok("cgroup", seen)
}

fn files((most, now): (u64, u64)) -> Finding {
    let seen = format!("the host has {now} of {most} descriptors");
    if now > most / 10 * 9 {
        let remedy = "raise LimitNOFILE=, or ulimit -Hn: a guest takes one for each file of its memory and each interrupt";
        return Finding::warning("files", seen, remedy);
    }
    Finding::ok("files", seen)
}

/// What it means that no host answers.
pub(super) fn unreachable(error: &ClientError, socket: &Path) -> Finding {
    let remedy = match error {
        ClientError::Unreachable { source, .. } if source.kind() == std::io::ErrorKind::PermissionDenied => {
            "run this as the host's user, or let your group in: control = { group = \"...\" }"
        }
        ClientError::Unreachable { .. } => {
            "start one with `softiov serve`, or say which is meant with --config or --runtime-dir"
        }
        _ => "look into the host's log; a host of another version is replaced with `softiov upgrade`",
    };
    let seen = match error {
        ClientError::Unreachable { source, .. } => {
            format!("no host answers at {}: {source}", socket.display())
        }
        other => format!("{}: {other}", socket.display()),
    };
    Finding::problem("host", seen, remedy)
}

pub(super) fn ports(ports: &[PortStatus]) -> Vec<Finding> {
    ports.iter().flat_map(port).collect()
}

fn port(port: &PortStatus) -> Vec<Finding> {
    let mut findings = vec![uplink(port)];
    if let Some(pf) = &port.pf {
        findings.extend(client(&port.name, pf));
    }
    findings.extend(port.vfs.iter().flat_map(|one| vf(one, port.family)));
    findings
}

fn uplink(port: &PortStatus) -> Finding {
    let name = &port.name;
    let seen = format!("{name}: uplink {}", port.uplink);
    let Some(status) = &port.uplink_status else {
        return match port.link {
            true => Finding::ok("port", seen),
            false => Finding::warning("port", format!("{seen}, no link"), "look at `softiov port show`"),
        };
    };
    let (kind, interface) = (&status.kind, &status.name);
    match status.state {
        UplinkState::Gone => {
            Finding::problem("port", format!("{seen}: {}", missing(kind)), back(kind, interface))
        }
        UplinkState::Down => Finding::problem(
            "port",
            format!("{seen}: the {kind} is down"),
            format!("ip link set {interface} up"),
        ),
        UplinkState::Up if status.drops.too_long > 0 => Finding::warning(
            "port",
            format!("{seen}: {} frames were longer than the {kind}'s MTU", status.drops.too_long),
            format!("raise it (ip link set {interface} mtu N), or lower it in the guests"),
        ),
        UplinkState::Up => Finding::ok("port", seen),
    }
}

/// What there is not, of an uplink that is gone.
fn missing(kind: &str) -> &'static str {
    match kind {
        "tap" => "the tap was deleted",
        "wire" => "no other port has its other end",
        "stream" => "no process is at its other end",
        _ => "the interface is not there",
    }
}

/// What brings it back.
fn back(kind: &str, name: &str) -> String {
    match kind {
        "tap" => format!("ip tuntap add {name} mode tap: the host takes it again by itself"),
        "wire" => "softiov port list: has the other port failed?".to_owned(),
        "stream" => format!("start the process that uses {name}"),
        _ => format!("bring {name} back: the host takes it again by itself"),
    }
}

fn vf(vf: &VfStatus, family: Family) -> Vec<Finding> {
    let VfStatus { name, function, conduct, active, .. } = vf;
    let mut findings: Vec<Finding> = client(name, function).into_iter().collect();
    if let Some(cause) = &conduct.quarantine {
        let remedy = format!("softiov vf set {name} --quarantine off");
        findings.push(Finding::warning("vf", format!("{name} is quarantined: {cause}"), remedy));
    }
    if function.peer.is_some() && !active && function.hint.is_none() {
        let seen = format!("{name} has a client, and no driver runs it");
        let driver = family.vf_driver();
        let remedy = format!("load {driver} in the guest (modprobe {driver}), and set the interface up");
        findings.push(Finding::warning("vf", seen, remedy));
    }
    let lost = function.drops.rx_no_descriptors;
    if lost > (function.rx.packets + lost) / 100 * LOST_PERCENT && lost > 100 {
        let seen = format!("{name}: {lost} frames found no receive descriptor, {} did", function.rx.packets);
        findings.push(Finding::warning(
            "vf",
            seen,
            "give the guest a longer ring (ethtool -G eth0 rx 4096), or more CPU",
        ));
    }
    findings
}

/// Who holds a function's socket, and whether the card reaches that one's memory.
fn client(name: &str, function: &FunctionStatus) -> Option<Finding> {
    let Peer { pid, uid, shareable_bytes, .. } = function.peer.as_ref()?;
    let program = fs::read_to_string(format!("/proc/{pid}/comm"));
    let program = program.map_or_else(|_| "a process".to_owned(), |name| plain(name.trim()));
    let seen = format!("{name}: {program} (pid {pid}, uid {uid}) shares {} MiB", shareable_bytes >> 20);
    Some(match &function.hint {
        Some(hint) => Finding::problem("memory", seen, hint.clone()),
        None => Finding::ok("memory", seen),
    })
}
