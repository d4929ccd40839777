//! Tests receive descriptors: how a frame is divided between buffers, and the enable bits of a queue.
//! `receive::offload` tests the descriptors' contents.

mod legacy;
mod offload;
mod pf;
mod pool_filters;
mod queue_filters;
mod split;

use crate::common::{CardFixture, POOL, buffer, mac, plain};
use i82576::PoolIndex;
use i82576::bits::{ctrl, dctl, rctl, vmolr};
use i82576::descriptor::rx::status;
use i82576::register::{self as r, rx, vf};
use pcie::Function::Vf;
use pcie::{ConfigAccess, config::offset};

fn bench() -> CardFixture {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench
}

/// Returns the offset of a register of VF 0's first receive queue.
fn at(register: u32) -> u32 {
    vf::RX_BLOCK + register
}

/// Returns a test frame of `length` bytes for VF 0.
fn frame(length: usize) -> Vec<u8> {
    plain(mac(0), mac(9), length - 14)
}

/// Returns SRRCTL for packet buffers of `kb` KiB (0: RCTL decides), header buffers of `header` bytes, and a descriptor type.
fn srrctl(kb: u32, header: u32, kind: u32) -> u32 {
    kb | (header / 64) << 8 | kind << 25 | 1 << 31
}

#[test]
fn short_received_frame_uses_one_buffer() {
    let mut bench = bench();
    bench.wire_sends(&frame(200));
    bench.expect_msix(Vf(0), 1);
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, frame(200));
    assert_eq!((received.parts.len(), received.last().length), (1, 200), "without the check sequence");
    assert_eq!(bench.vf(0).read(at(rx::RDH)), 1);
}

#[test]
fn long_received_frame_has_eop_only_in_its_last_descriptor() {
    let mut bench = bench();
    bench.wire_sends(&frame(5000));
    let received = bench.vf(0).expect_frame();
    assert_eq!(received.bytes, frame(5000));
    let lengths: Vec<_> = received.parts.iter().map(|part| part.length).collect();
    assert_eq!(lengths, [2048, 2048, 904]);
    let ends: Vec<_> = received.parts.iter().map(|part| part.status).collect();
    assert_eq!(ends, [1, 1, 1 | status::EOP]);
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn received_frame_may_fill_its_last_buffer_exactly() {
    let mut bench = bench();
    for length in [2048, 4096, 8192, i82576::ids::MAX_FRAME - 4] {
        bench.wire_sends(&frame(length));
        let received = bench.vf(0).expect_frame();
        assert_eq!((received.bytes.len(), received.parts.len()), (length, length.div_ceil(2048)));
    }
}

#[test]
fn received_frame_without_enough_descriptors_is_dropped() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start_sized(8, 8);
    bench.vf(0).write(at(rx::SRRCTL), srrctl(1, 0, 1));
    bench.wire_sends(&frame(7 * 1024 + 1));
    bench.vf(0).expect_no_frame();
    for length in [4 * 1024, 3 * 1024 + 1, 3 * 1024, 60] {
        bench.wire_sends(&frame(length));
    }
    let lengths: Vec<_> = bench.vf(0).received().iter().map(|frame| frame.bytes.len()).collect();
    assert_eq!(lengths, [4 * 1024, 3 * 1024], "frames that fit arrive in order");
    assert_eq!(bench.vf(0).read(at(rx::RQDPC)), 3);
    assert_eq!(bench.vf(0).read(at(rx::RQDPC)), 0, "the read clears RQDPC");
    assert_eq!(bench.pf().read(r::RNBC), 3);
    bench.vf(0).post(7);
    bench.wire_sends(&frame(60));
    assert_eq!(bench.vf(0).received().len(), 1);
}

#[test]
fn receive_ring_wraps_without_loss() {
    for count in [8, 16, 64] {
        let mut bench = CardFixture::new(3);
        bench.vf(0).start_sized(count, 8);
        for round in 0..200usize {
            let sizes = [60 + round, 3000 + round, 100];
            sizes.iter().for_each(|size| bench.wire_sends(&frame(*size)));
            let received = bench.vf(0).received();
            assert_eq!(received.iter().map(|f| f.bytes.len()).collect::<Vec<_>>(), sizes, "round {round}");
            bench.vf(0).post(4);
        }
    }
}

#[test]
fn enabled_receive_ring_starts_at_its_head_register() {
    let mut bench = bench();
    for (register, value) in [(rx::RXDCTL, 0), (rx::RDH, 5), (rx::RXDCTL, dctl::ENABLE)] {
        bench.vf(0).write(at(register), value);
    }
    bench.vf(0).rings().rx_next = 5;
    bench.wire_sends(&frame(200));
    assert_eq!(bench.vf(0).expect_frame().bytes, frame(200));
    assert_eq!(bench.vf(0).read(at(rx::RDH)), 6);
}

#[test]
fn receive_descriptors_are_read_and_written_in_bursts() {
    let mut bench = bench();
    for _ in 0..40 {
        bench.world.wire.incoming.push_back(frame(60));
    }
    bench.world.bus.log.clear();
    bench.poll();
    let log = &bench.world.bus.log;
    let ring = |write| log.iter().filter(|a| a.write == write && a.iova < buffer(0)).count();
    assert_eq!((ring(false), ring(true)), (2, 2), "40 descriptors, 32 at a time");
    assert_eq!(bench.vf(0).received().len(), 40);
}

#[test]
fn drop_counter_rqdpc_has_12_bits_and_saturates() {
    let mut bench = CardFixture::new(3);
    bench.vf(0).start();
    bench.vf(0).write(at(rx::RDT), 0);
    for _ in 0..5000 {
        bench.world.wire.incoming.push_back(frame(60));
    }
    bench.poll();
    assert_eq!(bench.vf(0).read(at(rx::RQDPC)), 0xfff);
    assert_eq!(bench.nic.counters()[0].rx_no_descriptors, 5000);
}

