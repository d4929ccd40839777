//! Tests the host findings of `softiov doctor`: a status that causes each finding, and a status that does
//! not.

use super::finding::{DoctorFinding, DoctorVerdict, text};
use super::host::{ProcessLimits, ports};
use crate::sample;
use daemon::config::file::CardFamily;
use daemon::control::status::{ClientRefusals, PortStatus};
use daemon::control::uplink::{UplinkDrops, UplinkState, UplinkStatus, UplinkTraffic};

/// Returns the status of a port without a fault, with a tap, and a VF that has a client.
fn good() -> PortStatus {
    let tap = UplinkStatus {
        kind: "tap".into(),
        name: "tap0".into(),
        state: UplinkState::Up,
        seconds: 1,
        carrier: Some(true),
        mode: None,
        mtu: Some(1500),
        reattached: 0,
        rx: UplinkTraffic::default(),
        tx: UplinkTraffic::default(),
        drops: UplinkDrops::default(),
    };
    PortStatus { uplink_status: Some(tap), ..sample::port() }
}

/// Changes the status of a port without faults, and returns the findings that report a fault.
fn found(change: impl FnOnce(&mut PortStatus)) -> Vec<DoctorFinding> {
    let mut port = good();
    change(&mut port);
    ports(&[port]).into_iter().filter(|finding| finding.verdict != DoctorVerdict::Ok).collect()
}

#[track_caller]
fn only(findings: &[DoctorFinding], verdict: DoctorVerdict, remedy: &str) {
    let [finding] = findings else { panic!("{findings:?}") };
    let helps = finding.remedy.as_deref().unwrap_or_default();
    assert!(finding.verdict == verdict && helps.contains(remedy), "{finding:?}");
}

#[test]
fn doctor_reports_each_port_problem_with_its_remedy() {
    assert_eq!(found(|_| ()), []);
    let tap = |state| {
        move |port: &mut PortStatus| {
            port.uplink_status.as_mut().expect("the port must have a tap").state = state;
        }
    };
    only(&found(tap(UplinkState::Down)), DoctorVerdict::Problem, "ip link set tap0 up");
    only(&found(tap(UplinkState::Gone)), DoctorVerdict::Problem, "ip tuntap add tap0");
    let long = |port: &mut PortStatus| {
        port.uplink_status.as_mut().expect("the port must have a tap").drops.too_long = 1;
    };
    only(&found(long), DoctorVerdict::Warning, "mtu");
    let lonely = |kind: &'static str| {
        move |port: &mut PortStatus| {
            let uplink = port.uplink_status.as_mut().expect("the port must have an uplink");
            (uplink.kind, uplink.state) = (kind.into(), UplinkState::Gone);
        }
    };
    only(&found(lonely("wire")), DoctorVerdict::Problem, "port list");
    only(&found(lonely("stream")), DoctorVerdict::Problem, "start the process");
    only(&found(lonely("interface")), DoctorVerdict::Problem, "create tap0 again");
    let unlinked = |port: &mut PortStatus| (port.uplink_status, port.link) = (None, false);
    only(&found(unlinked), DoctorVerdict::Warning, "port show");
    let unshared = |port: &mut PortStatus| port.vfs[0].function.hint = Some("add share=on".into());
    only(&found(unshared), DoctorVerdict::Problem, "share=on");
    let quarantined = |port: &mut PortStatus| port.vfs[0].conduct.quarantine = Some("spoofing".into());
    only(&found(quarantined), DoctorVerdict::Warning, "vf set pf0vf0 --quarantine off");
    let refused = |port: &mut PortStatus| {
        port.vfs[0].function.refusals = ClientRefusals { count: 1, held: Some(0) };
    };
    only(&found(refused), DoctorVerdict::Warning, "another VF");
    let unconnected = |port: &mut PortStatus| {
        let function = &mut port.vfs[0].function;
        (function.peer, function.unconnected) = (None, Some("the socket does not exist yet".into()));
    };
    only(&found(unconnected), DoctorVerdict::Warning, "qemu-args pf0vf0");
    only(&found(|port| port.vfs[0].active = false), DoctorVerdict::Warning, "modprobe igbvf");
    let other = |port: &mut PortStatus| (port.family, port.vfs[0].active) = (CardFamily::Avf, false);
    only(&found(other), DoctorVerdict::Warning, "modprobe iavf");
    let virtio = |port: &mut PortStatus| (port.family, port.vfs[0].active) = (CardFamily::Virtio, false);
    only(&found(virtio), DoctorVerdict::Warning, "modprobe virtio_net");
    let slow = |port: &mut PortStatus| {
        port.vfs[0].function.rx.packets = 9_000;
        port.vfs[0].function.drops.rx_no_descriptors = 1_000;
    };
    only(&found(slow), DoctorVerdict::Warning, "ethtool -G");
    let short = |port: &mut PortStatus| {
        slow(port);
        port.family = CardFamily::Virtio;
    };
    only(&found(short), DoctorVerdict::Warning, "rx_queue_size=1024");
}

#[test]
fn doctor_warns_of_a_host_without_seccomp_or_near_a_limit() {
    let verdicts = |process: ProcessLimits| {
        process.judge().into_iter().map(|finding| (finding.check, finding.verdict)).collect::<Vec<_>>()
    };
    let process = |seccomp, memory| ProcessLimits { seccomp, memory, ..ProcessLimits::default() };
    assert_eq!(verdicts(process(None, None)), []);
    assert_eq!(verdicts(process(Some(2), None)), [("seccomp", DoctorVerdict::Ok)]);
    assert_eq!(verdicts(process(Some(0), None)), [("seccomp", DoctorVerdict::Warning)]);
    assert_eq!(verdicts(process(None, Some((100, 89)))), [("cgroup", DoctorVerdict::Ok)]);
    assert_eq!(verdicts(process(None, Some((100, 91)))), [("cgroup", DoctorVerdict::Warning)]);
    let limited = |processors, files| ProcessLimits { processors, files, ..ProcessLimits::default() };
    assert_eq!(verdicts(limited(Some((200_000, 100_000)), None)), [("cgroup", DoctorVerdict::Ok)]);
    assert_eq!(verdicts(limited(Some((50_000, 100_000)), None)), [("cgroup", DoctorVerdict::Warning)]);
    assert_eq!(verdicts(limited(None, Some((1024, 100)))), [("files", DoctorVerdict::Ok)]);
    assert_eq!(verdicts(limited(None, Some((1024, 1000)))), [("files", DoctorVerdict::Warning)]);
    let unread = Some("/proc/7/limits: Permission denied (os error 13)".to_owned());
    let findings = ProcessLimits { unread, ..ProcessLimits::default() }.judge();
    only(&findings, DoctorVerdict::Warning, "as root");
    assert!(findings[0].seen.contains("/proc/7/limits"), "{findings:?}");
}

#[test]
fn doctor_prints_a_finding_and_its_remedy_on_two_lines() {
    let findings =
        [DoctorFinding::ok("host", "it answers"), DoctorFinding::problem("tap", "it is down", "set it up")];
    let expected =
        "ok       host     it answers\nPROBLEM  tap      it is down\n                  remedy: set it up\n";
    assert_eq!(text(&findings), expected);
}
