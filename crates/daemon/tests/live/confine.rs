//! Tests of confined hosts: they serve guests as before, and cannot open files beside their own.

use crate::support::bar_mapping::BarMappingGuest;
use crate::support::eventually;
use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use crate::support::numbers::exchange_numbers;
use crate::support::qemu;
use crate::vhost::guest::{VirtioGuest, exchange as exchange_virtio};
use daemon::confine;
use host::confine::LandlockEnforcement;
use host::cpus::CpuList;
use host::test_support::skipped;
use std::io::ErrorKind;
use std::thread;

/// Starts a host with the configuration `text` and all restrictions, and has `serve` use it. Checks that the host opens no file
/// beside its own, and that each thread of the host runs until its end.
fn confined(test: &'static str, text: &str, serve: impl FnOnce(&LiveHost) + Send) {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (readable, secret) = (other.path().join("readable"), other.path().join("secret"));
    for path in [&readable, &secret] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("file"), "text").unwrap();
    }
    // A new thread takes the place of the process's first thread, because its confinement ends with the thread.
    let first_thread = || {
        let live = LiveHost::begin(text, folder, |config| {
            let enforced = confine::begin(config, std::slice::from_ref(&readable)).unwrap();
            if enforced == Some(LandlockEnforcement::Not) {
                skipped(test, "no Landlock here");
            } else {
                let denied = std::fs::read(secret.join("file")).unwrap_err();
                assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
            }
            assert_eq!(std::fs::read(readable.join("file")).unwrap(), b"text");
        });
        serve(&live);
        assert!(live.is_whole());
        assert!(live.stop().is_empty(), "a socket could not be removed");
    };
    thread::scope(|scope| scope.spawn(first_thread).join().unwrap());
}

#[test]
fn confined_host_serves_guests_and_opens_no_other_file() {
    confined("confined_host_serves_guests_and_opens_no_other_file", "", |live| {
        let (mut a, mut b) = (VfGuest::under_qemu(live, 0), VfGuest::under_qemu(live, 1));
        exchange(&mut a, &mut b, 100);
    });
}

#[test]
fn confined_host_serves_guests_by_several_workers() {
    // A worker's thread pins itself.
    let cpu = CpuList::allowed().unwrap().iter().next().unwrap();
    let text = format!(
        "[[port]]\nfamily = \"virtio\"\nvfs = 2\nworkers = 2\ndispatcher = \"spread\"\ncpus = [{cpu}]\n"
    );
    confined("confined_host_serves_guests_by_several_workers", &text, |live| {
        let (mut a, mut b) = (VirtioGuest::boot(live, 0), VirtioGuest::boot(live, 1));
        exchange_virtio(&mut a, &mut b);
        eventually("a VF moves to the second worker", || live.show_port("pf0").workers[1].vfs == [1]);
        exchange_virtio(&mut a, &mut b);
        drop(b);
        eventually("the VF returns", || live.show_port("pf0").workers[1].vfs.is_empty());
        let mut b = VirtioGuest::boot(live, 1);
        exchange_virtio(&mut a, &mut b);
    });
}

#[test]
fn confined_workers_serve_guests_that_ring_by_memory() {
    let text =
        "[[port]]\nfamily = \"avf\"\nvfs = 2\nwait = \"mapped\"\nworkers = 2\ndispatcher = \"spread\"\n";
    confined("confined_workers_serve_guests_that_ring_by_memory", text, |live| {
        let boot = |vf| BarMappingGuest::boot(live, vf, qemu::MAPPABLE_AVF);
        let mut guests = [boot(0), boot(1)];
        eventually("a VF moves to the second worker", || live.show_port("pf0").workers[1].vfs == [1]);
        exchange_numbers(&mut guests);
    });
}
