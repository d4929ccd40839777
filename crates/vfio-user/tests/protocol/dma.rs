//! Tests the rules for DMA windows: overlap, exact ranges, limits, descriptors.

use std::rc::Rc;

use vfio_user::server::{ServerSession, SessionProgress};
use vfio_user::wire::Errno;

use crate::script::{COMMAND, EINVAL, ScriptedSession, dma_map, dma_unmap, fds, message, words};

const MAP: u16 = 2;
const UNMAP: u16 = 3;
const RW: u32 = 3;
const MMAP: u32 = 1 << 2;
const ALL: u32 = 1 << 1;
const ENOENT: u32 = 2;
const EEXIST: u32 = 17;
const ENOSPC: u32 = 28;

#[test]
fn dma_window_with_or_without_a_file_descriptor_is_mapped() {
    let mut script = ScriptedSession::agreed();
    assert!(
        script.ask_with(MAP, &dma_map(RW, 0x1000, 0, 0xa0000), fds(&[5])).is_empty(),
        "the reply has no body"
    );
    script.ask(MAP, &dma_map(1, 0, 0xfffc0000, 0x40000));
    assert_eq!(script.said(), ["map 0x0+0xa0000 true Some((5, 4096))", "map 0xfffc0000+0x40000 false None"]);
}

#[test]
fn overlapping_dma_window_is_refused_with_eexist() {
    let mut script = ScriptedSession::agreed();
    script.ask(MAP, &dma_map(RW, 0, 0x10000, 0x10000));
    for (iova, size) in
        [(0x10000, 0x10000), (0x1f000, 0x1000), (0, 0x11000), (0, 0x100000), (0x14000, 0x1000)]
    {
        assert_eq!(script.refused(MAP, &dma_map(RW, 0, iova, size)), EEXIST);
    }
    script.ask(MAP, &dma_map(RW, 0, 0x20000, 0x1000));
    script.ask(MAP, &dma_map(RW, 0, 0xf000, 0x1000));
    assert_eq!(script.session.dma_maps(), 3);
}

#[test]
fn empty_unaligned_or_wrapping_dma_window_is_refused() {
    let mut script = ScriptedSession::agreed();
    let top = u64::MAX - 0xfff;
    let bad =
        [(0, 0), (1, 0x1000), (0, 0x1001), (top, 0x1000), (top, 0x2000), (0x1000, u64::MAX), (0x1000, top)];
    for (iova, size) in bad {
        assert_eq!(script.refused(MAP, &dma_map(RW, 0, iova, size)), EINVAL, "{iova:#x}+{size:#x}");
    }
    script.ask(MAP, &dma_map(RW, 0, top - 0x1000, 0x1000));
    script.ask(UNMAP, &dma_unmap(0, top - 0x1000, 0x1000));
}

#[test]
fn file_offset_of_a_dma_window_must_be_aligned_and_in_range() {
    let mut script = ScriptedSession::agreed();
    for offset in [1, u64::MAX - 0xfff, i64::MAX as u64 - 0xfff] {
        assert_eq!(script.refused_with(MAP, &dma_map(RW, offset, 0, 0x2000), fds(&[5])), EINVAL);
    }
}

#[test]
fn dma_map_with_unknown_flags_or_a_short_body_is_refused() {
    let mut script = ScriptedSession::agreed();
    for unknown in [1 << 3, 1 << 4, 1 << 31] {
        assert_eq!(script.refused_with(MAP, &dma_map(RW | unknown, 0, 0, 0x1000), fds(&[5])), EINVAL);
    }
    assert_eq!(script.refused(MAP, &dma_map(RW, 0, 0, 0x1000)[..31]), EINVAL);
    let mut small = dma_map(RW, 0, 0, 0x1000);
    small[..4].copy_from_slice(&words(&[31]));
    assert_eq!(script.refused(MAP, &small), EINVAL);
    assert_eq!(script.refused(UNMAP, &dma_unmap(0, 0, 0x1000)[..23]), EINVAL);
    assert_eq!(script.said(), [""; 0]);
}

/// Checks the flag that libvfio-user's header of 2026 defines: the client expects the server to map the descriptor.
#[test]
fn dma_map_with_the_mmap_flag_needs_a_file_descriptor() {
    let mut script = ScriptedSession::agreed();
    let map = dma_map(RW | MMAP, 0x1000, 0, 0x1000);
    assert_eq!(script.refused(MAP, &map), EINVAL);
    script.ask_with(MAP, &map, fds(&[5]));
    assert_eq!(script.said(), ["map 0x0+0x1000 true Some((5, 4096))"]);
}

