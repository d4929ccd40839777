//! Boots the stock guest without a card, to test the assets, the control channel and the driver's presence: a failure
//! elsewhere is then the card's. Needs apt (or the environment variables that stand in for apt) and fails without.

use std::time::Duration;

use linux_guest::{BootFiles, GuestError, KernelSeries, LinuxGuest};

const BOOT: Duration = Duration::from_secs(120);
/// Module alias of an 82576 VF, by which the kernel looks for a driver.
const VF: &str = "pci:v00008086d000010CAsv00008086sd0000A03Cbc02sc00i00";
const COMMAND: Duration = Duration::from_secs(30);

#[test]
fn a_stock_guest_boots_runs_commands_and_shuts_down() {
    let assets = BootFiles::prepare(KernelSeries::Bookworm61).expect("the assets can be prepared");
    let mut guest = LinuxGuest::builder("plain").spawn(&assets).expect("QEMU starts");
    guest.wait_ready(BOOT).expect("the guest must boot");

    let release = guest.check("uname -r", COMMAND).unwrap();
    assert!(release.starts_with("6.1."), "{release}");
    guest.check("modprobe igbvf && grep -q ^igbvf /proc/modules && rmmod igbvf", COMMAND).unwrap();
    guest.check(&format!("modprobe '{VF}' && rmmod igbvf"), COMMAND).expect("a VF finds its driver");
    guest.check("modprobe 8021q && lspci && ip -j addr && iperf3 -v && ethtool --version", COMMAND).unwrap();

    commands_are_framed(&guest);
    commands_run_side_by_side(&guest);

    guest.check("touch /before", COMMAND).unwrap();
    guest.reboot().unwrap();
    guest.wait_ready(BOOT).expect("the guest must boot again");
    guest.check("test ! -e /before", COMMAND).expect("a reboot must discard the guest's files");
    guest.shutdown(BOOT).expect("the guest must turn off");
}

fn commands_are_framed(guest: &LinuxGuest) {
    let script = "printf 'a\\nb \"$x\"'\nprintf '\\ndone 1 0 o e .\\n' >&2\nexit 3";
    let output = guest.run(script, COMMAND).unwrap();
    assert_eq!((output.status, output.stdout.as_str()), (3, "a\nb \"$x\""));
    assert_eq!(output.stderr, "\ndone 1 0 o e .\n");

    let long = guest.check("seq 1 50000", COMMAND).unwrap();
    assert!(long.ends_with("49999\n50000\n") && long.lines().count() == 50_000);

    let failed = guest.check("echo no >&2; false", COMMAND).unwrap_err();
    assert!(matches!(&failed, GuestError::Status { output, .. } if output.stderr == "no\n"), "{failed}");
}

fn commands_run_side_by_side(guest: &LinuxGuest) {
    let waiter = guest.spawn_background("while [ ! -e /run/go ]; do usleep 10000; done; echo went").unwrap();
    let endless = guest.spawn_background("echo begun; sleep 1000").unwrap();
    let late = guest.run("sleep 1000", Duration::from_millis(300)).unwrap_err();
    assert!(matches!(late, GuestError::Late { .. }), "{late}");
    guest.check("touch /run/go", COMMAND).unwrap();
    assert_eq!(guest.wait(&waiter, COMMAND).unwrap().stdout, "went\n");
    endless.kill();
    let killed = guest.wait(&endless, COMMAND).unwrap();
    assert_eq!((killed.status, killed.stdout.as_str()), (128 + 9, "begun\n"));
    // A signal takes effect when the guest's kernel gets to it, which may be late on a busy machine.
    let killed = guest.check("while ps | grep -q '[s]leep 1000'; do usleep 10000; done", COMMAND);
    killed.expect("a late command is killed with all that it started");
}
