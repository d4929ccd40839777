//! Tests AF_XDP on pairs of interfaces in network namespaces of their own.

use std::process::Command;

use super::*;
use crate::confine::{SeccompMode, ThreadCapabilities, ThreadRole, ThreadSandbox};
use crate::packet::{PacketSocket, ReceiveBurst, SendBurst, UnsentFrameCounts};
use crate::test_support::{in_network_namespace, skipped};

/// Timeout of a test's wait, longer than any wait takes on the slowest machine.
const PATIENCE: Duration = Duration::from_secs(60);
/// Environment variable that makes this process hold an interface until it is killed.
const HOLD: &str = "SOFTIOV_TEST_XDP_HOLD";

#[track_caller]
fn ip(words: &str) -> String {
    let output = Command::new("ip").args(words.split(' ')).output().expect("iproute2 must be installed");
    assert!(output.status.success(), "ip {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn name(name: &str) -> InterfaceName {
    name.parse().unwrap()
}

/// Runs a test in a network namespace with a pair of connected interfaces, `left0` and `right0`, each with
/// `queues` queues.
fn with_a_pair(what: &str, queues: usize, body: impl FnOnce(&XdpProgram) + Send) {
    in_network_namespace(what, || {
        let of = |name: &str| format!("{name} numrxqueues {queues} numtxqueues {queues}");
        let pair = format!("link add {} type veth peer name {}", of("left0"), of("right0"));
        if !Command::new("ip").args(pair.split(' ')).output().is_ok_and(|output| output.status.success()) {
            return skipped(what, "this kernel has no veth, or iproute2 is not installed");
        }
        let program = match XdpProgram::load() {
            Ok(program) => program,
            Err(error) => return skipped(what, &format!("cannot load a BPF program: {error}")),
        };
        // Only the test's frames cross the pair.
        for file in ["all", "default", "left0", "right0"] {
            let _ = std::fs::write(format!("/proc/sys/net/ipv6/conf/{file}/disable_ipv6"), "1");
        }
        ip("link set left0 up");
        ip("link set right0 up");
        body(&program);
    });
}

fn open(program: &XdpProgram, modes: &[XdpTransferMode]) -> XdpInterface {
    XdpInterface::open(&name("left0"), program, modes, PATIENCE).unwrap()
}

/// Builds a frame with an experimental Ethertype, numbered `number`, to an address that no station has.
fn frame(number: u8, len: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 7, 2, 0, 0, 0, 0, 9, 0x88, 0xb5, number];
    frame.resize(len, 0x5a);
    frame
}

fn burst(len: usize) -> Vec<Vec<u8>> {
    (0..100).map(|number| frame(number, len + usize::from(number) * 14)).collect()
}

#[track_caller]
fn eventually(what: &str, mut holds: impl FnMut() -> bool) {
    let until = Instant::now() + PATIENCE;
    while !holds() {
        assert!(Instant::now() < until, "{what}");
        thread::sleep(Duration::from_millis(5));
    }
}

fn send(socket: &PacketSocket, frames: &[Vec<u8>]) {
    let mut burst = SendBurst::default();
    for frame in frames {
        assert!(burst.push(frame));
        if burst.is_full() {
            assert_eq!(socket.send(&mut burst), UnsentFrameCounts::default());
        }
    }
    assert_eq!(socket.send(&mut burst), UnsentFrameCounts::default());
}

/// Receives `expected` frames by AF_XDP; does not count the frames of `wait_until_carries`.
#[track_caller]
fn arrived(device: &XdpInterface, frames: &mut XdpQueues, expected: usize) -> Vec<Vec<u8>> {
    let mut poller = Poller::new().unwrap();
    poller.add(device, 0, PollInterest::READ).unwrap();
    let (mut into, mut all) = (vec![0; LONGEST], Vec::new());
    while all.len() < expected {
        assert!(poller.wait(Some(PATIENCE)).unwrap().count() > 0, "{} of {expected}", all.len());
        while let Some(arrived) = frames.receive(&mut into).unwrap() {
            let XdpReceiveResult::Frame(len) = arrived else {
                panic!("a received frame is too long for its buffer")
            };
            all.push(into[..len].to_vec());
        }
        all.retain(|frame| frame[14] != PROBE);
    }
    all
}