#[test]
fn two_file_descriptors_for_one_dma_window_are_refused() {
    let mut script = ScriptedSession::agreed();
    let both = fds(&[1, 2]);
    assert_eq!(script.refused_with(MAP, &dma_map(RW, 0, 0, 0x1000), both.clone()), EINVAL);
    assert!(both.iter().all(|fd| Rc::strong_count(fd) == 1));
}

#[test]
fn dma_map_refused_by_the_device_returns_the_devices_error() {
    let mut script = ScriptedSession::agreed();
    script.device.refuse = Some(Errno::EACCES);
    assert_eq!(script.refused(MAP, &dma_map(RW, 0, 0, 0x1000)), 13);
    script.device.refuse = Some(Errno(0));
    assert_eq!(script.refused(MAP, &dma_map(RW, 0, 0, 0x1000)), 5, "an error without a number is EIO");
    script.device.refuse = None;
    script.ask(MAP, &dma_map(RW, 0, 0, 0x1000));
}

#[test]
fn dma_unmap_removes_whole_windows_and_echoes_the_request() {
    let mut script = ScriptedSession::agreed();
    script.ask(MAP, &dma_map(RW, 0, 0x10000, 0x10000));
    for (iova, size) in [(0x10000, 0x1000), (0x11000, 0xf000), (0x18000, 0x10000)] {
        assert_eq!(script.refused(UNMAP, &dma_unmap(0, iova, size)), ENOENT, "the range cuts a window");
    }
    let entry = dma_unmap(0, 0x10000, 0x10000);
    assert_eq!(script.ask(UNMAP, &entry), entry);
    assert_eq!(script.device.maps, []);
}

/// Checks that the reply has a body, as in Linux's VFIO, which unmaps such a range with success. Cloud Hypervisor's client waits
/// for a body without end, and it unmaps windows whose mapping the server has refused.
#[test]
fn dma_unmap_of_a_range_without_windows_succeeds() {
    let mut script = ScriptedSession::agreed();
    script.ask(MAP, &dma_map(RW, 0, 0x10000, 0x10000));
    script.device.refuse = Some(Errno::ENOMEM);
    script.refused(MAP, &dma_map(RW, 0, 0x30000, 0x10000));
    script.said();
    for (iova, size) in [(0x30000, 0x10000), (0, 0x10000), (0x20000, 0x1000), (1 << 40, 1 << 40)] {
        let entry = dma_unmap(0, iova, size);
        assert_eq!(script.ask(UNMAP, &entry), entry, "{iova:#x}+{size:#x}");
        assert!(!script.session.is_suspended());
    }
    assert_eq!(script.said(), [""; 0], "the device unmaps nothing");
    assert_eq!(script.session.dma_maps(), 1);
    for (iova, size) in [(0, 0), (0x30000, 0x1001), (0x30001, 0x1000), (u64::MAX - 0xfff, 0x1000)] {
        assert_eq!(script.refused(UNMAP, &dma_unmap(0, iova, size)), EINVAL, "{iova:#x}+{size:#x}");
    }
}

/// Checks that unmapping a range works as in Linux's VFIO. QEMU relies on that when a guest's IOMMU detaches a device:
/// QEMU unmaps all addresses, in halves, quarters and so on, regardless of the windows that were mapped there.
#[test]
fn dma_unmap_removes_every_window_inside_the_range() {
    let mut script = ScriptedSession::agreed();
    for iova in [0x1000, 0x2000, 0x8000, 0x1_0000_0000] {
        script.ask(MAP, &dma_map(RW, 0, iova, 0x1000));
    }
    script.ask(UNMAP, &dma_unmap(0, 0, 0x1000));
    assert_eq!(script.session.dma_maps(), 4, "the range has no window");
    script.ask(UNMAP, &dma_unmap(0, 0, 0x8000));
    assert_eq!(script.session.dma_maps(), 2);
    script.ask(UNMAP, &dma_unmap(0, 0x8000, 0x8000));
    script.ask(UNMAP, &dma_unmap(0, 0x1_0000_0000, 0x1_0000_0000));
    assert_eq!((script.session.dma_maps(), script.device.maps.len()), (0, 0));
    script.ask(MAP, &dma_map(RW, 0, 0x1000, 0x1000));
}

