//! Tests that addresses which VFs hold outlive the host process: the successor gives them to no other VF.

use super::requests::{is_answered, read, request, write};
use super::shares::client_of;
use super::{OpenPort, PortFixture};
use crate::port::clients::connection::DisconnectReason;
use crate::vault::PortFileDescriptorStore;
use i82576::MacAddress;
use i82576::bits::ctrl;
use i82576::mailbox::{ACK, NACK, id};
use i82576::register::vf as r;
use pcie::VfIndex;
use rustix::fs::{MemfdFlags, memfd_create};
use std::fs::File;
use std::io::Read;
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::os::unix::net::UnixStream;
use std::time::Duration;

/// Address that the guest of VF 0 chooses.
pub(super) const CHOSEN: [u8; 6] = [2, 0, 0, 0, 0, 0x55];

/// Port of three VFs of an 82576 with the clients of VFs 0 and 1.
pub(super) struct ClaimingPort {
    pub(super) world: PortFixture,
    clients: [UnixStream; 2],
}

impl ClaimingPort {
    fn open() -> Self {
        Self::open_with("")
    }

    /// Opens the port with more settings than its number of VFs.
    pub(super) fn open_with(settings: &str) -> Self {
        let mut world = PortFixture::open_with(&format!("[[port]]\nvfs = 3\n{settings}"));
        let clients = [0, 1].map(|vf| client_of(&mut world, vf));
        let mut port = Self { world, clients };
        [0, 1].into_iter().for_each(|vf| port.reset(vf));
        port
    }

    /// Has a VF's driver send a request. Returns true if the PF acknowledges it.
    fn ask(&mut self, vf: u8, words: &[u32]) -> bool {
        request(&mut self.world, vf, words);
        let world = &mut self.world;
        assert!((0..100).any(|_| (world.round_after(Duration::from_millis(1)), is_answered(world, vf)).1));
        let reply = read(world, vf, r::VMBMEM);
        assert!(reply & (ACK | NACK) != 0, "{reply:#x}");
        reply & NACK == 0
    }

    /// Has a VF's driver start again, by which it returns to the address of the policy.
    pub(super) fn reset(&mut self, vf: u8) {
        write(&mut self.world, vf, r::CTRL, ctrl::RST);
        self.world.round();
        assert!(self.ask(vf, &[id::VF_RESET]));
    }

    /// Has a VF's driver claim [`CHOSEN`]. Returns true if the PF grants it.
    pub(super) fn claim(&mut self, vf: u8) -> bool {
        let [a, b, c, d, e, f] = CHOSEN;
        self.ask(vf, &[id::SET_MAC_ADDR, u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes([e, f, 0, 0])])
    }

    /// Has VF 0 claim the address, and start again. It holds the address then, and has it no more.
    fn claim_and_reset(&mut self) {
        assert!(self.claim(0));
        self.reset(0);
        assert!(!self.claim(1));
    }
}

#[test]
fn successor_gives_a_held_address_to_no_other_vf() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    let now = port.world.port_time();
    assert!(port.world.port.note_all(now));
    port.world.succeed();
    port.world.round();
    assert!(!port.claim(1), "VF 0 has held it in the host process before");
    assert!(port.claim(0));
}

#[test]
fn host_after_a_crash_gives_a_held_address_to_no_other_vf() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    port.world.succeed();
    port.reset(1);
    assert!(!port.claim(1), "VF 0 has held it in the host process before");
    port.reset(0);
    assert!(port.claim(0));
}

#[test]
fn address_of_a_guest_that_left_during_a_crash_is_free() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    port.clients[0] = UnixStream::pair().unwrap().0;
    port.world.succeed();
    port.world.round_until(|world| !world.is_connected());
    port.reset(1);
    assert!(port.claim(1));
}

