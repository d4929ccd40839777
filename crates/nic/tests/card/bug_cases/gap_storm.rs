//! Gap in another 82576 model: there is no storm control.

use crate::common::{CardFixture, mac, plain};
use i82576::MacAddress;
use i82576::bits::{icr, sccrl};
use i82576::register as r;

#[test]
fn storm_is_dropped_and_its_start_and_end_raise_an_interrupt() {
    let mut bench = CardFixture::new(1);
    bench.vf(0).start();
    bench.pf().write(r::SCCRL, sccrl::BDICW);
    bench.pf().write(r::BSCTRH, 3);
    bench.pf().read(r::ICR);
    let storm = |bench: &mut CardFixture| {
        (0..9).for_each(|_| bench.wire_sends(&plain(MacAddress::BROADCAST, mac(9), 46)));
        (bench.vf(0).received().len(), bench.pf().read(r::ICR) & icr::SCE != 0)
    };
    assert_eq!(storm(&mut bench), (3, true), "the storm begins");
    assert_eq!(storm(&mut bench), (0, false), "the storm lasts");
    // Two quiet windows: a window has 100 ms after reset.
    bench.wait_us(200_000);
    bench.poll();
    assert_ne!(bench.pf().read(r::ICR) & icr::SCE, 0, "the storm has ended");
    assert_eq!(storm(&mut bench), (3, true));
}
