//! Gap in another 82576 model: legacy descriptors are unsupported. Small drivers such as iPXE's use no
//! others.

use crate::common::{BASE, CardFixture, PORT, TX_RING, buffer, mac, plain};
use i82576::bits::{rctl, tctl};
use i82576::register::{self as r, rx};

#[test]
fn queues_send_and_receive_if_all_descriptors_are_legacy() {
    let mut bench = CardFixture::bare();
    bench.pf().write(r::RCTL, rctl::EN | rctl::UPE | rctl::MPE | rctl::BAM | rctl::SECRC);
    bench.pf().write(r::TCTL, tctl::EN | tctl::PSP);
    bench.pf().start_sized(16, 16);
    let control = bench.pf().rx(rx::SRRCTL);
    bench.pf().write(control, 0x400);
    bench.wire_sends(&plain(PORT, mac(9), 46));
    // Address, length 60, checksum (not checked), status DD and EOP, no errors, no tag.
    let back = u128::from_le_bytes(bench.pf().peek(BASE, 16).try_into().unwrap());
    assert_eq!(back & !(0xffff << 80), u128::from(buffer(0)) | 60 << 64 | 0b11 << 96);
    assert_eq!(bench.pf().peek(buffer(0), 60), plain(PORT, mac(9), 46));
    let answer = plain(mac(9), PORT, 46);
    let address = bench.pf().place(&answer);
    // EOP, IFCS and RS.
    bench.pf().transmit(&[(u128::from(address) | 60 << 64 | 0x0b << 88).to_le_bytes()]);
    assert_eq!(bench.wire_got(), [answer]);
    assert_eq!(bench.pf().peek(TX_RING + 12, 1), [1]);
}
