//! Well-behaved guests of the host: the neighbours of an attacked VF, and its next client.

use crate::family::AttackedFamily;
use crate::host_process::{HostProcess, address};
use anyhow::{Context, Result, bail, ensure};
use driver::any_vf::{AnyVf, AnyVfConfig, AnyVfLinkStatus};
use driver::vf::TxOffload;
use std::path::Path;
use std::time::{Duration, Instant};
use vfio_client::VfioUserHal;
use vhost_client::{VirtioNet, VirtioNetConfig};
use virtio::VirtioFeatures;
use virtio::net::NetHeader;

/// Timeout of a frame between two guests. A check of liveness, not of speed.
const PATIENCE: Duration = Duration::from_secs(10);
/// Time after which an unanswered frame is sent again: a flood may fill a receive ring.
const AGAIN: Duration = Duration::from_millis(500);
/// Pause between two looks at the rings.
const LOOK: Duration = Duration::from_micros(100);
/// Bytes of memory of a guest with a VF behind vfio-user.
const MEMORY: u64 = 16 << 20;
/// Descriptors of a virtio guest's rings.
const DESCRIPTORS: u16 = 256;
/// Ethernet type of the guests' frames (IEEE 802, local experimental).
const ETHER_TYPE: [u8; 2] = [0x88, 0xb5];
/// Text in the frames of attacks, by which neighbours recognize them.
pub const MARK: &[u8] = b"attack-frame";

/// Guest with a well-behaved driver.
#[derive(Debug)]
pub enum WellBehavedGuest {
    /// Guest with a VF of an 82576 or an AVF.
    Vfio(Box<VfioUserHal>, AnyVf),
    /// Guest with a virtio network function, and its Ethernet address.
    Virtio(Box<VirtioNet>, [u8; 6]),
}

impl WellBehavedGuest {
    /// Attaches to a VF and starts its driver.
    ///
    /// # Errors
    /// The host does not serve the VF as a driver expects.
    pub fn attach(host: &HostProcess, family: AttackedFamily, vf: usize) -> Result<Self> {
        let socket = host.socket(family, vf);
        if family == AttackedFamily::Virtio {
            let config = VirtioNetConfig { features: VirtioFeatures::VERSION_1, descriptors: DESCRIPTORS };
            let net = VirtioNet::attach(&socket, &config)?;
            return Ok(Self::Virtio(Box::new(net), address(family, vf)));
        }
        let mut hal = VfioUserHal::attach(&socket, MEMORY)?;
        let family = hal.family();
        let mut driver = AnyVf::probe(&mut hal, family, &AnyVfConfig::default())?;
        driver.start(&mut hal)?;
        Ok(Self::Vfio(Box::new(hal), driver))
    }

    /// Returns the guest's Ethernet address.
    #[must_use]
    pub fn mac(&self) -> [u8; 6] {
        match self {
            Self::Vfio(_, driver) => driver.mac().0,
            Self::Virtio(_, mac) => *mac,
        }
    }

    /// Sends a frame. Returns false if the transmit ring is full.
    pub fn send(&mut self, frame: &[u8]) -> bool {
        match self {
            Self::Vfio(hal, driver) => {
                let has_room = driver.has_room(&mut **hal, 1);
                let sent = has_room && driver.transmit(&mut **hal, frame, &TxOffload::default()).is_ok();
                driver.flush(&mut **hal);
                sent
            }
            Self::Virtio(net, _) => {
                let sent = net.transmit(frame, &NetHeader::default());
                net.flush();
                sent
            }
        }
    }

    /// Recovers from the end of the host that served the VF at a socket.
    fn recover(&mut self, socket: &Path) -> Result<()> {
        match self {
            Self::Vfio(hal, driver) => {
                if driver.watchdog(&mut **hal) == AnyVfLinkStatus::ResetNeeded {
                    driver.restart(&mut **hal)?;
                }
            }
            Self::Virtio(net, _) => net.reconnect(socket)?,
        }
        Ok(())
    }

    /// Passes all received frames to `take`.
    pub fn receive(&mut self, mut take: impl FnMut(&[u8])) {
        let mut buffer = [0; 16 << 10];
        match self {
            Self::Vfio(hal, driver) => {
                driver.receive_burst(&mut **hal, usize::from(DESCRIPTORS), |mut frame| {
                    if let Ok(length) = frame.copy_to(&mut buffer) {
                        take(&buffer[..length]);
                    }
                });
                driver.receive_done(&mut **hal);
            }
            Self::Virtio(net, _) => {
                net.receive_burst(usize::from(DESCRIPTORS), |frame| {
                    if let Some(length) = frame.copy_to(&mut buffer) {
                        take(&buffer[..length]);
                    }
                });
            }
        }
    }
}

