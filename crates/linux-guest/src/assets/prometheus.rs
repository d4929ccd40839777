//! Prometheus on the host, which scrapes what a host says, and its tool, which judges metrics and alert rules.

use std::path::PathBuf;

use super::error::{AssetError, Result};
use super::sources::Archive;
use super::{Kitchen, apt};

const PACKAGE: &str = "prometheus";
const FOLDER: &str = "usr/bin";

/// The programs.
#[derive(Debug)]
pub struct Prometheus {
    /// The server, `prometheus`.
    pub server: PathBuf,
    /// `promtool`.
    pub tool: PathBuf,
}

/// Prometheus from the cache. Fetches 19 MB the first time.
///
/// # Errors
///
/// Those of [`Assets::prepare`](super::Assets::prepare).
pub fn prometheus() -> Result<Prometheus> {
    let mut kitchen = Kitchen::open()?;
    let part = kitchen.cache.part("prometheus", &format!("1 bookworm {PACKAGE} {FOLDER}"));
    if kitchen.lacks(&part)? {
        let package = kitchen.apt(Archive::Bookworm)?.fetch_alone(PACKAGE)?;
        let root = kitchen.cache.bench("prometheus")?;
        apt::unpack(&package, &root)?;
        let programs = root.join(FOLDER);
        for program in ["prometheus", "promtool"] {
            if !programs.join(program).exists() {
                return Err(AssetError::Contents(format!("no {program} in the package {PACKAGE}")));
            }
        }
        kitchen.cache.publish(&programs, &part)?;
    }
    kitchen.close()?;
    Ok(Prometheus { server: part.join("prometheus"), tool: part.join("promtool") })
}
