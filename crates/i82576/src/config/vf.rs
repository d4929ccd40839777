//! Configuration space of a VF: no ids, no BARs, no interrupt pin, and only bus mastering in the command register
//! (SR-IOV specification 1.1, 3.4). The manager that assigns a VF derives an ordinary function for the guest from
//! it.

use super::{AER, ARI, EXPRESS, MSIX, MSIX_BAR, MSIX_PBA, MSIX_TABLE};
use crate::ids;
use pcie::Endpoint;
use pcie::capability::ari;
use pcie::capability::msix::MsiXCapability;
use pcie::config::{ConfigSpace, ConfigSpaceBuilder, FunctionIds, offset};

/// Returns a VF's configuration space after reset.
#[must_use]
pub fn space() -> ConfigSpace {
    let identity = FunctionIds { vendor: 0xffff, device: 0xffff, ..super::identity() };
    capabilities(ConfigSpaceBuilder::new(identity, offset::COMMAND_BUS_MASTER), true).build()
}

/// Returns a VF's configuration space after reset, as an endpoint that applies software's writes.
#[must_use]
pub fn endpoint() -> Endpoint {
    Endpoint::new(space())
}

/// Adds the capabilities of a VF to a configuration header. With `reserved`, device, link and error settings are
/// reserved, since silicon uses the PF's settings for a VF. An ordinary function has its own.
#[must_use]
pub fn capabilities(header: ConfigSpaceBuilder, reserved: bool) -> ConfigSpaceBuilder {
    let vectors = ids::VECTORS_OF_VF.into();
    let msix = MsiXCapability { vectors, bar: MSIX_BAR, table: MSIX_TABLE, pba: MSIX_PBA };
    header
        .capability(MSIX, msix.capability())
        .capability(EXPRESS, super::express(reserved).capability())
        .extended(AER, super::aer(reserved).capability())
        .extended(ARI, ari::capability(0))
}
