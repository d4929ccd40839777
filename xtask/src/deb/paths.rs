//! Keeps paths of the building machine out of programs, so that equal sources and tools give equal programs everywhere.

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result, ensure};

/// Variable with the compiler's flags, separated by `SEPARATOR`. Cargo prefers it to `RUSTFLAGS`.
const FLAGS: &str = "CARGO_ENCODED_RUSTFLAGS";
const SEPARATOR: &str = "\x1f";

/// Folders of this machine, each with the name that programs have instead.
#[derive(Debug)]
pub(crate) struct MachineFolders(Vec<(PathBuf, &'static str)>);

impl MachineFolders {
    /// Returns the folders from which programs of the workspace in `root` are built.
    ///
    /// # Errors
    /// Cargo's own folder is unknown.
    pub(crate) fn of(root: &Path, target: &Path) -> Result<Self> {
        let home = env::var_os("CARGO_HOME").map(PathBuf::from);
        let home = home.or_else(|| env::home_dir().map(|home| home.join(".cargo")));
        let home = home.context("cannot find cargo's folder: set HOME or CARGO_HOME")?;
        // The last prefix that fits is replaced, so folders follow those around them.
        let mut folders =
            vec![(root.to_owned(), "softiov"), (target.to_owned(), "target"), (home.clone(), "cargo")];
        // The name of a registry's folder depends on its address.
        let registries = fs::read_dir(home.join("registry/src")).into_iter().flatten().flatten();
        folders.extend(registries.map(|registry| (registry.path(), "crates")));
        Ok(Self(folders))
    }

    /// Lets a cargo command replace the folders in what it builds. The flags of the environment stay.
    pub(crate) fn replace(&self, command: &mut Command) {
        let given = |name| env::var(name).ok().filter(|flags: &String| !flags.is_empty());
        let plain = || Some(given("RUSTFLAGS")?.split_whitespace().collect::<Vec<_>>().join(SEPARATOR));
        command.env(FLAGS, self.flags(given(FLAGS).or_else(plain)));
    }

    /// Returns the value of `FLAGS` with other flags in the same form.
    fn flags(&self, others: Option<String>) -> String {
        let name =
            |(folder, name): &(PathBuf, &str)| format!("--remap-path-prefix={}={name}", folder.display());
        others.into_iter().chain(self.0.iter().map(name)).collect::<Vec<_>>().join(SEPARATOR)
    }

    /// Checks that a program has none of the folders.
    ///
    /// # Errors
    /// The program cannot be read, or has one.
    pub(crate) fn check(&self, program: &Path) -> Result<()> {
        let content = fs::read(program).with_context(|| format!("cannot read {}", program.display()))?;
        // A folder such as /src has the name of a part of other paths.
        let long = self.0.iter().map(|(folder, _)| folder).filter(|folder| folder.components().count() > 2);
        for folder in long {
            let text = format!("{}/", folder.display());
            let found = content.windows(text.len()).any(|part| part == text.as_bytes());
            ensure!(!found, "{} has paths of this machine, in {text}; build it again", program.display());
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_of_the_machine_are_replaced_and_found() {
        let folders = MachineFolders(vec![("/home/one".into(), "softiov"), ("/src".into(), "target")]);
        let flags = "--remap-path-prefix=/home/one=softiov\x1f--remap-path-prefix=/src=target";
        assert_eq!(folders.flags(None), flags);
        assert_eq!(folders.flags(Some("-g".to_owned())), format!("-g\x1f{flags}"));
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("softiov");
        for (content, fault) in
            [("softiov/crates/a/src/lib.rs", None), ("at /home/one/crates/a.rs", Some("in /home/one/"))]
        {
            fs::write(&program, content).unwrap();
            let found = folders.check(&program).err().map(|error| error.to_string());
            assert_eq!(found.is_some(), fault.is_some(), "{content}: {found:?}");
            assert!(fault.is_none_or(|fault| found.unwrap().contains(fault)));
        }
    }

    #[test]
    fn folders_of_the_machine_are_those_of_workspace_and_cargo() {
        let MachineFolders(folders) =
            MachineFolders::of(Path::new("/src/a"), Path::new("/src/a/target")).unwrap();
        let names: Vec<_> = folders.iter().map(|(_, name)| *name).collect();
        assert_eq!(names[..3], ["softiov", "target", "cargo"]);
        assert!(folders[3..].iter().all(|(folder, _)| folder.starts_with(&folders[2].0)), "{folders:?}");
    }
}
