//! Gap in another 82576 model: the legacy alias of queue 3's TXCTL leads to another register.

use crate::common::CardFixture;
use i82576::QueueIndex;
use i82576::register::{rx, rx_block, tx, tx_block};

#[test]
fn registers_of_the_first_four_queues_have_legacy_aliases() {
    let mut bench = CardFixture::bare();
    for (n, queue) in (0..4).zip(QueueIndex::all()) {
        for at in [tx::TDBAH, tx::TXCTL, tx::TDWBAH] {
            let (old, new) = (0x3800 + 0x100 * n + at, tx_block(queue) + at);
            bench.pf().write(old, 0x1000 + n);
            assert_eq!(bench.pf().read(new), 0x1000 + n, "{old:#x}");
            bench.pf().write(new, 0x2000 + n);
            assert_eq!(bench.pf().read(old), 0x2000 + n, "{new:#x}");
        }
        for at in [rx::RDBAH, rx::RXCTL] {
            let (old, new) = (0x2800 + 0x100 * n + at, rx_block(queue) + at);
            bench.pf().write(old, 0x1000 + n);
            assert_eq!(bench.pf().read(new), 0x1000 + n, "{old:#x}");
        }
    }
}
