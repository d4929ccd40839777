//! Tests transmit rates: the PF driver's register values make the card send at the requested rate.

use crate::support::{DrivenCardFixture, between, index};
use core::time::Duration;
use driver::vf::{TxError, TxOffload};
use policy::VfPolicy;

/// Returns the number of frames that VF 1 receives in a tenth of a second, while VF 0 constantly has a frame
/// to send.
fn received(bench: &mut DrivenCardFixture) -> u64 {
    let frame = between(0, 1, 1_246, 3);
    let before = bench.card.nic().counters()[1].rx_packets;
    for _ in 0..100 {
        bench.on(0, |driver, hal| {
            driver.clean(hal);
            while driver.transmit(hal, &frame, &TxOffload::default()) != Err(TxError::Full) {}
            driver.flush(hal);
        });
        bench.card.advance(Duration::from_millis(1));
        bench.receive_all(1);
        bench.on(1, |driver, hal| driver.receive_done(hal));
    }
    bench.card.nic().counters()[1].rx_packets - before
}

/// Limits VF 0 to a transmit rate in Mb/s.
fn set_rate(bench: &mut DrivenCardFixture, max_tx_rate: u32) {
    let policy = VfPolicy { max_tx_rate, ..*bench.card.pf_driver().unwrap().policy(index(0)) };
    assert_eq!(bench.card.with_pf_driver(|pf, hal| pf.set_policy(hal, index(0), policy)), Some(Ok(())));
}

#[test]
fn vf_sends_at_the_transmit_rate_of_its_policy() {
    let mut bench = DrivenCardFixture::new(2);
    for mbps in [10, 100, 300] {
        set_rate(&mut bench, mbps);
        let frames = received(&mut bench);
        let wanted = u64::from(mbps) * 10;
        // The last frame at the former rate still delays the first one.
        assert!(frames.abs_diff(wanted) <= 2 + wanted / 50, "{frames} frames of 1,250 octets at {mbps} Mb/s");
    }
}

#[test]
fn transmit_rate_survives_resets_of_vf_and_port() {
    let mut bench = DrivenCardFixture::new(2);
    set_rate(&mut bench, 100);
    bench.on(0, |driver, hal| driver.restart(hal)).unwrap();
    assert!(received(&mut bench).abs_diff(1_000) <= 2);
    bench.card.with_pf_driver(|pf, hal| pf.reset(hal)).unwrap().unwrap();
    for vf in [0, 1] {
        bench.on(vf, |driver, hal| driver.restart(hal)).unwrap();
    }
    assert!(received(&mut bench).abs_diff(1_000) <= 2);
}
