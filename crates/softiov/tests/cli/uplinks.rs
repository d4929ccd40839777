//! Tests the uplinks of ports, and the processors that ports are bound to, when the host is replaced. `tap` tests taps.

use crate::process::{PATIENCE, ServeProcess, eventually, softiov};
use crate::survival::{address, attach_to};
use host::test_support::{in_network_namespace, skipped};
use rustix::process::{Signal, kill_process};
use std::fs;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::process::Command;
use std::time::{Duration, Instant};
use tempfile::tempdir;

/// Starts a host with the configuration `text`.
fn serve(folder: &tempfile::TempDir, text: &str) -> ServeProcess {
    let file = folder.path().join("softiov.toml");
    fs::write(&file, text).unwrap();
    ServeProcess::start(folder, &["--config", file.to_str().unwrap()])
}

fn show(serve: &ServeProcess, port: &str) -> String {
    softiov(serve.folder(), &["port", "show", port]).out
}

/// Kills the host, and waits until the keeper process has started another one that serves.
fn kill_host(serve: &ServeProcess) {
    eventually("one host", || serve.hosts().len() == 1);
    let [host] = serve.hosts()[..] else { panic!("not one host") };
    kill_process(host, Signal::KILL).unwrap();
    eventually("another host", || {
        matches!(serve.hosts()[..], [other] if other != host) && show(serve, "pf0").contains("link/ether")
    });
}

/// Returns the list of processors on which the host's thread `name` may run, as /proc shows it.
fn held_to(serve: &ServeProcess, name: &str) -> String {
    eventually("one host", || serve.hosts().len() == 1);
    let threads = fs::read_dir(serve.proc().join("task")).unwrap().map(|thread| thread.unwrap().path());
    let is_it = |path: &std::path::PathBuf| {
        fs::read_to_string(path.join("comm")).is_ok_and(|comm| comm.trim() == name)
    };
    let thread = threads.into_iter().find(is_it).expect("the host must have a thread of that name");
    let status = fs::read_to_string(thread.join("status")).unwrap();
    status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap().trim().to_owned()
}

#[test]
fn port_stays_on_its_cpus_when_the_host_is_replaced() {
    let folder = tempdir().unwrap();
    let allowed = host::cpus::CpuList::allowed().unwrap();
    let last = allowed.iter().last().unwrap().to_string();
    let serve = serve(&folder, &format!("[[port]]\ncpus = [{last}]\n[[port]]\n"));
    let check = |when: &str| {
        assert_eq!(held_to(&serve, "pf0"), last, "{when}");
        assert_eq!(held_to(&serve, "pf1"), allowed.to_string(), "{when}");
        let told = show(&serve, "pf0");
        assert!(told.contains(&format!("    held to cpus {last}\n")), "{told}");
    };
    check("at the start");
    assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0));
    check("after a hand-over");
    kill_host(&serve);
    check("after a death");
}

#[test]
fn wire_uplink_and_its_flows_survive_a_replaced_host() {
    let folder = tempdir().unwrap();
    let port = "[[port]]\nvfs = 1\nuplink.wire = \"w\"\n";
    let serve = serve(&folder, &(port.to_owned() + port));
    let (a, b) = (attach_to(serve.folder(), 0, 0), attach_to(serve.folder(), 1, 1));
    assert!(a.send_tcp(address(1), 1 << 20).is_ok_and(|flow| flow.is_intact()));
    for round in 0..2 {
        let flow = std::thread::scope(|scope| {
            let flow = scope.spawn(|| a.send_tcp(address(1), 64 << 20));
            std::thread::sleep(Duration::from_millis(100));
            match round {
                0 => assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0)),
                _ => kill_host(&serve),
            }
            flow.join().unwrap()
        });
        assert!(flow.is_ok_and(|flow| flow.is_intact()), "round {round}: {}", serve.log());
        assert!(b.send_tcp(address(0), 1 << 20).is_ok_and(|flow| flow.is_intact()));
        assert!(show(&serve, "pf1").contains("    wire w up for "), "{}", show(&serve, "pf1"));
    }
}

#[test]
fn stream_peer_reconnects_to_the_next_host_at_the_same_path() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("peer.sock");
    let mut serve = serve(&folder, &format!("[[port]]\nuplink.stream.listen = {path:?}\n"));
    for round in 0..3 {
        let mut peer = UnixStream::connect(&path).unwrap();
        peer.set_read_timeout(Some(PATIENCE)).unwrap();
        eventually("the link comes", || show(&serve, "pf0").contains(" up for "));
        match round {
            0 => assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0)),
            1 => kill_host(&serve),
            _ => assert_eq!(serve.end(Signal::TERM).code(), Some(0)),
        }
        // No guest sends a frame, so the peer receives nothing.
        assert_eq!(peer.read(&mut [0; 10]).unwrap_or(0), 0, "round {round}");
    }
    assert!(!path.exists(), "the socket goes with the host");
}