/// Two guests of one family whose frames must arrive during and after each attack.
#[derive(Debug)]
pub struct Neighbours {
    /// The two guests.
    pub guests: [WellBehavedGuest; 2],
    /// Number of frames that the guests have exchanged, the identity of the next one.
    count: u64,
    /// Number of frames of attacks that the guests have received.
    marks: u64,
}

impl Neighbours {
    /// Attaches two guests to the VFs 1 and 2 of a family's port.
    ///
    /// # Errors
    /// A guest cannot start.
    pub fn attach(host: &HostProcess, family: AttackedFamily) -> Result<Self> {
        let attach = |vf| {
            WellBehavedGuest::attach(host, family, vf)
                .with_context(|| format!("neighbour on VF {vf} of family {family}"))
        };
        Ok(Self { guests: [attach(1)?, attach(2)?], count: 0, marks: 0 })
    }

    /// Lets both guests recover from the end of a host, which another one has replaced.
    ///
    /// # Errors
    /// A driver cannot start, or a front end cannot connect.
    pub fn recover(&mut self, host: &HostProcess, family: AttackedFamily) -> Result<()> {
        self.guests.iter_mut().zip(1..).try_for_each(|(guest, vf)| guest.recover(&host.socket(family, vf)))
    }

    /// Exchanges a frame in both directions, `rounds` times.
    ///
    /// # Errors
    /// A frame does not arrive.
    pub fn exchange(&mut self, rounds: u64) -> Result<()> {
        for _ in 0..rounds {
            let [a, b] = &mut self.guests;
            pass(a, b, &mut self.count, &mut self.marks).context("from the first neighbour to the second")?;
            pass(b, a, &mut self.count, &mut self.marks).context("from the second neighbour to the first")?;
        }
        Ok(())
    }

    /// Exchanges frames with another guest, in both directions.
    ///
    /// # Errors
    /// A frame does not arrive.
    pub fn exchange_with(&mut self, guest: &mut WellBehavedGuest, rounds: u64) -> Result<()> {
        for _ in 0..rounds {
            pass(guest, &mut self.guests[0], &mut self.count, &mut self.marks)?;
            pass(&mut self.guests[0], guest, &mut self.count, &mut self.marks)?;
        }
        Ok(())
    }

    /// Returns the number of frames of attacks that the neighbours have received since the last call.
    pub fn take_marks(&mut self) -> u64 {
        for guest in &mut self.guests {
            guest.receive(|frame| self.marks += u64::from(is_marked(frame)));
        }
        std::mem::take(&mut self.marks)
    }

    /// Waits until a frame of an attack arrives.
    ///
    /// # Errors
    /// None arrives.
    pub fn wait_for_mark(&mut self) -> Result<()> {
        let deadline = Instant::now() + PATIENCE;
        while self.take_marks() == 0 {
            ensure!(Instant::now() < deadline, "the attack's frame, which is allowed, does not arrive");
            std::thread::sleep(LOOK);
        }
        Ok(())
    }
}

fn is_marked(frame: &[u8]) -> bool {
    frame.windows(MARK.len()).any(|window| window == MARK)
}

/// Sends a frame from one guest to another until it arrives.
fn pass(
    from: &mut WellBehavedGuest,
    to: &mut WellBehavedGuest,
    count: &mut u64,
    marks: &mut u64,
) -> Result<()> {
    *count += 1;
    let payload = [&count.to_le_bytes()[..], &[0xa5; 40]].concat();
    let frame = [&to.mac()[..], &from.mac(), &ETHER_TYPE, &payload].concat();
    let deadline = Instant::now() + PATIENCE;
    let mut sent_at: Option<Instant> = None;
    loop {
        if sent_at.is_none_or(|at| at.elapsed() > AGAIN) && from.send(&frame) {
            sent_at = Some(Instant::now());
        }
        let mut arrived = false;
        to.receive(|received| {
            arrived |= received.get(14..).is_some_and(|found| found.starts_with(&payload));
            *marks += u64::from(is_marked(received));
        });
        if arrived {
            return Ok(());
        }
        if Instant::now() > deadline {
            bail!("a frame does not arrive within {PATIENCE:?}");
        }
        // Frames of an attack may fill the sender's receive ring too.
        from.receive(|received| *marks += u64::from(is_marked(received)));
        std::thread::sleep(LOOK);
    }
}
