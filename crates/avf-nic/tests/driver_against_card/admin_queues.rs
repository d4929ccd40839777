//! Tests a VF's admin queues while a driver sets them up and takes them down, in the register order of Linux iavf.

use crate::world::{CardFixture, MEMORY, mac};
use avf::admin::{AdminQueueDescriptor, SIZE, flag, opcode};
use avf::bits::aqlen;
use avf::register as r;
use avf::virtchnl::VirtchnlOpcode;
use driver::avf::vf::AvfDriver;
use driver::{DmaHal, Hal};

const SLOTS: u32 = 8;
const ON: u32 = SLOTS | aqlen::ENABLE;
/// Bus address of the rings that the tests set up, beyond the memory that the driver uses.
const RING: u64 = (MEMORY - 4096) as u64;

/// Creates a card with one VF, whose driver has sent `messages` messages beside those of its probe.
fn running(messages: u32) -> (CardFixture, AvfDriver) {
    let mut world = CardFixture::new(1);
    let mut vf = AvfDriver::probe(&mut world.vf(0), mac(1)).unwrap();
    (0..messages).for_each(|_| _ = vf.statistics(&mut world.vf(0)).unwrap());
    (world, vf)
}

/// Returns the numbers of messages and of invalid descriptors that the card took from the VF.
fn taken(world: &CardFixture) -> (u64, u64) {
    let counters = world.card.counters(0).unwrap();
    (counters.messages, counters.strange)
}

/// Tests Linux's shutdown of the mailbox send ring. Linux clears the descriptors, writes 0 to ATQH, waits up to 50 ms,
/// and writes 0 to ATQT.
#[test]
fn admin_send_head_cleared_before_tail_resends_no_message() {
    for messages in 0..SLOTS {
        let (mut world, mut vf) = running(messages);
        let before = taken(&world);
        let ring = u64::from(world.vf(0).read(r::VF_ATQBAL));
        world.vf(0).dma_write(ring, &[0; SLOTS as usize * SIZE]);
        world.vf(0).write(r::VF_ATQH, 0);
        world.round();
        world.vf(0).write(r::VF_ATQT, 0);
        for offset in [r::VF_ATQLEN, r::VF_ATQBAL, r::VF_ATQBAH] {
            world.round();
            world.vf(0).write(offset, 0);
        }
        world.round();
        assert_eq!(taken(&world), before, "{messages} messages");
        vf.restart(&mut world.vf(0)).unwrap();
        assert_eq!(taken(&world).1, 0, "it works again");
    }
}

#[test]
fn admin_send_tail_written_before_enable_sends_no_message() {
    let (mut world, _) = running(0);
    let before = taken(&world);
    let mut side = world.vf(0);
    let disable = [(r::VF_ATQLEN, 0), (r::VF_ATQH, 0), (r::VF_ATQT, 5)];
    disable.into_iter().for_each(|(offset, value)| side.write(offset, value));
    // The base comes after the length, and until then names the old ring.
    side.write(r::VF_ATQLEN, ON);
    world.round();
    let shutdown = AdminQueueDescriptor {
        flags: flag::SI,
        opcode: opcode::QUEUE_SHUTDOWN,
        ..AdminQueueDescriptor::default()
    };
    world.vf(0).dma_write(RING, &shutdown.emit());
    world.vf(0).write(r::VF_ATQBAL, RING as u32);
    world.round();
    assert_eq!(taken(&world), before);
    world.vf(0).write(r::VF_ATQT, 1);
    world.round();
    assert_eq!(taken(&world), (before.0 + 1, before.1));
}

#[test]
fn admin_receive_head_cleared_before_tail_fills_no_buffer() {
    let (mut world, _) = running(3);
    world.vf(0).dma_write(RING, &[0; SLOTS as usize * SIZE]);
    let posted = AdminQueueDescriptor::posted(RING + 1024, 512).emit();
    world.vf(0).dma_write(RING, &posted);
    world.vf(0).write(r::VF_ARQBAL, RING as u32);
    world.vf(0).write(r::VF_ARQH, 0);
    let word = |world: &mut CardFixture| {
        let mut raw = [0; SIZE];
        world.vf(0).dma_read(RING, &mut raw);
        AdminQueueDescriptor::parse(&raw)
    };
    world.with_pf(|pf, side| pf.set_link(side, None));
    world.round();
    assert!(!word(&mut world).is_done(), "the old tail posts nothing");
    world.vf(0).write(r::VF_ARQT, SLOTS - 1);
    world.round();
    assert!(word(&mut world).is_done() && word(&mut world).cookie_high == VirtchnlOpcode::Event.number());
}
