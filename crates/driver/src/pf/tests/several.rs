//! Changes of several VFs at once.

use super::{Registers, vf, with_mac};
use crate::hal::Hal;
use crate::pf::{Pf, ResizeError};
use i82576::Pool;
use i82576::register as r;
use policy::{AddressOwner, PolicyError, PortVlan, VfPolicy};

fn two_vfs() -> (Registers, Pf) {
    let mut hal = Registers::default();
    let mut pf = Pf::probe(&mut hal).unwrap();
    for n in 0..2 {
        pf.set_policy(&mut hal, vf(n), with_mac(n + 1)).unwrap();
    }
    pf.enable_vfs(&mut hal, 2).unwrap();
    (hal, pf)
}

#[test]
fn addresses_can_be_swapped() {
    let (mut hal, mut pf) = two_vfs();
    let swapped = [with_mac(2), with_mac(1)];
    assert_eq!(pf.check_policies(&swapped), Ok(()));
    pf.set_policies(&mut hal, &swapped).unwrap();
    assert_eq!((pf.vf_mac(vf(0)), pf.vf_mac(vf(1))), (with_mac(2).mac, with_mac(1).mac));
    let taken = [with_mac(1)];
    let why = PolicyError::MacInUse(with_mac(1).mac.unwrap(), AddressOwner::Vf(vf(1).into()));
    assert_eq!(pf.check_policies(&taken), Err((vf(0).into(), why)));
}

#[test]
fn all_policies_are_set_or_none() {
    let (mut hal, mut pf) = two_vfs();
    let one = VfPolicy { vlan: Some(PortVlan { id: 7, qos: 1 }), ..with_mac(2) };
    let twice = [one, with_mac(2)];
    let registers = [r::rah(23), r::rah(22), r::vmvir(Pool::FIRST), r::vlvf(1)];
    let before = registers.map(|register| hal.read(register));
    assert!(matches!(pf.set_policies(&mut hal, &twice), Err((_, PolicyError::MacInUse(..)))));
    assert_eq!((*pf.policy(vf(0)), *pf.policy(vf(1))), (with_mac(1), with_mac(2)));
    let after = registers.map(|register| hal.read(register));
    assert_eq!(after, before);
    let wrong = [one, VfPolicy { max_mtu: Some(1), ..with_mac(1) }];
    assert_eq!(pf.set_policies(&mut hal, &wrong), Err((vf(1).into(), PolicyError::Mtu(1, 68, 9706))));
    assert_eq!(pf.policy(vf(0)).vlan, None);
}

#[test]
fn vfs_come_and_go_beside_others() {
    let (mut hal, mut pf) = two_vfs();
    pf.set_policy(&mut hal, vf(2), with_mac(3)).unwrap();
    pf.resize(&mut hal, 3).unwrap();
    assert_eq!((pf.vf_mac(vf(2)), pf.vf_mac(vf(0))), (with_mac(3).mac, with_mac(1).mac));
    assert_ne!(hal.read(r::rah(21)), 0);
    pf.resize(&mut hal, 1).unwrap();
    assert_eq!((pf.vf_mac(vf(1)), *pf.policy(vf(1))), (None, VfPolicy::default()));
    assert_eq!((hal.read(r::rah(21)) >> 31, hal.read(r::rah(22)) >> 31), (0, 0));
    assert_eq!(pf.vf_mac(vf(0)), with_mac(1).mac);
    assert_eq!(pf.resize(&mut hal, 9), Err(ResizeError::TooManyVfs(9)));
}
