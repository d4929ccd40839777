//! Virtio device as a guest's function: our driver on the vhost-user front end. The front end connects again after a death of the
//! host, and continues its rings.

use super::function::{
    AnnouncedEvents, GuestPlace, LONGEST, ReceivedChecksum, ReceivedFrame, SimulatedFunction, WatchedLink,
};
use super::hostile::{DESCRIPTOR, HostileGuest, Misdeed, Misdeeds, TRUNCATED};
use super::tcp::HEADERS;
use super::thread::SimulatedThread;
use super::truncation::TruncatedFile;
use host::shared::SharedMemory;
use i82576::MacAddress;
use std::fmt;
use std::os::fd::{AsFd, BorrowedFd};
use vhost_client::{VhostClientError, VirtioNet, VirtioNetConfig};
use virtio::VirtioFeatures;
use virtio::net::{NetHeader, flag, gso};

/// Second guest address of a guest's memory.
const SECOND: u64 = 1 << 40;

/// Virtio device with its driver, which sleeps until interrupts.
pub(super) struct SimulatedVirtio {
    place: GuestPlace,
    net: VirtioNet<SimulatedThread>,
    mac: MacAddress,
    /// Number of the host's deaths before the front end has connected.
    deaths: u64,
    /// True if the VMM has added the guest's memory at a second address.
    is_mapped_twice: bool,
    truncated: TruncatedFile,
}

impl fmt::Debug for SimulatedVirtio {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.net.fmt(f)
    }
}

impl SimulatedVirtio {
    /// Attaches to a virtio device. Returns `None` if the host dies meanwhile.
    pub(super) fn attach(
        place: &GuestPlace,
        mac: MacAddress,
        config: &VirtioNetConfig,
    ) -> Result<Option<Self>, String> {
        let socket = place.host.borrow().socket(place.index.into());
        let deaths = place.deaths();
        match VirtioNet::attach_on(SimulatedThread(place.host.clone()), &socket, config) {
            Ok(mut net) => {
                net.sleep_until_interrupts();
                let truncated = TruncatedFile::default();
                Ok(Some(Self { place: place.clone(), net, mac, deaths, is_mapped_twice: false, truncated }))
            }
            Err(error) => lost_by_death(place, deaths, &error).map(|()| None),
        }
    }
}

/// Returns an error unless a connection was lost because the host has died.
fn lost_by_death(place: &GuestPlace, deaths: u64, error: &VhostClientError) -> Result<(), String> {
    let is_lost = match error {
        VhostClientError::Gone => true,
        VhostClientError::System(error) => error.kind() == std::io::ErrorKind::ConnectionReset,
        _ => false,
    };
    if is_lost && place.deaths() > deaths {
        Ok(())
    } else {
        Err(format!("a request of the VMM fails: {error}"))
    }
}

/// Returns the header of a TCP packet over IPv4 without options, whose checksum is partial. `mss` is the number of bytes of a
/// segment's payload; `None` for a packet that is one segment.
fn offload(mss: Option<u16>) -> NetHeader {
    NetHeader {
        flags: flag::NEEDS_CSUM,
        gso_type: if mss.is_some() { gso::TCPV4 } else { gso::NONE },
        header_length: HEADERS as u16,
        gso_size: mss.unwrap_or(0),
        // Behind Ethernet and IPv4; and the checksum's offset in a TCP header (RFC 9293).
        checksum_start: 34,
        checksum_offset: 16,
        buffers: 0,
    }
}

/// Returns what a received frame's header says of its checksum.
fn found(header: &NetHeader) -> ReceivedChecksum {
    match header.flags {
        flags if flags & flag::NEEDS_CSUM != 0 => ReceivedChecksum::Partial,
        flags if flags & flag::DATA_VALID != 0 => ReceivedChecksum::Right,
        _ => ReceivedChecksum::Unknown,
    }
}

impl SimulatedVirtio {
    /// Shares a table of memory with the rings, or without them. Returns true if the host has accepted it.
    fn share_table(&mut self, has_rings: bool) -> bool {
        let Ok(file) = self.net.shared_memory().as_fd().try_clone_to_owned() else { return false };
        let size = self.net.memory().len();
        let shared = if has_rings {
            self.net.share_file(file.as_fd(), SECOND, size)
        } else {
            self.net.share_only(file.as_fd(), SECOND, size)
        };
        shared.is_ok()
    }
}

impl SimulatedFunction for SimulatedVirtio {
    fn mac(&self) -> MacAddress {
        self.mac
    }

    fn send(&mut self, frame: &[u8]) -> bool {
        let sent = self.net.transmit(frame, &NetHeader::default());
        self.net.flush();
        sent
    }

    fn segments_tcp(&self) -> bool {
        self.net.accepted().contains(VirtioFeatures::CSUM.with(VirtioFeatures::HOST_TSO4))
    }

    fn send_tcp(&mut self, packet: &[u8], mss: Option<u16>) -> bool {
        if !self.segments_tcp() {
            return false;
        }
        let sent = self.net.transmit(packet, &offload(mss));
        self.net.flush();
        sent
    }

