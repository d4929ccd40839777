//! iPXE, the boot firmware, whose drivers share nothing with Linux's or DPDK's. From Debian 13, whose version is the first
//! there with a driver for Adaptive Virtual Functions. Left out: its other images.

use std::path::PathBuf;

use super::error::{AssetError, Result};
use super::sources::Archive;
use super::{Kitchen, apt};

const PACKAGE: &str = "ipxe";
const IMAGE: &str = "usr/lib/ipxe/ipxe.lkrn";

/// The image from the cache, fetched and unpacked if it is not there yet.
pub(super) fn prepare(kitchen: &mut Kitchen) -> Result<PathBuf> {
    let part = kitchen.cache.part("ipxe", &format!("1 trixie {PACKAGE} {IMAGE}"));
    if kitchen.lacks(&part)? {
        let package = kitchen.apt(Archive::Trixie)?.fetch_alone(PACKAGE)?;
        let root = kitchen.cache.bench("ipxe")?;
        apt::unpack(&package, &root)?;
        let image = root.join(IMAGE);
        if !image.exists() {
            return Err(AssetError::Contents(format!("no {IMAGE} in the package {PACKAGE}")));
        }
        kitchen.cache.publish(&image, &part)?;
    }
    Ok(part)
}