/// Receives `expected` frames by a packet socket; does not count the frames of `wait_until_carries`.
#[track_caller]
fn arrived_at_packet_socket(socket: &PacketSocket, expected: usize) -> Vec<Vec<u8>> {
    let (mut burst, mut all) = (ReceiveBurst::default(), Vec::new());
    eventually("frames arrive", || {
        socket.receive(&mut burst).unwrap();
        while let Some(arrived) = burst.pop() {
            let crate::packet::PacketReceiveResult::Frame(frame) = arrived else {
                panic!("a received frame is too long for its buffer")
            };
            all.push(frame.to_vec());
        }
        all.retain(|frame| frame[14] != PROBE);
        all.len() >= expected
    });
    all
}

const PROBE: u8 = 0xff;

/// Waits until frames pass both ways between the connected interfaces. After their carrier comes up, the
/// interfaces drop frames until they get their send queues a moment later.
#[track_caller]
fn wait_until_carries(frames: &mut XdpQueues, right: &PacketSocket) {
    let (mut into, mut burst) = (vec![0; LONGEST], ReceiveBurst::default());
    let (mut came, mut went) = (false, false);
    eventually("the pair carries", || {
        send(right, &[frame(PROBE, 60)]);
        let _ = frames.send(&frame(PROBE, 60));
        let _ = frames.flush();
        came |= frames.receive(&mut into).unwrap().is_some();
        right.receive(&mut burst).unwrap();
        went |= burst.pop().is_some();
        burst.clear();
        came && went
    });
}

#[test]
fn frames_cross_both_ways_in_each_xdp_mode() {
    with_a_pair("xdp frames", 1, |program| {
        for mode in [XdpTransferMode::Native, XdpTransferMode::Generic] {
            let left = open(program, &[mode]);
            assert_eq!((left.mode(), left.queues(), left.interface().as_deref()), (mode, 1, Some("left0")));
            let mut frames = left.take_frames().unwrap();
            assert!(left.take_frames().is_none(), "frames can be taken once");
            let right = PacketSocket::open(&name("right0")).unwrap();
            wait_until_carries(&mut frames, &right);
            // More frames than chunks, so that each chunk is used again.
            for _ in 0..30 {
                let sent = burst(60);
                send(&right, &sent);
                assert_eq!(arrived(&left, &mut frames, sent.len()), sent, "{mode}");
                for frame in &sent {
                    assert_eq!(frames.send(frame), UnsentFrameCounts::default());
                }
                assert_eq!(frames.flush(), UnsentFrameCounts::default());
                assert_eq!(arrived_at_packet_socket(&right, sent.len()), sent, "{mode}");
            }
            assert_eq!(left.missed(), 0);
        }
    });
}

#[test]
fn xdp_falls_back_to_the_next_mode_if_zerocopy_is_missing() {
    with_a_pair("xdp modes", 1, |program| {
        let zerocopy = &[XdpTransferMode::NativeWithZerocopy];
        let refused = XdpInterface::open(&name("left0"), program, zerocopy, PATIENCE).unwrap_err();
        assert!(!refused.is_busy() && refused.to_string().contains("native-with-zerocopy:"), "{refused}");
        let left = open(program, &XdpTransferMode::ALL);
        assert_eq!(left.mode(), XdpTransferMode::Native);
        let second = XdpProgram::load().unwrap();
        let busy =
            XdpInterface::open(&name("left0"), &second, &XdpTransferMode::ALL, Duration::ZERO).unwrap_err();
        assert!(busy.is_busy() && busy.to_string().contains("xdp off"), "{busy}");
        drop(left);
        open(&second, &XdpTransferMode::ALL);
    });
}

