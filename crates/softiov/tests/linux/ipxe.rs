//! Checks iPXE, network boot firmware, on the PF and on VFs of the second and third family. iPXE uses legacy
//! descriptors, split rings and no interrupts. The checks boot no operating system.

use crate::avf::AvfInterface;
use crate::guest::{COMMAND, ScenarioGuest};
use crate::report::LinuxCheckOutcome;
use crate::virtio;
use crate::world::{ALICE_AVF, LinuxTestbed, PF, PF_MAC, VISITOR_AVF, VISITOR_VIRTIO};
use anyhow::{Result, ensure};
use serde_json::json;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// QEMU arguments besides memory, card and files: no display, and SeaBIOS's text on the serial port.
const MACHINE: &str = "-nodefaults -no-user-config -no-reboot -display none -accel tcg -cpu max \
    -machine q35,memory-backend=ram,graphics=off \
    -object memory-backend-memfd,id=ram,size=128M,share=on \
    -device pcie-root-port,id=port0,bus=pcie.0,addr=0x10,chassis=1";

/// Number of comment lines of 64 bytes in the script that iPXE fetches by HTTP: enough to fill the card's rings many
/// times.
const COMMENTS: usize = 16_384;
const COMMENT: &str = "# -------------------------------------------------------------";
/// Error number of iPXE for a full ring. iPXE's rings have eight buffers, and the HTTP server may send more frames at
/// once.
const NO_ROOM: &str = "0x2a654006";
/// Error number of iPXE for a frame of an unknown protocol, such as IPv6 from the machine at the wire's other end.
const NO_PROTOCOL: &str = "3c046003";
/// Last line of the fetched script's output.
const WHOLE: &str = "the script is complete";

/// Checks that iPXE binds the PF, has a link, and fetches a megabyte by HTTP.
pub(crate) fn fetches_a_file_over_the_pf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let image = world.assets().ipxe()?;
    world.send_visitors_home()?;
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(LinuxCheckOutcome::Skipped(format!("no uplink here: {why}"))),
    };
    let folder = TempDir::new()?;
    fs::write(folder.path().join("script"), script())?;
    let server = wire.serve(folder.path())?;
    let before = world.pf()?;
    let said = fetch(world, &vfio_user(world, PF), &image, "10.82.0.4", &wire.address())?;
    drop(server);
    let after = world.pf()?;
    ensure!(said.contains(&format!("net0: {PF_MAC} using 82576")), "iPXE said: {said}");
    let is_error = |line: &&str| line.contains("[RXE:") || line.contains("[TXE:");
    let is_known = |line: &str| [NO_ROOM, NO_PROTOCOL].iter().any(|known| line.contains(known));
    let known = said.lines().filter(is_error).all(is_known);
    ensure!(known, "iPXE counts errors: {said}");
    moved(before.tx.packets, after.tx.packets, before.rx.bytes, after.rx.bytes)
}

/// Checks that iPXE binds a VF of the second family, has a link, and fetches a megabyte by HTTP from another VF.
pub(crate) fn fetches_a_file_over_a_vf(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let image = world.assets().ipxe()?;
    world.send_visitors_home()?;
    let alice = AvfInterface::set_up(world.alice()?, ALICE_AVF, 1)?;
    serve(alice.guest)?;
    let before = world.vf(VISITOR_AVF)?;
    let card = vfio_user(world, VISITOR_AVF);
    let said = fetch(world, &card, &image, "10.83.0.4", &alice.address())?;
    let after = world.vf(VISITOR_AVF)?;
    ensure!(said.contains(&format!("net0: {}", after.mac)), "iPXE does not have {}: {said}", after.mac);
    moved(before.tx.packets, after.tx.packets, before.rx.bytes, after.rx.bytes)
}

/// Checks that iPXE binds a VF of the third family, has a link, and fetches a megabyte by HTTP from another VF. iPXE's
/// driver accepts neither partial checksums nor unsegmented packets, so the card completes what the sender leaves to
/// it.
pub(crate) fn fetches_a_file_over_virtio(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    let image = world.assets().ipxe()?;
    world.send_visitors_home()?;
    virtio::linked(world)?;
    let [judy, _] = world.virtio()?;
    virtio::add_address(judy, "10.84.0.6")?;
    serve(judy)?;
    let before = world.vf(VISITOR_VIRTIO)?;
    let socket = world.socket(VISITOR_VIRTIO);
    let (name, mac) = virtio::mac(4);
    let device = json!({
        "driver": "virtio-net-pci", "bus": "port0", "netdev": "net", "romfile": "", name: &mac,
    });
    let card = [
        "-chardev".to_owned(),
        format!("socket,id=vhost,path={}", socket.display()),
        "-netdev".to_owned(),
        "vhost-user,id=net,chardev=vhost".to_owned(),
        "-device".to_owned(),
        device.to_string(),
    ];
    let said = fetch(world, &card, &image, "10.84.0.4", "10.84.0.6")?;
    let after = world.vf(VISITOR_VIRTIO)?;
    let wanted = format!("net0: {} using virtio-net", mac.as_str().unwrap_or_default());
    ensure!(said.contains(&wanted), "iPXE does not say {wanted:?}: {said}");
    moved(before.tx.packets, after.tx.packets, before.rx.bytes, after.rx.bytes)
}

