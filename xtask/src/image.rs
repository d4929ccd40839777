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
/// A program cannot be built, or is not static.
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
    let crates = folder.join("crates.txt");
    fs::write(&crates, deb::licences(&root)?)?;
    let version = deb::version_of(&root)?;
    let out = options.out.clone().unwrap_or_else(|| folder.join("softiov.tar"));
    let tag = options.tag.clone().unwrap_or_else(|| format!("localhost/softiov:{version}"));
    let mut image = kubernetes::go(&root, "kubernetes/tools", &["run", "./image"]);
    image.args(["--modules", "/licences/modules.txt", "--source"]).arg(root.join("kubernetes"));
    image.args(["--version", &version, "--tag", &tag, "--out"]).arg(std::path::absolute(out)?);
    for (path, file) in [
        ("/softiov", host),
        ("/softiov-node", agent),
        ("/licences/crates.txt", crates),
        ("/licences/LICENSE-APACHE", root.join("LICENSE-APACHE")),
        ("/licences/LICENSE-MIT", root.join("LICENSE-MIT")),
    ] {
        image.arg(argument(path, &file)?);
    }
    succeed(&mut image)
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
