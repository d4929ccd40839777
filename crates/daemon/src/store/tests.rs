//! Tests of the state file, also on a disk that fails.

use super::faulty_disk::{self, DiskFault};
use super::{SettingsStoreError, StateFile};
use crate::config::HostConfig;
use crate::settings::{SettingsGroup, VfSettings};
use std::path::{Path, PathBuf};

fn state_file(runtime_dir: &str) -> PathBuf {
    let file = HostConfig::parse("state_dir = \"/var/lib/softiov\"").unwrap();
    HostConfig::check(file, Path::new(runtime_dir)).unwrap().state_file().unwrap()
}

#[test]
fn hosts_with_different_socket_folders_have_own_state_files() {
    assert_eq!(state_file("/run/softiov"), Path::new("/var/lib/softiov/run-softiov.json"));
    assert_ne!(state_file("/run/a-b"), state_file("/run/a/b"));
}

/// Returns a configuration with its state file in `folder`, and one with a change by command.
fn configs(folder: &Path) -> [HostConfig; 2] {
    let mut file = HostConfig::parse("[[port]]\nvfs = 1\n").unwrap();
    file.state_dir = Some(folder.to_owned());
    let config = HostConfig::check(file, folder).unwrap();
    let mut next = config.clone();
    let change = VfSettings { vlan: Some(7), ..VfSettings::default() };
    next.ports[0].vfs[0].layers.change(change.leaves(), false);
    next.resolve().unwrap();
    [config, next]
}

#[test]
fn failed_change_leaves_the_old_settings_in_the_state_file() {
    for fault in (0..8).flat_map(|step| [DiskFault::Full(step), DiskFault::Broken(step)]) {
        let folder = tempfile::tempdir().unwrap();
        let [config, next] = configs(folder.path());
        faulty_disk::set(Some(fault));
        let kept = StateFile::default().keep(&next, &config);
        faulty_disk::set(None);
        let expected = if kept.is_ok() { &next } else { &config };
        assert_eq!(config.clone().restore().unwrap().state(), expected.state(), "{fault:?}: {kept:?}");
    }
}
#[test]
fn read_only_disk_may_keep_a_refused_change_until_the_next() {
    let mut uncertain = 0;
    for step in 0..10 {
        let folder = tempfile::tempdir().unwrap();
        let [config, next] = configs(folder.path());
        let mut file = StateFile::default();
        faulty_disk::set(Some(DiskFault::ReadOnly(step)));
        let kept = file.keep(&next, &config);
        // A change of no saved setting may pass.
        file.keep(&config, &config).unwrap();
        faulty_disk::set(None);
        let found = config.clone().restore().unwrap().state();
        match kept {
            Ok(()) => assert_eq!(found, next.state(), "step {step}"),
            Err(error @ SettingsStoreError::Uncertain { .. }) => {
                uncertain += 1;
                assert_eq!(found, next.state(), "step {step}");
                assert!(error.to_string().contains("the file may hold a refused change"), "{error}");
                file.keep(&config, &config).unwrap();
                assert_eq!(config.clone().restore().unwrap().state(), config.state(), "step {step}");
            }
            Err(error) => assert_eq!(found, config.state(), "step {step}: {error}"),
        }
    }
    assert_eq!(uncertain, 1, "the disk fails after the new file has its name");
}

/// Tests `softiov serve --landlock false`, which the file that was applied last does not have.
#[test]
fn applied_file_keeps_the_confinement_of_the_hosts_start() {
    let folder = tempfile::tempdir().unwrap();
    let [config, mut next] = configs(folder.path());
    next.applied = Some("[[port]]\nvfs = 1\n".into());
    StateFile::default().keep(&next, &config).unwrap();
    let mut started = config;
    started.confine.landlock = false;
    let restored = started.restore().unwrap();
    assert!(restored.applied.is_some() && !restored.confine.landlock);
}

#[test]
fn refused_change_keeps_saved_changes_of_unknown_ports() {
    let folder = tempfile::tempdir().unwrap();
    let [config, next] = configs(folder.path());
    let path = config.state_file().unwrap();
    let text = r#"{"version": 1, "vfs": {"lanvf0": {"vlan": 9}}}"#;
    std::fs::write(&path, text).unwrap();
    // The sync of the folder fails after the new file has its name.
    faulty_disk::set(Some(DiskFault::Broken(7)));
    assert!(StateFile::default().keep(&next, &config).is_err());
    faulty_disk::set(None);
    assert_eq!(std::fs::read_to_string(path).unwrap(), text);
}

#[test]
fn state_file_of_a_later_version_is_refused_by_its_version() {
    let folder = tempfile::tempdir().unwrap();
    let [config, _] = configs(folder.path());
    std::fs::write(config.state_file().unwrap(), r#"{"version": 2, "later": {}}"#).unwrap();
    let error = config.restore().unwrap_err().to_string();
    assert!(error.contains("has version 2, and this program reads version 1"), "{error}");
}
