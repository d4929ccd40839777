//! Requests facts about the packages and the checkout's folder from cargo. Holds no rules.

use std::env;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};
use serde_json::Value;

/// Returns a command that runs the cargo that started this program, without a standard input.
pub(crate) fn cargo() -> Command {
    let mut command = Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()));
    command.stdin(Stdio::null());
    command
}

/// Returns the folder of the workspace, whatever folder `cargo xtask` was called in.
pub(crate) fn workspace_root() -> Result<PathBuf> {
    let manifest_folder = env::var_os("CARGO_MANIFEST_DIR")
        .context("CARGO_MANIFEST_DIR is not set: start this program as `cargo xtask`")?;
    let root = Path::new(&manifest_folder).parent().context("xtask does not lie in a workspace")?;
    Ok(root.to_owned())
}

/// Returns cargo's target folder: the parent of the profile's folder in which this program lies.
pub(crate) fn target_folder() -> Result<PathBuf> {
    let this = env::current_exe()?;
    Ok(this
        .ancestors()
        .nth(2)
        .context("cannot find cargo's target folder: this program does not lie in it")?
        .to_owned())
}

/// Returns `path` relative to the workspace's folder `root`.
pub(crate) fn relative(root: &Path, path: &Path) -> PathBuf {
    path.strip_prefix(root).unwrap_or(path).to_owned()
}

/// Folder of the lab's group of crates: models in virtual time, apart from the product.
pub(crate) const LAB: &str = "lab";
/// Folders of the workspace that have a folder for each crate.
const GROUPS: [&str; 2] = ["crates", LAB];

/// Returns the folder name of the crate that a file belongs to, or `None` outside the groups of crates. The path is
/// relative to the workspace.
pub(crate) fn crate_of(path: &Path) -> Option<&str> {
    let mut folders = path.iter().filter_map(|folder| folder.to_str());
    let group = folders.next()?;
    let (name, _) = (folders.next()?, folders.next()?);
    GROUPS.contains(&group).then_some(name)
}

/// Prefix of the package names of published crates. Folders, libraries and the rules' tables have the name without it.
pub(crate) const PREFIX: &str = "softiov-";

/// Cargo package, with those of its fields that the tidy rules read.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct CargoPackage {
    pub(crate) name: String,
    pub(crate) version: String,
    /// License of the package as an SPDX expression.
    pub(crate) licence: Option<String>,
    pub(crate) description: Option<String>,
    /// Oldest version of Rust that builds the package.
    pub(crate) rust_version: Option<String>,
    pub(crate) has_keywords: bool,
    /// True if a registry may have the package.
    pub(crate) published: bool,
    pub(crate) manifest: PathBuf,
    pub(crate) dependencies: Vec<CargoDependency>,
    pub(crate) targets: Vec<CargoTarget>,
}

impl CargoPackage {
    /// Returns the package's name without the prefix of published crates, which is the name of its folder.
    pub(crate) fn crate_name(&self) -> &str {
        without_prefix(&self.name)
    }
}

/// Dependency of a cargo package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CargoDependency {
    pub(crate) name: String,
    /// True for a dependency of tests, examples and benchmarks only.
    pub(crate) dev: bool,
    /// True if the manifest names a path for the dependency.
    pub(crate) local: bool,
    /// True if the manifest requires a version of the dependency.
    pub(crate) versioned: bool,
}

impl CargoDependency {
    /// Returns the name of the dependency's package without the prefix of published crates.
    pub(crate) fn crate_name(&self) -> &str {
        without_prefix(&self.name)
    }
}

/// Library, program or test that a package is built into.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CargoTarget {
    pub(crate) name: String,
    /// Kind of the cargo target: `lib`, `bin`, `test`, ...
    pub(crate) kind: String,
    pub(crate) root: PathBuf,
    /// True if a plain `cargo test` runs the target.
    pub(crate) tested: bool,
}

/// Returns the packages of the workspace that `manifest` belongs to.
pub(crate) fn members(manifest: &Path) -> Result<Vec<CargoPackage>> {
    packages(cargo().args(["metadata", "--format-version=1", "--no-deps", "--manifest-path"]).arg(manifest))
}

/// Returns every package that the workspace of `manifest` builds from on this platform, its own packages
/// among them.
pub(crate) fn closure(manifest: &Path) -> Result<Vec<CargoPackage>> {
    let mut command = cargo();
    command.args(["metadata", "--format-version=1", "--filter-platform", &platform()?, "--manifest-path"]);
    packages(command.arg(manifest))
}

fn platform() -> Result<String> {
    let output = Command::new(env::var_os("RUSTC").unwrap_or_else(|| "rustc".into())).arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: "));
    Ok(host.context("`rustc -vV` names no host platform")?.to_owned())
}

/// Returns the version of the Rust compiler (`rustc --version`).
pub(crate) fn compiler() -> Result<String> {
    let output = Command::new("rustc").arg("--version").output().context("cannot run `rustc --version`")?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

fn packages(command: &mut Command) -> Result<Vec<CargoPackage>> {
    let output = command.output().context("cannot run `cargo metadata`")?;
    ensure!(
        output.status.success(),
        "`cargo metadata` failed: {}",
        String::from_utf8_lossy(&output.stderr).trim()
    );
    let metadata: Value = serde_json::from_slice(&output.stdout)?;
    list(&metadata["packages"]).map(package).collect()
}

fn package(json: &Value) -> Result<CargoPackage> {
    Ok(CargoPackage {
        name: text(&json["name"])?,
        version: text(&json["version"])?,
        licence: json["license"].as_str().map(str::to_owned),
        description: json["description"].as_str().map(str::to_owned),
        rust_version: json["rust_version"].as_str().map(str::to_owned),
        has_keywords: list(&json["keywords"]).next().is_some(),
        // Cargo writes a list of registries: null is all of them, an empty list none.
        published: json["publish"].is_null(),
        manifest: text(&json["manifest_path"])?.into(),
        dependencies: list(&json["dependencies"]).map(dependency).collect::<Result<_>>()?,
        targets: list(&json["targets"]).map(target).collect::<Result<_>>()?,
    })
}

fn without_prefix(name: &str) -> &str {
    name.strip_prefix(PREFIX).unwrap_or(name)
}

fn dependency(json: &Value) -> Result<CargoDependency> {
    Ok(CargoDependency {
        name: text(&json["name"])?,
        dev: json["kind"] == "dev",
        local: json["path"].is_string(),
        versioned: json["req"] != "*",
    })
}

fn target(json: &Value) -> Result<CargoTarget> {
    Ok(CargoTarget {
        name: text(&json["name"])?,
        kind: text(&json["kind"][0])?,
        root: text(&json["src_path"])?.into(),
        tested: json["test"] == true,
    })
}

fn list(json: &Value) -> impl Iterator<Item = &Value> {
    json.as_array().into_iter().flatten()
}

fn text(json: &Value) -> Result<String> {
    json.as_str()
        .map(str::to_owned)
        .with_context(|| format!("unexpected output of `cargo metadata`: {json} instead of a string"))
}
