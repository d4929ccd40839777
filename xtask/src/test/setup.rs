//! Installs missing host programs of the tests from Debian packages, if permitted. Tests that boot guests
//! prepare QEMU and the guests' programs themselves, without privilege.

use std::env;
use std::ffi::OsStr;
use std::path::Path;
use std::process::{Command, Stdio};

use anyhow::Result;

use super::process::{self, OutputVisibility};
use super::tally::TestTally;

/// Program of the host that tests need, with its Debian package, and the tests that are skipped without it.
#[derive(Debug)]
struct RequiredProgram {
    program: &'static str,
    package: &'static str,
    what: &'static str,
}

const NEEDS: [RequiredProgram; 9] = [
    RequiredProgram {
        program: "ip",
        package: "iproute2",
        what: "tests of taps and bridges in a network namespace",
    },
    RequiredProgram {
        program: "ping",
        package: "iputils-ping",
        what: "tests of pings from a machine beyond an interface",
    },
    RequiredProgram { program: "lspci", package: "pciutils", what: "tests of a VF with lspci" },
    RequiredProgram {
        program: "chromium",
        package: "chromium",
        what: "tests of the lab's report and the dashboard in a browser",
    },
    RequiredProgram { program: "curl", package: "curl", what: "tests of the commands of docs/api.md" },
    RequiredProgram {
        program: "tcpdump",
        package: "tcpdump",
        what: "tests that compare capture filters with libpcap",
    },
    RequiredProgram {
        program: "mmdebstrap",
        package: "mmdebstrap",
        what: "tests of the Debian package on a new Debian system",
    },
    RequiredProgram {
        program: "valgrind",
        package: "valgrind",
        what: "count of the instructions that the card spends on a frame",
    },
    RequiredProgram { program: "pip3", package: "python3-pip", what: "tests of the lab's notebook" },
];

/// Environment variables that name a guest's QEMU, kernel and initramfs in place of those from Debian
/// packages.
const GUEST_VARIABLES: [&str; 3] = ["SOFTIOV_QEMU", "SOFTIOV_GUEST_KERNEL", "SOFTIOV_GUEST_INITRAMFS"];
const GUEST_TOOLS: [&str; 3] = ["apt-get", "apt-cache", "dpkg-deb"];

/// Rust target of the static program. The test of that program names the remedy if the target is not
/// available.
pub(crate) const STATIC: &str = "x86_64-unknown-linux-musl";

/// Rust target without an operating system, for which the pure crates are built.
pub(super) const BARE: &str = "x86_64-unknown-none";

/// Installs the missing programs that the tests need, if possible. A program that is still missing counts as
/// a skipped test.
pub(super) fn run() -> Result<TestTally> {
    add_targets();
    let missing: Vec<_> = NEEDS.iter().filter(|need| !is_present(need)).collect();
    if missing.is_empty() {
        return Ok(TestTally::PASSED);
    }
    let obstacle = install(&missing)?;
    let still_missing: Vec<_> = NEEDS.iter().filter(|need| !is_present(need)).collect();
    if still_missing.is_empty() {
        return Ok(TestTally::PASSED);
    }
    let obstacle = obstacle.unwrap_or("the installed packages did not put the program into PATH");
    Ok(TestTally {
        skipped: still_missing.iter().map(|need| reason(need, obstacle)).collect(),
        ..TestTally::default()
    })
}

/// Has rustup fetch the libraries of the targets of the static program and of the pure crates, if the toolchain is
/// rustup's and does not have them.
fn add_targets() {
    if in_path("rustup") {
        succeeds("rustup", &["target", "add", STATIC, BARE]);
    }
}

/// Returns the reason why nothing can be built for a target, or `None` if it can.
pub(super) fn target_obstacle(target: &str) -> Option<String> {
    let found = Command::new("rustc").args(["--print", "target-libdir", "--target", target]).output();
    let folder = found.ok().and_then(|output| String::from_utf8(output.stdout).ok());
    let is_there = folder.is_some_and(|folder| Path::new(folder.trim()).is_dir());
    (!is_there)
        .then(|| format!("the toolchain has no libraries for {target}; run `rustup target add {target}`"))
}