#[test]
fn held_address_of_a_cut_off_client_is_free_after_minutes() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    let now = port.world.port_time();
    let OpenPort { clients, engine, .. } = &mut port.world.port;
    clients.disconnect(0, &DisconnectReason::Ended, engine, now);
    port.world.round();
    port.world.succeed();
    port.reset(1);
    assert!(!port.claim(1), "the client may come back");
    (0..301).for_each(|_| _ = port.world.round_after(Duration::from_secs(1)));
    assert!(port.claim(1));
}

#[test]
fn held_addresses_outlive_two_crashes() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    for _ in 0..2 {
        port.world.succeed();
        port.world.round();
    }
    port.reset(1);
    assert!(!port.claim(1));
}

#[test]
fn held_addresses_outlive_an_unknown_journal_format() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    let journal = memfd_create("journal", MemfdFlags::CLOEXEC).unwrap();
    let vault = PortFileDescriptorStore::new(&port.world.vault, &port.world.config.name);
    vault.keep_named("journal", journal.as_fd());
    port.world.succeed();
    port.reset(1);
    assert!(!port.claim(1), "the client of VF 0 may come back");
    port.reset(0);
    assert!(port.claim(0));
}

#[test]
fn address_of_a_guest_that_left_before_a_crash_is_free() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    port.clients[0] = UnixStream::pair().unwrap().0;
    port.world.round_until(|world| !world.is_connected());
    port.world.succeed();
    port.reset(1);
    assert!(port.claim(1));
}

/// Has VF 0, which is trusted, take the address that VF 1 holds. The configuration for the successor does not trust VF 0.
fn taken_by_trust() -> ClaimingPort {
    let mut port = ClaimingPort::open_with("[[port.vf]]\nindex = 0\ntrust = true\n");
    assert!(port.claim(1));
    port.reset(1);
    assert!(port.claim(0), "a trusted VF may have the address of another one");
    port.world.config.vfs[0].policy.trust = false;
    port
}

#[test]
fn successor_takes_an_address_from_a_vf_without_trust() {
    let mut port = taken_by_trust();
    let now = port.world.port_time();
    assert!(port.world.port.note_all(now));
    port.world.succeed();
    port.world.round();
    let status = port.world.port.engine.card().vf_status(VfIndex::of_field(0)).unwrap();
    assert_ne!(status.mac, Some(MacAddress(CHOSEN)));
    assert!(!port.claim(0), "VF 1 holds the address");
    assert!(port.claim(1));
}

#[test]
fn host_after_a_crash_trusts_no_vf_that_lost_trust() {
    let mut port = taken_by_trust();
    port.world.succeed();
    port.reset(0);
    assert!(!port.claim(0), "VF 1 holds the address");
    port.reset(1);
    assert!(port.claim(1));
}

/// Changes the version of a saved record of addresses to that of a newer program.
pub(super) fn make_record_newer(port: &ClaimingPort, name: &str, kind: &[u8; 12]) {
    let vault = PortFileDescriptorStore::new(&port.world.vault, &port.world.config.name);
    let record = File::from(vault.copy_named(name).unwrap());
    let mut bytes = Vec::new();
    (&record).read_to_end(&mut bytes).unwrap();
    let is_kind = |at: &usize| bytes[*at..].starts_with(kind);
    let copies: Vec<_> = (0..bytes.len()).filter(is_kind).collect();
    assert!(!copies.is_empty());
    for at in copies {
        record.write_all_at(&99_u32.to_le_bytes(), at as u64 + 12).unwrap();
    }
}

/// A program that cannot read the record replaces it before it serves a guest. So a program after it believes no addresses from
/// before a rollback.
#[test]
fn record_of_addresses_is_replaced_during_a_rollback() {
    let mut port = ClaimingPort::open();
    port.claim_and_reset();
    make_record_newer(&port, "addresses", b"SoftIOV\nadrs");
    port.world.succeed();
    port.world.round();
    port.world.succeed();
    port.reset(1);
    assert!(port.claim(1), "the program between had no held address");
}
