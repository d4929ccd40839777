//! Test of the port's own thread with parts of the card that no worker runs.

use super::*;
use crate::config::HostConfig;
use crate::config::file::CardFamily;
use crate::confine::ThreadSandboxes;
use crate::port::engine::bus::GuestBus;
use host::dma::DmaPermissions;
use pcie::Function;
use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use std::fs;
use std::sync::mpsc;
use std::time::Instant;

#[test]
fn lost_shard_is_unmapped_on_the_thread_of_its_function() {
    const SIZE: u64 = 1 << 20;
    let folder = tempfile::tempdir().unwrap();
    let file = HostConfig::parse("[[port]]\nfamily = \"virtio\"\nvfs = 1\n").unwrap();
    let threads = ThreadSandboxes::prepare(&HostConfig::check(file, folder.path()).unwrap()).unwrap();
    let mut bus = GuestBus::new(("pf0", &[CardFamily::Virtio]), SIZE, &threads.helper).unwrap();
    let name = "softiov_lost_shard";
    let is_mapped = || fs::read_to_string("/proc/self/maps").unwrap().contains(name);
    let file = memfd_create(name, MemfdFlags::CLOEXEC).unwrap();
    ftruncate(&file, SIZE).unwrap();
    let reach = bus.reach_mut(Function::Vf(0));
    let region = reach.memory_mut().admit(0, SIZE, DmaPermissions::READ_WRITE, Some(0)).unwrap().unwrap();
    reach.memory_mut().insert(region.map(file).unwrap()).unwrap();
    let (free, held) = mpsc::channel::<()>();
    reach.worker().run(move || assert!(held.recv().is_err()));

    let (trunks, _) = trunk::connect(3).unwrap();
    let mut shards = trunks.into_iter().filter_map(CardShard::<virtio_nic::Nic>::new);
    let (mut lost, mut own) = (shards.next().unwrap(), shards.next().unwrap());
    part(&mut lost, 0, &mut DividedCard { card: &mut own.card, plane: &mut own.plane, bus: &mut bus });
    drop((lost, bus));
    assert!(is_mapped(), "the memory was unmapped on the port's thread");
    drop(free);
    let began = Instant::now();
    while is_mapped() {
        assert!(began.elapsed() < Duration::from_secs(60), "the memory stays mapped");
        std::thread::sleep(Duration::from_millis(1));
    }
}
