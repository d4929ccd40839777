//! The boot firmware iPXE, whose drivers share no code with Linux's or DPDK's. It comes from Debian 13, whose
//! version is the first there with a driver for Adaptive Virtual Functions. Only one of its images is used.

use std::path::PathBuf;

use super::error::{AssetError, Result};
use super::sources::DebianRelease;
use super::{AssetBuilder, apt};

const PACKAGE: &str = "ipxe";
const IMAGE: &str = "usr/lib/ipxe/ipxe.lkrn";

/// Returns the path of the iPXE image in the cache. Fetches and unpacks the image if it is missing.
pub(super) fn prepare(builder: &mut AssetBuilder) -> Result<PathBuf> {
    let part = builder.cache.part("ipxe", &format!("1 trixie {PACKAGE} {IMAGE}"));
    if builder.needs_build(&part)? {
        let package = builder.apt(DebianRelease::Trixie)?.fetch_alone(PACKAGE)?;
        let root = builder.cache.build_folder("ipxe")?;
        apt::unpack(&package, &root)?;
        let image = root.join(IMAGE);
        if !image.exists() {
            return Err(AssetError::Contents(format!("no {IMAGE} in the package {PACKAGE}")));
        }
        builder.cache.publish(&image, &part)?;
    }
    Ok(part)
}
