//! A private apt with its own lists and downloads and an empty list of installed packages, so that it fetches a
//! package's dependencies down to libc and neither reads nor changes the host. Apt verifies packages against the
//! Debian archive keyring. It needs no root and installs no package: see [`unpack`].

use std::env;
use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;

use super::error::{AssetError, AssetIoResultExt, Result, failure, run};
use super::output;
use super::progress::ProgressReporter;
use super::sources::{DebianMirror, DebianRelease};

const KEYRINGS: [&str; 2] =
    ["/usr/share/keyrings/debian-archive-keyring.gpg", "/usr/share/keyrings/debian-archive-keyring.pgp"];

/// Private apt for one Debian release, with its package lists fetched and verified.
#[derive(Clone, Debug)]
pub(super) struct AptRoot {
    folder: PathBuf,
    archive: DebianRelease,
}

impl AptRoot {
    /// Creates a private apt in a folder under `work`, and fetches the package lists of `archive`.
    pub(super) fn open(
        work: &Path,
        archive: DebianRelease,
        mirror: &DebianMirror,
        progress: &mut ProgressReporter,
    ) -> Result<Self> {
        check_host()?;
        let root = Self { folder: work.join(format!("apt-{}", archive.name())), archive };
        progress.step(&format!("reading the package lists of Debian {}", archive.name()));
        let Some(keyring) = KEYRINGS.iter().map(PathBuf::from).find(|keyring| keyring.exists()) else {
            let keyring = keyring_from_host_archive(work, progress)?;
            return root.update(mirror, &keyring).map(|()| root);
        };
        match root.update(mirror, &keyring) {
            Err(AssetError::Program { detail, .. }) if output::is_missing_key(&detail) => {
                progress.step(&format!(
                    "the package lists of {} do not name Debian {} yet",
                    keyring.display(),
                    archive.name()
                ));
                let keyring = keyring_from_host_archive(work, progress)?;
                root.update(mirror, &keyring)?;
            }
            other => other?,
        }
        Ok(root)
    }

    pub(super) fn archive(&self) -> DebianRelease {
        self.archive
    }

    /// Returns the path of the sources.list of the Debian archive, for a tool that installs packages from the archive.
    pub(super) fn sources(&self) -> PathBuf {
        self.folder.join("etc/sources.list")
    }

    fn update(&self, mirror: &DebianMirror, keyring: &Path) -> Result<()> {
        configure(&self.folder, Some(&self.archive.sources_list(mirror, keyring)))?;
        run(self.tool("apt-get").args(["-q", "update"])).map(drop)
    }

    /// Downloads packages with all their dependencies, and returns the package files.
    pub(super) fn fetch(
        &self,
        what: &str,
        packages: &[&str],
        progress: &mut ProgressReporter,
    ) -> Result<Vec<PathBuf>> {
        let mut command = self.tool("apt-get");
        command.args(["-q", "-y", "--download-only", "-t", self.archive.target_release(), "install"]);
        let files = self.planned(command.args(packages))?;
        let mut done = 0;
        self.watch(&mut command, |line| {
            if output::is_download(line) {
                done += 1;
                progress.packages(what, done, files.len());
            }
        })?;
        progress.finish();
        Ok(files)
    }

    /// Downloads one Debian package without its dependencies.
    pub(super) fn fetch_alone(&self, package: &str) -> Result<PathBuf> {
        let mut command = self.tool("apt-get");
        command.current_dir(self.downloads()).args(["-q", "download", package]);
        let files = self.planned(&mut command)?;
        run(&mut command)?;
        let unexpected =
            || AssetError::Contents(format!("apt-get downloaded no file of the package {package}"));
        files.into_iter().next().ok_or_else(unexpected)
    }

    /// Returns the names of the dependencies of a package, in a given suite or of the newest version.
    pub(super) fn dependencies(&self, package: &str, suite: Option<&str>) -> Result<Vec<String>> {
        let mut command = self.tool("apt-cache");
        command.args(suite.map(|suite| format!("-oAPT::Default-Release={suite}")));
        let printed = run(command.args(["depends", package]))?;
        let printed = String::from_utf8_lossy(&printed.stdout);
        Ok(output::dependencies(&printed).map(str::to_owned).collect())
    }

    /// Returns the package files that a download command of apt will leave, including files of earlier downloads.
    fn planned(&self, command: &mut Command) -> Result<Vec<PathBuf>> {
        // Apt does not print files that were downloaded before, so it gets an empty folder here.
        let nowhere = format!("Dir::Cache::archives={}", self.folder.join("nowhere").display());
        let mut plan = Command::new(command.get_program());
        plan.env("LC_ALL", "C").args(command.get_args()).args(["-qq", "--print-uris", "-o", &nowhere]);
        let printed = run(&mut plan)?;
        let names = output::package_files(&String::from_utf8_lossy(&printed.stdout));
        Ok(names.into_iter().map(|name| self.downloads().join(name)).collect())
    }

