//! Installs the checker's Python packages into a virtual environment in the target folder, once for each list of packages.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use anyhow::{Context, Result, ensure};

use crate::metadata;

/// List of the checker's packages, with their hashes.
const LIST: &str = "proofs/requirements.txt";
/// Prints a name for the environment: the version of Python, and the hash of the list.
const NAME: &str = "import hashlib, sys; \
    name = hashlib.sha256(open(sys.argv[1], 'rb').read()).hexdigest()[:16]; \
    assert sys.version_info >= (3, 11), 'Python is older than 3.11'; \
    print('python%d.%d' % sys.version_info[:2], name, sep='-')";
/// File in an environment that is complete.
const COMPLETE: &str = "complete";

/// Returns the environment's Python, and installs the environment if there is none.
///
/// # Errors
/// If Python is missing or too old, or the packages cannot be installed. The error states the remedy.
pub(super) fn install(root: &Path) -> Result<PathBuf> {
    let list = root.join(LIST);
    let name = Command::new("python3").args(["-c", NAME]).arg(&list).stderr(Stdio::inherit()).output();
    let name = name.context("cannot run python3: install Python 3.11 or later, with venv")?;
    ensure!(name.status.success(), "cannot use python3: install Python 3.11 or later, with venv");
    let name = String::from_utf8_lossy(&name.stdout).trim().to_owned();
    let folder = metadata::target_folder()?.join("proofs").join(name);
    let python = folder.join("bin/python");
    if folder.join(COMPLETE).is_file() {
        return Ok(python);
    }
    eprintln!("installing the checker (angr and z3, some 440 MB) into {}, once", folder.display());
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    let made = Command::new("python3").args(["-m", "venv"]).arg(&folder).status()?;
    ensure!(made.success(), "cannot create a virtual environment: install the package python3-venv");
    let mut pip = Command::new(&python);
    pip.args(["-m", "pip", "install", "--quiet", "--require-hashes", "--requirement"]).arg(&list);
    pip.env("PIP_RETRIES", "2").env("PIP_DISABLE_PIP_VERSION_CHECK", "1");
    ensure!(
        pip.status()?.success(),
        "cannot install the packages of {LIST}: pip needs pypi.org or an index with these files (PIP_INDEX_URL)"
    );
    fs::write(folder.join(COMPLETE), "")?;
    Ok(python)
}
