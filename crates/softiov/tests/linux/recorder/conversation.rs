//! Recording of one connection: the client's messages, and the guest's memory behind a doorbell at the time of its message.
//!
//! Each line is `message FDS BYTES`, with the number of descriptors, or `memory ADDRESS BYTES`, which a doorbell's message
//! follows; all numbers but FDS are hexadecimal.

use anyhow::Result;
use avf::admin::{self, AdminQueueDescriptor};
use avf::register as avf_register;
use host::socket::ReceivedFds;
use i82576::register::{tx, vf};
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::Write as _;
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use vfio_user::wire::{Command, pci_region};

/// Messages that are recorded of a connection. Later ones are traffic.
const MOST: usize = 20_000;
/// Bytes of a message's header.
const HEADER: usize = 16;
/// Bytes of a packet that are recorded: its headers.
const PACKET_HEAD: usize = 64;
/// Bytes of a transmit descriptor of an 82576.
const DESCRIPTOR: usize = 16;

/// DMA window of the client: guest address, size, file and offset in the file.
#[derive(Debug)]
struct RecordedWindow {
    address: u64,
    size: u64,
    file: File,
    offset: u64,
}

/// Recording of one connection.
#[derive(Debug)]
pub(super) struct RecordedConversation {
    file: File,
    /// Bytes of a message that is not complete yet.
    pending: Vec<u8>,
    /// Descriptors that no complete message has claimed yet.
    fds: Vec<OwnedFd>,
    windows: Vec<RecordedWindow>,
    /// Last value written to each register of BAR 0.
    registers: BTreeMap<u32, u32>,
    messages: usize,
}

/// Returns a little-endian number of a message; bytes beyond its end count as zero.
fn number(message: &[u8], at: usize, length: usize) -> u64 {
    message.iter().skip(at).take(length).rev().fold(0, |value, byte| value << 8 | u64::from(*byte))
}

impl RecordedConversation {
    pub(super) fn create(path: &Path) -> Result<Self> {
        Ok(Self {
            file: File::create(path)?,
            pending: Vec::new(),
            fds: Vec::new(),
            windows: Vec::new(),
            registers: BTreeMap::new(),
            messages: 0,
        })
    }

    /// Records bytes and descriptors of the client.
    pub(super) fn receive(&mut self, bytes: &[u8], fds: &ReceivedFds) -> Result<()> {
        self.pending.extend_from_slice(bytes);
        for fd in fds.iter() {
            self.fds.push(fd.try_clone_to_owned()?);
        }
        while self.pending.len() >= HEADER && self.messages < MOST {
            let size = (number(&self.pending, 4, 4) as usize).max(HEADER);
            if self.pending.len() < size {
                break;
            }
            let message: Vec<u8> = self.pending.drain(..size).collect();
            // Descriptors belong to the message with the last received byte.
            let fds = if self.pending.is_empty() { std::mem::take(&mut self.fds) } else { Vec::new() };
            self.record(&message, fds)?;
        }
        Ok(())
    }

    fn record(&mut self, message: &[u8], fds: Vec<OwnedFd>) -> Result<()> {
        let (command, count) = (number(message, 2, 2), fds.len());
        let is = |wanted: Command| command == u64::from(wanted.number());
        if is(Command::DmaMap) {
            let [offset, address, size] =
                [HEADER + 8, HEADER + 16, HEADER + 24].map(|at| number(message, at, 8));
            let files = fds.into_iter().map(File::from);
            self.windows.extend(files.map(|file| RecordedWindow { address, size, file, offset }));
        } else if is(Command::DmaUnmap) {
            let [address, size] = [HEADER + 8, HEADER + 16].map(|at| number(message, at, 8));
            self.windows.retain(|window| window.address < address || window.address - address >= size);
        } else if is(Command::RegionWrite) {
            self.write(&message[HEADER..])?;
        } else if is(Command::RegionWriteMulti) {
            for write in message.get(HEADER + 8..).unwrap_or_default().chunks(24) {
                self.write(write)?;
            }
        }
        self.messages += 1;
        self.line(&format!("message {count}"), message)
    }

