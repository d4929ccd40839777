//! tshark, Wireshark on the command line, on the host: it reads captures as their users do.

use std::process::Command;

use super::error::{AssetError, Result};
use super::sources::Archive;
use super::{Kitchen, apt, libraries};

const PACKAGE: &str = "tshark";
const PROGRAM: &str = "usr/bin/tshark";
const DATA: &str = "usr/share/wireshark";

/// A command that runs Debian's tshark from the cache, with its own libraries. Fetches 45 MB the first time.
///
/// # Errors
///
/// Those of [`Assets::prepare`](super::Assets::prepare).
pub fn tshark() -> Result<Command> {
    let mut kitchen = Kitchen::open()?;
    let part = kitchen.cache.part("tshark", &format!("1 bookworm {PACKAGE}"));
    if kitchen.lacks(&part)? {
        let apt = kitchen.apt(Archive::Bookworm)?;
        let packages = apt.fetch("tshark", &[PACKAGE], &mut kitchen.progress)?;
        let root = kitchen.cache.bench("tshark")?;
        for package in &packages {
            apt::unpack(package, &root)?;
        }
        if !root.join(PROGRAM).exists() {
            return Err(AssetError::Contents(format!("no {PROGRAM} in the package {PACKAGE}")));
        }
        kitchen.cache.publish(&root, &part)?;
    }
    kitchen.close()?;
    let mut command = libraries::command(&part, PROGRAM);
    command.env("WIRESHARK_DATA_DIR", part.join(DATA));
    Ok(command)
}