#[test]
fn suspended_unmap_is_answered_once_all_windows_are_gone() {
    for request in [dma_unmap(0, 0, 0x10_0000), dma_unmap(ALL, 0, 0)] {
        let mut script = ScriptedSession::agreed();
        for page in 0..5 {
            script.ask(MAP, &dma_map(RW, 0, 0x2000 * page, 0x1000));
        }
        script.said();
        let bytes = script.message(UNMAP, COMMAND, &request);
        let mut received = &bytes[..];
        // Each turn unmaps two windows. The message is undone until it is finished, and nothing is answered before.
        for left in [3, 1] {
            script.device.allowance = Some(2);
            assert_eq!(script.receive(received, Vec::new()), Ok(SessionProgress::Suspended));
            assert_eq!((script.session.dma_maps(), script.device.maps.len()), (left, left));
            assert!(script.session.is_repeatable());
            assert_eq!((script.session.undone(), script.replies().len()), (bytes.len(), 0));
            received = &[];
        }
        // Without an allowance nothing happens.
        script.device.allowance = Some(0);
        assert_eq!(script.receive(&[], Vec::new()), Ok(SessionProgress::Suspended));
        assert_eq!(script.session.dma_maps(), 1);
        script.device.allowance = None;
        assert_eq!(script.receive(&[], Vec::new()), Ok(SessionProgress::Starved));
        let bodies: Vec<_> = script.replies().into_iter().map(|reply| reply.body).collect();
        assert_eq!(bodies, [request]);
        assert!(!script.session.is_repeatable());
        assert_eq!((script.session.dma_maps(), script.session.undone()), (0, 0));
    }
}

#[test]
fn dma_unmap_with_the_all_flag_takes_no_address_range() {
    let mut script = ScriptedSession::agreed();
    let memory = fds(&[5]);
    script.ask_with(MAP, &dma_map(RW, 0, 0, 0x1000), memory.clone());
    script.ask(MAP, &dma_map(RW, 0, 0x1000, 0x1000));
    assert_eq!(script.refused(UNMAP, &dma_unmap(ALL, 0, 0x1000)), EINVAL);
    assert_eq!(script.refused(UNMAP, &dma_unmap(1 << 2, 0, 0)), EINVAL);
    assert_eq!(script.refused(UNMAP, &dma_unmap(1 << 0, 0, 0x1000)), EINVAL, "dirty bitmaps are unsupported");
    assert_eq!(script.ask(UNMAP, &dma_unmap(ALL, 0, 0)), dma_unmap(ALL, 0, 0));
    assert_eq!(script.session.dma_maps(), 0);
    assert_eq!(Rc::strong_count(&memory[0]), 1, "closed");
    script.ask(MAP, &dma_map(RW, 0, 0, 0x1000));
}

#[test]
fn negotiated_limit_of_dma_windows_is_enforced() {
    let mut script = ScriptedSession::fresh();
    script.session = ServerSession::new(2);
    let reply = script.ask(1, b"\0\0\0\0{\"capabilities\":{\"max_dma_maps\":65535}}\0");
    assert_eq!(&reply[4..], b"{\"capabilities\":{\"max_dma_maps\":2}}\0");
    script.ask(MAP, &dma_map(RW, 0, 0, 0x1000));
    script.ask(MAP, &dma_map(RW, 0, 0x1000, 0x1000));
    assert_eq!(script.refused(MAP, &dma_map(RW, 0, 0x2000, 0x1000)), ENOSPC);
    script.ask(UNMAP, &dma_unmap(0, 0, 0x1000));
    script.ask(MAP, &dma_map(RW, 0, 0x2000, 0x1000));
}

#[test]
fn dma_map_with_no_reply_flag_is_done_or_counted_as_refused() {
    let mut script = ScriptedSession::agreed();
    script.tell(MAP, &dma_map(RW, 0, 0, 0x1000));
    script.tell(MAP, &dma_map(RW, 0, 0, 0x1000));
    script.tell(MAP, &dma_map(RW, 0, 0x1000, 0x2000));
    script.tell(UNMAP, &dma_unmap(0, 0x2000, 0x1000));
    script.tell(UNMAP, &dma_unmap(0, 0x5000, 0x1000));
    assert_eq!(script.session.dma_maps(), 2);
    assert_eq!(script.session.counters().refused, 2);
}

#[test]
fn end_of_a_session_unmaps_all_dma_windows() {
    let mut script = ScriptedSession::agreed();
    let all = fds(&[1, 2, 3]);
    script.ask_with(MAP, &dma_map(RW, 0, 0, 0x1000), vec![all[0].clone()]);
    script.ask_with(8, &words(&[20, 0x24, 2, 0, 1]), vec![all[1].clone()]);
    // Half of a message, and a descriptor in the socket.
    let half = message(9, MAP, 0, &dma_map(RW, 0, 0x1000, 0x1000));
    script.receive(&half[..20], vec![all[2].clone()]).unwrap();
    let ScriptedSession { session, mut device, .. } = script;
    session.close(&mut device);
    assert!(all.iter().all(|fd| Rc::strong_count(fd) == 1));
    assert_eq!(device.said.iter().filter(|said| said.contains("reset")).count(), 0);
    assert_eq!(device.maps, []);
}
