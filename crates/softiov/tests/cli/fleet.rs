//! Tests a port with all 64 VFs of its card. Every tool shows and changes the last VF, and the process is replaced
//! under a guest on each VF.

use crate::process::{CommandOutput, ServeProcess, softiov};
use crate::survival::attach;
use embedded_guest::EmbeddedGuest;
use rustix::process::Pid;
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use tempfile::{TempDir, tempdir};

/// Number of VFs of the tested card.
const ALL_VFS: u8 = 64;
/// Time over which the CPU time of a process with idle guests is measured.
const WATCHED: Duration = Duration::from_secs(1);

/// Starts a host with one port that has all VFs of its card, with the default setting for waiting for doorbells.
fn start(folder: &TempDir) -> ServeProcess {
    start_waiting(folder, "sleep")
}

/// Starts a host with one port that has all VFs of its card. `wait` is the port's setting for waiting for doorbells.
fn start_waiting(folder: &TempDir, wait: &str) -> ServeProcess {
    let file = folder.path().join("softiov.toml");
    fs::write(&file, format!("[[port]]\nfamily = \"avf\"\nvfs = {ALL_VFS}\nwait = \"{wait}\"\n")).unwrap();
    ServeProcess::start(folder, &["--config", file.to_str().unwrap()])
}

fn run(folder: &Path, words: &str) -> CommandOutput {
    softiov(folder, &words.split(' ').collect::<Vec<_>>())
}

/// Runs a command of `softiov` that must succeed, and returns its output.
#[track_caller]
fn output_of(folder: &Path, words: &str) -> String {
    let said = run(folder, words);
    assert_eq!((said.status, said.err.as_str()), (Some(0), ""), "{words}");
    said.out
}

#[track_caller]
fn json(folder: &Path, words: &str) -> Value {
    serde_json::from_str(&output_of(folder, words)).unwrap()
}

#[test]
fn last_of_64_vfs_is_set_and_shown_by_the_ip_command() {
    let folder = tempdir().unwrap();
    let serve = start(&folder);
    let place = serve.folder();
    assert_eq!(output_of(place, "ip link set pf0 vf 63 mac 02:00:00:00:00:63 vlan 7 trust on"), "");
    let links = json(place, "ip -s -j link show pf0");
    let vfs = links[0]["vfinfo_list"].as_array().unwrap();
    let last = &vfs[63];
    assert_eq!((vfs.len(), &last["vf"], &last["trust"]), (64, &63.into(), &true.into()));
    assert_eq!((&last["address"], &last["vlan_list"][0]["vlan"]), (&"02:00:00:00:00:63".into(), &7.into()));
    let text = output_of(place, "ip link show pf0");
    assert!(
        text.lines().any(|line| line.trim().starts_with("vf 63     link/ether 02:00:00:00:00:63")),
        "{text}"
    );
    let refused = run(place, "ip link set pf0 vf 64 trust on");
    assert_eq!(
        (refused.status, refused.err.lines().next()),
        (Some(2), Some("RTNETLINK answers: Invalid argument"))
    );
}

#[test]
fn last_of_64_vfs_is_shown_by_devlink_ethtool_and_lspci() {
    let folder = tempdir().unwrap();
    let serve = start(&folder);
    let place = serve.folder();
    let ports = json(place, "devlink -j port show");
    let ports = ports["port"].as_object().unwrap();
    let last = &ports["pci/0000:00:01.0/64"];
    assert_eq!((ports.len(), &last["vfnum"], &last["netdev"]), (65, &63.into(), &"pf0vf63".into()));
    let alone = output_of(place, "devlink port show pf0vf63");
    assert!(alone.starts_with("pci/0000:00:01.0/64: "), "{alone}");
    let driver = output_of(place, "ethtool -i pf0vf63");
    assert!(driver.contains("\nbus-info: 0000:00:0a.7\n"), "{driver}");
    if std::process::Command::new("lspci").arg("--version").output().is_err() {
        println!("SKIPPED: lspci is not installed");
        return;
    }
    let list = output_of(place, "lspci -n -D");
    let lines: Vec<_> = list.lines().collect();
    assert_eq!((lines.len(), lines[0]), (64, "0000:00:03.0 0200: 8086:1889 (rev 02)"));
    assert_eq!(lines[63], "0000:00:0a.7 0200: 8086:1889 (rev 02)");
    // lspci reports files that a container does not have on standard error.
    let shown = run(place, "lspci -vv -s 00:0a.7").out;
    assert!(shown.contains("MSI-X: Enable- Count=17"), "{shown}");
}