/// Checks a host that is replaced while its uplink of this kind is gone: the successor process does not create the
/// uplink, and guests keep their VFs. Once the uplink exists again, the successor attaches it, even if the previous
/// host process has not quite ended.
fn is_taken_again_by_a_successor(kind: &str, below: &[&str], make: &[String]) {
    let what = format!("{kind} that is back after a crash of the host");
    let ip = |words: &str| {
        let output = Command::new("ip").args(words.split(' ')).output();
        output.map_err(|error| error.to_string()).and_then(|output| {
            let said = String::from_utf8_lossy(&output.stderr).into_owned();
            if output.status.success() { Ok(()) } else { Err(format!("ip {words}: {said}")) }
        })
    };
    in_network_namespace(&what, || {
        let make = || make.iter().try_for_each(|words| ip(words));
        if let Err(error) = below.iter().try_for_each(|words| ip(words)).and_then(|()| make()) {
            return skipped(&what, &error);
        }
        let folder = tempdir().unwrap();
        let serve =
            serve(&folder, &format!("confine.landlock = false\n[[port]]\nuplink.{kind} = \"wire0\"\n"));
        let told = |part: &str| {
            let deadline = Instant::now() + PATIENCE;
            while !show(&serve, "pf0").contains(part) {
                assert!(Instant::now() < deadline, "{part} in {}\n{}", show(&serve, "pf0"), serve.log());
                std::thread::sleep(Duration::from_millis(10));
            }
        };
        told("state UP");
        let guest = attach_to(serve.folder(), 0, 0);
        ip("link del wire0").unwrap();
        told("(gone) state DOWN");
        kill_host(&serve);
        told("(gone) state DOWN");
        assert_eq!(softiov(serve.folder(), &["upgrade"]).status, Some(0), "{}", serve.log());
        told("(gone) state DOWN");
        assert!(!fs::read_to_string("/proc/thread-self/net/dev").unwrap().contains("wire0:"));
        make().unwrap();
        told("state UP");
        assert!(guest.wait_link(PATIENCE), "the guest keeps its VF");
        eventually("the log reports the uplink", || {
            serve.log().contains(&format!("the port is attached to the {kind} again"))
        });
    });
}

#[test]
fn uplink_interface_is_reattached_after_a_host_crash() {
    let pair = ["link add wire0 type veth peer name host0", "link set wire0 up", "link set host0 up"];
    is_taken_again_by_a_successor("interface", &[], &pair.map(str::to_owned));
}

#[test]
fn tap_is_reattached_and_not_created_after_a_host_crash() {
    is_taken_again_by_a_successor("tap", &[], &["tuntap add wire0 mode tap".to_owned()]);
}

#[test]
fn macvtap_is_reattached_after_a_host_crash() {
    // Device files of all network namespaces are in one folder, so the number must be unique on the machine.
    let number = 1_000_000 + 2 * rustix::thread::gettid().as_raw_nonzero().get();
    let below = ["link add below0 type veth peer name host0", "link set below0 up", "link set host0 up"];
    let make = [
        format!("link add link below0 name wire0 index {number} type macvtap mode passthru"),
        "link set wire0 up".to_owned(),
    ];
    is_taken_again_by_a_successor("macvtap", &below, &make);
}

#[test]
fn softiov_port_shows_the_uplink_of_each_port() {
    let folder = tempdir().unwrap();
    let serve = serve(&folder, "[[port]]\n");
    let file = folder.path().join("new.toml");
    let apply = |text: &str| {
        fs::write(&file, text).unwrap();
        softiov(serve.folder(), &["apply", "-f", file.to_str().unwrap()])
    };
    let said = apply("[[port]]\nuplink.wire = \"w\"\n[[port]]\nuplink.wire = \"w\"\n");
    assert!(said.out.contains("pf0: uplink none -> wire:w\n"), "{}{}", said.out, said.err);
    assert!(
        show(&serve, "pf0").contains("uplink wire:w state UP\n    wire w up for "),
        "{}",
        show(&serve, "pf0")
    );
    assert!(show(&serve, "pf0").contains("    wire drops: too long 0, no room 0, no link 0\n"));
    let said = apply("[[port]]\nuplink.wire = \"w\"\n");
    assert!(said.err.contains("has only one end; set it as the uplink of a second port"), "{}", said.err);
    let said = apply("[[port]]\nuplink.stream = { connect = \"here.sock\" }\n");
    assert!(said.err.contains("pf0.uplink") && said.err.contains("write an absolute path"), "{}", said.err);
    let said = softiov(serve.folder(), &["port", "show", "pf0", "--json"]);
    assert!(
        said.out.contains("\"uplink_status\"") && said.out.contains("\"kind\": \"wire\""),
        "{}",
        said.out
    );
}

