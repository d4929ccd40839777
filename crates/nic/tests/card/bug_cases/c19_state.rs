//! Case 19: a card that was set aside and continued had lost its link, and a transmit context that a driver had set
//! before. Here nothing is written down to be read back: a card is a value, and to set it aside is to copy it. So the
//! case comes down to this: all that a card knows is in the value. What would be kept elsewhere, or shared with the
//! copy, shows here: card and copy both go on, each with a world of its own, the copy after the card or in turn with
//! it, and neither notices. Left out: a card's state as bytes, which it has not.

use crate::common::{Access, Bench, data, mac, packet, plain, tagged};
use i82576::Time;
use i82576::bits::{eitr, icr, status};
use i82576::descriptor::tx::{Context, Data};
use i82576::phy::{self, control};
use i82576::register::{self as r, vf};
use pcie::Function::{self, Vf};

/// The card, and its copy, which goes on when the card has.
fn both(bench: Bench) -> [Bench; 2] {
    [bench.clone(), bench]
}

fn bench() -> Bench {
    let mut bench = Bench::new(2);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.pf().read(r::ICR);
    bench
}

#[test]
fn the_link_is_what_it_was_and_nobody_is_told_of_a_change() {
    for up in [false, true] {
        let mut bench = bench();
        bench.nic.set_link(up);
        bench.pf().read(r::ICR);
        for mut bench in both(bench) {
            let seen = bench.pf().read(r::STATUS) & status::LU;
            assert_eq!((seen != 0, bench.vf(0).read(vf::STATUS) & status::LU), (up, seen));
            assert_eq!(bench.pf().read(r::ICR), 0);
            bench.nic.set_link(!up);
            assert_eq!(bench.pf().read(r::ICR) & icr::LSC, icr::LSC, "a change is one");
        }
    }
}

#[test]
fn a_phy_that_sleeps_sleeps_on() {
    let mut bench = bench();
    let control_register = 1 << 26 | phy::ADDRESS << 21;
    bench.pf().write(r::MDIC, control_register | u32::from(control::POWER_DOWN));
    for mut bench in both(bench) {
        assert_eq!(bench.pf().read(r::STATUS) & status::LU, 0);
        bench.pf().write(r::MDIC, control_register);
        assert_eq!(bench.pf().read(r::STATUS) & status::LU, status::LU);
    }
}

#[test]
fn a_context_set_before_serves_packets_sent_after() {
    let mut bench = bench();
    let context = Context { vlan_tag: 10, ..Context::default() };
    bench.vf(0).transmit(&[context.emit()]);
    for mut bench in both(bench) {
        let frame = plain(mac(9), mac(0), 60);
        let address = bench.vf(0).place(&frame);
        bench.vf(0).transmit(&[Data { insert_vlan: true, ..packet(address, 74) }.emit()]);
        assert_eq!(bench.wire_got(), [tagged(10, &frame)]);
        bench.vf(0).transmit(&[Context { vlan_tag: 11, ..Context::default() }.emit()]);
    }
}

#[test]
fn a_packet_half_given_is_completed_by_the_other_half() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 60);
    let address = bench.vf(0).place(&frame);
    let first = Data { payload_length: 74, ..data(address, 40) };
    bench.vf(0).transmit(&[first.emit()]);
    for mut bench in both(bench) {
        bench.vf(1).expect_no_frame();
        let last = Data { end_of_packet: true, report_status: true, ..data(address + 40, 34) };
        bench.vf(0).transmit(&[last.emit()]);
        assert_eq!(bench.vf(1).expect_frame().bytes, frame);
    }
}

#[test]
fn a_throttled_interrupt_is_due_when_it_was() {
    let mut bench = bench();
    bench.now = Time::from_micros(1000);
    bench.vf(0).write(vf::VTEITR, 100 << eitr::INTERVAL_SHIFT);
    bench.vf(0).write(vf::VTEICS, 1);
    bench.poll();
    bench.expect_msix(Vf(0), 0);
    bench.vf(0).write(vf::VTEICS, 1);
    for mut bench in both(bench) {
        assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
        bench.wait_us(100);
        bench.poll();
        bench.expect_msix(Vf(0), 0);
    }
}

/// Everything that a card does to the world.
type Trace = (Vec<Access>, Vec<(Function, u16)>, Vec<Vec<u8>>);

/// A step of a run. The card has been told of frames and has not moved them when most of them end.
fn step(bench: &mut Bench, step: usize) {
    match step % 6 {
        0 => {
            bench.vf(0).put(Context { vlan_tag: step as u16, ..Context::default() }.emit());
        }
        1 => {
            let address = bench.vf(0).place(&plain(mac(9), mac(0), 60));
            bench.vf(0).put(Data { insert_vlan: true, ..packet(address, 74) }.emit());
            bench.vf(0).ring();
        }
        2 => bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 60)),
        3 => bench.vf(1).write(vf::VTEITR + 4, 50 << eitr::INTERVAL_SHIFT | eitr::CNT_IGNR),
        4 => {
            let address = bench.vf(1).place(&plain(mac(0), mac(1), 60));
            bench.vf(1).put(packet(address, 74).emit());
            bench.vf(1).ring();
        }
        _ => {
            bench.wait_us(7);
            bench.poll();
        }
    }
}

fn trace(bench: Bench) -> Trace {
    (bench.world.bus.log, bench.world.bus.msix, bench.world.wire.outgoing)
}

/// What card and copy do in 24 steps; the copy is made before step `cut`.
fn run(cut: usize) -> [Trace; 2] {
    let mut card = bench();
    (0..cut).for_each(|n| step(&mut card, n));
    let mut copy = card.clone();
    for n in cut..24 {
        step(&mut card, n);
        step(&mut copy, n);
    }
    [card, copy].map(trace)
}

#[test]
fn card_and_copy_end_the_same_wherever_they_part() {
    let [whole, _] = run(24);
    assert!(!whole.0.is_empty() && !whole.1.is_empty() && !whole.2.is_empty());
    for cut in 0..24 {
        assert!(run(cut).iter().all(|trace| *trace == whole), "parted before step {cut}");
    }
}
