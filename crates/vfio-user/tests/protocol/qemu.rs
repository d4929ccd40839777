//! Tests the boot of a guest with QEMU 11.1's requests: realize, firmware, the guest driver, and the end. Values are
//! from a recorded boot.

use crate::script::{
    COMMAND, NO_REPLY, QEMU_CAPABILITIES, REPLY, ScriptedSession, access, dma_map, dma_unmap, fds, message,
    set_irqs, u32_at, version_body, words,
};

const EVENTFD_TRIGGER: u32 = 4 | 32;
const NONE_TRIGGER: u32 = 1 | 32;
const MSIX: u32 = 2;

fn region_request(argsz: u32, index: u32) -> Vec<u8> {
    [words(&[argsz, 0, index, 0]), vec![0; 16]].concat()
}

/// Sends QEMU's requests at the creation of the device: version, properties of the device, its regions and interrupts,
/// and all of configuration space.
fn realize(script: &mut ScriptedSession) {
    script.ask(1, &version_body(QEMU_CAPABILITIES));
    assert_eq!(script.ask(4, &words(&[16, 0, 0, 0])), words(&[16, 3, 9, 5]));
    for index in 0..9 {
        let reply = script.ask(5, &region_request(32, index));
        assert_eq!(reply.len(), 32, "QEMU reads it into {} bytes", 16 + 32);
        assert_eq!(u32_at(&reply, 0), 32, "the reply is complete");
    }
    for index in 0..5 {
        assert_eq!(script.ask(7, &words(&[16, 0, index, 0])).len(), 16);
    }
    assert_eq!(script.ask(9, &access(7, 0, 4096, &[])).len(), 16 + 4096);
}

/// Sends QEMU's requests for a change of the memory map: four DMA maps before any reply is read, and then the unmapping
/// of one window.
fn settle_memory(script: &mut ScriptedSession) {
    let transaction = [
        (dma_map(3, 0, 0, 0xc0000), Some(5)),
        (dma_map(1, 0, 0xc0000, 0x20000), None),
        (dma_map(3, 0x100000, 0x100000, 0x1ff00000), Some(5)),
        (dma_map(1, 0, 0xfffc0000, 0x40000), None),
    ];
    for (body, fd) in transaction {
        let bytes = script.message(2, COMMAND, &body);
        script.receive(&bytes, fd.map(|fd| fds(&[fd])).unwrap_or_default()).unwrap();
    }
    let replies = script.replies();
    assert_eq!(replies.len(), 4);
    assert!(replies.iter().all(|reply| reply.flags == REPLY && reply.body.is_empty()));
    let entry = dma_unmap(0, 0xc0000, 0x20000);
    assert_eq!(script.ask(3, &entry), entry);
}

/// Sends the requests by which QEMU enables MSI-X: first one vector without an eventfd, then an eventfd for each
/// vector, then one reassigned, as QEMU does when the guest masks a vector.
fn enable_interrupts(script: &mut ScriptedSession) {
    script.ask(8, &set_irqs(EVENTFD_TRIGGER, MSIX, 0, 1));
    for vector in 0..3 {
        script.ask_with(8, &set_irqs(EVENTFD_TRIGGER, MSIX, vector, 1), fds(&[20 + vector as i32]));
    }
    script.ask_with(8, &set_irqs(EVENTFD_TRIGGER, MSIX, 1, 1), fds(&[31]));
}

#[test]
fn qemu_guest_boots_transmits_and_shuts_down() {
    let mut script = ScriptedSession::fresh();
    realize(&mut script);
    settle_memory(&mut script);
    script.ask(13, &[]);
    enable_interrupts(&mut script);
    let numbers: Vec<_> = script.device.vectors.iter().flatten().map(|fd| **fd).collect();
    assert_eq!(numbers, [20, 31, 22]);
    script.said();

    // Transmit: a posted doorbell; later a read of STATUS, which sees the doorbell's effect.
    script.tell(10, &access(0, 0x3818, 4, &[1, 0, 0, 0]));
    script.ask(9, &access(0, 8, 4, &[]));
    assert_eq!(script.said(), ["write 0 0x3818 [1, 0, 0, 0]", "read 0 0x8 4"]);

    script.ask(8, &set_irqs(NONE_TRIGGER, MSIX, 0, 0));
    assert!(script.device.vectors.iter().all(Option::is_none));
    for (iova, size) in [(0, 0xc0000), (0x100000, 0x1ff00000), (0xfffc0000, 0x40000)] {
        script.ask(3, &dma_unmap(0, iova, size));
    }
    assert_eq!(script.session.dma_maps(), 0);
    let counters = script.session.counters();
    assert_eq!((counters.refused, counters.out_of_range, counters.dropped_fds), (0, 0, 0));
    assert_eq!((counters.reads, counters.posted_writes, counters.synchronous_writes), (2, 1, 0));
}

#[test]
fn configuration_writes_of_bar_sizing_get_replies() {
    let mut script = ScriptedSession::fresh();
    realize(&mut script);
    // QEMU probes the ROM and writes the command register.
    script.ask(10, &access(7, 0x30, 4, &[0, 0xf8, 0xff, 0xff]));
    script.ask(9, &access(7, 0x30, 4, &[]));
    script.ask(10, &access(7, 4, 2, &[6, 4]));
    assert_eq!(script.session.counters().synchronous_writes, 2);
}

#[test]
fn posted_writes_that_qemu_queued_reach_the_device() {
    let mut script = ScriptedSession::fresh();
    realize(&mut script);
    let doorbells: Vec<u8> = (0..200)
        .flat_map(|tail: u32| message(0, 10, NO_REPLY, &access(0, 0x3818, 4, &tail.to_le_bytes())))
        .collect();
    script.receive(&doorbells, Vec::new()).unwrap();
    assert_eq!(script.said().len(), 200);
    assert_eq!(script.replies(), []);
}

#[test]
fn reply_about_a_mappable_bar_has_one_file_descriptor() {
    let mut script = ScriptedSession::fresh();
    script.device.mapped = true;
    script.ask(1, &version_body(QEMU_CAPABILITIES));
    let small = script.request(5, &region_request(32, 0), Vec::new());
    let room = u32_at(&small.body, 0);
    let full = script.request(5, &region_request(room, 0), Vec::new());
    assert_eq!(full.body.len(), room as usize);
    assert_eq!(full.fds, [77], "QEMU expects one descriptor per region");
    // QEMU maps its own mapping of the BAR as a window without a descriptor.
    script.ask(2, &dma_map(3, 0, 0xfe00_2000, 0x2000));
}

#[test]
fn request_repeated_under_a_new_id_gets_a_second_reply() {
    // After a pause beyond its timeout, QEMU requests again with other ids; replies carry the ids of their
    // requests.
    let mut script = ScriptedSession::fresh();
    realize(&mut script);
    let late = [message(1, 9, 0, &access(0, 8, 4, &[])), message(2, 9, 0, &access(0, 8, 4, &[]))].concat();
    script.receive(&late, Vec::new()).unwrap();
    assert_eq!(script.replies().iter().map(|reply| reply.id).collect::<Vec<_>>(), [1, 2]);
}
