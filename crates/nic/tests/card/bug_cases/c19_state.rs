//! Bug 19 of another 82576 model: a card that was saved and restored had lost its link, and a transmit context that the
//! driver had set before. Here a card is a value, and a clone must behave as the original. State that is kept
//! elsewhere, or shared with the clone, would show: card and clone both continue, each with its own surroundings, the
//! clone after the card or in turn with it. `set_aside` tests the state as bytes.

use crate::common::{CardFixture, MemoryRequest, data, mac, packet, plain, tagged};
use i82576::Time;
use i82576::bits::{eitr, icr, status};
use i82576::descriptor::tx::{AdvancedContextDescriptor, AdvancedDataDescriptor};
use i82576::phy::{self, control};
use i82576::register::{self as r, vf};
use pcie::Function::{self, Vf};

/// Returns two equal cards, a clone and the original, which a test compares.
fn both(bench: CardFixture) -> [CardFixture; 2] {
    [bench.clone(), bench]
}

fn bench() -> CardFixture {
    let mut bench = CardFixture::new(2);
    bench.vf(0).start();
    bench.vf(1).start();
    bench.pf().read(r::ICR);
    bench
}

#[test]
fn copied_card_keeps_the_link_without_a_link_interrupt() {
    for up in [false, true] {
        let mut bench = bench();
        bench.nic.set_link(up);
        bench.pf().read(r::ICR);
        for mut bench in both(bench) {
            let seen = bench.pf().read(r::STATUS) & status::LU;
            assert_eq!((seen != 0, bench.vf(0).read(vf::STATUS) & status::LU), (up, seen));
            assert_eq!(bench.pf().read(r::ICR), 0);
            bench.nic.set_link(!up);
            assert_eq!(bench.pf().read(r::ICR) & icr::LSC, icr::LSC, "a change raises LSC");
        }
    }
}

#[test]
fn copied_card_keeps_the_phy_in_power_down() {
    let mut bench = bench();
    let control_register = 1 << 26 | phy::ADDRESS << 21;
    bench.pf().write(r::MDIC, control_register | u32::from(control::POWER_DOWN));
    for mut bench in both(bench) {
        assert_eq!(bench.pf().read(r::STATUS) & status::LU, 0);
        bench.pf().write(r::MDIC, control_register);
        bench.now = bench.poll().deadline.expect("the PHY negotiates");
        bench.poll();
        assert_eq!(bench.pf().read(r::STATUS) & status::LU, status::LU);
    }
}

#[test]
fn copied_card_keeps_transmit_contexts() {
    let mut bench = bench();
    let context = AdvancedContextDescriptor { vlan_tag: 10, ..AdvancedContextDescriptor::default() };
    bench.vf(0).transmit(&[context.emit()]);
    for mut bench in both(bench) {
        let frame = plain(mac(9), mac(0), 60);
        let address = bench.vf(0).place(&frame);
        bench.vf(0).transmit(&[AdvancedDataDescriptor { insert_vlan: true, ..packet(address, 74) }.emit()]);
        assert_eq!(bench.wire_got(), [tagged(10, &frame)]);
        bench.vf(0).transmit(&[AdvancedContextDescriptor {
            vlan_tag: 11,
            ..AdvancedContextDescriptor::default()
        }
        .emit()]);
    }
}

#[test]
fn copied_card_completes_a_packet_begun_before_the_copy() {
    let mut bench = bench();
    let frame = plain(mac(1), mac(0), 60);
    let address = bench.vf(0).place(&frame);
    let first = AdvancedDataDescriptor { payload_length: 74, ..data(address, 40) };
    bench.vf(0).transmit(&[first.emit()]);
    for mut bench in both(bench) {
        bench.vf(1).expect_no_frame();
        let last =
            AdvancedDataDescriptor { end_of_packet: true, report_status: true, ..data(address + 40, 34) };
        bench.vf(0).transmit(&[last.emit()]);
        assert_eq!(bench.vf(1).expect_frame().bytes, frame);
    }
}

#[test]
fn copied_card_sends_a_delayed_interrupt_at_the_same_time() {
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

/// Memory requests of a card, its MSI-X messages, and its frames on the wire.
type CardTrace = (Vec<MemoryRequest>, Vec<(Function, u16)>, Vec<Vec<u8>>);

/// Makes the card send, receive, throttle or be polled, in turn by the number `step`. Most steps end while frames wait
/// in the card.
fn step(bench: &mut CardFixture, step: usize) {
    match step % 6 {
        0 => {
            bench.vf(0).put(
                AdvancedContextDescriptor { vlan_tag: step as u16, ..AdvancedContextDescriptor::default() }
                    .emit(),
            );
        }
        1 => {
            let address = bench.vf(0).place(&plain(mac(9), mac(0), 60));
            bench.vf(0).put(AdvancedDataDescriptor { insert_vlan: true, ..packet(address, 74) }.emit());
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

fn trace(bench: CardFixture) -> CardTrace {
    (bench.world.bus.log, bench.world.bus.msix, bench.world.wire.outgoing)
}

/// Returns the traces of a card and of its clone over 24 actions. The card is cloned before the action with the number
/// `cut`.
fn run(cut: usize) -> [CardTrace; 2] {
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
fn card_and_its_copy_behave_the_same_after_any_step() {
    let [whole, _] = run(24);
    assert!(!whole.0.is_empty() && !whole.1.is_empty() && !whole.2.is_empty());
    for cut in 0..24 {
        assert!(run(cut).iter().all(|trace| *trace == whole), "cloned before step {cut}");
    }
}
