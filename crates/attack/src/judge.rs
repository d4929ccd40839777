//! Checks of the host, the same for all cases. While the attacker lives and after it, the host lives, the neighbours of all
//! families exchange frames, and the control socket answers. After it, the host's log, memory and descriptors are bounded,
//! and the attacked VF works for its next client.

use crate::control;
use crate::family::AttackedFamily;
use crate::host_process::{HostProcess, HostResources, HostSetup};
use crate::neighbours::{Neighbours, WellBehavedGuest};
use anyhow::{Context, Result, bail, ensure};
use std::time::{Duration, Instant};

/// Number of lines that the log may grow by in a case.
const MAX_LOG_LINES: usize = 60;
/// Memory in KiB that the host may grow by in a case, and since the first one. Allocators do not return everything.
const MAX_CASE_GROWTH: u64 = 8 << 10;
const MAX_GROWTH: u64 = 48 << 10;
/// Timeout for a VF to be usable again. A VF that has sent too many requests is throttled for ten seconds (conduct limits).
const RECOVERY: Duration = Duration::from_secs(40);
/// Timeout for the host to close the descriptors of clients that have gone.
const SETTLING: Duration = Duration::from_secs(10);
const LOOK: Duration = Duration::from_millis(2);
/// Time for a new host to close the descriptors of its first clients.
const QUIET: Duration = Duration::from_millis(200);
/// Number of rounds of frames that the neighbours, and the next client, exchange.
const ROUNDS: u64 = 2;

/// Host under attack with its neighbours.
#[derive(Debug)]
pub struct Arena {
    /// Host under attack.
    pub host: HostProcess,
    neighbours: [Neighbours; 3],
    /// Resources before the first case.
    first: HostResources,
}

impl Arena {
    /// Starts a host and the neighbours of all families, and lets each attacked VF have a first well-behaved client.
    ///
    /// # Errors
    /// The host does not serve well-behaved guests.
    pub fn start(program: &std::path::Path, setup: HostSetup) -> Result<Self> {
        let host = HostProcess::start(program, setup)?;
        let [a, b, c] = AttackedFamily::ALL.map(|family| Neighbours::attach(&host, family));
        let first = host.resources()?;
        let mut this = Self { host, neighbours: [a?, b?, c?], first };
        for family in AttackedFamily::ALL {
            this.check_next_client(family)?;
        }
        // The host opens some descriptors when it stores the first policy.
        control::store_policy(&this.host.control_socket())?;
        std::thread::sleep(QUIET);
        this.first = this.host.resources()?;
        Ok(this)
    }

    /// Returns the neighbours of a family's attacked VF.
    pub fn neighbours(&mut self, family: AttackedFamily) -> &mut Neighbours {
        &mut self.neighbours[family.port()]
    }

    /// Checks the host while an attacker lives.
    ///
    /// # Errors
    /// A check fails.
    pub fn judge_during(&mut self) -> Result<()> {
        self.check_others().context("while the attacker lives")
    }

    /// Checks the host after a case on a family.
    ///
    /// # Errors
    /// A check fails.
    pub fn judge(&mut self, family: AttackedFamily, before: &HostResources) -> Result<()> {
        self.check_others().context("after the attacker")?;
        let usable = self.check_next_client(family).context("the attacked VF does not work again");
        self.explain(usable)?;
        self.check_resources(before)?;
        self.check_alive()
    }

    /// Checks that the host lives and serves all who do not attack: neighbours of all families, and the control socket.
    fn check_others(&mut self) -> Result<()> {
        self.check_alive()?;
        let served = self.serves_all();
        self.explain(served)
    }

    /// Lets the neighbours of all families exchange frames, and asks the control socket for the ports.
    fn serves_all(&mut self) -> Result<()> {
        self.exchange_with_all()?;
        control::check(&self.host.control_socket()).context("the control socket does not answer")
    }

    /// Lets the neighbours recover from the end of a host: drivers start VFs again that were reset, and virtio front ends
    /// connect again, as VMMs do.
    ///
    /// # Errors
    /// A driver cannot start, or a front end cannot connect.
    pub fn recover(&mut self) -> Result<()> {
        let Self { host, neighbours, .. } = self;
        let all = AttackedFamily::ALL.into_iter().zip(neighbours);
        all.into_iter().try_for_each(|(family, neighbours)| neighbours.recover(host, family))
    }

    /// Lets the neighbours of all families exchange frames.
    ///
    /// # Errors
    /// A frame does not arrive.
    pub fn exchange_with_all(&mut self) -> Result<()> {
        for family in AttackedFamily::ALL {
            let exchanged = self.neighbours(family).exchange(ROUNDS);
            exchanged.with_context(|| format!("the neighbours of family {family} are cut off"))?;
        }
        Ok(())
    }

    fn check_alive(&mut self) -> Result<()> {
        match self.host.ended() {
            None => Ok(()),
            Some(how) => bail!("{how}; the end of its log:\n{}", self.host.last_log_lines()),
        }
    }

    /// Returns a check's error, or the host's end, which explains it.
    fn explain(&mut self, checked: Result<()>) -> Result<()> {
        match checked {
            Ok(()) => Ok(()),
            Err(error) => self.check_alive().and(Err(error)),
        }
    }

    fn check_next_client(&mut self, family: AttackedFamily) -> Result<()> {
        let deadline = Instant::now() + RECOVERY;
        loop {
            let attached = WellBehavedGuest::attach(&self.host, family, 0);
            let used = attached
                .and_then(|mut guest| self.neighbours[family.port()].exchange_with(&mut guest, ROUNDS));
            match used {
                Ok(()) => return Ok(()),
                Err(error) if Instant::now() > deadline || self.host.ended().is_some() => return Err(error),
                Err(_) => std::thread::sleep(LOOK),
            }
        }
    }

    fn check_resources(&mut self, before: &HostResources) -> Result<()> {
        if self.host.setup() == HostSetup::Keeper {
            // A successor has other descriptors than its predecessor.
            return Ok(());
        }
        let deadline = Instant::now() + SETTLING;
        let mut now = self.host.resources()?;
        while now.descriptors > self.first.descriptors && Instant::now() < deadline {
            std::thread::sleep(LOOK);
            now = self.host.resources()?;
        }
        let (held, earlier) = (now.descriptors, self.first.descriptors);
        ensure!(held <= earlier, "the host holds {held} descriptors, {earlier} before the first case");
        let grown = now.own_kib.saturating_sub(before.own_kib);
        ensure!(grown <= MAX_CASE_GROWTH, "the host's memory grew by {grown} KiB");
        let grown = now.own_kib.saturating_sub(self.first.own_kib);
        ensure!(grown <= MAX_GROWTH, "the host's memory grew by {grown} KiB since the first case");
        let lines = now.log_lines.saturating_sub(before.log_lines);
        ensure!(
            lines <= MAX_LOG_LINES,
            "the log grew by {lines} lines; its end:\n{}",
            self.host.last_log_lines()
        );
        Ok(())
    }
}
