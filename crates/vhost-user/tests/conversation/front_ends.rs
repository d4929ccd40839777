//! Tests whole sessions with the requests of QEMU, DPDK's virtio-user and Cloud Hypervisor. The order of requests is
//! from recorded sessions and the front ends' sources.

use crate::script::{
    ADD_MEM_REG, EVERYTHING, GET_FEATURES, GET_INFLIGHT_FD, GET_MAX_MEM_SLOTS, GET_PROTOCOL_FEATURES,
    GET_QUEUE_NUM, GET_STATUS, GET_VRING_BASE, MEMORY, NEED_REPLY, PACKED, PROTOCOL, SET_FEATURES,
    SET_INFLIGHT_FD, SET_MEM_TABLE, SET_OWNER, SET_PROTOCOL_FEATURES, SET_STATUS, SET_VRING_ADDR,
    SET_VRING_BASE, SET_VRING_CALL, SET_VRING_ENABLE, SET_VRING_ERR, SET_VRING_KICK, SET_VRING_NUM, SPLIT,
    ScriptedSession, USER, fds, inflight, long, memory_table, ring_addresses, single_region, state,
};
use vhost_user::message::RingBase;

/// Protocol features of [`EVERYTHING`] that QEMU 11 accepts for a network device: all but CONFIG (bit 9).
const QEMU_PROTOCOL: u64 = EVERYTHING & !(1 << 9);

/// Sends a request of QEMU about a ring. QEMU 11 (`newest`) requests an acknowledgement for it, QEMU 7.2 does not.
fn ring_request(script: &mut ScriptedSession, newest: bool, request: u32, body: &[u8], numbers: &[i32]) {
    if newest {
        assert_eq!(script.acknowledged(request, body, fds(numbers)), 0);
    } else {
        script.tell_with(request, body, fds(numbers));
    }
}

/// Sends QEMU's requests when it connects. QEMU treats each queue pair as a separate vhost device on the one socket.
fn qemu_connects(script: &mut ScriptedSession, newest: bool) {
    for pair in 0..2u32 {
        assert_eq!(script.number(GET_FEATURES) & PROTOCOL, PROTOCOL);
        assert_eq!(script.number(GET_PROTOCOL_FEATURES), EVERYTHING);
        script.tell(SET_PROTOCOL_FEATURES, &long(QEMU_PROTOCOL));
        if pair == 0 {
            assert_eq!(script.number(GET_QUEUE_NUM), 2);
        }
        assert_eq!(script.number(GET_MAX_MEM_SLOTS), 64);
        if pair == 0 {
            script.tell(SET_OWNER, &[]);
        }
        assert_eq!(script.number(GET_FEATURES) & PROTOCOL, PROTOCOL);
        for ring in [2 * pair, 2 * pair + 1] {
            ring_request(script, newest, SET_VRING_CALL, &long(u64::from(ring)), &[20 + ring as i32]);
            ring_request(script, newest, SET_VRING_ERR, &long(u64::from(ring)), &[30 + ring as i32]);
        }
    }
    // Long before memory, features and addresses, and again while firmware and kernel probe the device.
    for _ in 0..6 {
        for ring in 0..4 {
            ring_request(script, newest, SET_VRING_ENABLE, &state(ring, u32::from(ring < 2)), &[]);
        }
    }
}

/// Sends QEMU's requests when the driver sets DRIVER_OK.
fn qemu_driver_ok(script: &mut ScriptedSession, newest: bool, features: u64, base: u32) {
    for pair in 0..2u32 {
        script.tell(SET_FEATURES, &long(features | PROTOCOL));
        let status = script.number(GET_STATUS);
        if pair == 0 {
            assert_eq!(status, 0);
            script.tell(SET_STATUS, &long(8));
            let memory = single_region(MEMORY.0, MEMORY.1, USER, 0);
            assert_eq!(script.acknowledged(ADD_MEM_REG, &memory, fds(&[5])), 0);
        } else {
            assert_eq!(status, 8, "the status is returned as stored");
        }
        for ring in [2 * pair, 2 * pair + 1] {
            script.tell(SET_VRING_NUM, &state(ring, 256));
            script.tell(SET_VRING_BASE, &state(ring, base));
            script.tell(SET_VRING_ADDR, &ring_addresses(ring));
            ring_request(script, newest, SET_VRING_KICK, &long(u64::from(ring)), &[10 + ring as i32]);
            ring_request(script, newest, SET_VRING_CALL, &long(u64::from(ring)), &[20 + ring as i32]);
        }
    }
    assert_eq!(script.number(GET_STATUS), 8);
    script.tell(SET_STATUS, &long(15));
}

