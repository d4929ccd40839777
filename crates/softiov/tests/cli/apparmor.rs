//! Tests the AppArmor rule that lets libvirt's machines connect, by AppArmor's own parser. The rule is not enforced
//! here, which needs a kernel with AppArmor.

use crate::process::finish;
use host::test_support::skipped;
use std::fs;
use std::path::Path;
use tempfile::tempdir;

const RULE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../packaging/apparmor/libvirt-qemu.d-softiov");

/// Parses the rule in a profile that includes it, as libvirt's profile of a machine does.
#[test]
fn apparmor_parses_the_documented_rule_for_libvirt_guests() {
    let folder = tempdir().unwrap();
    let rule = Path::new(RULE).canonicalize().unwrap();
    let wrong = folder.path().join("wrong");
    fs::write(&wrong, fs::read_to_string(&rule).unwrap().replace(" rw,", " rwq,")).unwrap();
    let read = |rule: &Path| {
        let profile = folder.path().join("profile");
        let text = "#include <tunables/global>\nprofile machine {\n  #include <abstractions/base>\n";
        fs::write(&profile, format!("{text}  #include \"{}\"\n}}\n", rule.display())).unwrap();
        let mut parser = linux_guest::apparmor_parser()?;
        let words = ["--skip-kernel-load", "--skip-cache", "--skip-read-cache", "--debug"];
        Ok::<_, linux_guest::AssetError>(finish(parser.args(words).arg(profile)))
    };
    let said = match read(&rule) {
        Ok(said) => said,
        Err(error) => return skipped("the rule for AppArmor", &error.to_string()),
    };
    assert_eq!(said.status, Some(0), "{}", said.err);
    for socket in ["vf.sock", "pf.sock"] {
        let allowed = said.out.lines().find(|line| line.contains(&format!("/softiov/*/{socket}")));
        assert!(allowed.is_some_and(|line| line.contains("rw")), "{socket}: {}", said.out);
    }
    assert_ne!(read(&wrong).unwrap().status, Some(0), "the parser reads the included rule");
}
