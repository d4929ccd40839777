//! Runs the checks against VFs of a SoftIOV card, on the live host: none fails, and none differs from the datasheet. So
//! a finding on another card is a property of that card. Checks that need VFIO run in guests.

use daemon::RunningHost;
use daemon::config::HostConfig;
use daemon::control::client::ask;
use daemon::control::protocol::{ControlAnswer, ControlRequest};
use direct::DriverStartError;
use direct::audit::{RegisterValueOwner, RevealedResource};
use direct::check::{
    CardCheckPlan, CardCheckReport, CardCheckVerdict, EchoReplyStatistics, GuestNetworkStack,
    GuestStackError, PciFunctionSelection, audit, run,
};
use driver::Vf;
use embedded_guest::EmbeddedGuest;
use host::vfio::{PciSysfs, VfioError};
use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use vfio_client::VfDriverHal;

/// Timeout until the link of a guest is up.
const LINK_TIMEOUT: Duration = Duration::from_secs(5);

/// TCP/IP stack of an embedded guest, as the checks use it.
struct EmbeddedNetworkStack(EmbeddedGuest);

impl GuestNetworkStack for EmbeddedNetworkStack {
    fn start<B: VfDriverHal>(bus: B, vf: Vf, name: &str, ip: Ipv4Addr) -> Result<Self, GuestStackError> {
        let guest = EmbeddedGuest::start_on(bus, vf, name.to_owned(), ip)?;
        if guest.wait_link(LINK_TIMEOUT) {
            Ok(Self(guest))
        } else {
            Err(format!("the link of guest {name} stays down").into())
        }
    }

    fn ping(&self, to: Ipv4Addr, count: u16) -> Result<EchoReplyStatistics, GuestStackError> {
        let pings = self.0.ping(to, count)?;
        Ok(EchoReplyStatistics { received: pings.received(), median: pings.median().unwrap_or_default() })
    }

    fn send_tcp(&self, to: Ipv4Addr, bytes: u64) -> Result<u64, GuestStackError> {
        let flow = self.0.send_tcp(to, bytes)?;
        Ok(flow.first_wrong.unwrap_or(flow.received))
    }
}

fn sockets(folder: &Path, vfs: &[u8]) -> CardCheckPlan {
    let socket = |vf: &u8| folder.join(format!("pf0vf{vf}/vf.sock"));
    CardCheckPlan { functions: PciFunctionSelection::Sockets(vfs.iter().map(socket).collect()), wire: None }
}

/// Waits until the PF has received the notices that the drivers of the VFs `vfs` have left.
fn assert_left(host: &RunningHost, vfs: &[u8]) {
    let begun = Instant::now();
    while !active(host, vfs).is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "left running");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Returns those of the VFs `vfs` that are active: their drivers have started and not left since.
fn active(host: &RunningHost, vfs: &[u8]) -> Vec<u8> {
    let is_active =
        |vf: &u8| match ask(host.control_socket(), ControlRequest::VfShow { vf: format!("pf0vf{vf}") }) {
            Ok(ControlAnswer::Vf(status)) => status.active,
            other => panic!("{other:?}"),
        };
    vfs.iter().copied().filter(is_active).collect()
}

#[test]
fn softiov_card_passes_the_checks_of_the_82576_drivers() {
    assert_checks_pass("");
}

#[test]
fn softiov_card_with_mapped_doorbells_passes_the_checks() {
    assert_checks_pass("[[port]]\nwait = \"mapped\"\n");
}

fn assert_checks_pass(config: &str) {
    let folder = tempfile::tempdir().unwrap();
    let host =
        RunningHost::start(HostConfig::check(HostConfig::parse(config).unwrap(), folder.path()).unwrap())
            .unwrap();
    let mut told = 0;
    let report =
        run::<EmbeddedNetworkStack>(&PciSysfs::default(), &sockets(folder.path(), &[0, 1, 2]), |_| {
            told += 1;
            ControlFlow::Continue(())
        })
        .unwrap();
    let others = report.checks.iter().filter(|check| check.result != CardCheckVerdict::Passes);
    let others: Vec<_> = others.map(|check| (check.check, check.result, check.saw.as_str())).collect();
    let without_pf = "the check needs the PF driver of this program";
    assert_eq!(
        others,
        [
            ("port-vlan", CardCheckVerdict::Skipped, without_pf),
            ("pf-reset", CardCheckVerdict::Skipped, without_pf),
            (
                "wire",
                CardCheckVerdict::Skipped,
                "the check needs a station on the wire: name one with --peer"
            ),
        ]
    );
    assert!(report.is_good());
    assert_eq!((told, report.functions.len()), (report.checks.len(), 3));
    assert_left(&host, &[0, 1, 2]);
}