    /// Adds memory, or pauses the guest: the VMM's work on rings that the driver uses.
    fn remap(&mut self) -> Result<(), String> {
        if !self.check_connection()? {
            return Ok(());
        }
        let deaths = self.place.deaths();
        let remapped = if self.is_mapped_twice {
            self.net.pause()
        } else {
            let memory = self.net.shared_memory().as_fd().try_clone_to_owned();
            let memory = memory.map_err(|error| format!("cannot copy a descriptor: {error}"))?;
            let size = self.net.memory().len();
            self.net.share_file(memory.as_fd(), SECOND, size)
        };
        self.is_mapped_twice = !self.is_mapped_twice;
        remapped.or_else(|error| lost_by_death(&self.place, deaths, &error))
    }

    fn unsent(&mut self) -> usize {
        self.net.unsent().into()
    }

    fn take_interrupts(&mut self) -> AnnouncedEvents {
        // The driver takes its interrupts when it receives: without one it has no frames.
        AnnouncedEvents { frames: true, watchdog: false }
    }

    fn receive(&mut self, announced: bool) -> Result<Vec<ReceivedFrame>, String> {
        if !announced {
            self.net.wake();
        }
        let mut frames = Vec::new();
        let mut buffer = [0; LONGEST + 4];
        while self.net.receive_burst(16, |frame| {
            let checksum = frame.header().map_or(ReceivedChecksum::Unknown, |header| found(&header));
            let length = frame.copy_to(&mut buffer);
            frames.push(length.map(|length| ReceivedFrame { bytes: buffer[..length].to_vec(), checksum }));
        }) > 0
        {}
        frames.into_iter().collect::<Option<_>>().ok_or_else(|| "a received frame is too long".to_owned())
    }

    fn watch(&mut self) -> Result<WatchedLink, String> {
        if self.check_connection()? {
            return Ok(WatchedLink { is_up: true, was_reset: false });
        }
        let socket = self.place.host.borrow().socket(self.place.index.into());
        let deaths = self.place.deaths();
        let connected = self.net.reconnect(&socket);
        match &connected {
            Ok(()) => self.deaths = deaths,
            Err(error) => lost_by_death(&self.place, deaths, error)?,
        }
        Ok(WatchedLink { is_up: connected.is_ok(), was_reset: true })
    }

    fn check_connection(&mut self) -> Result<bool, String> {
        if let Some(error) = self.net.broken() {
            return Err(format!("a ring is broken: {error}"));
        }
        let is_gone =
            self.net.is_gone().map_err(|error| format!("cannot look at the connection: {error}"))?;
        if is_gone && self.place.deaths() == self.deaths {
            return Err("the host ended the connection".to_owned());
        }
        Ok(!is_gone)
    }

    fn is_disconnected(&mut self) -> bool {
        self.net.is_gone().unwrap_or(true)
    }

    fn misbehave(&mut self, random: &mut fastrand::Rng, guest: HostileGuest, misdeeds: usize) -> Misdeeds {
        let mut done = Misdeeds::default();
        let memory = self.net.memory().len();
        for misdeed in Misdeed::draw_all(random, guest, (0, memory), misdeeds) {
            match misdeed {
                Misdeed::Memory { offset, bytes } => {
                    done.all += 1;
                    self.net.memory().write(offset, &bytes).expect("the offset is inside");
                    self.net.flush();
                }
                Misdeed::Forge(frame) => {
                    let sent = u64::from(self.send(&frame));
                    done.add(Misdeeds { all: sent, forged: sent, ..Misdeeds::default() });
                }
                Misdeed::Replay { from, to, address } => {
                    let mut descriptor = [0; DESCRIPTOR];
                    self.net.memory().read(from, &mut descriptor).expect("the memory is mapped");
                    descriptor[..8].copy_from_slice(&address.to_le_bytes());
                    done.all += 1;
                    self.net.memory().write(to, &descriptor).expect("the offset is inside");
                    self.net.flush();
                }
                Misdeed::Truncate { left } => {
                    // The host may have ended the connection, or refuse the table.
                    let share =
                        |file: BorrowedFd<'_>, size| self.net.share_file(file, TRUNCATED.0, size).is_ok();
                    let truncated = u64::from(self.truncated.truncate(left, share));
                    done.add(Misdeeds { all: truncated, truncations: truncated, ..Misdeeds::default() });
                }
                Misdeed::Unmap { again } => {
                    let unmapped = u64::from(self.share_table(again) && !again);
                    done.add(Misdeeds { all: 1, unmappings: unmapped, ..Misdeeds::default() });
                }
                // A virtio device has its registers in the VMM, and no PF.
                Misdeed::Registers(_) | Misdeed::Mailbox(_) | Misdeed::Virtchnl { .. } | Misdeed::Reset => {}
            }
        }
        done
    }

    fn memory(&self) -> &SharedMemory {
        self.net.shared_memory()
    }
}