#[test]
fn last_of_64_vfs_is_in_lists_metrics_and_commands() {
    let folder = tempdir().unwrap();
    let serve = start(&folder);
    let place = serve.folder();
    let metrics = output_of(place, "metrics");
    for metric in [
        "sriov_vf_rx_packets{numa_node=\"\",pciAddr=\"0000:00:0a.7\",pf=\"pf0\",vf=\"63\"}",
        "softiov_vf_link_up{pf=\"pf0\",vf=\"63\"}",
    ] {
        assert!(metrics.contains(metric), "{metric} in {metrics}");
    }
    assert_eq!(
        output_of(place, "vf list").lines().filter(|line| line.trim().starts_with("pf0vf")).count(),
        64
    );
    let args = output_of(place, "qemu-args pf0vf63");
    assert!(args.contains("pf0vf63/vf.sock"), "{args}");
    output_of(place, "vf set pf0vf63 --vlan 9 --quarantine on");
    let shown = output_of(place, "vf show pf0vf63");
    assert!(shown.contains("vlan 9") && shown.contains("quarantined: administrator"), "{shown}");
    output_of(place, "port set pf0 --vfs 63");
    let gone = run(place, "vf show pf0vf63");
    assert_eq!(gone.status, Some(1), "{}", gone.out);
    let refused = run(place, "port set pf0 --vfs 65");
    let parts = ["pf0.vfs: 65 is out of range (1-64 ", "add a port"];
    assert!(parts.iter().all(|part| refused.err.contains(part)), "{}", refused.err);
}

/// Sends a TCP flow from each guest to the next, and from the last to the first, all at once. Every byte must arrive.
fn send_round(guests: &[EmbeddedGuest]) {
    let nexts = guests.iter().cycle().skip(1);
    std::thread::scope(|scope| {
        for (guest, next) in guests.iter().zip(nexts) {
            scope.spawn(move || {
                let flow = guest.send_tcp(next.ip(), 64 << 10).unwrap();
                assert!(flow.is_intact(), "{} {flow:?}", guest.name());
            });
        }
    });
}

fn resets(serve: &ServeProcess) -> Vec<u64> {
    let ports = json(serve.folder(), "vf list --json");
    ports[0]["vfs"].as_array().unwrap().iter().map(|vf| vf["mailbox"]["resets"].as_u64().unwrap()).collect()
}

/// Prints memory, threads, file descriptors and CPU share of a host whose guests are idle, for `docs/performance.md`.
fn print_cost(wait: &str, when: &str, serve: &ServeProcess) {
    let process = PathBuf::from(format!("/proc/{}", host(serve).as_raw_nonzero()));
    let keeper = PathBuf::from(format!("/proc/{}", serve.keeper()));
    let status = fs::read_to_string(process.join("status")).unwrap();
    let line = |key: &str| status.lines().find_map(|line| line.strip_prefix(key)).unwrap().trim().to_owned();
    let [own, threads] = ["RssAnon:", "Threads:"].map(line);
    let [descriptors, kept] = [&process, &keeper].map(|of| fs::read_dir(of.join("fd")).unwrap().count());
    let (start, before) = (Instant::now(), processor_time(&process));
    std::thread::sleep(WATCHED);
    let ran = processor_time(&process) - before;
    let share = ran.as_secs_f64() / start.elapsed().as_secs_f64() * 100.0;
    println!(
        "{wait}, {when}: {own}, {threads} threads, {descriptors} descriptors ({kept} in the keeper), {share:.1} % of a processor"
    );
}

/// Returns the CPU time of all threads of a process.
fn processor_time(process: &Path) -> Duration {
    let threads = fs::read_dir(process.join("task")).unwrap();
    let ran = |thread: fs::DirEntry| {
        let schedule = fs::read_to_string(thread.path().join("schedstat")).unwrap_or_default();
        schedule
            .split(' ')
            .next()
            .and_then(|nanos| nanos.parse().ok())
            .map_or(Duration::ZERO, Duration::from_nanos)
    };
    threads.map(|thread| ran(thread.unwrap())).sum()
}

/// Waits until exactly one host process runs, and returns its pid.
fn host(serve: &ServeProcess) -> Pid {
    serve.wait_until("one host", || serve.hosts().len() == 1);
    serve.hosts()[0]
}

#[test]
fn upgrade_under_64_guests_resets_no_vf() {
    for wait in ["sleep", "mapped"] {
        let folder = tempdir().unwrap();
        let serve = start_waiting(&folder, wait);
        print_cost(wait, "no guest", &serve);
        let guests: Vec<_> = (0..ALL_VFS).map(|vf| attach(serve.folder(), vf)).collect();
        send_round(&guests);
        print_cost(wait, "64 guests", &serve);
        let before = resets(&serve);
        for _ in 0..2 {
            let old = host(&serve);
            let said = output_of(serve.folder(), "upgrade");
            assert!(said.contains("has taken over"), "{said}\n{}", serve.log());
            assert_ne!(host(&serve), old);
            send_round(&guests);
            assert_eq!(resets(&serve), before, "a driver was reset: {}", serve.log());
        }
        print_cost(wait, "64 guests, after two upgrades", &serve);
    }
}