    /// Records the memory behind a doorbell, if `write` (offset, region, length and data) is one.
    fn write(&mut self, write: &[u8]) -> Result<()> {
        let (offset, region) = (number(write, 0, 8) as u32, number(write, 8, 4));
        if region != u64::from(pci_region::BAR0) {
            return Ok(());
        }
        let value = number(write, 16, 4) as u32;
        let before = self.registers.insert(offset, value).unwrap_or(0);
        let queue = offset.wrapping_sub(vf::TX_BLOCK + tx::TDT);
        if offset == avf_register::VF_ATQT {
            self.record_messages(before, value)
        } else if [0, vf::QUEUE_STRIDE].contains(&queue) {
            self.record_packets(vf::TX_BLOCK + queue, before, value)
        } else {
            Ok(())
        }
    }

    fn register(&self, offset: u32) -> u64 {
        self.registers.get(&offset).copied().unwrap_or(0).into()
    }

    /// Records the descriptors and bodies of an AVF's messages in the ring's slots from `first` up to `end`.
    fn record_messages(&mut self, first: u32, end: u32) -> Result<()> {
        let base = self.register(avf_register::VF_ATQBAH) << 32 | self.register(avf_register::VF_ATQBAL);
        let slots = self.register(avf_register::VF_ATQLEN) as u32 & 0x3ff;
        for slot in slots_between(first, end, slots) {
            let Some(raw) = self.memory(base + u64::from(slot) * admin::SIZE as u64, admin::SIZE) else {
                continue;
            };
            let descriptor = AdminQueueDescriptor::parse(raw.as_slice().try_into()?);
            if let Some(body) = self.memory(descriptor.address, descriptor.length.into()) {
                self.line(&format!("memory {:x}", descriptor.address), &body)?;
            }
            self.line(&format!("memory {:x}", base + u64::from(slot) * admin::SIZE as u64), &raw)?;
        }
        Ok(())
    }

    /// Records the descriptors of an 82576's transmit queue in the ring's slots from `first` up to `end`, and the headers of
    /// their packets.
    fn record_packets(&mut self, block: u32, first: u32, end: u32) -> Result<()> {
        let base = self.register(block + tx::TDBAH) << 32 | self.register(block + tx::TDBAL);
        let slots = self.register(block + tx::TDLEN) as u32 / DESCRIPTOR as u32;
        for slot in slots_between(first, end, slots) {
            let at = base + u64::from(slot) * DESCRIPTOR as u64;
            let Some(raw) = self.memory(at, DESCRIPTOR) else { continue };
            // A context descriptor has no address: what is there is recorded, and no input uses it.
            let address = number(&raw, 0, 8);
            if let Some(head) = self.memory(address, PACKET_HEAD) {
                self.line(&format!("memory {address:x}"), &head)?;
            }
            self.line(&format!("memory {at:x}"), &raw)?;
        }
        Ok(())
    }

    /// Returns bytes of the guest's memory, or `None` if they are not in one window.
    fn memory(&self, address: u64, length: usize) -> Option<Vec<u8>> {
        let window = self.windows.iter().find(|window| {
            let end = (window.address.saturating_add(window.size)).checked_sub(length as u64);
            window.address <= address && end.is_some_and(|end| address <= end)
        })?;
        let mut bytes = vec![0; length];
        window.file.read_exact_at(&mut bytes, window.offset + (address - window.address)).ok()?;
        Some(bytes)
    }

    fn line(&mut self, words: &str, bytes: &[u8]) -> Result<()> {
        let mut line = format!("{words} ");
        for byte in bytes {
            let _ = write!(line, "{byte:02x}");
        }
        Ok(writeln!(self.file, "{line}")?)
    }
}

/// Returns the slots of a ring from `first` up to `end`, around its end.
fn slots_between(first: u32, end: u32, slots: u32) -> impl Iterator<Item = u32> {
    let count = if slots == 0 || end >= slots { 0 } else { (end + slots - first % slots) % slots };
    (0..count).map(move |number| (first + number) % slots)
}
