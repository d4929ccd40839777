//! Tests of a virtio port whose VFs are shared by several workers.

use super::guest::{RING, VirtioGuest, exchange};
use crate::support::eventually;
use crate::support::live::LiveHost;
use crate::support::numbers::{FRAMES, exchange_numbers, exchange_numbers_until};
use daemon::settings::{LinkLocalPolicy, PortSettings, StormControlSettings};
use host::socket::StreamSocket;
use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::UnixStream;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use virtio::VirtioFeatures;

/// Configuration of a port whose VFs are spread over two workers: the VFs with odd numbers are the second worker's.
const SPREAD: &str = "[[port]]\nfamily = \"virtio\"\nvfs = 4\nworkers = 2\ndispatcher = \"spread\"\n";

/// Destination of LLDP frames (IEEE 802.1AB).
const LLDP: [u8; 6] = [0x01, 0x80, 0xc2, 0, 0, 0x0e];

/// Returns the VFs of the second worker of the first port.
fn second_worker(live: &LiveHost) -> Vec<u8> {
    live.show_port("pf0").workers[1].vfs.clone()
}

/// Boots the guests of VFs 0 and 1, and waits until the second worker serves VF 1.
fn boot_on_two_workers(live: &LiveHost) -> (VirtioGuest, VirtioGuest) {
    let (mut a, mut b) = (VirtioGuest::boot(live, 0), VirtioGuest::boot(live, 1));
    exchange(&mut a, &mut b);
    eventually("a VF moves to the second worker", || second_worker(live) == [1]);
    (a, b)
}

/// Returns the settings of a limit of broadcasts in kbit/s; 0 for none.
fn storm_limit(broadcast: u32) -> PortSettings {
    let storm = StormControlSettings { broadcast: Some(broadcast), ..StormControlSettings::default() };
    PortSettings { storm: Some(storm), ..PortSettings::default() }
}

#[test]
fn frames_keep_their_order_while_the_card_is_gathered() {
    let live = LiveHost::with(SPREAD);
    let mut guests: Vec<_> = (0..4).map(|vf| VirtioGuest::boot(&live, vf)).collect();
    // A guest's address is learned from its first frame. Until then the port's own thread serves the VF.
    guests.iter_mut().for_each(|guest| guest.send(b"hello"));
    eventually("two VFs move to the second worker", || second_worker(&live) == [1, 3]);
    guests.iter_mut().for_each(|guest| _ = guest.take());
    std::thread::scope(|scope| {
        let traffic = scope.spawn(|| exchange_numbers(&mut guests));
        while !traffic.is_finished() {
            // Each status gathers the card.
            assert_eq!(second_worker(&live), [1, 3]);
        }
    });
    let status = live.show(1);
    assert_eq!(status.function.tx.packets, u64::from(FRAMES) + 1);
    assert_eq!(status.function.rx.packets, 3 * (u64::from(FRAMES) + 1));
    assert_eq!(status.function.rx.dropped, 0);
}

#[test]
fn frames_keep_their_order_while_vfs_change_worker() {
    let live = LiveHost::with(SPREAD);
    let mut guests: Vec<_> = (0..4).map(|vf| VirtioGuest::boot(&live, vf)).collect();
    guests.iter_mut().for_each(|guest| guest.send(b"hello"));
    eventually("two VFs move to the second worker", || second_worker(&live) == [1, 3]);
    guests.iter_mut().for_each(|guest| _ = guest.take());
    let received = || live.show(1).function.rx.packets;
    let is_over = AtomicBool::new(false);
    let sent = std::thread::scope(|scope| {
        let traffic = scope.spawn(|| exchange_numbers_until(&mut guests, || is_over.load(Ordering::Relaxed)));
        for (limit, vfs) in [(1_000_000, &[][..]), (0, &[1, 3])].into_iter().cycle().take(20) {
            // Storm control keeps all VFs on the port's own thread.
            live.change_port(storm_limit(limit)).unwrap();
            eventually("two VFs change their worker", || second_worker(&live) == vfs);
            let before = received();
            eventually("frames pass", || received() > before);
        }
        is_over.store(true, Ordering::Relaxed);
        traffic.join().unwrap()
    });
    let status = live.show(1);
    assert_eq!(status.function.tx.packets, u64::from(sent) + 1);
    assert_eq!((status.function.rx.packets, status.function.rx.dropped), (3 * (u64::from(sent) + 1), 0));
}

