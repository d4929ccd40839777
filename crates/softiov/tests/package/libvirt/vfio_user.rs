//! Tests libvirt machines on vfio-user VFs. One belongs to the system's libvirt, which runs QEMU as another user, and one
//! to a user's session.

use super::{boot, write_xml};
use crate::machine::obstacle;
use anyhow::Result;
use host::test_support::skipped;

/// Script of the guests' test, from the guide.
const PING: &str = include_str!(concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/examples/ci/ping.sh"));
/// Shell words before a command that the user ann runs in her own session.
const AS_USER: &str = "runuser -u ann -- env XDG_RUNTIME_DIR=/run/ann HOME=/home/ann";
/// Files of the guests' consoles.
const CONSOLES: [&str; 2] = ["/var/log/libvirt/console1", "/srv/ann/console2"];

#[test]
fn libvirt_system_and_session_guests_exchange_pings() -> Result<()> {
    if let Some(obstacle) = obstacle() {
        skipped("libvirt", obstacle);
        return Ok(());
    }
    let machine = boot("igbvf", PING)?;
    // A user's session needs the group, and folders that a login creates.
    machine
        .run("useradd -m -G kvm ann && install -d -o ann -m 0700 /run/ann && install -d -o ann /srv/ann")?;
    for (number, console) in (1..).zip(CONSOLES) {
        write_xml(&machine, number, console)?;
    }
    let files = machine.files().display();
    machine.run(&format!("virsh -c qemu:///system create {files}/1.xml"))?;
    machine.run(&format!("{AS_USER} virsh -c qemu:///session create {files}/2.xml"))?;
    for console in CONSOLES {
        machine.wait(&format!("grep -a '^TEST PASSED' {console} || {{ tail {console}; false; }}"))?;
    }
    machine.run(&format!(
        "virsh -c qemu:///system destroy guest1; {AS_USER} virsh -c qemu:///session destroy guest2"
    ))?;
    Ok(())
}
