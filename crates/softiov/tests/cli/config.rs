//! Tests configuration files: an error names file, key and remedy, and a refused file creates nothing.

use crate::process::{CommandOutput, ServeProcess, files, softiov};
use rustix::process::Signal;
use tempfile::{TempDir, tempdir};

/// Starts a host with the configuration `text`, which it must refuse. Returns the host's output.
fn refused(folder: &TempDir, text: &str) -> CommandOutput {
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, text).unwrap();
    let said = softiov(&folder.path().join("sockets"), &["serve", "--config", file.to_str().unwrap()]);
    assert_eq!(said.status, Some(1), "{text}: {}", said.err);
    assert_eq!(files(folder.path()), ["softiov.toml"], "{text}: a file was created");
    said
}

#[test]
fn unknown_setting_is_refused_with_its_name_and_line() {
    let folder = tempdir().unwrap();
    let said = refused(&folder, "[[port]]\nname = \"a\"\nuplnk = \"none\"\n");
    for part in ["softiov.toml", "line 3", "uplnk", "uplink"] {
        assert!(said.err.contains(part), "{part} in {}", said.err);
    }
}

#[test]
fn invalid_configuration_value_is_refused_with_a_remedy() {
    let folder = tempdir().unwrap();
    for (text, key, remedy) in [
        ("[[port]]\nvfs = 9", "pf0.vfs: 9 is out of range (1-8 ", "family = \"avf\" has up to 64"),
        ("[[port]]\nfamily = \"avf\"\nvfs = 65", "pf0.vfs: 65 is out of range (1-64 ", "add a port"),
        ("[[port]]\n[[port.vf]]\nindex = 0\nvlan = 4096", "pf0vf0.vlan", "1 to 4095"),
        ("[[port]]\nmac = \"01:00:00:00:00:00\"", "pf0.mac", "even"),
        ("[[port]]\nuplink = { tap = \"a/b\" }", "pf0.uplink", "printable"),
        (
            "[[port]]\nuplink = { tap = \"a\" }\n[[port]]\nuplink = { tap = \"a\" }",
            "pf1.uplink",
            "choose another",
        ),
    ] {
        let said = refused(&folder, text);
        assert!(said.err.contains(key) && said.err.contains(remedy), "{text}: {}", said.err);
    }
}

#[test]
fn missing_configuration_file_is_named_in_the_error() {
    let folder = tempdir().unwrap();
    let said = softiov(folder.path(), &["serve", "--config", "/nonexistent.toml"]);
    assert_eq!(said.status, Some(1));
    assert!(
        said.err.contains("/nonexistent.toml") && said.err.matches("os error").count() == 1,
        "{}",
        said.err
    );
}

#[test]
fn socket_folder_argument_overrides_the_configuration_files() {
    let folder = tempdir().unwrap();
    let elsewhere = folder.path().join("elsewhere");
    let file = folder.path().join("softiov.toml");
    std::fs::write(&file, format!("runtime_dir = {elsewhere:?}\n[[port]]\nname = \"left\"\nvfs = 1\n"))
        .unwrap();
    let mut serve = ServeProcess::start(&folder, &["--config", file.to_str().unwrap()]);
    assert_eq!(serve.files(), ["control/control.sock", "leftvf0/vf.sock"]);
    assert!(!elsewhere.exists());
    assert_eq!(serve.end(Signal::TERM).code(), Some(0));
}
