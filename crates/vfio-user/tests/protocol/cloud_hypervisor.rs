//! Tests Cloud Hypervisor's message sequence, byte for byte as its client (the `vfio_user` crate) sends it, and the
//! client's limitations. `peer` uses the crate itself.

use crate::script::{
    REPLY, ScriptedSession, access, dma_map, dma_unmap, fds, set_irqs, u32_at, version_body, words,
};

const CAPABILITIES: &str =
    "{\"capabilities\":{\"max_msg_fds\":1,\"max_data_xfer_size\":1048576,\"migration\":{\"pgsize\":4096}}}\0";

fn region_request(argsz: u32, index: u32) -> Vec<u8> {
    [words(&[argsz, 0, index, 0]), vec![0; 16]].concat()
}

fn connect() -> ScriptedSession {
    let mut script = ScriptedSession::fresh();
    let mut version = version_body(CAPABILITIES);
    version[2] = 1;
    let reply = script.ask(1, &version);
    assert!(reply.starts_with(b"\0\0\x01\0{\"capabilities\":{"), "the key is mandatory to the client");
    assert_eq!(reply.last(), Some(&0), "the client cuts off the last byte without a look");
    // Its argsz counts the header, by mistake.
    script.ask(4, &words(&[32, 0, 0, 0]));
    for index in 0..9 {
        let reply = script.request(5, &region_request(32, index), Vec::new());
        if u32_at(&reply.body, 0) > 32 {
            let room = u32_at(&reply.body, 0);
            assert_eq!(script.request(5, &region_request(room, index), Vec::new()).body.len(), room as usize);
        }
    }
    script
}

#[test]
fn cloud_hypervisor_attaches_and_uses_a_device() {
    let mut script = connect();
    script.ask(7, &words(&[16, 0, 2, 0]));
    // It sizes BARs through the configuration region, the ROM included.
    for register in [0x10, 0x14, 0x18, 0x1c, 0x20, 0x24, 0x30] {
        script.ask(10, &access(7, register, 4, &[0xff; 4]));
        script.ask(9, &access(7, register, 4, &[]));
    }
    script.ask_with(2, &dma_map(3, 0, 0, 0x8000_0000), fds(&[5]));
    script.ask_with(8, &set_irqs(4 | 32, 2, 0, 3), fds(&[1, 2, 3]));
    script.ask(10, &access(0, 0x3818, 4, &[1, 0, 0, 0]));
    script.ask(9, &access(0, 8, 4, &[]));
    script.ask(8, &set_irqs(1 | 32, 2, 0, 0));
    script.ask(3, &dma_unmap(0, 0, 0x8000_0000));
    script.ask(13, &[]);
    assert_eq!(script.session.counters().refused, 0);
}

#[test]
fn region_access_reply_has_the_requested_length() {
    let mut script = connect();
    for (region, offset) in [(0, 0x4000), (1, 0), (6, 0), (8, 0xa0000), (12, 0), (0, u64::MAX)] {
        let reply = script.request(9, &access(region, offset, 8, &[]), Vec::new());
        assert_eq!((reply.flags, reply.body.len()), (REPLY, 16 + 8), "an error would hang its vCPU");
        let reply = script.request(10, &access(region, offset, 8, &[0; 8]), Vec::new());
        assert_eq!((reply.flags, reply.body.len()), (REPLY, 16));
    }
}

#[test]
fn mappable_region_reply_has_a_descriptor() {
    let mut script = connect();
    script.device.mapped = true;
    for index in 0..9 {
        let room = u32_at(&script.ask(5, &region_request(32, index)), 0);
        let reply = script.request(5, &region_request(room, index), Vec::new());
        let mappable = u32_at(&reply.body, 4) & 4 != 0;
        assert_eq!(mappable, !reply.fds.is_empty(), "the client unwraps the descriptor of region {index}");
    }
}

#[test]
fn interrupt_pin_is_reported_without_vectors() {
    let mut script = connect();
    assert_eq!(script.ask(7, &words(&[16, 0, 0, 0])), words(&[16, 0, 0, 0]), "INTx 0");
}
