//! `cargo xtask image`: builds the container image of the host and the node agent, without a container daemon. The
//! programs are static, and the image has nothing else but their licences.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use anyhow::{Context, Result, bail, ensure};

use crate::deb;
use crate::metadata;
use crate::test::kubernetes;
use crate::test::setup::STATIC;

/// Path of the host program in the image.
const HOST: &str = "/softiov";

/// Arguments of `cargo xtask image`.
#[derive(Debug, clap::Args)]
pub(crate) struct ImageArgs {
    /// Name of the image. Default: localhost/softiov with the workspace's version.
    #[arg(long, value_name = "NAME:TAG")]
    pub(crate) tag: Option<String>,
    /// Static host program to put into the image instead of building one.
    #[arg(long, value_name = "FILE")]
    pub(crate) program: Option<PathBuf>,
    /// Archive to write. Default: target/image/softiov.tar.
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}

/// Builds the image, and prints its archive, name and digest.
pub(crate) fn run(options: &ImageArgs) -> Result<ExitCode> {
    build(options)?;
    Ok(ExitCode::SUCCESS)
}

/// Builds both programs and the image.
///
/// # Errors
/// A program cannot be built, is not static, or has paths of this machine.
pub(crate) fn build(options: &ImageArgs) -> Result<()> {
    if let Some(obstacle) = kubernetes::obstacle() {
        bail!("cannot build the node agent: {obstacle}");
    }
    let root = metadata::workspace_root()?;
    let target = metadata::target_folder()?;
    let folder = target.join("image");
    fs::create_dir_all(&folder)?;
    let host = match &options.program {
        Some(program) => std::path::absolute(program)?,
        None => deb::build(&root, &target, Some(STATIC))?,
    };
    let agent = folder.join("softiov-node");
    let mut command = kubernetes::go(&root, "kubernetes", &["build", "-trimpath", "-ldflags=-s -w", "-o"]);
    // As the host program is, whatever machine builds the image.
    command.env("GOOS", "linux").env("GOARCH", "amd64");
    succeed(command.arg(&agent).arg("./cmd/softiov-node"))?;
    let folders = deb::MachineFolders::of(&root, &target)?;
    if options.program.is_none() {
        folders.check(&host)?;
    }
    folders.check(&agent)?;
    let licences = licences(&root, &host, &folder)?;
    let version = deb::version_of(&root)?;
    let out = options.out.clone().unwrap_or_else(|| folder.join("softiov.tar"));
    if let Some(parent) = out.parent() {
        fs::create_dir_all(parent).with_context(|| format!("cannot create {}", parent.display()))?;
    }
    let tag = options.tag.clone().unwrap_or_else(|| format!("localhost/softiov:{version}"));
    let mut image = kubernetes::go(&root, "kubernetes/tools", &["run", "./image"]);
    image.args(["--modules", "/licences/modules.txt", "--foreign", HOST, "--source"]);
    image.arg(root.join("kubernetes"));
    image.args(["--version", &version, "--tag", &tag, "--out"]).arg(std::path::absolute(out)?);
    image.arg(argument(HOST, &host)?).arg(argument("/softiov-node", &agent)?);
    for file in licences {
        let name = file.file_name().map(|name| name.to_string_lossy()).unwrap_or_default();
        image.arg(argument(&format!("/licences/{name}"), &file)?);
    }
    succeed(&mut image)
}

/// Returns the files with our licences, and writes those of everything that the host program contains to a folder.
fn licences(root: &Path, host: &Path, folder: &Path) -> Result<Vec<PathBuf>> {
    let mut files = vec![root.join("LICENSE-APACHE"), root.join("LICENSE-MIT")];
    for (name, text) in deb::licences(root, host)? {
        fs::write(folder.join(name), text)?;
        files.push(folder.join(name));
    }
    Ok(files)
}

fn argument(path: &str, file: &Path) -> Result<String> {
    let file = file.to_str().with_context(|| format!("{} is not UTF-8", file.display()))?;
    Ok(format!("{path}={file}"))
}

fn succeed(command: &mut Command) -> Result<()> {
    let status = command.status().with_context(|| format!("cannot run {:?}", command.get_program()))?;
    ensure!(status.success(), "{:?} failed: {status}", command.get_program());
    Ok(())
}
