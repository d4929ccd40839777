//! Configuration spaces: the PF's and a VF's in the 82576, and the whole ones that guests of an 82576's VF and of an AVF see, with
//! their MSI-X tables. A virtio device has the configuration space of its VMM.
//!
//! The input is a list of accesses: which space, read or write, any offset, up to 8 bytes; or a message, a reset, a save.
//! Checked: no panic, ids and capability list that no write changes, a message only while MSI-X is enabled and its vector
//! unmasked, and a space that is the same after it was saved and loaded.
#![cfg_attr(not(test), no_main)]

use i82576::config;
use iovm::VirtualFunction;
use nic::{Nic, NicConfig};
use pcie::config::{Bar, FunctionIds, offset};
use pcie::{ConfigAccess, Function, Rid, VfIndex};
use softiov_fuzz::FuzzerInput;
use std::sync::LazyLock;

softiov_fuzz::target!(run);

const BARS: &[(u8, Bar)] = &[(0, Bar::memory64(0x4000)), (3, Bar::memory64(0x4000))];
/// Offsets of the vendor id and of the pointer to the first capability.
const IDS: u64 = 0;
const CAPABILITIES: u64 = 0x34;

/// A VF of the 82576 and an AVF as their guests see them, after a reset. The inputs clone them: to create them takes longer than
/// most inputs do.
static GUEST_VFS: LazyLock<[VirtualFunction; 2]> = LazyLock::new(|| {
    let (vf, identity) =
        (VfIndex::new(0).expect("VF 0 exists"), FunctionIds { device: 0x10ca, ..config::identity() });
    [
        VirtualFunction::new(vf, Rid(0x0280), identity, BARS),
        VirtualFunction::of(vf, Rid(0x0280), avf::config::space()),
    ]
});

/// Port of an 82576 with SR-IOV.
static NIC: LazyLock<Nic> =
    LazyLock::new(|| Nic::new(NicConfig { mac: backplane::PORT_MAC, iov: true, loopback: None }));

fn word(vf: &VirtualFunction, at: u64) -> [u8; 4] {
    let mut word = [0; 4];
    vf.config_read(at, &mut word);
    word
}

/// Makes the next access. Returns `None` at the end of the fuzzer's input.
fn access(nic: &mut Nic, vfs: &mut [VirtualFunction; 2], input: &mut FuzzerInput<'_>) -> Option<()> {
    let [kind, low, high] = input.array()?;
    let at = u16::from_le_bytes([low, high]);
    // The highest bit of an offset, which no register has, selects the AVF.
    let family = usize::from(high >> 7);
    let vf = &mut vfs[family];
    let size = 1 + kind / 16 % 8;
    let function = [Function::Pf, Function::Vf(0), Function::Vf(7)][usize::from(low % 3)];
    match kind % 10 {
        0 | 1 => {
            let bytes: [u8; 8] = input.array()?;
            vf.config_write((at & 0x1ff).into(), &bytes[..usize::from(size)]);
        }
        2 => {
            let bytes: [u8; 8] = input.array()?;
            vf.msix_write((at & 0x7fff).into(), &bytes[..usize::from(size)]);
        }
        3 => vf.msix_read((at & 0x7fff).into(), &mut [0; 8][..usize::from(size)]),
        4 => {
            let before = vf.endpoint().msix();
            let sent = vf.signal(at % [4, 20][family]);
            assert!(sent.is_none() || before.is_some_and(|control| control.enabled), "{sent:?}");
        }
        5 => while vf.release().is_some() {},
        6 if kind & 0x80 != 0 => vf.reset(),
        6 => {
            let again = &mut GUEST_VFS[family].clone();
            assert!(again.load(&vf.save()), "a saved VF loads");
            assert_eq!(again, vf);
        }
        7 => {
            let value = u32::from_le_bytes(input.array()?);
            nic.config_write(function, at & 0xfff, [1, 2, 4][usize::from(size % 3)], value);
        }
        8 => {
            let bytes: [u8; 8] = input.array()?;
            nic.config_write(
                function,
                at,
                size,
                u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]),
            );
            nic.config_read_bytes(function, at.into(), &mut [0; 8][..usize::from(size)]);
        }
        _ => _ = nic.config_read(function, at, size),
    }
    Some(())
}

fn run(data: &[u8]) {
    let (mut nic, mut vfs) = (NIC.clone(), GUEST_VFS.clone());
    let fixed = |vf: &VirtualFunction| (word(vf, IDS), word(vf, CAPABILITIES));
    let of_vfs = vfs.each_ref().map(fixed);
    let of_pf = nic.config_read(Function::Pf, offset::VENDOR, 4);
    let mut input = FuzzerInput(data);
    while access(&mut nic, &mut vfs, &mut input).is_some() {
        assert_eq!(vfs.each_ref().map(fixed), of_vfs);
        assert_eq!(nic.config_read(Function::Pf, offset::VENDOR, 4), of_pf);
    }
}
