//! Case 19: a card that was set aside and continued had lost its link, and a transmit context that a driver had set
//! before. Here a card is a value: its copy goes on where it stood.

use crate::common::{Access, Bench, data, mac, packet, plain, tagged};
use i82576::Time;
use i82576::bits::{eitr, icr, status};
use i82576::descriptor::tx::{Context, Data};
use i82576::phy::{self, control};
use i82576::register::{self as r, vf};
use pcie::Function::{self, Vf};

/// The card is set aside, and its copy continued.
fn set_aside(bench: &mut Bench) {
    bench.nic = bench.nic.clone();
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
        set_aside(&mut bench);
        let seen = bench.pf().read(r::STATUS) & status::LU;
        assert_eq!((seen != 0, bench.vf(0).read(vf::STATUS) & status::LU), (up, seen));
        assert_eq!(bench.pf().read(r::ICR), 0);
        bench.nic.set_link(!up);
        assert_eq!(bench.pf().read(r::ICR) & icr::LSC, icr::LSC, "a change is one");
    }
}

#[test]
fn a_phy_that_sleeps_sleeps_on() {
    let mut bench = bench();
    let control_register = 1 << 26 | phy::ADDRESS << 21;
    bench.pf().write(r::MDIC, control_register | u32::from(control::POWER_DOWN));
    set_aside(&mut bench);
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, 0);
    bench.pf().write(r::MDIC, control_register);
    assert_eq!(bench.pf().read(r::STATUS) & status::LU, status::LU);
}

#[test]
fn a_context_set_before_serves_packets_sent_after() {
    let mut bench = bench();
    let context = Context { vlan_tag: 10, ..Context::default() };
    bench.vf(0).transmit(&[context.emit()]);
    set_aside(&mut bench);
    let frame = plain(mac(9), mac(0), 60);
    let address = bench.vf(0).place(&frame);
    bench.vf(0).transmit(&[Data { insert_vlan: true, ..packet(address, 74) }.emit()]);
    assert_eq!(bench.wire_got(), [tagged(10, &frame)]);
}

#[test]
fn a_packet_half_given_is_completed_by_the_other_half() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 60);
    let address = bench.vf(0).place(&frame);
    let first = Data { payload_length: 74, ..data(address, 40) };
    bench.vf(0).transmit(&[first.emit()]);
    set_aside(&mut bench);
    bench.vf(1).expect_no_frame();
    let last = Data { end_of_packet: true, report_status: true, ..data(address + 40, 34) };
    bench.vf(0).transmit(&[last.emit()]);
    assert_eq!(bench.vf(1).expect_frame().bytes, frame);
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
    set_aside(&mut bench);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.wait_us(100);
    bench.poll();
    bench.expect_msix(Vf(0), 0);
}

/// Everything that a card does to the world.
type Trace = (Vec<Access>, Vec<(Function, u16)>, Vec<Vec<u8>>);

/// A run of 24 steps; before step `cut` the card is set aside.
fn run(cut: usize) -> Trace {
    let mut bench = bench();
    for step in 0..24 {
        if step == cut {
            set_aside(&mut bench);
        }
        match step % 6 {
            0 => bench.vf(0).transmit(&[Context { vlan_tag: step as u16, ..Context::default() }.emit()]),
            1 => {
                let address = bench.vf(0).place(&plain(mac(9), mac(0), 60));
                bench.vf(0).transmit(&[Data { insert_vlan: true, ..packet(address, 74) }.emit()]);
            }
            2 => bench.world.wire.incoming.push_back(plain(mac(1), mac(9), 60)),
            3 => bench.vf(1).write(vf::VTEITR + 4, 50 << eitr::INTERVAL_SHIFT | eitr::CNT_IGNR),
            4 => bench.vf(1).send(&plain(mac(0), mac(1), 60)),
            _ => {
                bench.wait_us(7);
                bench.poll();
            }
        }
    }
    (bench.world.bus.log, bench.world.bus.msix, bench.world.wire.outgoing)
}

#[test]
fn wherever_it_is_cut_a_run_ends_the_same() {
    let whole = run(usize::MAX);
    assert!(!whole.0.is_empty() && !whole.1.is_empty() && !whole.2.is_empty());
    for cut in 0..24 {
        assert!(run(cut) == whole, "cut before step {cut}");
    }
}