#[test]
fn vfs_of_every_worker_exchange_frames_with_the_uplink() {
    let port = "uplink.wire = \"w\"\n";
    let live = LiveHost::with(&format!("{SPREAD}{port}{SPREAD}{port}"));
    let guest = |port: &str, vf: u8| {
        VirtioGuest::boot_on(
            StreamSocket::connect(&live.socket_of(&format!("{port}vf{vf}"))).unwrap(),
            if port == "pf0" { vf } else { 8 + vf },
        )
    };
    let mut guests = [guest("pf0", 0), guest("pf0", 1), guest("pf1", 0), guest("pf1", 1)];
    guests.iter_mut().for_each(|guest| guest.send(b"hello"));
    eventually("a VF moves to the second worker", || second_worker(&live) == [1]);
    eventually("a VF of the other port too", || live.show_port("pf1").workers[1].vfs == [1]);
    guests.iter_mut().for_each(|guest| _ = guest.take());
    exchange_numbers(&mut guests);
}

#[test]
fn every_worker_forwards_link_local_frames_if_the_port_does() {
    let live = LiveHost::with(&format!("{SPREAD}link_local = \"forward\"\n"));
    let (mut a, mut b) = boot_on_two_workers(&live);
    a.send_to(LLDP, b"from the first worker");
    b.wait_for(b"from the first worker");
    b.send_to(LLDP, b"from the second worker");
    a.wait_for(b"from the second worker");
}

#[test]
fn link_local_command_changes_every_worker_of_a_running_port() {
    let live = LiveHost::with(SPREAD);
    let (mut a, mut b) = boot_on_two_workers(&live);
    let dropped = || [0, 1].map(|vf| live.show(vf).drops.tx_link_control);
    for (round, policy) in
        [LinkLocalPolicy::Forward, LinkLocalPolicy::Drop].into_iter().cycle().take(4).enumerate()
    {
        let before = dropped();
        let set = PortSettings { link_local: Some(policy), ..PortSettings::default() };
        let status = live.change_port(set).unwrap();
        assert_eq!(status.settings.unwrap().link_local, Some(policy));
        a.send_to(LLDP, &[round as u8; 60]);
        b.send_to(LLDP, &[round as u8; 60]);
        if policy == LinkLocalPolicy::Forward {
            b.wait_for(&[round as u8; 60]);
            a.wait_for(&[round as u8; 60]);
            assert_eq!(dropped(), before);
        } else {
            eventually("both frames are dropped", || dropped() == before.map(|count| count + 1));
        }
    }
}

#[test]
fn disconnected_vf_returns_to_the_first_worker() {
    let live = LiveHost::with(SPREAD);
    let (mut a, b) = boot_on_two_workers(&live);
    drop(b);
    eventually("the VF returns", || second_worker(&live).is_empty());
    let mut b = VirtioGuest::boot(&live, 1);
    exchange(&mut a, &mut b);
    eventually("the VF moves again", || second_worker(&live) == [1]);
    exchange(&mut a, &mut b);
}

#[test]
fn moves_of_a_vf_count_as_no_kicks() {
    let live = LiveHost::with(SPREAD);
    let (mut a, mut b) = boot_on_two_workers(&live);
    let kicks = || live.show(1).device.unwrap().kicks;
    b.send(b"all earlier kicks are counted");
    a.wait_for(b"all earlier kicks are counted");
    let (before, moves) = (kicks(), 3);
    for number in 0..moves {
        // Storm control keeps all VFs on the port's own thread.
        live.change_port(storm_limit(1_000_000)).unwrap();
        eventually("the VF returns", || second_worker(&live).is_empty());
        live.change_port(storm_limit(0)).unwrap();
        eventually("the VF moves again", || second_worker(&live) == [1]);
        b.send(&[number]);
        a.wait_for(&[number]);
    }
    let counted = kicks() - before;
    assert!(counted <= u64::from(moves), "{counted} kicks counted, {moves} were sent");
}

#[test]
fn flood_of_one_clients_messages_stops_no_other_worker() {
    let live = LiveHost::with(SPREAD);
    let (mut a, mut b) = boot_on_two_workers(&live);
    // VHOST_USER_GET_FEATURES, version 1, without a body; each has a reply.
    let requests = [1, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0].repeat(1_000);
    let flooder = UnixStream::connect(live.socket(2)).unwrap();
    std::thread::scope(|scope| {
        // Both end when the socket is shut down.
        scope.spawn(|| while (&flooder).write_all(&requests).is_ok() {});
        scope.spawn(|| while (&flooder).read(&mut [0; 4096]).is_ok_and(|length| length > 0) {});
        for number in 0..5 {
            // The card stops to poll a ring that is silent for so long.
            std::thread::sleep(Duration::from_millis(50));
            b.send(&[number]);
            a.wait_for(&[number]);
        }
        flooder.shutdown(Shutdown::Both).unwrap();
    });
}

