//! Lays out the files of the Debian package in a folder, as dpkg-deb requires.

use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, Result};

use super::{made, run_tool};

const PROGRAM: &str = "usr/bin/softiov";
/// Files of the package that are copied unchanged: source in `packaging`, and destination.
const AS_IT_IS: [(&str, &str); 5] = [
    ("systemd/softiov.service", "usr/lib/systemd/system/softiov.service"),
    ("systemd/softiov.sysusers", "usr/lib/sysusers.d/softiov.conf"),
    ("softiov.toml", "etc/softiov/softiov.toml"),
    ("apparmor/libvirt-qemu.d-softiov", "etc/apparmor.d/abstractions/libvirt-qemu.d/softiov"),
    ("debian/copyright", "usr/share/doc/softiov/copyright"),
];
/// Pages of the documentation that the package contains, for a user without a checkout.
const PAGES: [&str; 9] = [
    "user-guide.md",
    "operations.md",
    "guide/README.md",
    "guide/first-vm.md",
    "guide/ci.md",
    "guide/many-vms.md",
    "guide/monitoring.md",
    "guide/driver-development.md",
    "guide/teaching.md",
];
/// Example files for Prometheus and Grafana, which the package does not compress.
const MONITORING: [&str; 2] = ["monitoring/prometheus-alerts.yml", "monitoring/grafana-dashboard.json"];
const SCRIPTS: [&str; 3] = ["postinst", "prerm", "postrm"];

/// Folder tree of the Debian package's files.
#[derive(Debug)]
pub(super) struct PackageTree {
    folder: PathBuf,
}

impl PackageTree {
    /// Creates the folder of the package with all its files.
    pub(super) fn lay_out(root: &Path, program: &Path, version: &str, folder: &Path) -> Result<Self> {
        if folder.exists() {
            fs::remove_dir_all(folder)?;
        }
        let tree = Self { folder: folder.to_owned() };
        let packaging = root.join("packaging");
        tree.write(PROGRAM, b"")?;
        run_tool(Command::new("strip").arg("-o").arg(tree.place(PROGRAM)).arg(program))?;
        tree.set_mode(PROGRAM, 0o755)?;
        for (from, to) in AS_IT_IS {
            tree.write(to, &read(&packaging.join(from))?)?;
        }
        for page in PAGES {
            tree.write_packed(
                &format!("usr/share/doc/softiov/{page}"),
                &read(&root.join("docs").join(page))?,
            )?;
        }
        for file in MONITORING {
            tree.write(&format!("usr/share/doc/softiov/{file}"), &read(&root.join("docs").join(file))?)?;
        }
        tree.write_packed("usr/share/doc/softiov/changelog", &read(&root.join("CHANGELOG.md"))?)?;
        made::manual(&tree, program)?;
        made::completions(&tree, program)?;
        tree.write_packed(
            "usr/share/doc/softiov/changelog.Debian",
            made::changelog(root, version)?.as_bytes(),
        )?;
        for (name, text) in made::licences(root, program)? {
            tree.write_packed(&format!("usr/share/doc/softiov/licences/{name}"), &text)?;
        }
        tree.describe(&packaging.join("debian"), program, version)?;
        Ok(tree)
    }

    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Writes the control fields of the package, its checksums, and the scripts that dpkg runs.
    fn describe(&self, debian: &Path, program: &Path, version: &str) -> Result<()> {
        let files = self.files()?;
        let bytes: u64 = files.iter().map(|file| fs::metadata(file).map_or(0, |file| file.len())).sum();
        let control = String::from_utf8(read(&debian.join("control"))?)?
            .replace("@VERSION@", version)
            .replace("@SIZE@", &bytes.div_ceil(1024).to_string())
            .replace("@LIBRARIES@", &made::libraries(&read(program)?));
        let sums =
            run_tool(Command::new("md5sum").arg("--").args(self.names(&files)).current_dir(&self.folder))?;
        let kept = self.names(&files).into_iter().filter(|name| name.starts_with("etc"));
        let kept: String = kept.map(|name| format!("/{}\n", name.display())).collect();
        self.write("DEBIAN/control", control.as_bytes())?;
        self.write("DEBIAN/md5sums", &sums)?;
        self.write("DEBIAN/conffiles", kept.as_bytes())?;
        for script in SCRIPTS {
            let place = format!("DEBIAN/{script}");
            self.write(&place, &read(&debian.join(script))?)?;
            self.set_mode(&place, 0o755)?;
        }
        Ok(())
    }

    /// Returns the paths of all package files, sorted.
    fn files(&self) -> Result<Vec<PathBuf>> {
        let (mut folders, mut files) = (vec![self.folder.clone()], Vec::new());
        while let Some(folder) = folders.pop() {
            for entry in fs::read_dir(&folder)? {
                let path = entry?.path();
                if path.is_dir() { folders.push(path) } else { files.push(path) }
            }
        }
        files.sort();
        Ok(files)
    }

    /// Returns the names of package files as paths from the root of the user's file system, without the first
    /// slash.
    fn names<'a>(&self, files: &'a [PathBuf]) -> Vec<&'a Path> {
        files.iter().filter_map(|file| file.strip_prefix(&self.folder).ok()).collect()
    }

    /// Writes a file of the package, with mode 644.
    pub(super) fn write(&self, place: &str, bytes: &[u8]) -> Result<()> {
        let path = self.place(place);
        for folder in path.ancestors().skip(1).take_while(|folder| folder.starts_with(&self.folder)) {
            if !folder.exists() {
                fs::create_dir_all(folder)?;
            }
            fs::set_permissions(folder, Permissions::from_mode(0o755))?;
        }
        fs::write(&path, bytes).with_context(|| path.display().to_string())?;
        self.set_mode(place, 0o644)
    }

    /// Writes a file of the package, compressed by gzip as Debian's policy demands.
    pub(super) fn write_packed(&self, place: &str, bytes: &[u8]) -> Result<()> {
        self.write(place, bytes)?;
        run_tool(Command::new("gzip").args(["-9", "-n", "-f"]).arg(self.place(place))).map(drop)
    }

    pub(super) fn place(&self, place: &str) -> PathBuf {
        self.folder.join(place)
    }

    fn set_mode(&self, place: &str, mode: u32) -> Result<()> {
        Ok(fs::set_permissions(self.place(place), Permissions::from_mode(mode))?)
    }
}

pub(super) fn read(path: &Path) -> Result<Vec<u8>> {
    fs::read(path).with_context(|| path.display().to_string())
}