fn reason(RequiredProgram { program, package, what }: &RequiredProgram, obstacle: &str) -> String {
    format!("{what}: `{program}` is missing (Debian package {package}), and {obstacle}")
}

fn is_present(need: &RequiredProgram) -> bool {
    in_path(need.program)
}

pub(super) fn in_path(program: &str) -> bool {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// Returns the reason why no guest can be booted on this machine, or `None` if guests can be booted. Checks
/// the needs of `linux_guest::BootFiles` in advance, so that a system without them is no failure.
pub(super) fn guest_obstacle() -> Option<String> {
    let given = |name: &&str| env::var_os(name).is_some_and(|value| !value.is_empty());
    if GUEST_VARIABLES.iter().all(given) {
        return None;
    }
    if env::consts::ARCH != "x86_64" {
        return Some(format!("guests need an x86-64 host, but this host is {}", env::consts::ARCH));
    }
    let missing = GUEST_TOOLS.into_iter().find(|tool| !in_path(tool))?;
    let variables = GUEST_VARIABLES.join(", ");
    Some(format!(
        "guests are prepared from Debian packages, but this system has no `{missing}`, and {variables} are \
         not set"
    ))
}

/// Returns the reason why instructions cannot be counted here, or `None` if they can. The kept counts are for
/// x86-64.
pub(super) fn valgrind_obstacle() -> Option<&'static str> {
    if env::consts::ARCH != "x86_64" {
        Some("the kept instruction counts are for x86-64")
    } else if !in_path("valgrind") {
        Some("`valgrind` is missing (Debian package valgrind)")
    } else {
        None
    }
}

/// Installs the Debian packages of the missing programs. Returns the obstacle, or `None` after success.
fn install(missing: &[&RequiredProgram]) -> Result<Option<&'static str>> {
    if !in_path("apt-get") {
        return Ok(Some("this system has no apt-get to install the package"));
    }
    if !is_root() && !succeeds("sudo", &["-n", "true"]) {
        return Ok(Some("the installation of the package needs root or passwordless sudo"));
    }
    let packages: Vec<_> = missing.iter().map(|need| need.package).collect();
    println!("   installing {}", packages.join(" "));
    // A third party's source may be down; what matters is whether the packages are available.
    process::run(apt_get(["update"]).arg("-q"), OutputVisibility::Live)?;
    let mut command = apt_get(["install", "-q", "-y", "--no-install-recommends"]);
    let output = process::run(command.args(packages), OutputVisibility::Live)?;
    Ok(if output.success { None } else { Some("apt-get could not install the package") })
}

fn apt_get<const N: usize>(arguments: [&str; N]) -> Command {
    let words = ["env", "DEBIAN_FRONTEND=noninteractive", "apt-get"];
    let prefix: &[&str] = if is_root() { &[] } else { &["sudo", "-n"] };
    let mut words = prefix.iter().chain(&words).chain(&arguments).map(OsStr::new);
    let mut command = Command::new(words.next().unwrap_or_default());
    command.args(words).stdin(Stdio::null());
    command
}

fn is_root() -> bool {
    let output = Command::new("id").arg("-u").output();
    output.is_ok_and(|output| output.stdout.trim_ascii() == b"0")
}

fn succeeds(program: &str, arguments: &[&str]) -> bool {
    let mut command = Command::new(program);
    command.args(arguments).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    command.status().is_ok_and(|status| status.success())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn required_test_program_is_searched_in_path() {
        assert!(in_path("sh"));
        assert!(!in_path("no-such-program"));
    }

    #[test]
    fn missing_test_program_is_named_with_its_purpose() {
        let need =
            RequiredProgram { program: "lspci", package: "pciutils", what: "tests of a VF with lspci" };
        assert_eq!(
            reason(&need, "there is no apt"),
            "tests of a VF with lspci: `lspci` is missing (Debian package pciutils), and there is no apt"
        );
    }
}