#[test]
fn flood_to_another_worker_loses_under_1_percent_of_a_neighbour() {
    const COUNT: usize = 3_000;
    // Fewer than the receiver has buffers.
    const UNDER_WAY: usize = COUNT / 100;
    let live = LiveHost::with(SPREAD);
    let features = VirtioFeatures::CSUM.bits() | VirtioFeatures::HOST_TSO4.bits();
    let mut guests: [VirtioGuest; 4] = [0, 1, 2, 3].map(|vf| {
        VirtioGuest::boot_with_features(StreamSocket::connect(&live.socket(vf)).unwrap(), vf, features)
    });
    guests.iter_mut().for_each(|guest| guest.send(b"hello"));
    eventually("two VFs move to the second worker", || second_worker(&live) == [1, 3]);
    let [flooded, flooder, receiver, sender] = &mut guests;
    let (mut sent, mut received) = (0, 0);
    // A lost frame stays under way for ever.
    eventually("99 % of the frames arrive", || {
        (0..RING).for_each(|_| flooder.if_room(1, |guest| guest.send_segmented(flooded.mac(), 480, 4)));
        for _ in sent - received..UNDER_WAY.min(COUNT - received) {
            sender.send_to(receiver.mac(), b"few");
            sent += 1;
        }
        [&mut *flooder, &mut *flooded, &mut *sender].into_iter().for_each(|guest| _ = guest.take());
        received += receiver.take().iter().filter(|payload| payload.starts_with(b"few")).count();
        received >= COUNT - UNDER_WAY
    });
}

#[test]
fn workers_share_the_counted_frames_of_their_vfs() {
    let live = LiveHost::with(SPREAD);
    let (mut a, mut b) = boot_on_two_workers(&live);
    let before = live.show_port("pf0").workers;
    exchange(&mut a, &mut b);
    let after = live.show_port("pf0").workers;
    for (before, after) in before.iter().zip(&after) {
        // Each guest sends and receives five frames.
        assert_eq!(after.frames - before.frames, 10, "{before:?} {after:?}");
        assert!(after.busy_ns > before.busy_ns, "{before:?} {after:?}");
    }
    assert_eq!(before[0].frames + before[1].frames, 20, "{before:?}");
}

#[test]
fn port_with_workers_continues_in_the_next_version_of_the_host() {
    let mut live = LiveHost::with(SPREAD);
    let (mut a, mut b) = boot_on_two_workers(&live);
    let sent = live.show(1).function.tx.packets;
    live.hand_over(SPREAD);
    exchange(&mut a, &mut b);
    assert_eq!(live.show(1).function.tx.packets, sent + 5);
}

#[test]
fn one_worker_serves_all_vfs_of_an_idle_balanced_port() {
    let live = LiveHost::with("[[port]]\nfamily = \"virtio\"\nvfs = 2\nworkers = 3\n");
    let (mut a, mut b) = (VirtioGuest::boot(&live, 0), VirtioGuest::boot(&live, 1));
    exchange(&mut a, &mut b);
    let workers = live.show_port("pf0").workers;
    let vfs: Vec<_> = workers.iter().map(|worker| worker.vfs.len()).collect();
    assert_eq!((vfs, workers.len()), (vec![2, 0, 0], 3));
}

#[test]
fn balanced_vfs_spread_under_a_flood_and_fold_back_after_it() {
    // A full ring of such packets is work for several windows of the dispatcher: the port is busy however slowly the guests send.
    const SEGMENTS: u16 = 480;
    const PAYLOAD: u16 = 4;
    let live =
        LiveHost::with("[[port]]\nfamily = \"virtio\"\nvfs = 4\nworkers = 2\ndispatcher = \"balanced\"\n");
    let features = VirtioFeatures::CSUM.bits() | VirtioFeatures::HOST_TSO4.bits();
    let mut guests: [VirtioGuest; 4] = [0, 1, 2, 3].map(|vf| {
        VirtioGuest::boot_with_features(StreamSocket::connect(&live.socket(vf)).unwrap(), vf, features)
    });
    let [a, b, c, d] = &mut guests;
    exchange(a, b);
    exchange(c, d);
    let macs = guests.each_ref().map(VirtioGuest::mac);
    eventually("VFs move to the second worker", || {
        for (vf, guest) in guests.iter_mut().enumerate() {
            for _ in 0..RING {
                guest.if_room(1, |guest| guest.send_segmented(macs[vf ^ 1], SEGMENTS, PAYLOAD));
            }
            guest.take();
        }
        !second_worker(&live).is_empty()
    });
    eventually("all VFs fold back", || {
        // Each status is work of the port's own thread.
        std::thread::sleep(Duration::from_millis(50));
        second_worker(&live).is_empty()
    });
    guests.iter_mut().for_each(|guest| _ = guest.take());
    let [a, .., d] = &mut guests;
    exchange(a, d);
}
