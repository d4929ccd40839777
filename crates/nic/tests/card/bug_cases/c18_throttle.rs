//! Bug 18 of another 82576 model: EITR's interval was scaled wrongly, and its counter did not read back. CNT_IGNR had
//! no effect, and throttled interrupts were sent without a cause or lost.

use crate::common::CardFixture;
use i82576::Time;
use i82576::bits::eitr;
use i82576::register::vf;
use pcie::Function::Vf;

/// Returns a card with one VF whose vector 1 has an EITR interval in microseconds and has just sent its message, at 1
/// ms.
fn fired(interval: u32) -> CardFixture {
    let mut bench = CardFixture::new(1);
    bench.wait_us(1000);
    bench.vf(0).start();
    bench.vf(0).write(vf::VTEITR + 4, interval << eitr::INTERVAL_SHIFT);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
    bench
}

#[test]
fn eitr_interval_is_bits_14_to_2_in_microseconds() {
    for interval in [1, 2, 3, 50, 162, 1000, 8191] {
        let mut bench = fired(interval);
        bench.vf(0).write(vf::VTEICS, 2);
        let due = Time::from_micros(1000 + u64::from(interval));
        assert_eq!(bench.poll().deadline, Some(due), "{interval} us");
    }
}

#[test]
fn linux_itr_setting_is_in_quarters_of_a_microsecond() {
    for (written, us) in [(56, 14), (196, 49), (648, 162), (980, 245)] {
        assert_eq!(eitr::interval_us(written), us);
    }
}

#[test]
fn eitr_counter_reads_in_steps_of_4_us() {
    let mut bench = fired(100);
    bench.wait_us(40);
    assert_eq!(bench.vf(0).read(vf::VTEITR + 4), 15 << eitr::COUNTER_SHIFT | 100 << eitr::INTERVAL_SHIFT);
}

#[test]
fn eitr_write_keeps_the_counter_only_with_cnt_ignr() {
    let mut bench = fired(100);
    bench.vf(0).write(vf::VTEICS, 2);
    bench.vf(0).write(vf::VTEITR + 4, 7 << eitr::INTERVAL_SHIFT | eitr::CNT_IGNR);
    assert_eq!(bench.poll().deadline, Some(Time::from_micros(1100)));
    bench.vf(0).write(vf::VTEITR + 4, 7 << eitr::INTERVAL_SHIFT);
    bench.poll();
    bench.expect_msix(Vf(0), 1);
}

#[test]
fn eitr_interval_without_a_cause_sends_no_interrupt() {
    let mut bench = fired(100);
    bench.wait_us(100);
    bench.expect_nothing();
    bench.wait_us(10_000);
    bench.expect_nothing();
}

#[test]
fn pending_cause_interrupts_once_when_the_interval_ends() {
    for (read_away, messages) in [(false, 1), (true, 0)] {
        let mut bench = fired(100);
        for _ in 0..5 {
            bench.wait_us(10);
            bench.vf(0).write(vf::VTEICS, 2);
            bench.poll();
        }
        if read_away {
            bench.vf(0).read(vf::VTEICR);
        }
        bench.wait_us(50);
        bench.poll();
        assert_eq!(bench.msix().len(), messages);
        bench.wait_us(1000);
        bench.expect_nothing();
    }
}