#[test]
fn each_queue_of_an_interface_has_an_xdp_socket() {
    with_a_pair("xdp queues", 4, |program| {
        let left = open(program, &[XdpTransferMode::Native]);
        assert_eq!(left.queues(), 4);
        let mut frames = left.take_frames().unwrap();
        let right = PacketSocket::open(&name("right0")).unwrap();
        wait_until_carries(&mut frames, &right);
        let sent = burst(60);
        send(&right, &sent);
        let mut came = arrived(&left, &mut frames, sent.len());
        came.sort();
        assert_eq!(came, sent);
    });
    with_a_pair("xdp queues", 17, |program| {
        let refused =
            XdpInterface::open(&name("left0"), program, &XdpTransferMode::ALL, PATIENCE).unwrap_err();
        assert!(refused.to_string().contains("ethtool -L"), "{refused}");
    });
}

#[test]
fn unread_xdp_frames_are_counted_and_long_ones_refused() {
    with_a_pair("xdp limits", 1, |program| {
        let left = open(program, &[XdpTransferMode::Native]);
        let mut frames = left.take_frames().unwrap();
        let right = PacketSocket::open(&name("right0")).unwrap();
        wait_until_carries(&mut frames, &right);
        eventually("frames are missed", || {
            send(&right, &burst(60));
            left.missed() > 0
        });
        let mut into = [0; 64];
        let mut too_long = 0;
        while let Some(arrived) = frames.receive(&mut into).unwrap() {
            too_long += u32::from(arrived == XdpReceiveResult::TooLong);
        }
        assert!(too_long > 0, "a frame longer than the buffer");
        wait_until_carries(&mut frames, &right);
        assert_eq!(
            frames.send(&frame(1, LONGEST + 1)),
            UnsentFrameCounts { too_long: 1, ..UnsentFrameCounts::default() }
        );
        for len in (0..14).cycle().take(2000) {
            assert_eq!(
                frames.send(&vec![0; len]),
                UnsentFrameCounts { no_room: 1, ..UnsentFrameCounts::default() },
                "no header, and no chunk lost"
            );
        }
        wait_until_carries(&mut frames, &right);
    });
    with_a_pair("xdp MTU", 1, |program| {
        ip("link set left0 mtu 3823");
        let refused = XdpInterface::open(&name("left0"), program, &XdpTransferMode::ALL, PATIENCE)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("MTU 3823") && refused.contains("3822"), "{refused}");
    });
}

#[test]
fn interface_deleted_during_an_xdp_burst_is_an_error() {
    with_a_pair("xdp gone", 1, |program| {
        ip("link set left0 down");
        let left = open(program, &[XdpTransferMode::Native]);
        let mut frames = left.take_frames().unwrap();
        let right = PacketSocket::open(&name("right0")).unwrap();
        ip("link set left0 up");
        wait_until_carries(&mut frames, &right);
        for number in 0..20 {
            assert_eq!(frames.send(&frame(number, 60)), UnsentFrameCounts::default());
        }
        ip("link set left0 down");
        let _ = frames.flush();
        let unsent = frames.unsent();
        assert!(unsent >= 20, "{unsent}");
        assert_eq!(left.interface().as_deref(), Some("left0"));
        assert!(InterfaceHoldSocket::held_by(left.hold()).is_some());
        ip("link del left0");
        assert!(left.interface().is_none() && InterfaceHoldSocket::held_by(left.hold()).is_none());
        assert_eq!(frames.send(&frame(1, 60)), UnsentFrameCounts::default());
        assert_eq!(frames.flush(), UnsentFrameCounts::default());
        assert_eq!(frames.unsent(), unsent + 1, "no frame leaves");
        while frames.receive(&mut [0; LONGEST]).unwrap().is_some() {}
        let mut poller = Poller::new().unwrap();
        poller.add(&left, 0, PollInterest::READ).unwrap();
        assert_eq!(
            poller.wait(Some(Duration::from_millis(50))).unwrap().count(),
            0,
            "the poller does not spin"
        );
        let refused =
            XdpInterface::open(&name("left0"), program, &XdpTransferMode::ALL, PATIENCE).unwrap_err();
        assert!(matches!(refused, XdpError::Interface(PacketSocketError::NoInterface { .. })), "{refused}");
    });
}

