//! Guest of a virtio function: a virtio network driver over vhost-user. The driver suppresses interrupts or sleeps
//! until one, and kicks a card that sleeps.

use super::{GuestRings, NotificationCounts, PATIENCE, RETRY};
use crate::contender::kind::ContenderKind;
use anyhow::{Context, Result};
use i82576::MacAddress;
use std::ops::RangeInclusive;
use std::path::Path;
use std::thread;
use std::time::Instant;
use vhost_client::{VhostClientError, VirtioNet, VirtioNetConfig};
use virtio::net::{NetHeader, flag, gso};

/// Bytes of the headers of a TCP packet to segment: Ethernet, IPv4 and TCP without options.
const TCP_HEADERS: u16 = 14 + 20 + 20;
/// Offset of the TCP header in such a packet, and of the checksum field in that header.
const TCP_START: u16 = 14 + 20;
const TCP_CHECKSUM: u16 = 16;

/// Attaches to a virtio function.
///
/// # Errors
/// The host does not offer the features ([`VhostClientError::NotOffered`]), or the rings do not start.
pub(in crate::contender) fn attach(socket: &Path, config: &VirtioNetConfig) -> Result<VirtioNet> {
    let begun = Instant::now();
    loop {
        match VirtioNet::attach(socket, config) {
            Ok(attached) => return Ok(attached),
            // A program that this process is starting may still have a copy of the former guest's socket.
            Err(error) if begun.elapsed() < PATIENCE && !matches!(error, VhostClientError::NotOffered(_)) => {
                thread::sleep(RETRY);
            }
            Err(error) => {
                let name = socket.display();
                return Err(error).with_context(|| format!("the function of {name} did not start"));
            }
        }
    }
}

impl GuestRings for VirtioNet {
    fn mode(&self) -> ContenderKind {
        ContenderKind::Kicked
    }

    fn send_burst(&mut self, frame: &[u8], count: usize, mss: Option<u16>) -> usize {
        let header = mss.map_or(NetHeader::default(), tso);
        let sent = (0..count).take_while(|_| self.transmit(frame, &header)).count();
        VirtioNet::flush(self);
        sent
    }

    fn queue(&mut self, frame: &[u8]) -> bool {
        self.transmit(frame, &NetHeader::default())
    }

    fn flush(&mut self) {
        VirtioNet::flush(self);
    }

    fn receive(
        &mut self,
        most: usize,
        buffer: &mut [u8],
        sender: MacAddress,
        sizes: &RangeInclusive<usize>,
    ) -> (usize, u64) {
        let mut ours = 0;
        let found = self.receive_burst(most, |frame| {
            let is_ours = frame.copy_to(buffer).is_some_and(|length| sizes.contains(&length));
            ours += u64::from(is_ours && buffer[6..12] == sender.0);
        });
        (found, ours)
    }

    fn notifications(&mut self) -> NotificationCounts {
        NotificationCounts { kicks: self.take_kicks(), messages: 0, interrupts: self.take_calls() }
    }
}

/// Returns the header of a TCP packet over IPv4 that the card is to cut into segments with `mss` bytes of payload.
fn tso(mss: u16) -> NetHeader {
    NetHeader {
        flags: flag::NEEDS_CSUM,
        gso_type: gso::TCPV4,
        header_length: TCP_HEADERS,
        gso_size: mss,
        checksum_start: TCP_START,
        checksum_offset: TCP_CHECKSUM,
        buffers: 0,
    }
}