#[test]
fn running_port_starts_impairments_recordings_and_replays() {
    let folder = tempdir().unwrap();
    let recording = folder.path().join("pf0.pcapng");
    let text = |impair: &str| {
        format!(
            "[[port]]\nvfs = 1\nuplink.wire = \"w\"\nrecord = {recording:?}\n{impair}\n\
             [[port]]\nvfs = 1\nuplink.wire = \"w\"\n"
        )
    };
    let serve = serve(&folder, &text(""));
    let file = folder.path().join("new.toml");
    let apply = |text: &str| {
        fs::write(&file, text).unwrap();
        let said = softiov(serve.folder(), &["apply", "-f", file.to_str().unwrap()]);
        assert_eq!(said.status, Some(0), "{}{}", said.out, said.err);
        said.out
    };
    let (a, b) = (attach_to(serve.folder(), 0, 0), attach_to(serve.folder(), 1, 1));
    let answered = || a.ping(b.ip(), 10).unwrap().received();
    eventually("pings are answered", || answered() == 10);

    let said = apply(&text("impair = { loss = 100 }"));
    assert!(said.contains("pf0: impair nothing -> delay 0 us, jitter 0 us, loss 100 %"), "{said}");
    assert_eq!(answered(), 0);
    assert!(show(&serve, "pf0").contains(", impaired "), "{}", show(&serve, "pf0"));

    apply(&text("impair = { delay_us = 20000, seed = 7 }"));
    let begin = Instant::now();
    eventually("pings are answered late", || answered() == 10);
    assert!(begin.elapsed() >= Duration::from_millis(40), "a ping crosses the line twice");

    let size = fs::metadata(&recording).unwrap().len();
    assert!(size > 20 * 60, "{size} bytes of the recording");
    let played = || softiov(serve.folder(), &["vf", "show", "pf0vf0", "--json"]).out;
    let packets = |shown: &str| {
        let shown: serde_json::Value = serde_json::from_str(shown).unwrap();
        shown["rx"]["packets"].as_u64().unwrap_or(0)
    };
    // The first frames come at once, the later ones at their recorded times.
    let before = packets(&played());
    apply(&format!("[[port]]\nvfs = 1\nuplink.replay = {recording:?}\n[[port]]\nvfs = 1\n"));
    eventually("frames of the recording come", || packets(&played()) > before + 5);
    assert!(show(&serve, "pf0").contains("    replay "), "{}", show(&serve, "pf0"));

    fs::write(&file, "[[port]]\nuplink.replay = \"/etc/passwd\"\n").unwrap();
    let said = softiov(serve.folder(), &["apply", "-f", file.to_str().unwrap()]);
    assert!(
        said.err.contains("cannot replay /etc/passwd: the file is neither pcap nor pcapng"),
        "{}",
        said.err
    );
}

#[test]
fn replay_file_outside_landlock_is_refused_with_a_remedy() {
    let (folder, elsewhere) = (tempdir().unwrap(), tempdir().unwrap());
    let recording = elsewhere.path().join("some.pcap");
    fs::write(
        &recording,
        [0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0].into_iter().chain([0; 16]).collect::<Vec<u8>>(),
    )
    .unwrap();
    let serve = serve(&folder, "[[port]]\n");
    let file = folder.path().join("new.toml");
    fs::write(&file, format!("[[port]]\nuplink.replay = {recording:?}\n")).unwrap();
    let said = softiov(serve.folder(), &["apply", "-f", file.to_str().unwrap()]);
    if said.status == Some(0) {
        return skipped("a recording out of reach", "this kernel has no Landlock");
    }
    assert!(
        said.err.contains(&format!("cannot replay {}: Permission denied", recording.display())),
        "{}",
        said.err
    );
    assert!(said.err.contains("Landlock") && said.err.contains("Move the recording there"), "{}", said.err);
}
