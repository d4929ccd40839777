//! Guest of an 82576's VF or an Adaptive Virtual Function: our VF driver over vfio-user. A driver that polls never
//! acknowledges an interrupt, so the card sends none after the first.

use super::{GuestRings, NotificationCounts, PATIENCE, RETRY};
use crate::contender::kind::ContenderKind;
use anyhow::{Context, Result, ensure};
use driver::any_vf::{AnyVfConfig, AnyVfLinkStatus};
use driver::vf::{RECEIVE_VECTOR, TxOffload};
use driver::{AnyVf, Hal};
use host::eventfd::EventFd;
use i82576::MacAddress;
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};
use vfio_client::{RegisterAccessCounts, VfDriverHal, VfioUserHal};

/// Bytes of a guest's memory for each descriptor of a ring: a driver's buffer, and two descriptors.
const SLOT: u64 = 2048 + 32;
/// Maximum number of frames that a VF's guest queues by one call.
const MOST: usize = super::BURST as usize;

/// VF of a `softiov serve` process, with its driver, which the benchmark polls in place of a guest.
#[derive(Debug)]
pub(crate) struct PolledVf {
    pub(crate) hal: VfioUserHal,
    pub(crate) vf: AnyVf,
    /// Number of register accesses by message that were counted before.
    accesses: u64,
    /// State of a guest that sleeps until an interrupt; `None` if it polls.
    interrupts: Option<InterruptState>,
}

/// State of a guest that sleeps until an interrupt of its receive vector.
#[derive(Debug, Default)]
struct InterruptState {
    asleep: bool,
    /// Number of interrupts that the guest has seen and not reported.
    count: u64,
}

impl PolledVf {
    /// Attaches to a VF, and waits for its link.
    ///
    /// # Errors
    /// The VF does not start.
    pub(crate) fn attach(socket: &Path, wanted: &AnyVfConfig) -> Result<Self> {
        let name = socket.display();
        let AnyVfConfig { i82576, avf } = wanted;
        let slots = u64::from(i82576.rx_descriptors.max(avf.descriptors))
            + u64::from(i82576.tx_descriptors.max(avf.descriptors));
        // Includes room for alignment. The size is a power of two, as machines have it.
        let memory = (slots * SLOT + (1 << 20)).next_power_of_two();
        let begun = Instant::now();
        let attach = || -> Result<_> {
            let mut hal = VfioUserHal::attach(socket, memory)?;
            let family = hal.family();
            let vf = AnyVf::probe(&mut hal, family, wanted)?;
            Ok((hal, vf))
        };
        let (mut hal, mut vf) = loop {
            match attach() {
                Ok(attached) => break attached,
                // The PF's driver may not have started yet. Or a program that this process is starting still has a copy
                // of the former guest's socket, so that the host turns this client away.
                Err(_) if begun.elapsed() < PATIENCE => thread::sleep(RETRY),
                Err(error) => return Err(error).with_context(|| format!("the VF of {name} did not start")),
            }
        };
        vf.start(&mut hal).with_context(|| format!("the VF of {name} did not start"))?;
        while vf.check_link(&mut hal) != AnyVfLinkStatus::Up {
            ensure!(begun.elapsed() < PATIENCE, "the VF of {name} has no link within the timeout");
            hal.wait(Duration::from_millis(5));
        }
        Ok(Self { hal, vf, accesses: 0, interrupts: None })
    }

    /// Makes the guest sleep until an interrupt of its receive vector whenever it finds no further frame.
    pub(crate) fn sleeping(mut self) -> Self {
        self.interrupts = Some(InterruptState::default());
        self
    }

    /// Returns true if the guest does not sleep, or an interrupt wakes it.
    fn is_awake(&mut self) -> bool {
        let Some(state) = self.interrupts.as_mut().filter(|state| state.asleep) else { return true };
        let interrupts = self.hal.eventfd(RECEIVE_VECTOR.into()).map_or(0, EventFd::drain);
        if interrupts > 0 {
            state.count += interrupts;
            state.asleep = false;
            self.vf.handle_interrupt(&mut self.hal, RECEIVE_VECTOR);
        }
        interrupts > 0
    }

    /// Unmasks the receive vector and lets the guest sleep, if it does not poll.
    fn sleep(&mut self) {
        if let Some(state) = &mut self.interrupts {
            self.vf.receive_done(&mut self.hal);
            state.asleep = true;
        }
    }
}

impl GuestRings for PolledVf {
    fn mode(&self) -> ContenderKind {
        if self.hal.is_mapped() { ContenderKind::Mapped } else { ContenderKind::Posted }
    }

    fn send_burst(&mut self, frame: &[u8], count: usize, mss: Option<u16>) -> usize {
        let offload = TxOffload { tso: mss, ..TxOffload::default() };
        let sent = self.vf.transmit_burst(&mut self.hal, &[frame; MOST][..count.min(MOST)], &offload);
        self.flush();
        sent
    }

    fn queue(&mut self, frame: &[u8]) -> bool {
        self.vf.transmit(&mut self.hal, frame, &TxOffload::default()).is_ok()
    }

    fn flush(&mut self) {
        self.vf.flush(&mut self.hal);
    }

    fn receive(
        &mut self,
        most: usize,
        buffer: &mut [u8],
        sender: MacAddress,
        sizes: &RangeInclusive<usize>,
    ) -> (usize, u64) {
        if !self.is_awake() {
            return (0, 0);
        }
        let mut ours = 0;
        let found = self.vf.receive_burst(&mut self.hal, most, |mut frame| {
            let is_ours = frame.copy_to(buffer).is_ok_and(|length| sizes.contains(&length));
            ours += u64::from(is_ours && buffer[6..12] == sender.0);
        });
        if found < most {
            self.sleep();
        }
        (found, ours)
    }

    fn notifications(&mut self) -> NotificationCounts {
        let RegisterAccessCounts { reads, writes } = self.hal.accesses();
        let messages = reads + writes - std::mem::replace(&mut self.accesses, reads + writes);
        let interrupts = match &mut self.interrupts {
            Some(state) => std::mem::take(&mut state.count),
            None => (0..).map_while(|vector| self.hal.eventfd(vector)).map(EventFd::drain).sum(),
        };
        NotificationCounts { kicks: 0, messages, interrupts }
    }
}
