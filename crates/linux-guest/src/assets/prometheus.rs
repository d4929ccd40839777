//! Prepares Prometheus on the host, which scrapes the metrics of a SoftIOV host, and its tool, which checks metrics and
//! alert rules.

use std::path::PathBuf;

use super::error::{AssetError, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt};

const PACKAGE: &str = "prometheus";
const FOLDER: &str = "usr/bin";

/// Paths of the programs of Prometheus in the cache.
#[derive(Debug)]
pub struct PrometheusPrograms {
    /// Path of the Prometheus server, `prometheus`.
    pub server: PathBuf,
    /// Path of Prometheus's tool, `promtool`.
    pub tool: PathBuf,
}

/// Returns the programs of Prometheus from the cache. Fetches 19 MB the first time.
///
/// # Errors
///
/// Returns the errors of [`BootFiles::prepare`](super::BootFiles::prepare).
pub fn prometheus() -> Result<PrometheusPrograms> {
    let mut builder = AssetBuilder::open()?;
    let part = builder.cache.part("prometheus", &format!("1 bookworm {PACKAGE} {FOLDER}"));
    if builder.needs_build(&part)? {
        let package = builder.apt(DebianRelease::Bookworm)?.fetch_alone(PACKAGE)?;
        let root = builder.cache.build_folder("prometheus")?;
        apt::unpack(&package, &root)?;
        let programs = root.join(FOLDER);
        for program in ["prometheus", "promtool"] {
            if !programs.join(program).exists() {
                return Err(AssetError::Contents(format!("no {program} in the package {PACKAGE}")));
            }
        }
        builder.cache.publish(&programs, &part)?;
    }
    builder.close()?;
    Ok(PrometheusPrograms { server: part.join("prometheus"), tool: part.join("promtool") })
}
