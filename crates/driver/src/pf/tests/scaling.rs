//! Tests receive-side scaling in the PF's registers. The backplane's tests cover the card's part.

use super::{StoredRegisters, vf};
use crate::hal::Hal;
use crate::pf::Pf;
use core::time::Duration;
use i82576::PoolIndex;
use i82576::Time;
use i82576::bits::{mrqc, rctl, vmolr};
use i82576::register as r;
use policy::VfPolicy;

/// Registers of the PF that panic at a write of MRQC while the port receives.
#[derive(Default)]
struct GuardedMrqcRegisters(StoredRegisters);

impl Hal for GuardedMrqcRegisters {
    fn read(&mut self, offset: u32) -> u32 {
        self.0.read(offset)
    }
    fn write(&mut self, offset: u32, value: u32) {
        let receives = self.read(r::RCTL) & rctl::EN != 0;
        assert!(offset != r::MRQC || !receives, "the mode changes while the port receives");
        self.0.write(offset, value);
    }
    fn now(&self) -> Time {
        self.0.now()
    }
    fn wait(&mut self, time: Duration) {
        self.0.wait(time);
    }
}

fn scale(hal: &mut GuardedMrqcRegisters, pf: &mut Pf, n: u8, rss: bool) {
    pf.set_policy(hal, vf(n), VfPolicy { rss, ..VfPolicy::default() }).unwrap();
}

fn mode(hal: &mut GuardedMrqcRegisters) -> u32 {
    assert_ne!(hal.read(r::RCTL) & rctl::EN, 0, "the port receives again");
    hal.read(r::MRQC) & mrqc::MODE_MASK
}

#[test]
fn rss_mode_is_on_while_any_vf_uses_rss() {
    let mut hal = GuardedMrqcRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    pf.enable_vfs(&mut hal, 3).unwrap();
    assert_eq!(mode(&mut hal), mrqc::VMDQ);
    scale(&mut hal, &mut pf, 0, true);
    scale(&mut hal, &mut pf, 2, true);
    assert_eq!(
        hal.read(r::MRQC),
        mrqc::VMDQ_RSS | 0x37 << 16,
        "igb's types: TCP by ports, all IP by addresses"
    );
    assert_eq!(
        [0, 1, 2].map(|n| hal.read(r::vmolr(PoolIndex::EVERY[n])) & vmolr::RSSE != 0),
        [true, false, true]
    );
    scale(&mut hal, &mut pf, 0, false);
    assert_eq!(mode(&mut hal), mrqc::VMDQ_RSS, "VF 2 still uses RSS");
    scale(&mut hal, &mut pf, 2, false);
    assert_eq!(mode(&mut hal), mrqc::VMDQ);
    assert_eq!([0, 1, 2].map(|n| hal.read(r::vmolr(PoolIndex::EVERY[n])) & vmolr::RSSE), [0; 3]);
}

#[test]
fn rss_key_and_table_are_set_at_probe_and_kept_by_a_reset() {
    let mut hal = GuardedMrqcRegisters::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    for word in 0..32 {
        assert_eq!(hal.read(r::reta(word)).to_le_bytes(), [0, 1, 0, 1]);
    }
    assert_eq!(hal.read(r::rssrk(0)).to_le_bytes(), [0x6d, 0x5a, 0x56, 0xda]);
    assert_eq!(hal.read(r::rssrk(9)).to_le_bytes(), [0xbe, 0xac, 0x01, 0xfa]);
    scale(&mut hal, &mut pf, 1, true);
    pf.enable_vfs(&mut hal, 2).unwrap();
    assert_eq!(
        (mode(&mut hal), hal.read(r::vmolr(PoolIndex::EVERY[1])) & vmolr::RSSE),
        (mrqc::VMDQ_RSS, vmolr::RSSE),
        "the key is set before"
    );
    pf.reset(&mut hal).unwrap();
    assert_eq!(
        (mode(&mut hal), hal.read(r::vmolr(PoolIndex::EVERY[1])) & vmolr::RSSE),
        (mrqc::VMDQ_RSS, vmolr::RSSE),
        "the key is kept"
    );
}
