//! Engine of a guest's attack: accesses to registers, memory and mailbox of a VF, and frames, over the drivers' [`Hal`]
//! and [`DmaHal`]. So the same rows attack a VF over any bus that a driver has.
//!
//! [`Hal`]: driver::Hal

mod admin_queue;
mod answer;
mod mailbox;

pub use answer::PfAnswer;

use crate::device::{AttackedDevice, WellBehavedDriver};
use crate::family::AttackedFamily;
use crate::field::{Field, FieldValues, encode};
use admin_queue::AttackAdminQueue;
use answer::{LOOK, PATIENCE};
use anyhow::{Context, Result, ensure};
use driver::DmaHal;
use driver::vf::TxOffload;
use i82576::register::vf::STATUS;

/// Bytes of a guest's memory for the rings and buffers of cases. The engine's own admin queue follows.
const CASE_MEMORY: u64 = 0x4_0000;

/// State of the VF in which an attack begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GuestStart {
    /// The VF has been reset, and may use DMA and interrupts. No driver has talked to the PF.
    Reset,
    /// The engine has made itself known to the PF (mailbox or admin queue), as a driver does first.
    Known,
    /// A well-behaved driver has started frame reception and transmission.
    Driver,
}

/// Step of a guest's attack.
#[derive(Debug, Clone, Copy)]
pub enum GuestStep {
    /// Writes a value to a register.
    Write(u32, u32),
    /// Writes the device address of the guest's memory at an offset to a register for the low half and one for the high half.
    WriteAddress(u32, u32, u64),
    /// Reads a register and compares the bits of a mask with a value: register, mask, value.
    Check(u32, u32, u32),
    /// Stores fields in the guest's memory at an offset.
    Store(u64, &'static [Field]),
    /// Carries out steps that several cases share.
    Steps(&'static [GuestStep]),
    /// Repeats steps.
    Repeat(u32, &'static [GuestStep]),
    /// Sends a message over the 82576's mailbox: 32-bit words.
    Mail(&'static [u32], PfAnswer),
    /// Sends a message over the 82576's mailbox that names a neighbour's address: first word.
    MailNeighbour(u32, PfAnswer),
    /// Sends a virtchnl message: operation, body.
    Message(u32, &'static [Field], PfAnswer),
    /// Puts descriptors into the engine's admin send queue as they are (32 bytes each), and rings the doorbell.
    AdminDescriptors(&'static [Field]),
    /// Sends a frame through the well-behaved driver, with offloads.
    Send(&'static [Field], TxOffload),
    /// Waits until the host has polled its card again.
    Settle,
}

/// Frame without offloads.
pub const PLAIN: TxOffload = TxOffload { ip_checksum: false, l4_checksum: false, tso: None, vlan: None };

/// Guest that attacks a VF.
#[derive(Debug)]
pub struct AttackingGuest<H> {
    /// Bus of the attacked VF.
    pub hal: H,
    device: AttackedDevice,
    values: FieldValues,
    driver: Option<WellBehavedDriver>,
    admin: Option<AttackAdminQueue>,
}

impl<H: DmaHal> AttackingGuest<H> {
    /// Brings a device into the state in which an attack begins. `neighbour` is the Ethernet address of a neighbour.
    ///
    /// # Errors
    /// The VF or its PF does not react as to a well-behaved guest.
    pub fn begin(mut hal: H, device: AttackedDevice, start: GuestStart, neighbour: [u8; 6]) -> Result<Self> {
        let bytes = CASE_MEMORY + admin_queue::MEMORY;
        let memory = hal.dma_alloc(bytes as usize, 4096)?.iova;
        let values = FieldValues { memory, neighbour_mac: neighbour, ..FieldValues::default() };
        let mut this = Self { hal, device, values, driver: None, admin: None };
        match (start, device.family()) {
            (GuestStart::Reset, _) => {}
            (GuestStart::Known, AttackedFamily::I82576) => this.reset_by_mailbox()?,
            (GuestStart::Known, _) => drop(this.admin()?),
            (GuestStart::Driver, _) => this.start_driver()?,
        }
        Ok(this)
    }

    fn start_driver(&mut self) -> Result<()> {
        let driver = self.device.start_driver(&mut self.hal)?;
        self.values.own_mac = driver.mac();
        self.driver = Some(driver);
        Ok(())
    }

    /// Carries out steps.
    ///
    /// # Errors
    /// An expected answer or value does not come.
    pub fn run(&mut self, steps: &[GuestStep]) -> Result<()> {
        for (number, step) in (1..).zip(steps) {
            self.step(step).with_context(|| format!("step {number}, {step:x?}"))?;
        }
        Ok(())
    }

    fn step(&mut self, step: &GuestStep) -> Result<()> {
        match *step {
            GuestStep::Write(register, value) => self.hal.write(self.device.register(register), value),
            GuestStep::WriteAddress(low, high, offset) => {
                let address = self.values.memory + offset;
                self.hal.write(self.device.register(low), address as u32);
                self.hal.write(self.device.register(high), (address >> 32) as u32);
            }
            GuestStep::Check(register, mask, expected) => {
                let found = self.hal.read(self.device.register(register)) & mask;
                ensure!(found == expected, "register {register:#x} has {found:#x}, expected {expected:#x}");
            }
            GuestStep::Store(offset, fields) => {
                let bytes = encode(fields, &self.values);
                ensure!(offset + bytes.len() as u64 <= CASE_MEMORY, "the case stores outside its memory");
                self.hal.dma_write(self.values.memory + offset, &bytes);
            }
            GuestStep::Steps(steps) => self.run(steps)?,
            GuestStep::Repeat(times, steps) => (0..times).try_for_each(|_| self.run(steps))?,
            GuestStep::Mail(words, answer) => self.mail(words, answer)?,
            GuestStep::MailNeighbour(first, answer) => {
                let [a, b, c, d, e, f] = self.values.neighbour_mac;
                let address = [[a, b, c, d], [e, f, 0, 0]].map(u32::from_le_bytes);
                self.mail(&[first, address[0], address[1]], answer)?;
            }
            GuestStep::Message(operation, body, answer) => {
                self.admin()?;
                let body = encode(body, &self.values);
                let queue = self.admin.as_mut().context("the admin queue is set up")?;
                queue.request(&mut self.hal, operation, &body, answer)?;
            }
            GuestStep::AdminDescriptors(fields) => {
                self.admin()?;
                let raw = encode(fields, &self.values);
                let queue = self.admin.as_mut().context("the admin queue is set up")?;
                queue.send_raw(&mut self.hal, &raw);
            }
            GuestStep::Send(frame, offload) => self.send(frame, &offload)?,
            GuestStep::Settle => self.settle(),
        }
        Ok(())
    }

    /// Waits until the host has polled its card after all earlier writes: the second of two reads in turn is answered in
    /// a later round.
    pub fn settle(&mut self) {
        for _ in 0..3 {
            self.hal.read(STATUS);
        }
    }

    fn send(&mut self, frame: &[Field], offload: &TxOffload) -> Result<()> {
        let frame = encode(frame, &self.values);
        let driver =
            self.driver.as_mut().context("the case sends frames and does not begin with a driver")?;
        for _ in 0..PATIENCE.as_micros() / LOOK.as_micros() {
            if driver.has_room(&mut self.hal) {
                return driver.send(&mut self.hal, &frame, offload);
            }
            self.hal.wait(LOOK);
        }
        anyhow::bail!("the transmit ring stays full for {PATIENCE:?}")
    }

    /// Sets up the engine's admin queue, and asks the PF for version and resources, unless that is done.
    fn admin(&mut self) -> Result<()> {
        if self.admin.is_none() {
            let mut queue = AttackAdminQueue::set_up(&mut self.hal, self.values.memory + CASE_MEMORY);
            let resources = queue.introduce(&mut self.hal)?;
            self.values.vsi = resources.vsi;
            self.values.own_mac = resources.mac;
            self.admin = Some(queue);
        }
        Ok(())
    }
}