#[test]
fn receive_buffer_size_comes_from_srrctl_or_rctl() {
    const BSEX: u32 = rctl::BSEX >> 16;
    for (kb, bsize, expected) in [
        (1, 0, 1024),
        (3, 0, 3072),
        (0, 0, 2048),
        (0, 1, 1024),
        (0, 3, 256),
        (0, 3 | BSEX, 4096),
        (0, BSEX, 2048),
        (1, 3 | BSEX, 1024),
    ] {
        let mut bench = bench();
        bench.pf().set(r::RCTL, bsize << 16);
        bench.vf(0).write(at(rx::SRRCTL), srrctl(kb, 0, 1));
        bench.wire_sends(&frame(7000));
        let parts = bench.vf(0).expect_frame().parts;
        assert_eq!(usize::from(parts[0].length), expected, "{kb} KiB, BSIZE {bsize}");
        assert_eq!(parts.iter().map(|part| usize::from(part.length)).sum::<usize>(), 7000);
    }
}

#[test]
fn received_frames_are_padded_to_60_bytes() {
    let mut bench = bench();
    bench.wire_sends(&frame(1000));
    bench.vf(0).received();
    for length in 14..60 {
        bench.wire_sends(&frame(length));
        let received = bench.vf(0).expect_frame().bytes;
        assert_eq!((received.len(), &received[..length]), (60, &frame(length)[..]));
        assert!(received[length..].iter().all(|byte| *byte == 0));
        bench.vf(0).post(1);
    }
}

#[test]
fn received_frame_of_invalid_length_is_dropped_and_counted() {
    let mut bench = bench();
    let pool = &mut bench.pf();
    pool.write(r::VT_CTL, 1 << 30);
    for length in 0..14 {
        bench.wire_sends(&frame(60)[..length]);
    }
    bench.vf(0).expect_no_frame();
    assert_eq!((bench.pf().read(r::RUC), bench.pf().read(r::GPRC)), (14, 0));
    bench.wire_sends(&frame(i82576::ids::MAX_FRAME - 3));
    bench.wire_sends(&frame(20_000));
    bench.vf(0).expect_no_frame();
    assert_eq!((bench.pf().read(r::ROC), bench.pf().read(r::GPRC)), (2, 0));
}

#[test]
fn frame_longer_than_its_pools_rlpml_is_dropped_and_counted() {
    let mut bench = bench();
    bench.pf().write(r::vmolr(PoolIndex::FIRST), POOL & !vmolr::LPE);
    bench.wire_sends(&frame(1515));
    bench.vf(0).expect_no_frame();
    assert_eq!(bench.pf().read(r::ROC), 1);
    bench.wire_sends(&frame(1514));
    assert_eq!(bench.vf(0).received().len(), 1);
    bench.vf(1).start();
    bench.wire_sends(&plain(i82576::MacAddress::BROADCAST, mac(9), 2000));
    bench.vf(0).expect_no_frame();
    assert_eq!(bench.vf(1).received().len(), 1);
    assert_eq!(bench.pf().read(r::ROC), 0, "a pool accepted the frame");
}

#[test]
fn queue_with_any_of_its_six_enables_off_receives_no_frame() {
    let gates: [fn(&mut CardFixture); 6] = [
        |b| b.pf().clear(r::RCTL, rctl::EN),
        |b| b.pf().write(r::VFRE, 0xfe),
        |b| b.vf(0).write(at(rx::RXDCTL), 0),
        |b| b.nic.config_write(Vf(0), offset::COMMAND, 2, 0),
        |b| b.pf().set(r::CTRL, ctrl::GIO_MASTER_DISABLE),
        |b| b.nic.set_link(false),
    ];
    for close in gates {
        let mut bench = bench();
        close(&mut bench);
        bench.world.wire.incoming.push_back(frame(60));
        bench.expect_nothing();
    }
}

#[test]
fn rxdctl_reads_disabled_at_once_after_disabling() {
    let mut bench = bench();
    bench.wire_sends(&frame(60));
    bench.vf(0).write(at(rx::RXDCTL), 1 << 16);
    assert_eq!(bench.vf(0).read(at(rx::RXDCTL)) & dctl::ENABLE, 0);
}

#[test]
fn receive_head_and_tail_may_be_written_after_enable() {
    let mut bench = bench();
    bench.wire_sends(&frame(60));
    bench.vf(0).received();
    bench.vf(0).write(at(rx::RXDCTL), 0);
    bench.vf(0).write(at(rx::RXDCTL), dctl::ENABLE);
    bench.vf(0).write(at(rx::RDH), 0);
    bench.vf(0).write(at(rx::RDT), 0);
    *bench.vf(0).rings() = Default::default();
    bench.vf(0).post(8);
    bench.wire_sends(&frame(61));
    assert_eq!(bench.vf(0).expect_frame().bytes.len(), 61);
}

/// Tests the order of writes: the card writes buffers before their descriptors, since software that reads DD must find
/// the frame.
#[test]
fn received_data_is_written_before_descriptor_done() {
    let mut bench = bench();
    bench.world.bus.log.clear();
    bench.wire_sends(&frame(5000));
    let ring = crate::common::BASE..crate::common::TX_RING;
    let writes: Vec<bool> =
        bench.world.bus.log.iter().filter(|a| a.write).map(|a| ring.contains(&a.iova)).collect();
    assert_eq!(writes, [false, false, false, true], "three buffers, then their descriptors");
}