/// Returns the number of dropped frames, whatever the reason.
fn dropped(frames: UnsentFrameCounts) -> u64 {
    let UnsentFrameCounts { too_long, no_room, no_link } = frames;
    too_long + no_room + no_link
}

#[test]
fn xdp_frames_wait_for_an_interface_that_is_down_or_are_counted() {
    with_a_pair("xdp counts", 1, |program| {
        for mode in [XdpTransferMode::Native, XdpTransferMode::Generic] {
            let left = open(program, &[mode]);
            let mut frames = left.take_frames().unwrap();
            let right = PacketSocket::open(&name("right0")).unwrap();
            wait_until_carries(&mut frames, &right);
            ip("link set left0 down");
            let mut lost = 0;
            for number in 0..1000 {
                lost += dropped(frames.send(&frame(number as u8 % 200, 60)));
            }
            lost += dropped(frames.flush());
            assert_eq!(u64::from(frames.unsent()), 1000 - lost, "{mode}");
            ip("link set left0 up");
            eventually("the frames leave", || {
                lost += dropped(frames.flush());
                frames.unsent() == 0
            });
            let came = arrived_at_packet_socket(&right, 1000 - lost as usize);
            assert_eq!(came.len() as u64, 1000 - lost, "{mode}");
        }
    });
}

/// firedancer 674: a full transmit ring was never offered to the kernel again.
#[test]
fn xdp_sends_again_after_a_burst_to_an_interface_that_is_down() {
    with_a_pair("xdp down", 1, |program| {
        let left = open(program, &[XdpTransferMode::Native]);
        let mut frames = left.take_frames().unwrap();
        let right = PacketSocket::open(&name("right0")).unwrap();
        wait_until_carries(&mut frames, &right);
        ip("link set left0 down");
        // More frames than chunks, before the watcher has reported the link.
        for number in 0..1000 {
            let _ = frames.send(&frame(number as u8 % 200, 60));
        }
        let _ = frames.flush();
        ip("link set left0 up");
        wait_until_carries(&mut frames, &right);
    });
}

#[test]
fn xdp_program_is_removed_with_a_killed_process() {
    let test = "xdp::tests::xdp_program_is_removed_with_a_killed_process";
    if std::env::var_os(HOLD).is_some() {
        let _left = open(&XdpProgram::load().unwrap(), &[XdpTransferMode::Native]);
        thread::sleep(Duration::from_secs(3600));
    }
    with_a_pair("xdp death", 1, |program| {
        let this = std::env::current_exe().unwrap();
        let has_program = || ip("link show left0").contains("xdp");
        let mut holder = Command::new(this).args(["--exact", test]).env(HOLD, "").spawn().unwrap();
        eventually("the other process has the interface", has_program);
        holder.kill().unwrap();
        holder.wait().unwrap();
        eventually("the program is gone", || !has_program());
        assert_eq!(
            open(program, &XdpTransferMode::ALL).mode(),
            XdpTransferMode::Native,
            "the interface is available at once"
        );
    });
}

#[test]
fn restricted_thread_attaches_a_loaded_xdp_program() {
    let what = "xdp confined";
    with_a_pair(what, 1, |program| {
        let capabilities = ThreadCapabilities::Only { net_admin: false, net_raw: true };
        let confinement = ThreadSandbox { seccomp: SeccompMode::On, capabilities };
        confinement.prepare(ThreadRole::Control).unwrap().apply().unwrap();
        // Retried: locked memory counts until the kernel has freed it.
        for _ in 0..5 {
            match XdpInterface::open(&name("left0"), program, &XdpTransferMode::ALL, PATIENCE) {
                Ok(left) => assert_eq!(left.mode(), XdpTransferMode::Native),
                Err(error) if error.to_string().contains("CAP_BPF") => {
                    return skipped(what, &format!("this kernel needs more privileges: {error}"));
                }
                Err(error) => panic!("{error}"),
            }
        }
    });
}
