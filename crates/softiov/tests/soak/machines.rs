//! Runs the Linux guests of the campaign: virtual machines with stock drivers, each with a VF and a connection to the
//! next, which must all survive the campaign. A copy of this program inside each compares the bytes.

use crate::connection::{BLOCK, FINISH, HOLD, RECEIVED};
use crate::served::HostWithKeeper;
use anyhow::{Context, Result, bail, ensure};
use linux_guest::{BackgroundScript, BootFiles, GuestError, KernelSeries, LinuxGuest};
use std::time::{Duration, Instant};

/// Numbers of the Linux guests' VFs.
const VFS: [u8; 3] = [4, 5, 6];
const BOOT: Duration = Duration::from_secs(240);
const COMMAND: Duration = Duration::from_secs(120);
/// Timeout for links and connections to recover. Stock igbvf restarts at most every 10 seconds, and TCP doubles its
/// retransmission timeout.
const PATIENCE: Duration = Duration::from_secs(300);
const LOOK: Duration = Duration::from_millis(200);
/// Number of further bytes that prove that a connection between Linux guests works.
const ALIVE: u64 = 4 * BLOCK as u64;

/// Linux guest of the campaign, with the programs in it that receive from one other guest and send to another.
#[derive(Debug)]
struct SoakMachine {
    linux: LinuxGuest,
    receiver: BackgroundScript,
    sender: BackgroundScript,
}

/// All Linux guests of the campaign; empty if the campaign has only embedded guests.
#[derive(Debug)]
pub(crate) struct LinuxGuestGroup {
    machines: Vec<SoakMachine>,
    /// Number of bytes that the receivers had compared when their connections ended.
    bytes: u64,
}

impl LinuxGuestGroup {
    pub(crate) fn none() -> Self {
        Self { machines: Vec::new(), bytes: 0 }
    }

    /// Boots a virtual machine for each VF, and opens a TCP flow from each to the next.
    pub(crate) fn boot(served: &HostWithKeeper) -> Result<Self> {
        let this = std::env::current_exe()?;
        let program = this.file_name().and_then(|name| name.to_str()).context("this program has no name")?;
        let assets = BootFiles::prepare(KernelSeries::Bookworm61)?.with_program(&this)?;
        let spawn = |vf: &u8| {
            let socket = served.socket(&format!("pf0vf{vf}"));
            LinuxGuest::builder(format!("linux on pf0vf{vf}")).vf_socket(socket).spawn(&assets)
        };
        let guests = VFS.iter().map(spawn).collect::<Result<Vec<_>, _>>()?;
        for (guest, vf) in guests.iter().zip(VFS) {
            guest.wait_ready(BOOT)?;
            guest
                .check(&format!("ip addr add {}/24 dev eth0 && ip link set eth0 up", address(vf)), COMMAND)?;
        }
        let receivers = guests.iter().map(|guest| guest.spawn_background(&format!("exec {program} receive")));
        let receivers = receivers.collect::<Result<Vec<_>, _>>()?;
        let next = VFS.iter().cycle().skip(1);
        let senders = guests
            .iter()
            .zip(next)
            .map(|(guest, vf)| guest.spawn_background(&format!("exec {program} send {}", address(*vf))));
        let senders = senders.collect::<Result<Vec<_>, _>>()?;
        let machines = guests.into_iter().zip(receivers).zip(senders);
        let machines =
            machines.map(|((linux, receiver), sender)| SoakMachine { linux, receiver, sender }).collect();
        let mut machines = Self { machines, bytes: 0 };
        machines.wait_moving()?;
        Ok(machines)
    }

    pub(crate) fn count(&self) -> usize {
        self.machines.len()
    }

    /// Starts or stops the traffic on the connections between the Linux guests.
    pub(crate) fn let_flow(&self, flowing: bool) -> Result<()> {
        let script = if flowing { format!("rm -f {HOLD}") } else { format!("touch {HOLD}") };
        self.machines.iter().try_for_each(|machine| machine.linux.check(&script, COMMAND).map(drop))?;
        Ok(())
    }

    /// Returns two lists of descriptions: Linux guests that have ended, and connections that have ended.
    pub(crate) fn losses(&mut self) -> [Vec<String>; 2] {
        let (mut machines, mut connections) = (Vec::new(), Vec::new());
        for machine in &mut self.machines {
            if !machine.linux.is_running() {
                let (name, tail) = (machine.linux.name(), machine.linux.console_tail());
                machines.push(format!("the QEMU of {name} has ended:\n{tail}"));
                continue;
            }
            connections.extend(machine.ended());
        }
        [machines, connections]
    }

    /// Waits until every connection has carried more bytes, and returns the duration of the wait.
    pub(crate) fn wait_moving(&mut self) -> Result<Duration> {
        let start = Instant::now();
        self.let_flow(true)?;
        for machine in &self.machines {
            let goal = machine.received()? + ALIVE;
            loop {
                let received = machine.received()?;
                if received >= goal {
                    break;
                }
                if let Some(ended) = machine.ended() {
                    bail!(ended);
                }
                ensure!(start.elapsed() < PATIENCE, "{}", machine.silent(received));
                std::thread::sleep(LOOK);
            }
        }
        Ok(start.elapsed())
    }

    /// Ends every connection, and checks that all bytes arrived.
    pub(crate) fn finish(&mut self) -> Result<()> {
        for machine in &self.machines {
            machine.linux.check(&format!("touch {FINISH}"), COMMAND)?;
        }
        for machine in &self.machines {
            for running in [&machine.sender, &machine.receiver] {
                let output = machine.linux.wait(running, COMMAND)?;
                ensure!(output.success(), "{}: {}", machine.linux.name(), output.stderr);
                self.bytes += output.stdout.trim().parse().unwrap_or(0);
            }
        }
        Ok(())
    }

    /// Returns the number of bytes that ended connections carried and that were compared.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl SoakMachine {
    /// Returns the number of bytes that this guest's receiver has received so far.
    fn received(&self) -> Result<u64> {
        let text = self.linux.check(&format!("cat {RECEIVED} 2>/dev/null || echo 0"), COMMAND)?;
        // The file exists a moment before its number.
        Ok(text.trim().parse().unwrap_or(0))
    }

    /// Returns a message with the errors of this guest's sender or receiver if one has ended.
    fn ended(&self) -> Option<String> {
        let name = self.linux.name();
        [("sender", &self.sender), ("receiver", &self.receiver)].into_iter().find_map(|(who, running)| {
            match self.linux.wait(running, Duration::ZERO) {
                Err(GuestError::Late { .. }) => None,
                Ok(output) => Some(format!("{name}: the {who} has ended: {}", output.stderr)),
                Err(error) => Some(format!("{name}: the {who} does not answer: {error}")),
            }
        })
    }

    /// Returns the network state of a guest that receives nothing, as text for an error message.
    fn silent(&self, received: u64) -> String {
        const SCRIPT: &str = "ip -s link show eth0; ip neigh; dmesg | tail -n 25";
        let known = self.linux.check(SCRIPT, COMMAND).unwrap_or_else(|error| error.to_string());
        format!("{}: nothing received after {received} bytes:\n{known}", self.linux.name())
    }
}

fn address(vf: u8) -> String {
    format!("10.0.0.{}", 1 + vf)
}
