//! Generates files of the Debian package: by the program itself, or from the facts that git and cargo know.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

use super::run_tool;
use super::tree::{PackageTree, read};
use crate::metadata::{self, CargoPackage};

const MANUAL: &str = "usr/share/man/man1";
const COMPLETIONS: [(&str, &str); 3] = [
    ("bash", "usr/share/bash-completion/completions/softiov"),
    ("zsh", "usr/share/zsh/vendor-completions/_softiov"),
    ("fish", "usr/share/fish/vendor_completions.d/softiov.fish"),
];
/// First letters of the names of files that hold a crate's licence or notice.
const NOTICES: [&str; 5] = ["LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE"];
/// Notices of Rust's standard library and of the crates in it, in the folder of the toolchain.
const RUST_LIBRARY: &str = "share/doc/rust/COPYRIGHT-library.html";
/// Folder with the notices that the toolchain lacks: those of compiler-builtins, and those of musl libc, which Rust's target
/// for static programs contains.
const KEPT: &str = "packaging/licences";
/// Folder with the licences of crates whose packages have none, from their repositories.
const KEPT_OF_CRATES: &str = "packaging/licences/crates";

/// Adds the manual pages of all commands to the package.
pub(super) fn manual(tree: &PackageTree, program: &Path) -> Result<()> {
    let folder = tempfile::tempdir()?;
    run_tool(Command::new(program).args(["man", "--dir"]).arg(folder.path()))?;
    for page in fs::read_dir(folder.path())? {
        let page = page?;
        tree.write_packed(&format!("{MANUAL}/{}", page.file_name().display()), &read(&page.path())?)?;
    }
    Ok(())
}

pub(super) fn completions(tree: &PackageTree, program: &Path) -> Result<()> {
    COMPLETIONS.iter().try_for_each(|(shell, place)| {
        tree.write(place, &run_tool(Command::new(program).args(["completions", shell]))?)
    })
}

/// Returns Debian's changelog with one entry, which refers to the project's own changelog.
pub(super) fn changelog(root: &Path, version: &str) -> Result<String> {
    let control = String::from_utf8(read(&root.join("packaging/debian/control"))?)?;
    let maintainer = control.lines().find_map(|line| line.strip_prefix("Maintainer: "));
    let maintainer = maintainer.context("the package's Cargo metadata name no maintainer")?;
    let git = run_tool(Command::new("git").args(["log", "-1", "--format=%cD"]).current_dir(root));
    // Not a checkout: now.
    let date = git.or_else(|_| run_tool(Command::new("date").arg("-R")))?;
    let date = String::from_utf8(date)?;
    Ok(format!(
        "softiov ({version}) unstable; urgency=medium\n\n  * See changelog.gz.\n\n -- {maintainer}  {}\n",
        date.trim()
    ))
}

/// Returns the packages of the libraries that a dynamic program needs, for the package's `Depends` field;
/// empty for a static program.
pub(super) fn libraries(program: &[u8]) -> String {
    let marks = program.windows(8).enumerate().filter(|(_, window)| *window == b"GLIBC_2.");
    let minor = |at: usize| {
        let digits = program[at + 8..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |number: u32, digit| number.saturating_mul(10).saturating_add(u32::from(digit - b'0')))
    };
    match marks.map(|(at, _)| minor(at)).max() {
        Some(minor) => format!("libc6 (>= 2.{minor}), libgcc-s1, "),
        None => String::new(),
    }
}

/// Returns the names and contents of files with the licences and notices of everything that the program contains.
pub(crate) fn licences(root: &Path, program: &Path) -> Result<Vec<(&'static str, Vec<u8>)>> {
    let mut files = vec![("crates.txt", crates(root)?), ("rust-library.html", rust_library()?)];
    let mut kept = vec!["compiler-builtins.txt"];
    if libraries(&read(program)?).is_empty() {
        kept.push("musl.txt");
    }
    for name in kept {
        files.push((name, read(&root.join(KEPT).join(name))?));
    }
    Ok(files)
}

/// Returns the notices of Rust's standard library, as the toolchain has them.
fn rust_library() -> Result<Vec<u8>> {
    let folder = String::from_utf8(run_tool(Command::new("rustc").args(["--print", "sysroot"]))?)?;
    let file = Path::new(folder.trim()).join(RUST_LIBRARY);
    read(&file).context("the notices of Rust's standard library; install Rust by rustup")
}

