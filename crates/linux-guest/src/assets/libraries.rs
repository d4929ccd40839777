//! Finds the shared libraries of a program, of this host or from an unpacked package, and runs a package's program
//! on a host with another libc. Both use the program's own dynamic linker.

use std::path::{Path, PathBuf};
use std::process::Command;

use super::error::{AssetError, Result, run};

const FOLDERS: [&str; 2] = ["lib/x86_64-linux-gnu", "usr/lib/x86_64-linux-gnu"];
const LINKER: &str = "ld-linux-x86-64.so.2";

/// Returns the path of the dynamic linker under a root that packages were unpacked into.
pub(super) fn linker(root: &Path) -> PathBuf {
    find(root, LINKER)
}

/// Returns the path of the library `name` under a root; the library's folder depends on the Debian release.
pub(super) fn find(root: &Path, name: &str) -> PathBuf {
    let [first, second] = FOLDERS.map(|folder| root.join(folder).join(name));
    if first.exists() { first } else { second }
}

/// Returns a command that runs a program of `root` with the libraries of `root`.
pub(super) fn command(root: &Path, program: &str) -> Command {
    let mut command = linked(root);
    command.arg(root.join(program));
    command
}

/// Returns the libraries that a program of `root` loads: their names and their paths under `root`.
pub(super) fn needed(root: &Path, program: &str) -> Result<Vec<(String, PathBuf)>> {
    listed(linked(root).arg("--list").arg(root.join(program)), root)
}

/// Returns the libraries that a program of this host loads with its own dynamic linker: their names and their paths.
pub(super) fn of_host(linker: &Path, program: &Path) -> Result<Vec<(String, PathBuf)>> {
    listed(Command::new(linker).arg("--list").arg(program), Path::new("/"))
}

/// Runs a dynamic linker that lists a program's libraries, and returns their names and paths, which have to be under
/// `root`.
fn listed(command: &mut Command, root: &Path) -> Result<Vec<(String, PathBuf)>> {
    let output = run(command)?;
    let libraries = parse(&String::from_utf8_lossy(&output.stdout));
    match libraries.iter().find(|(_, path)| !path.starts_with(root)) {
        Some((name, path)) => {
            let (root, path) = (root.display(), path.display());
            Err(AssetError::Contents(format!("{path} needs the library {name}, which is not in {root}")))
        }
        None => Ok(libraries),
    }
}

fn linked(root: &Path) -> Command {
    let folders = FOLDERS.map(|folder| root.join(folder).display().to_string()).join(":");
    let mut command = Command::new(linker(root));
    command.env_remove("LD_LIBRARY_PATH").env_remove("LD_PRELOAD");
    command.args(["--inhibit-cache", "--library-path", &folders]);
    command
}

/// Parses the list that a dynamic linker prints: lines of `name => path (address)`, except that of the linker itself.
fn parse(list: &str) -> Vec<(String, PathBuf)> {
    let library = |line: &str| {
        let (name, rest) = line.trim().split_once(" => ")?;
        let path = rest.split_once(" (").map_or(rest, |(path, _)| path);
        (!name.contains("ld-linux")).then(|| (name.to_owned(), PathBuf::from(path)))
    };
    list.lines().filter_map(library).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ld_so_list_output_yields_found_and_missing_libraries() {
        let list = "\tlinux-vdso.so.1 (0x00007f392f840000)\n\
                    \tlibmnl.so.0 => /r/usr/lib/x86_64-linux-gnu/libmnl.so.0 (0x00007f392f6c6000)\n\
                    \tlibgone.so.1 => not found\n\
                    \t/lib64/ld-linux-x86-64.so.2 => /r/lib64/ld-linux-x86-64.so.2 (0x00007f392f842000)\n";
        let expected = [
            ("libmnl.so.0".to_owned(), PathBuf::from("/r/usr/lib/x86_64-linux-gnu/libmnl.so.0")),
            ("libgone.so.1".to_owned(), PathBuf::from("not found")),
        ];
        assert_eq!(parse(list), expected);
    }
}