/// Starts an HTTP server in a guest, unless one is running, with the script that iPXE fetches.
fn serve(guest: &ScenarioGuest) -> Result<()> {
    let script = format!(
        "mkdir -p /run/www && {{ pidof httpd > /dev/null || httpd -h /run/www; }}
         {{ echo '#!ipxe'; yes '{COMMENT}' | head -n {COMMENTS}; printf '%s\\n' 'echo {WHOLE}' ifstat reboot; }} > /run/www/script"
    );
    guest.check(&script).map(drop)
}

/// Returns QEMU's arguments for a function behind a vfio-user socket.
fn vfio_user(world: &LinuxTestbed, function: &str) -> [String; 2] {
    let card = json!({
        "driver": "vfio-user-pci", "bus": "port0",
        "socket": {"path": world.socket(function).to_string_lossy(), "type": "unix"},
    });
    ["-device".to_owned(), card.to_string()]
}

/// Checks by the host's counters, before and after the fetch, that enough frames were sent and enough bytes received.
fn moved(sent: u64, sent_now: u64, received: u64, received_now: u64) -> Result<LinuxCheckOutcome> {
    let (sent, received) = (sent_now - sent, received_now - received);
    ensure!(
        sent > 100 && received > 1 << 20,
        "the host counts {sent} frames sent, {received} bytes received"
    );
    Ok(LinuxCheckOutcome::Passed)
}

/// Returns the script of a megabyte that iPXE fetches: comments, and a line that shows that the script is complete.
fn script() -> String {
    let comments = format!("{COMMENT}\n").repeat(COMMENTS);
    format!("#!ipxe\n{comments}echo {WHOLE}\nifstat\nreboot\n")
}

/// Has iPXE fetch `script` from a server, over the card in QEMU's arguments `card`. Returns iPXE's output, which shows
/// that the script arrived whole.
fn fetch(world: &LinuxTestbed, card: &[String], image: &Path, address: &str, server: &str) -> Result<String> {
    let folder = TempDir::new()?;
    let begin = format!(
        "#!ipxe\nifopen net0\nset net0/ip {address}\nset net0/netmask 255.255.255.0\n\
         chain http://{server}/script || echo nothing came\nreboot\n"
    );
    fs::write(folder.path().join("begin"), begin)?;
    let said = boot(world, card, image, folder.path())?;
    ensure!(said.contains(WHOLE) && said.contains("Link:up"), "iPXE said: {said}");
    Ok(said)
}

/// Boots iPXE on a card, with the script `begin` of `folder`, waits until it reboots, and returns its output.
fn boot(world: &LinuxTestbed, card: &[String], image: &Path, folder: &Path) -> Result<String> {
    let said = folder.join("said");
    let mut command = world.assets().qemu().command();
    command.args(MACHINE.split_whitespace()).args(card).arg("-kernel").arg(image);
    command.arg("-initrd").arg(folder.join("begin"));
    command.args(["-serial", &format!("file:{}", said.display())]);
    let errors = folder.join("errors");
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(File::create(&errors)?);
    let status = end(command.spawn()?)?;
    let [said, errors] = [said, errors].map(|path| fs::read(path).unwrap_or_default());
    let [said, errors] = [&said, &errors].map(|bytes| String::from_utf8_lossy(bytes).into_owned());
    ensure!(status.is_some_and(|status| status.success()), "QEMU ended with {status:?}: {errors} {said}");
    Ok(said)
}

/// Waits for the end of a process. Returns `None` if the process took too long and was killed.
fn end(mut program: Child) -> Result<Option<ExitStatus>> {
    let deadline = Instant::now() + COMMAND;
    loop {
        match program.try_wait()? {
            None if Instant::now() > deadline => {
                program.kill()?;
                program.wait()?;
                return Ok(None);
            }
            None => std::thread::sleep(Duration::from_millis(50)),
            ended => return Ok(ended),
        }
    }
}