    /// Runs a command of apt to its end and passes each line of the command's output to `on_line`.
    fn watch(&self, command: &mut Command, mut on_line: impl FnMut(&str)) -> Result<()> {
        let program = self.folder.clone();
        command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().at(&program)?;
        let stdout = child.stdout.take().map(BufReader::new);
        let mut stderr = child.stderr.take();
        // A thread reads the errors, because apt would block on a full pipe.
        let errors = thread::spawn(move || {
            let mut text = Vec::new();
            stderr.as_mut().map(|pipe| pipe.read_to_end(&mut text));
            text
        });
        for line in stdout.into_iter().flat_map(BufRead::lines) {
            on_line(&line.at(&program)?);
        }
        let status = child.wait().at(&program)?;
        let stderr = errors.join().unwrap_or_default();
        let output = std::process::Output { status, stdout: Vec::new(), stderr };
        if status.success() { Ok(()) } else { Err(failure(command, &output)) }
    }

    fn tool(&self, program: &str) -> Command {
        private_tool(program, &self.folder)
    }

    fn downloads(&self) -> PathBuf {
        self.folder.join("cache/archives")
    }
}

/// Unpacks a package's files into `root` without running its scripts.
pub(super) fn unpack(package: &Path, root: &Path) -> Result<()> {
    run(Command::new("dpkg-deb").arg("-x").arg(package).arg(root)).map(drop)
}

fn private_tool(program: &str, folder: &Path) -> Command {
    let mut command = Command::new(program);
    // This module parses the messages, so they have to be in English.
    command.env("LC_ALL", "C").stdin(Stdio::null());
    command.arg("-c").arg(folder.join("apt.conf"));
    command
}

/// Writes the configuration of a private apt. Without `sources`, apt reads the host's. Apt accepts only verified
/// packages, even if the host's configuration accepts others.
fn configure(folder: &Path, sources: Option<&str>) -> Result<()> {
    for sub in ["etc", "state/lists/partial", "cache/archives/partial", "nowhere/partial"] {
        let sub = folder.join(sub);
        fs::create_dir_all(&sub).at(&sub)?;
    }
    let write = |name: &str, text: &str| {
        let path = folder.join(name);
        fs::write(&path, text).at(&path)
    };
    let here = folder.display();
    let mut text = format!(
        "#clear APT::Update::Post-Invoke;\n#clear APT::Update::Post-Invoke-Success;\n#clear DPkg::Post-Invoke;\n\
         Dir::State \"{here}/state\";\nDir::State::Lists \"{here}/state/lists\";\n\
         Dir::State::status \"{here}/state/status\";\nDir::Cache \"{here}/cache\";\n\
         Dir::Cache::archives \"{here}/cache/archives\";\nDir::Etc::preferences \"/dev/null\";\n\
         Dir::Etc::preferencesparts \"/dev/null\";\nAPT::Architecture \"amd64\";\n\
         APT::Install-Recommends \"false\";\nAPT::Sandbox::User \"\";\nAPT::Update::Error-Mode \"any\";\n\
         Acquire::Languages \"none\";\nAcquire::Retries \"3\";\n\
         Acquire::IndexTargets::deb::DEP-11::DefaultEnabled \"false\";\nDebug::NoLocking \"true\";\n\
         APT::Get::AllowUnauthenticated \"false\";\nAcquire::AllowInsecureRepositories \"false\";\n\
         Acquire::AllowWeakRepositories \"false\";\nAcquire::AllowDowngradeToInsecureRepositories \"false\";\n"
    );
    if let Some(sources) = sources {
        write("etc/sources.list", sources)?;
        text += &format!(
            "Dir::Etc::sourcelist \"{here}/etc/sources.list\";\nDir::Etc::sourceparts \"/dev/null\";\n"
        );
    }
    write("state/status", "")?;
    write("apt.conf", &text)
}

/// Downloads the package debian-archive-keyring from the apt sources of this machine, which apt authenticates. Returns
/// the path of its keyring.
fn keyring_from_host_archive(work: &Path, progress: &mut ProgressReporter) -> Result<PathBuf> {
    progress.step("fetching a newer debian-archive-keyring from the host's own apt sources");
    let folder = work.join("apt-keyring");
    configure(&folder, None)?;
    let attempt = || -> Result<PathBuf> {
        // A third party's source may be down; only the download of the package decides.
        let _ = run(private_tool("apt-get", &folder).args(["-q", "update"]));
        let build_folder = folder.join("fetched");
        fs::create_dir_all(&build_folder).at(&build_folder)?;
        run(private_tool("apt-get", &folder)
            .args(["-q", "download", "debian-archive-keyring"])
            .current_dir(&build_folder))?;
        for entry in fs::read_dir(&build_folder).at(&build_folder)?.flatten() {
            unpack(&entry.path(), &folder.join("root"))?;
        }
        let found = KEYRINGS.iter().map(|keyring| folder.join("root").join(&keyring[1..]));
        let missing = || AssetError::Contents("the package debian-archive-keyring has no keyring".into());
        found.into_iter().find(|keyring| keyring.exists()).ok_or_else(missing)
    };
    attempt().map_err(|error| AssetError::Keyring(error.to_string()))
}

fn check_host() -> Result<()> {
    if env::consts::ARCH != "x86_64" {
        return Err(AssetError::Architecture(env::consts::ARCH));
    }
    let path = env::var_os("PATH").unwrap_or_default();
    let exists = |tool: &str| env::split_paths(&path).any(|folder| folder.join(tool).exists());
    let missing = ["apt-get", "apt-cache", "dpkg-deb"].into_iter().find(|tool| !exists(tool));
    missing.map_or(Ok(()), |tool| Err(AssetError::MissingTool(tool)))
}
