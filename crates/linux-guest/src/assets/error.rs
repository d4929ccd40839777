//! Reasons why the guests' files could not be prepared, with remedies.

use std::io;
use std::path::Path;
use std::process::{Command, Output};

/// Reason why [`BootFiles::prepare`](super::BootFiles::prepare) failed.
#[derive(Debug, thiserror::Error)]
pub enum AssetError {
    /// The host has no apt, which fetches the packages.
    #[error(
        "this system has no `{0}`, so the Linux guest cannot be prepared from Debian packages. Either run this on \
         Debian 12 or later (or install apt, dpkg and debian-archive-keyring), or install QEMU 10.1 or later and \
         set SOFTIOV_QEMU, and set SOFTIOV_GUEST_KERNEL and SOFTIOV_GUEST_INITRAMFS to files that a Debian machine \
         prepared in its ~/.cache/softiov"
    )]
    MissingTool(&'static str),
    /// The host is not x86-64.
    #[error("Linux guests need an x86-64 host, but this host is {0}")]
    Architecture(&'static str),
    /// Environment variables contradict each other, or name no cache folder.
    #[error("cannot choose the files of the Linux guest: {0}")]
    Environment(&'static str),
    /// The QEMU that the environment names cannot be used.
    #[error("{program} is not QEMU 10.1 or later with vfio-user-pci; it reports {found}")]
    Qemu {
        /// Path of the QEMU that the environment names.
        program: String,
        /// Output of the QEMU that the environment names, when run with `--version`.
        found: String,
    },
    /// No archive key on this host verifies the packages.
    #[error(
        "the Debian archive cannot be verified: {0}. Install or update the package debian-archive-keyring"
    )]
    Keyring(String),
    /// A program that prepares the guest's files failed.
    #[error("cannot prepare the files of the Linux guest: {program} failed: {detail}")]
    Program {
        /// Name of the failed program and the first of its arguments.
        program: String,
        /// End of the failed program's standard error.
        detail: String,
    },
    /// A file of the guest could not be read or written.
    #[error("cannot read or write {path}: {source}")]
    File {
        /// Path of the file or folder that could not be read or written.
        path: String,
        /// Error that the system returned for the file.
        source: io::Error,
    },
    /// A Debian package lacks an expected file or part.
    #[error("unexpected contents of a Debian package: {0}")]
    Contents(String),
}

pub(super) type Result<T> = std::result::Result<T, AssetError>;

/// Extension of I/O results that converts an error into an [`AssetError`] with the path of its file.
pub(super) trait AssetIoResultExt<T> {
    fn at(self, path: &Path) -> Result<T>;
}

impl<T> AssetIoResultExt<T> for io::Result<T> {
    fn at(self, path: &Path) -> Result<T> {
        self.map_err(|source| AssetError::File { path: path.display().to_string(), source })
    }
}

/// Runs a program to its end and returns its output. A failure becomes an error with the last lines of standard error.
pub(super) fn run(command: &mut Command) -> Result<Output> {
    let program = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|source| AssetError::File { path: program, source })?;
    if output.status.success() { Ok(output) } else { Err(failure(command, &output)) }
}

/// Creates the error of a program that ended with a failure.
pub(super) fn failure(command: &Command, output: &Output) -> AssetError {
    let arguments = command.get_args().filter(|argument| !argument.as_encoded_bytes().starts_with(b"-"));
    let shown: Vec<_> = std::iter::once(command.get_program()).chain(arguments.take(4)).collect();
    let shown: Vec<_> = shown.iter().map(|word| word.to_string_lossy()).collect();
    AssetError::Program { program: shown.join(" "), detail: error_tail(&output.stderr, &output.stdout) }
}

fn error_tail(stderr: &[u8], stdout: &[u8]) -> String {
    let text = if stderr.is_empty() { stdout } else { stderr };
    let text = String::from_utf8_lossy(text);
    let lines: Vec<_> = text.lines().rev().take(6).collect();
    lines.into_iter().rev().collect::<Vec<_>>().join("; ")
}
