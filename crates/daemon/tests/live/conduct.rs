//! A VF that does too much on a live host: it is shut in, and let out again. Which rates call for what is tested with
//! the PF driver.

use crate::support::eventually;
use crate::support::guest::{Guest, exchange};
use crate::support::live::Live;
use daemon::policy::Change;
use i82576::MacAddress;

#[test]
fn a_storm_shuts_a_vf_in_until_it_is_let_out() {
    let live = Live::with("[[port]]\nlimits = { storm = { quarantine = 1 } }");
    let (mut a, mut b) = (Guest::under_qemu(&live, 0), Guest::under_qemu(&live, 1));
    exchange(&mut a, &mut b, 3);
    // One a second is too many here; however slowly time passes, some seconds see more.
    eventually("the VF is shut in", || {
        (0..20).for_each(|_| {
            a.send(MacAddress::BROADCAST, &[1; 60]);
        });
        live.show(0).conduct.quarantine.is_some()
    });
    let status = live.show(0);
    assert_eq!((status.conduct.quarantine.as_deref(), status.link), (Some("storm"), false));
    assert!(status.conduct.offences["storm"] > 0);
    assert_eq!((live.show(1).conduct.quarantine, live.show(1).link), (None, true), "the neighbour is free");
    b.receive();
    let before = live.show(0).tx.packets;
    a.send(b.vf.mac(), &[2; 60]);
    live.show(0);
    assert_eq!(live.show(0).tx.packets, before, "nothing leaves it");
    let status = live.change(0, Change { quarantine: Some(false), ..Change::default() });
    assert_eq!((status.conduct.quarantine, status.link), (None, true));
    eventually("what waited goes out", || live.show(0).tx.packets > before);
}
