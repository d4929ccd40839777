//! iPXE drives the PF: the firmware that boots machines from a network, with legacy descriptors and without
//! interrupts. Left out: booting an operating system with it.

use crate::guest::COMMAND;
use crate::report::Outcome;
use crate::world::{PF, PF_MAC, World};
use anyhow::{Result, ensure};
use serde_json::json;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Child, ExitStatus, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The machine beside its memory, the card and the files: no display, SeaBIOS's texts on the serial port.
const MACHINE: &str = "-nodefaults -no-user-config -no-reboot -display none -accel tcg -cpu max \
    -machine q35,memory-backend=ram,graphics=off \
    -object memory-backend-memfd,id=ram,size=128M,share=on \
    -device pcie-root-port,id=port0,bus=pcie.0,addr=0x10,chassis=1";

/// Comments of a script that is fetched by HTTP: enough to fill the card's rings many times.
const COMMENTS: usize = 16_384;
/// iPXE's error for a ring without room. Its rings are of eight buffers; who serves the file knows nothing of them.
const NO_ROOM: &str = "0x2a654006";
/// What the fetched script says at its end.
const WHOLE: &str = "the script came whole";

/// iPXE finds the PF, has a link, and fetches a megabyte by HTTP.
pub(crate) fn fetches_a_file_over_the_pf(world: &mut World) -> Result<Outcome> {
    let image = world.assets().ipxe()?;
    world.send_dave_home()?;
    let wire = match &world.wire {
        Ok(wire) => wire,
        Err(why) => return Ok(Outcome::Skipped(format!("no uplink here: {why}"))),
    };
    let folder = TempDir::new()?;
    let script = format!(
        "#!ipxe\nifopen net0\nset net0/ip 10.82.0.4\nset net0/netmask 255.255.255.0\n\
         chain http://{}/script || echo nothing came\nreboot\n",
        wire.address()
    );
    fs::write(folder.path().join("begin"), script)?;
    let comments = format!("# {:-<61}\n", "").repeat(COMMENTS);
    fs::write(folder.path().join("script"), format!("#!ipxe\n{comments}echo {WHOLE}\nifstat\nreboot\n"))?;
    let server = wire.serve(folder.path())?;
    let before = world.pf()?;
    let said = boot(world, &image, folder.path());
    drop(server);
    let (said, after) = (said?, world.pf()?);
    let link = format!("net0: {PF_MAC} using 82576");
    ensure!(said.contains(WHOLE) && said.contains(&link) && said.contains("Link:up"), "iPXE said: {said}");
    let is_error = |line: &&str| line.contains("[RXE:") || line.contains("[TXE:");
    ensure!(said.lines().filter(is_error).all(|line| line.contains(NO_ROOM)), "iPXE counts errors: {said}");
    let (sent, received) = (after.tx.packets - before.tx.packets, after.rx.bytes - before.rx.bytes);
    ensure!(
        sent > 100 && received > 1 << 20,
        "the host counts {sent} frames sent, {received} bytes received"
    );
    Ok(Outcome::Passed)
}

/// Boots iPXE with the script `begin` on [`PF`], waits until it reboots, and answers what it said.
fn boot(world: &World, image: &Path, folder: &Path) -> Result<String> {
    let said = folder.join("said");
    let card = json!({
        "driver": "vfio-user-pci", "bus": "port0",
        "socket": {"path": world.socket(PF).to_string_lossy(), "type": "unix"},
    });
    let mut command = world.assets().qemu().command();
    command.args(MACHINE.split_whitespace()).args(["-device", &card.to_string(), "-kernel"]).arg(image);
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

/// Waits for a program's end; `None`: it took too long, and was killed.
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