#[test]
fn vf_of_another_device_family_is_named_in_the_error() {
    let folder = tempfile::tempdir().unwrap();
    let config = HostConfig::parse("[[port]]\nfamily = \"avf\"\n").unwrap();
    let _host = RunningHost::start(HostConfig::check(config, folder.path()).unwrap()).unwrap();
    let refused = run::<EmbeddedNetworkStack>(&PciSysfs::default(), &sockets(folder.path(), &[0]), |_| {
        ControlFlow::Continue(())
    });
    let error = refused.map(|report| report.is_good()).unwrap_err().to_string();
    assert!(
        error.contains("pf0vf0/vf.sock is not an 82576") && error.contains("family = \"82576\""),
        "{error}"
    );
}

/// Checks the findings on a VF of our card: the guest's own rings, mailbox and vectors. STATUS is the port's, so it
/// reveals the number of the port, and no other register belongs to the machine.
#[test]
fn audit_of_a_vf_finds_ring_addresses_and_the_port_number() {
    let folder = tempfile::tempdir().unwrap();
    let host = RunningHost::start(HostConfig::check(HostConfig::parse("").unwrap(), folder.path()).unwrap())
        .unwrap();
    let report = audit(&PciSysfs::default(), &sockets(folder.path(), &[0]).functions).unwrap();
    let names = |whose| -> Vec<&str> {
        let of = report.registers.iter().filter(|entry| entry.whose == whose);
        of.map(|entry| entry.register.as_str()).collect()
    };
    assert_eq!(names(RegisterValueOwner::Machine), ["STATUS"]);
    assert_eq!(report.trap_pages, [0]);
    for register in ["V2PMAILBOX", "VTIVAR", "RDBAL[0]", "RDBAH[0]", "TDBAH[0]"] {
        assert!(names(RegisterValueOwner::Guest).contains(&register), "{register} in {report}");
    }
    let high = report.registers.iter().find(|entry| entry.register == "RDBAH[0]").unwrap();
    assert_eq!((high.value, high.resource), (Some(1), RevealedResource::DmaRing));
    assert_left(&host, &[0]);
}

#[test]
fn driver_checks_that_need_two_vfs_are_skipped_with_one_vf() {
    let folder = tempfile::tempdir().unwrap();
    let _host = RunningHost::start(HostConfig::check(HostConfig::parse("").unwrap(), folder.path()).unwrap())
        .unwrap();
    let report = run::<EmbeddedNetworkStack>(&PciSysfs::default(), &sockets(folder.path(), &[0]), |_| {
        ControlFlow::Continue(())
    })
    .unwrap();
    let passed = report.checks.iter().filter(|check| check.result == CardCheckVerdict::Passes);
    assert_eq!(passed.map(|check| check.check).collect::<Vec<_>>(), ["handshake", "address", "link"]);
    assert!(report.is_good());
}

#[test]
fn check_run_ends_if_the_report_function_returns_break() {
    let folder = tempfile::tempdir().unwrap();
    let host = RunningHost::start(HostConfig::check(HostConfig::parse("").unwrap(), folder.path()).unwrap())
        .unwrap();
    let stop = |check: &CardCheckReport| match check.check {
        "address" => {
            assert_eq!(active(&host, &[0, 1, 2]), [0, 1]);
            ControlFlow::Break(())
        }
        _ => ControlFlow::Continue(()),
    };
    let report =
        run::<EmbeddedNetworkStack>(&PciSysfs::default(), &sockets(folder.path(), &[0, 1]), stop).unwrap();
    assert_eq!(report.checks.last().map(|check| check.check), Some("address"));
    assert_left(&host, &[0, 1]);
}

#[test]
fn pci_function_of_another_device_is_not_changed() {
    let folder = tempfile::tempdir().unwrap();
    let device = folder.path().join("bus/pci/devices/0000:01:00.0");
    std::fs::create_dir_all(&device).unwrap();
    std::fs::write(device.join("vendor"), "0x1b36\n").unwrap();
    std::fs::write(device.join("device"), "0x000c\n").unwrap();
    let pci = PciSysfs::at(folder.path());
    let address = "0000:01:00.0".parse().unwrap();
    for functions in
        [PciFunctionSelection::Port { pf: address, vfs: 2 }, PciFunctionSelection::Vfs(vec![address])]
    {
        let error = run::<EmbeddedNetworkStack>(&pci, &CardCheckPlan { functions, wire: None }, |_| {
            ControlFlow::Continue(())
        })
        .unwrap_err();
        assert!(matches!(error, DriverStartError::NotOurs { .. }), "{error}");
    }
    let plan = CardCheckPlan {
        functions: PciFunctionSelection::Vfs(vec!["0000:01:10.0".parse().unwrap()]),
        wire: None,
    };
    let error = run::<EmbeddedNetworkStack>(&pci, &plan, |_| ControlFlow::Continue(())).unwrap_err();
    assert!(matches!(error, DriverStartError::Vfio(VfioError::NoSuchFunction(_))), "{error}");
}