/// Returns the text of the licences and notices of all crates that the program contains.
fn crates(root: &Path) -> Result<Vec<u8>> {
    let mut tree = metadata::cargo();
    tree.args(["tree", "--package", "softiov", "--edges", "normal", "--prefix", "none", "--format", "{p}"]);
    let names = String::from_utf8(run_tool(tree.current_dir(root))?)?;
    let names: BTreeSet<(&str, &str)> = names.lines().filter_map(name_and_version).collect();
    let ours = |package: &CargoPackage| package.manifest.starts_with(root);
    let mut packages = metadata::closure(&root.join("Cargo.toml"))?;
    packages.retain(|package| !ours(package) && names.contains(&(&package.name, &package.version)));
    let mut text = Vec::new();
    for package in &packages {
        let licence = package.licence.as_deref().unwrap_or("no stated licence");
        text.extend(format!("===== {} {}: {licence}\n\n", package.name, package.version).into_bytes());
        let folder =
            package.manifest.parent().context("the manifest of a dependency does not lie in a folder")?;
        let mut files: Vec<_> = fs::read_dir(folder)?.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| is_notice(path));
        files.sort();
        if files.is_empty() {
            files.push(kept_notice(root, &package.name)?);
        }
        for file in files {
            text.extend(read(&file)?);
            text.push(b'\n');
        }
    }
    Ok(text)
}

/// Returns the file with the licence of a crate whose package has none.
fn kept_notice(root: &Path, name: &str) -> Result<PathBuf> {
    let file = root.join(KEPT_OF_CRATES).join(format!("{name}.txt"));
    let what = "the package of the crate has no licence; copy that of its repository to";
    ensure!(file.is_file(), "{name}: {what} {KEPT_OF_CRATES}/{name}.txt");
    Ok(file)
}

/// Returns name and version in a line of `cargo tree`: `name v1.2.3 (remarks)`.
fn name_and_version(line: &str) -> Option<(&str, &str)> {
    let mut words = line.split(' ');
    Some((words.next()?, words.next()?.strip_prefix('v')?))
}

fn is_notice(path: &Path) -> bool {
    let name = path.file_name().map(|name| name.to_string_lossy().to_uppercase()).unwrap_or_default();
    path.is_file() && NOTICES.iter().any(|start| name.starts_with(start))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn package_depends_on_libc_only_if_its_program_is_dynamic() {
        assert_eq!(libraries(b"..GLIBC_2.17\0GLIBC_2.34\0GLIBC_2.4\0"), "libc6 (>= 2.34), libgcc-s1, ");
        assert_eq!(libraries(b"musl"), "");
    }

    #[test]
    fn static_program_has_the_notices_of_its_libraries() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("softiov");
        let root = metadata::workspace_root().unwrap();
        let always = ["crates.txt", "rust-library.html", "compiler-builtins.txt"];
        for (content, names) in
            [(&b"GLIBC_2.34"[..], always.to_vec()), (b"static", [&always[..], &["musl.txt"]].concat())]
        {
            fs::write(&program, content).unwrap();
            let files = licences(&root, &program).unwrap();
            assert!(files.iter().map(|(name, _)| *name).eq(names), "{}", files.len());
            for (name, text) in files {
                let part = match name {
                    "crates.txt" => "===== serde ",
                    "rust-library.html" => "hashbrown",
                    "musl.txt" => "Rich Felker",
                    _ => "derived from LLVM's compiler-rt",
                };
                assert!(String::from_utf8_lossy(&text).contains(part), "{name} lacks {part}");
            }
        }
    }

    #[test]
    fn each_crate_of_the_program_has_a_notice() {
        let text = crates(&metadata::workspace_root().unwrap()).unwrap();
        let text = String::from_utf8_lossy(&text);
        let sections: Vec<_> = text.split("===== ").skip(1).collect();
        assert!(sections.len() > 100, "{}", sections.len());
        for section in sections {
            assert!(section.len() > 300, "{section}");
        }
    }

    #[test]
    fn cargo_tree_line_gives_the_crates_name_and_version() {
        assert_eq!(name_and_version("serde v1.0.200 (proc-macro)"), Some(("serde", "1.0.200")));
        assert_eq!(name_and_version(""), None);
    }
}
