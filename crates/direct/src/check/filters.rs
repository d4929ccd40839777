//! Checks the receive filters of groups, VLANs and addresses, which VFs request and the PF driver sets, and the
//! blocking of spoofed frames. Each check restores the filters.
//!
//! The sizes of the tables are not checked.

use super::frames::frame;
use super::{
    CardCheckContext, CardCheckError, CheckResult, CheckedVf, CheckedVfBus, differs, passes, unexpected,
};
use driver::vf::TxOffload;
use i82576::{MacAddress, VfIndex};
use policy::PortVlan;

const GROUP: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x00, 0x82, 0x57]);
const OTHER_GROUP: MacAddress = MacAddress([0x01, 0x00, 0x5e, 0x00, 0x00, 0x99]);
/// Ethernet address that no VF has at the start of a check, and that a check assigns to a VF.
const NEW: MacAddress = MacAddress([0x02, 0x82, 0x57, 0x06, 0x01, 0x00]);
const FOREIGN: MacAddress = MacAddress([0x02, 0x82, 0x57, 0x06, 0x02, 0x00]);
const VLAN: u16 = 100;
const PORT_VLAN: PortVlan = PortVlan { id: 200, qos: 3 };
const PRIORITY: u16 = 5 << 13;
const LENGTH: usize = 100;

/// Sends a frame from VF `a` to the address `to`, and returns true if the frame reaches VF `b`.
fn reaches<B: CheckedVfBus>(
    a: &mut CheckedVf<B>,
    b: &mut CheckedVf<B>,
    to: MacAddress,
) -> Result<bool, CardCheckError> {
    a.send(to, 0, LENGTH)?;
    Ok(b.receives_before(a)?)
}

pub(super) fn multicast<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    let before = reaches(a, b, GROUP)?;
    b.vf.set_multicast(&mut b.hal, &[GROUP])?;
    let member = reaches(a, b, GROUP)?;
    let other = reaches(a, b, OTHER_GROUP)?;
    b.vf.set_multicast(&mut b.hal, &[])?;
    let after = reaches(a, b, GROUP)?;
    if (before, member, other, after) == (false, true, false, false) {
        return passes("");
    }
    unexpected(format!(
        "the VF received frames of the group before joining: {before}, as a member: {member}, of another \
         group: {other}, after leaving: {after}"
    ))
}

pub(super) fn all_multicast<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    b.vf.set_all_multicast(&mut b.hal, true)?;
    let all = reaches(a, b, OTHER_GROUP)?;
    b.vf.set_all_multicast(&mut b.hal, false)?;
    match (all, reaches(a, b, OTHER_GROUP)?) {
        (true, false) => passes(""),
        (true, true) => unexpected("multicast frames still arrive after the VF requested their end"),
        (false, _) => differs("no multicast frame arrives: VMOLR.MPME has no effect"),
    }
}

/// Sends a frame to which the card adds a VLAN tag. Returns the bytes of the frame without the tag.
fn send_tagged<B: CheckedVfBus>(a: &mut CheckedVf<B>, to: MacAddress) -> Result<Vec<u8>, CardCheckError> {
    let sent = frame(to, a.vf.mac(), 0, LENGTH);
    a.send_bytes(&sent, &TxOffload { vlan: Some(PRIORITY | VLAN), ..TxOffload::default() })?;
    Ok(sent)
}

pub(super) fn vlan<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    a.vf.set_vlan(&mut a.hal, VLAN, true)?;
    b.vf.set_vlan(&mut b.hal, VLAN, true)?;
    let sent = send_tagged(a, b.vf.mac())?;
    let received = b.expect(&sent);
    b.vf.set_vlan(&mut b.hal, VLAN, false)?;
    send_tagged(a, b.vf.mac())?;
    let stray = b.receives_before(a)?;
    a.vf.set_vlan(&mut a.hal, VLAN, false)?;
    let tag = received?.vlan;
    if stray {
        return unexpected("frames of the VLAN still arrive after the VF left it");
    }
    match tag {
        Some(tag) if tag == PRIORITY | VLAN => passes(format!("received VLAN tag {tag:#06x}")),
        tag => unexpected(format!("received VLAN tag {tag:?} differs from the sent one")),
    }
}

pub(super) fn port_vlan<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    world.port()?;
    set_port_vlan(world, 0, Some(PORT_VLAN))?;
    let (a, b) = world.pair()?;
    a.send(b.vf.mac(), 0, LENGTH)?;
    b.send(a.vf.mac(), 0, LENGTH)?;
    let alone = b.expect_nothing().and_then(|()| a.expect_nothing());
    set_port_vlan(world, 1, Some(PORT_VLAN))?;
    let (a, b) = world.pair()?;
    let sent = a.send(b.vf.mac(), 1, LENGTH)?;
    let together = b.expect(&sent);
    for vf in [0, 1] {
        set_port_vlan(world, vf, None)?;
    }
    alone?;
    together?;
    let (a, b) = world.pair()?;
    let sent = a.send(b.vf.mac(), 2, LENGTH)?;
    b.expect(&sent)?;
    passes("")
}

fn set_port_vlan<B: CheckedVfBus>(
    world: &CardCheckContext<B>,
    vf: u8,
    vlan: Option<PortVlan>,
) -> Result<(), CardCheckError> {
    let Some(vf) = VfIndex::new(vf) else { return unexpected("no such VF") };
    let mut side = world.port()?.lock();
    let policy = policy::VfPolicy { vlan, ..*side.pf.policy(vf) };
    let crate::port::PfAndRegisters { pf, hal } = &mut *side;
    Ok(pf.set_policy(hal, vf, policy)?)
}

pub(super) fn change_address<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    let old = b.vf.mac();
    b.vf.set_mac(&mut b.hal, NEW)?;
    let (new_receives, old_receives) = (reaches(a, b, NEW)?, reaches(a, b, old)?);
    b.vf.set_mac(&mut b.hal, old)?;
    let back = reaches(a, b, old)?;
    if (new_receives, old_receives, back) == (true, false, true) {
        return passes("");
    }
    unexpected(format!(
        "the new address receives: {new_receives}, the old address: {old_receives}, the restored address: \
         {back}"
    ))
}

pub(super) fn added_address<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    b.vf.add_mac(&mut b.hal, NEW)?;
    let (added, own) = (reaches(a, b, NEW)?, reaches(a, b, b.vf.mac())?);
    b.vf.clear_macs(&mut b.hal)?;
    let after = reaches(a, b, NEW)?;
    if (added, own, after) == (true, true, false) {
        return passes("");
    }
    unexpected(format!(
        "the added address receives: {added}, the VF's own address: {own}, the removed address: {after}"
    ))
}

pub(super) fn spoofed_address<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    a.send_bytes(&frame(b.vf.mac(), FOREIGN, 0, LENGTH), &TxOffload::default())?;
    if b.receives_before(a)? {
        differs("the frame arrives: the card does not check source addresses")
    } else {
        passes("")
    }
}

pub(super) fn spoofed_vlan<B: CheckedVfBus>(world: &mut CardCheckContext<B>) -> CheckResult {
    let (a, b) = world.pair()?;
    b.vf.set_vlan(&mut b.hal, VLAN, true)?;
    send_tagged(a, b.vf.mac())?;
    let arrives = b.receives_before(a)?;
    b.vf.set_vlan(&mut b.hal, VLAN, false)?;
    if arrives { differs("the frame arrives: the card does not check VLAN tags") } else { passes("") }
}