/// Sends QEMU's requests when the driver is unbound.
fn qemu_stops(script: &mut ScriptedSession, base: u32) {
    for ring in 0..4 {
        assert_eq!(script.ask(GET_VRING_BASE, &state(ring, 0)), state(ring, base));
        assert!(!script.session.is_live(ring));
    }
    script.tell(SET_STATUS, &long(0));
}

fn qemu_session(newest: bool) {
    let mut script = ScriptedSession::fresh();
    qemu_connects(&mut script, newest);
    let said = script.said();
    assert!(said.contains(&"OwnerSet".into()) && said.contains(&"protocol 0x1b01f".into()), "{said:?}");
    assert!(!said.iter().any(|line| line.starts_with("enable")), "kept until a ring is live");
    qemu_driver_ok(&mut script, newest, SPLIT, 0);
    assert_eq!(script.number(GET_STATUS), 15);
    let said = script.said();
    let rings = [
        "live 0: 256 at 0x100000, base 0x0, enabled true",
        "live 3: 256 at 0x130000, base 0x0, enabled false",
    ];
    assert!(rings.iter().all(|ring| said.contains(&(*ring).into())), "{said:?}");
    assert_eq!(said.iter().filter(|line| line.starts_with("live")).count(), 4, "once each");
    // The driver takes two queue pairs.
    for ring in 0..4 {
        ring_request(&mut script, newest, SET_VRING_ENABLE, &state(ring, 1), &[]);
    }
    assert_eq!(script.said(), ["enable 2 true", "enable 3 true"]);
    script.host.position = Some(RingBase::Split { available: 700 });
    qemu_stops(&mut script, 700);
    assert_eq!(script.said(), ["stop 0", "stop 1", "stop 2", "stop 3", "status 0"]);
}

#[test]
fn qemu_7_2_starts_and_stops_a_device() {
    qemu_session(false);
}

#[test]
fn qemu_11_starts_and_stops_a_device_with_acknowledgements() {
    qemu_session(true);
}

#[test]
fn qemu_restarts_a_packed_ring_at_a_32_bit_base() {
    let mut script = ScriptedSession::fresh();
    qemu_connects(&mut script, true);
    qemu_driver_ok(&mut script, true, PACKED, 0x8000_8000);
    assert!(script.said().contains(&"live 1: 256 at 0x110000, base 0x80008000, enabled true".into()));
    script.host.position = Some(RingBase::from_wire(0x0007_8005, true));
    qemu_stops(&mut script, 0x0007_8005);
}

#[test]
fn virtio_user_starts_and_stops_a_device() {
    let mut script = ScriptedSession::fresh();
    script.tell(SET_OWNER, &[]);
    script.number(GET_FEATURES);
    script.number(GET_PROTOCOL_FEATURES);
    script.tell(SET_PROTOCOL_FEATURES, &long(0x1_0009));
    assert_eq!(script.number(GET_QUEUE_NUM), 2);
    for status in [0, 1, 3] {
        script.tell(SET_STATUS, &long(status));
        assert_eq!(script.number(GET_STATUS), status);
    }
    script.tell(SET_FEATURES, &long(PACKED | PROTOCOL));
    script.tell(SET_STATUS, &long(11));
    assert_eq!(script.number(GET_STATUS), 11, "else: Failed to set FEATURES_OK");
    let table = memory_table(&[[0x1_4000_0000, 0x4000_0000, 0x1_4000_0000, 0]]);
    assert_eq!(script.acknowledged(SET_MEM_TABLE, &table, fds(&[5])), 0);
    for ring in 0..2 {
        // The application's own addresses are both user and guest addresses.
        let start = 0x1_4000_0000 + 0x1_0000 * u64::from(ring);
        script.tell_with(SET_VRING_CALL, &long(u64::from(ring)), fds(&[20]));
        script.tell(SET_VRING_NUM, &state(ring, 256));
        script.tell(SET_VRING_BASE, &state(ring, 0x8000));
        let addresses = crate::script::addresses(ring, 0, [start, start + 0x2000, start + 0x1000], 0);
        script.tell(SET_VRING_ADDR, &addresses);
        script.tell_with(SET_VRING_KICK, &long(u64::from(ring)), fds(&[10]));
    }
    script.tell(SET_VRING_ENABLE, &state(0, 1));
    script.tell(SET_VRING_ENABLE, &state(1, 1));
    script.tell(SET_STATUS, &long(15));
    let said = script.said();
    let live = "live 0: 256 at 0x140000000, base 0x80008000, enabled false".into();
    assert!(said.contains(&live), "a 16-bit base sets both positions: {said:?}");
    assert!(said.ends_with(&["enable 0 true".into(), "enable 1 true".into(), "status 15".into()]));
    script.host.position = Some(RingBase::from_wire(0x8004_8004, true));
    for ring in 0..2 {
        script.tell(SET_VRING_ENABLE, &state(ring, 0));
        assert_eq!(script.ask(GET_VRING_BASE, &state(ring, 0)), state(ring, 0x8004_8004));
    }
    assert_eq!(script.said(), ["enable 0 false", "stop 0", "enable 1 false", "stop 1"]);
}

