//! Tests device, region and interrupt information, and unsupported commands.

use crate::script::{EINVAL, ENOTSUP, ScriptedSession, fds, u32_at, u64_at, words};

const INFO: u16 = 4;
const REGION: u16 = 5;
const IRQ: u16 = 7;

fn region_request(argsz: u32, index: u32) -> Vec<u8> {
    [words(&[argsz, 0, index, 0]), vec![0; 16]].concat()
}

#[test]
fn device_has_nine_regions_and_five_interrupt_types() {
    let mut script = ScriptedSession::agreed();
    assert_eq!(script.ask(INFO, &words(&[16, 0, 0, 0])), words(&[16, 3, 9, 5]));
    assert_eq!(
        script.ask(INFO, &words(&[32, 0, 0, 0])),
        words(&[16, 3, 9, 5]),
        "the vfio_user crate sends 32"
    );
    assert_eq!(script.refused(INFO, &words(&[15, 0, 0, 0])), EINVAL);
    assert_eq!(script.refused(INFO, &[0; 12]), EINVAL);
}

#[test]
fn reply_about_an_unmappable_region_has_no_capabilities() {
    let mut script = ScriptedSession::agreed();
    let reply = script.request(REGION, &region_request(32, 0), Vec::new());
    assert_eq!(reply.body, [words(&[32, 3, 0, 0, 0x4000, 0]), vec![0; 8]].concat());
    assert_eq!(reply.fds, [0; 0]);
}

#[test]
fn small_region_reply_omits_capabilities_and_descriptor() {
    let mut script = ScriptedSession::agreed();
    script.device.mapped = true;
    for room in [32, 33, 63] {
        let small = script.request(REGION, &region_request(room, 0), Vec::new());
        assert_eq!(small.body.len(), 32, "no more than the client has room for");
        assert_eq!(u32_at(&small.body, 0), 64, "the size that would be needed");
        assert_eq!(u32_at(&small.body, 4), 0b0111, "QEMU refuses capabilities without an offset");
        assert_eq!(u32_at(&small.body, 12), 0, "cap_offset points at nothing");
        assert_eq!(small.fds, [0; 0]);
    }

    let full = script.request(REGION, &region_request(64, 0), Vec::new());
    assert_eq!(u32_at(&full.body, 4), 0b1111, "read, write, mmap, capabilities");
    assert_eq!(u32_at(&full.body, 12), 32, "cap_offset is behind the fixed part");
    assert_eq!(u64_at(&full.body, 24), 0x10000, "where the region starts in its file");
    assert_eq!(full.body[32..], [words(&[0x10001, 0, 1, 0]), words(&[0x2000, 0, 0x2000, 0])].concat());
    assert_eq!(full.fds, [77]);
}

#[test]
fn region_info_of_unknown_region_or_short_argsz_is_refused() {
    let mut script = ScriptedSession::agreed();
    assert_eq!(script.refused(REGION, &region_request(32, 9)), EINVAL);
    assert_eq!(script.refused(REGION, &region_request(32, u32::MAX)), EINVAL);
    assert_eq!(script.refused(REGION, &region_request(31, 0)), EINVAL);
    assert_eq!(script.refused(REGION, &[0; 31]), EINVAL);
    for index in 0..9 {
        script.ask(REGION, &region_request(u32::MAX, index));
    }
}

#[test]
fn only_the_msix_interrupt_type_has_vectors() {
    let mut script = ScriptedSession::agreed();
    for (index, count) in [(0, 0), (1, 0), (2, 3), (3, 0), (4, 0)] {
        let reply = script.ask(IRQ, &words(&[16, 0, index, 0]));
        assert_eq!((u32_at(&reply, 8), u32_at(&reply, 12)), (index, count));
    }
    assert_eq!(script.refused(IRQ, &words(&[16, 0, 5, 0])), EINVAL);
    assert_eq!(script.refused(IRQ, &words(&[15, 0, 2, 0])), EINVAL);
}

#[test]
fn reset_request_reaches_the_device() {
    let mut script = ScriptedSession::agreed();
    assert!(script.ask(13, &[]).is_empty());
    assert_eq!(script.said(), ["reset"]);
}

#[test]
fn unsupported_command_is_refused_and_its_payload_dropped() {
    let mut script = ScriptedSession::agreed();
    let ioeventfds_and_dirty_pages = [6, 14];
    for command in [0, 6, 11, 12, 14, 16, 17, 18, 19, 255, u16::MAX] {
        let errno = if ioeventfds_and_dirty_pages.contains(&command) { ENOTSUP } else { EINVAL };
        for payload in [0, 1, 8, 300_000] {
            assert_eq!(script.refused(command, &vec![0x5a; payload]), errno, "command {command}");
            script.tell(command, &vec![0x5a; payload]);
        }
    }
    assert_eq!(script.said(), [""; 0]);
    script.ask(13, &[]);
}

#[test]
fn surplus_file_descriptors_of_a_request_are_closed_and_counted() {
    let mut script = ScriptedSession::agreed();
    let surplus = fds(&[1, 2, 3]);
    script.ask_with(13, &[], surplus.clone());
    assert_eq!(script.refused_with(16, &[0; 100], surplus.clone()), EINVAL);
    assert!(surplus.iter().all(|fd| std::rc::Rc::strong_count(fd) == 1));
    assert_eq!(script.session.counters().dropped_fds, 6);
}
