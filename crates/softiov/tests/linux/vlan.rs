//! Checks VLANs between guests: those that a guest joins, and the port VLAN that the administrator sets.

use crate::guest::ScenarioGuest;
use crate::report::LinuxCheckOutcome;
use crate::world::{CAROL_VLAN, LinuxTestbed, PORT_VLAN};
use anyhow::{Context, Result, ensure};

/// Number of broadcasts sent in a VLAN, to count those that each guest receives.
const BROADCASTS: u32 = 20;

/// Checks that two guests with an interface in VLAN 100 exchange frames that the card tags and untags.
pub(crate) fn members_reach_each_other(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    join_both(world)?;
    let (alice, bob) = (world.alice()?, world.bob()?);
    for guest in [alice, bob] {
        let vlans = world.vf(guest.vf)?.vlans;
        ensure!(vlans.contains(&PORT_VLAN.into()), "{} joined, and is a member of {vlans:?}", guest.name());
    }
    for (from, to) in [(alice, bob), (bob, alice)] {
        from.reach(&to.vlan_address(PORT_VLAN))?;
        for size in [56, 1400, 8000] {
            from.ping(&to.vlan_address(PORT_VLAN), size, 10)?;
        }
        from.iperf(&to.vlan_address(PORT_VLAN), "-n 16M")?;
        let errors = to.statistic("rx_csum_offload_errors")?;
        ensure!(errors == 0, "{}: rx_csum_offload_errors is {errors}", to.name());
    }
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest in another VLAN, a guest in no VLAN, and a former member receive no frame of the members.
pub(crate) fn others_see_nothing(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    join_both(world)?;
    let (alice, bob, carol) = (world.alice()?, world.bob()?, world.carol()?);
    carol.join_vlan("eth0", 200)?;
    alice.reach(&bob.vlan_address(PORT_VLAN))?;
    let heard = broadcasts_heard(world, alice, &[bob, carol])?;
    ensure!(
        all(heard[0]) && none(heard[1]),
        "of {BROADCASTS} broadcasts a member got {} and a guest in another VLAN {}",
        heard[0],
        heard[1]
    );

    bob.check(&format!("ip link del eth0.{PORT_VLAN}"))?;
    carol.check("ip link del eth0.200")?;
    alice.cannot_reach(&format!("eth0.{PORT_VLAN}"), &bob.vlan_address(PORT_VLAN))?;
    let heard = broadcasts_heard(world, alice, &[bob, carol])?;
    ensure!(
        heard.iter().copied().all(none),
        "of {BROADCASTS} broadcasts guests that are no members got {heard:?}"
    );
    alice.ping(&bob.address(), 56, 3).context("untagged frames must pass")?;
    Ok(LinuxCheckOutcome::Passed)
}

/// Checks that a guest on a port VLAN is unaware of it: it sends untagged, and members of the VLAN receive its frames
/// tagged. It reaches no other guest, and cannot join another VLAN.
pub(crate) fn port_vlan_is_tagged_for_the_guest(world: &mut LinuxTestbed) -> Result<LinuxCheckOutcome> {
    join_both(world)?;
    let (alice, bob, carol) = (world.alice()?, world.bob()?, world.carol()?);
    carol.check(&format!(
        "ip addr replace {}/24 dev eth1 && ip link set eth1 up",
        carol.vlan_address(PORT_VLAN)
    ))?;
    carol.reach(&alice.vlan_address(PORT_VLAN))?;
    for size in [56, 1400, 8000] {
        carol.ping(&alice.vlan_address(PORT_VLAN), size, 5)?;
        alice.ping(&carol.vlan_address(PORT_VLAN), size, 5)?;
    }
    carol.iperf(&alice.vlan_address(PORT_VLAN), "-n 8M")?;
    carol.iperf(&alice.vlan_address(PORT_VLAN), "-n 8M -R")?;
    let vf = world.vf(CAROL_VLAN)?;
    ensure!(
        vf.settings.vlan == Some(PORT_VLAN.into()) && vf.tx.packets > 0,
        "eth1 is not the VF on the VLAN: {vf:?}"
    );

    bob.check(&format!("ip link del eth0.{PORT_VLAN}"))?;
    let ask = |address: &str| format!("arping -c 2 -w 2 -I eth1 {address}");
    carol.check_fails(&ask(&bob.address())).context("carol must not reach bob, who is not in the VLAN")?;
    carol.check_fails(&ask(&alice.address())).context("carol must not reach alice's untagged interface")?;
    let heard = broadcasts_heard(world, carol, &[alice, bob])?;
    ensure!(all(heard[0]) && none(heard[1]), "of {BROADCASTS} broadcasts alice and bob got {heard:?}");

    // igbvf treats the PF's refusal as consent (it compares the reply's information bits too), so the check reads the
    // host's status.
    carol.join_vlan("eth1", 7)?;
    let vlans = world.vf(CAROL_VLAN)?.vlans;
    ensure!(vlans == [u16::from(PORT_VLAN)], "a VF on port VLAN {PORT_VLAN} is a member of {vlans:?}");
    carol.check("ip link del eth1.7; ip addr flush dev eth1; ip link set eth1 down")?;
    Ok(LinuxCheckOutcome::Passed)
}

fn join_both(world: &LinuxTestbed) -> Result<()> {
    world.alice()?.join_vlan("eth0", PORT_VLAN)?;
    world.bob()?.join_vlan("eth0", PORT_VLAN)
}

/// Has the guest `from` send broadcasts into VLAN 100, and returns how many more broadcasts each VF received meanwhile.
fn broadcasts_heard(world: &LinuxTestbed, from: &ScenarioGuest, by: &[&ScenarioGuest]) -> Result<Vec<u64>> {
    let count = |guest: &&ScenarioGuest| Ok(world.vf(guest.vf)?.rx.broadcast);
    let before: Vec<u64> = by.iter().map(count).collect::<Result<_>>()?;
    from.broadcast(PORT_VLAN, BROADCASTS)?;
    let after: Vec<u64> = by.iter().map(count).collect::<Result<_>>()?;
    Ok(after.iter().zip(before).map(|(after, before)| after - before).collect())
}

fn all(heard: u64) -> bool {
    heard >= BROADCASTS.into()
}

/// Returns true if a guest has received none of the broadcasts. Allows for an ARP request or two, which are broadcasts
/// too.
fn none(heard: u64) -> bool {
    heard < u64::from(BROADCASTS) / 4
}
