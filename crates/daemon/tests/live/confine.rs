//! Test of a confined host: it serves guests as before, and cannot open files beside its own.

use crate::support::guest::{VfGuest, exchange};
use crate::support::live::LiveHost;
use daemon::confine;
use host::confine::LandlockEnforcement;
use host::test_support::skipped;
use std::io::ErrorKind;
use std::thread;

#[test]
fn confined_host_serves_guests_and_opens_no_other_file() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (readable, secret) = (other.path().join("readable"), other.path().join("secret"));
    for path in [&readable, &secret] {
        std::fs::create_dir(path).unwrap();
        std::fs::write(path.join("file"), "text").unwrap();
    }
    // A new thread takes the place of the process's first thread, because its confinement ends with the thread.
    let first_thread = || {
        let live = LiveHost::begin(folder, |config| {
            let enforced = confine::begin(config, std::slice::from_ref(&readable)).unwrap();
            if enforced == Some(LandlockEnforcement::Not) {
                skipped("confined_host_serves_guests_and_opens_no_other_file", "no Landlock here");
            } else {
                let denied = std::fs::read(secret.join("file")).unwrap_err();
                assert_eq!(denied.kind(), ErrorKind::PermissionDenied);
            }
            assert_eq!(std::fs::read(readable.join("file")).unwrap(), b"text");
        });
        let (mut a, mut b) = (VfGuest::under_qemu(&live, 0), VfGuest::under_qemu(&live, 1));
        exchange(&mut a, &mut b, 100);
        drop((a, b));
        assert!(live.is_whole());
        assert!(live.stop().is_empty(), "a socket could not be removed");
    };
    thread::scope(|scope| scope.spawn(first_thread).join().unwrap());
}