/// Sends Cloud Hypervisor's requests when it connects. From then on it requests an acknowledgement for each request,
/// even for those with a reply.
fn cloud_hypervisor_connects(script: &mut ScriptedSession) {
    script.tell(SET_OWNER, &[]);
    script.number(GET_FEATURES);
    script.number(GET_PROTOCOL_FEATURES);
    script.tell(SET_PROTOCOL_FEATURES, &long(EVERYTHING & !(1 << 16)));
    let reply = script.ask_with(GET_QUEUE_NUM, NEED_REPLY, &[], Vec::new());
    assert_eq!(reply.body, long(4), "it counts rings");
}

/// Sends Cloud Hypervisor's requests when the driver activates the device with rings of `size` descriptors.
fn cloud_hypervisor_activates(script: &mut ScriptedSession, size: u32) {
    let mut accepted = |request, body: &[u8], numbers: &[i32]| {
        assert_eq!(script.acknowledged(request, body, fds(numbers)), 0);
    };
    accepted(SET_FEATURES, &long(SPLIT | PROTOCOL), &[]);
    let table =
        memory_table(&[[0, 0xa_0000, USER, 0], [0x10_0000, 0x1000_0000, USER + 0x10_0000, 0x10_0000]]);
    accepted(SET_MEM_TABLE, &table, &[5, 6]);
    for ring in 0..2 {
        accepted(SET_VRING_NUM, &state(ring, size), &[]);
    }
    accepted(SET_INFLIGHT_FD, &inflight(0x1000, 0, 2, size), &[99]);
    for ring in 0..2 {
        accepted(SET_VRING_ADDR, &ring_addresses(ring), &[]);
        accepted(SET_VRING_BASE, &state(ring, 0), &[]);
        accepted(SET_VRING_CALL, &long(u64::from(ring)), &[20]);
        accepted(SET_VRING_KICK, &long(u64::from(ring)), &[10]);
    }
    for ring in 0..2 {
        accepted(SET_VRING_ENABLE, &state(ring, 1), &[]);
    }
}

#[test]
fn cloud_hypervisor_starts_a_device_with_inflight_records() {
    let mut script = ScriptedSession::fresh();
    cloud_hypervisor_connects(&mut script);
    let reply = script.ask_with(GET_INFLIGHT_FD, NEED_REPLY, &inflight(0, 0, 2, 256), Vec::new());
    assert_eq!((reply.body, reply.fds), (inflight(0x1000, 0, 2, 256), vec![99]));
    cloud_hypervisor_activates(&mut script, 256);
    assert!(script.session.is_live(0) && script.session.is_live(1));
    assert!(script.said().ends_with(&["enable 0 true".into(), "enable 1 true".into()]));
}

#[test]
fn cloud_hypervisor_restarts_rings_with_another_size() {
    let mut script = ScriptedSession::fresh();
    cloud_hypervisor_connects(&mut script);
    cloud_hypervisor_activates(&mut script, 16);
    script.host.position = Some(RingBase::Split { available: 40 });
    for ring in 0..2 {
        assert_eq!(script.acknowledged(SET_VRING_ENABLE, &state(ring, 0), Vec::new()), 0);
        let reply = script.ask_with(GET_VRING_BASE, NEED_REPLY, &state(ring, 0), Vec::new());
        assert_eq!(reply.body, state(ring, 40));
    }
    script.said();
    cloud_hypervisor_activates(&mut script, 512);
    let said = script.said();
    assert!(said.contains(&"live 1: 512 at 0x10000, base 0x0, enabled false".into()), "{said:?}");
}
