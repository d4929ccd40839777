//! Tests the SR-IOV manager with sequences of actions by an operator, the manager, a guest and the card.

use super::{
    BusRouting, ManagerRestoreError, SrIovManager, VfAssignmentError, VfAssignmentState, VfEnableError,
    VfOwner,
};
use crate::FunctionResetError;
use crate::SrIovDevice;
use crate::test_card::{RequestToCard, SrIovTestCard};
use alloc::string::ToString;
use i82576::VfIndex;
use i82576::config::{EXPRESS, pf::SRIOV};
use pcie::capability::{express, sriov};
use pcie::{ConfigAccess, Function, Rid};
use proptest::prelude::*;
use std::vec::Vec;

const PF: Rid = Rid(0x0100);
const ALICE: VfOwner = VfOwner(1);
const BOB: VfOwner = VfOwner(2);
/// Value of the command register that enables memory space and bus mastering.
const START: [u8; 2] = [0x06, 0x00];

fn vf(n: u8) -> VfIndex {
    VfIndex::new(n).unwrap()
}

fn enabled(n: u16) -> (SrIovTestCard, SrIovManager) {
    let mut card = SrIovTestCard::new();
    let mut manager = SrIovManager::discover(&mut card, PF).unwrap();
    manager.enable(&mut card, n, BusRouting::Flat).unwrap();
    (card, manager)
}

fn rids(manager: &SrIovManager) -> Vec<std::string::String> {
    VfIndex::all().filter_map(|vf| manager.function(vf)).map(|vf| vf.rid().to_string()).collect()
}

#[test]
fn routing_ids_of_vfs_follow_the_sr_iov_capability() {
    let (_, manager) = enabled(3);
    assert_eq!(rids(&manager), ["02:10.0", "02:10.2", "02:10.4"]);
    let mut card = SrIovTestCard::new();
    let mut manager = SrIovManager::discover(&mut card, PF).unwrap();
    manager.enable(&mut card, 2, BusRouting::Ari).unwrap();
    assert_eq!(rids(&manager), ["01:10.0", "01:10.2"]);
}

#[test]
fn sr_iov_discovery_leaves_the_device_unchanged() {
    let mut card = SrIovTestCard::new();
    let before = card.pf.clone();
    let manager = SrIovManager::discover(&mut card, PF).unwrap();
    assert_eq!(card.pf, before);
    assert_eq!((manager.total_vfs(), manager.num_vfs()), (8, 0));
    let (mut card, _) = enabled(2);
    let before = card.pf.clone();
    SrIovManager::discover(&mut card, PF).unwrap();
    assert_eq!(card.pf, before, "VFs keep their memory");
}

#[test]
fn enabling_sr_iov_sets_a_page_size_of_4_kib() {
    let mut card = SrIovTestCard::new();
    let mut manager = SrIovManager::discover(&mut card, PF).unwrap();
    card.config_write(Function::Pf, SRIOV + sriov::PAGE_SIZE, 4, 0x10);
    manager.enable(&mut card, 2, BusRouting::Flat).unwrap();
    assert_eq!(card.config_read(Function::Pf, SRIOV + sriov::PAGE_SIZE, 4), 1);
}

#[test]
fn refusal_to_enable_sr_iov_names_the_remedy() {
    let mut card = SrIovTestCard::new();
    let mut manager = SrIovManager::discover(&mut card, PF).unwrap();
    let nine = manager.enable(&mut card, 9, BusRouting::Flat).unwrap_err();
    assert_eq!(nine.to_string(), "9 VFs were requested, but the device has 8: request at most 8");
    assert_eq!(manager.enable(&mut card, 0, BusRouting::Flat), Err(VfEnableError::None));
    manager.enable(&mut card, 7, BusRouting::Flat).unwrap();
    let again = manager.enable(&mut card, 8, BusRouting::Flat).unwrap_err();
    assert_eq!(again.to_string(), "7 VFs are enabled already: disable them first");
    manager.disable(&mut card).unwrap();
    assert!(card.vfs.is_empty());
    manager.enable(&mut card, 8, BusRouting::Flat).unwrap();
    assert_eq!((manager.num_vfs(), card.vfs.len()), (8, 8));
}

#[test]
fn a_pf_on_the_last_bus_has_no_room_for_vfs_without_ari() {
    let mut card = SrIovTestCard::new();
    let mut manager = SrIovManager::discover(&mut card, Rid(0xff00)).unwrap();
    assert_eq!(manager.enable(&mut card, 1, BusRouting::Flat), Err(VfEnableError::OffTheBus));
    assert!(card.vfs.is_empty());
    assert_eq!(manager.enable(&mut card, 1, BusRouting::Ari), Ok(()));
}

#[test]
fn only_the_owner_of_a_vf_can_write_its_configuration_space() {
    let (mut card, mut manager) = enabled(2);
    let mut ids = [0; 4];
    manager.config_read(vf(0), 0, &mut ids);
    assert_eq!(ids, [0x86, 0x80, 0xca, 0x10]);
    manager.config_read(vf(0), 8, &mut ids);
    assert_eq!(ids, [1, 0, 0, 2], "revision and class are the PF's");
    manager.config_read(vf(2), 0, &mut ids);
    assert_eq!(ids, [0xff; 4], "there is no VF 2");
    assert!(manager.config_write(&mut card, vf(0), 4, &START).is_empty(), "VF 0 has no owner");
    manager.assign(&mut card, vf(0), ALICE).unwrap();
    assert_eq!(manager.config_write(&mut card, vf(0), 4, &START).bus_master, Some(true));
    assert_eq!((card.bus_master(vf(0)), card.bus_master(vf(1))), (true, false));
    assert_eq!(manager.config_write(&mut card, vf(0), 4, &[0x02, 0]).bus_master, Some(false));
    assert!(!card.bus_master(vf(0)), "the card stops the VF's bus mastering");
}

#[test]
fn function_level_reset_stops_bus_mastering_first() {
    let (mut card, mut manager) = enabled(1);
    manager.assign(&mut card, vf(0), ALICE).unwrap();
    manager.config_write(&mut card, vf(0), 4, &START);
    card.take_log();
    assert!(manager.config_write(&mut card, vf(0), 0xa8, &[0x10, 0xa8]).function_reset);
    assert_eq!(card.take_log(), [RequestToCard::BusMaster(0, false), RequestToCard::Reset(0)]);
    assert_eq!(manager.state(vf(0)), VfAssignmentState::Assigned(ALICE));
}

#[test]
fn a_change_of_owner_resets_the_vf_completely() {
    let (mut card, mut manager) = enabled(1);
    manager.assign(&mut card, vf(0), ALICE).unwrap();
    manager.config_write(&mut card, vf(0), 4, &START);
    manager.config_write(&mut card, vf(0), 0x10, &[0, 0, 0xbf, 0xfe]);
    card.take_log();
    let taken = manager.assign(&mut card, vf(0), BOB).unwrap_err();
    assert_eq!(taken.to_string(), "vf0 is assigned to owner 1: take the VF back first");
    manager.unassign(&mut card, vf(0)).unwrap();
    assert_eq!(
        card.take_log(),
        [RequestToCard::BusMaster(0, false), RequestToCard::Quiesce(0), RequestToCard::Reset(0)]
    );
    manager.assign(&mut card, vf(0), BOB).unwrap();
    let mut bar = [0xff; 4];
    manager.config_read(vf(0), 0x10, &mut bar);
    assert_eq!((bar, card.bus_master(vf(0))), ([4, 0, 0, 0], false));
}

#[test]
fn vf_with_transactions_pending_at_unassign_is_quarantined() {
    let (mut card, mut manager) = enabled(1);
    manager.assign(&mut card, vf(0), ALICE).unwrap();
    manager.config_write(&mut card, vf(0), 4, &START);
    card.busy = true;
    let busy = VfAssignmentError::Ladder(FunctionResetError::Busy(Function::Vf(0)));
    assert_eq!(manager.unassign(&mut card, vf(0)), Err(busy));
    assert_eq!((manager.state(vf(0)), card.bus_master(vf(0))), (VfAssignmentState::Quarantined, false));
    assert_eq!(manager.assign(&mut card, vf(0), BOB), Err(VfAssignmentError::Quarantined(vf(0))));
    assert_eq!(manager.reset(&mut card, vf(0)), Err(busy));
    card.busy = false;
    manager.reset(&mut card, vf(0)).unwrap();
    assert_eq!(manager.assign(&mut card, vf(0), BOB), Ok(()));
}

#[test]
fn vf_without_a_reset_method_is_quarantined_when_unassigned() {
    let (mut card, mut manager) = enabled(1);
    manager.assign(&mut card, vf(0), ALICE).unwrap();
    card.resets = false;
    let never = VfAssignmentError::Ladder(FunctionResetError::NoReset(Function::Vf(0)));
    assert_eq!(manager.unassign(&mut card, vf(0)), Err(never));
    assert_eq!(manager.state(vf(0)), VfAssignmentState::Quarantined);
}

#[test]
fn function_level_reset_keeps_the_pcie_maximum_payload_size() {
    let mut card = SrIovTestCard::new();
    let control = u16::from(EXPRESS) + express::DEVICE_CONTROL;
    card.config_write(Function::Pf, control, 2, 0x0020);
    card.function_level_reset(Function::Pf);
    assert_eq!(card.config_read(Function::Pf, control, 2) & 0xe0, 0x20, "the payload size must stay");
}

#[test]
fn vf_reset_requested_by_its_owner_keeps_the_owner() {
    let (mut card, mut manager) = enabled(1);
    manager.assign(&mut card, vf(0), ALICE).unwrap();
    manager.config_write(&mut card, vf(0), 4, &START);
    manager.reset(&mut card, vf(0)).unwrap();
    assert_eq!((manager.state(vf(0)), card.bus_master(vf(0))), (VfAssignmentState::Assigned(ALICE), false));
}

#[test]
fn only_a_vf_without_an_owner_can_be_removed() {
    let (mut card, mut manager) = enabled(2);
    manager.assign(&mut card, vf(1), ALICE).unwrap();
    let assigned = VfAssignmentError::Assigned { vf: vf(1), owner: ALICE };
    assert_eq!(manager.remove(&mut card, vf(1)), Err(assigned));
    assert_eq!(manager.disable(&mut card), Err(assigned));
    manager.remove(&mut card, vf(0)).unwrap();
    assert_eq!((manager.state(vf(0)), manager.function(vf(0)).is_none()), (VfAssignmentState::Absent, true));
    assert!(manager.function_mut(vf(0)).is_none());
    assert_eq!(manager.assign(&mut card, vf(0), BOB), Err(VfAssignmentError::Absent(vf(0))));
    manager.add(&mut card, vf(0)).unwrap();
    assert!(manager.function_mut(vf(0)).is_some());
    assert_eq!(manager.add(&mut card, vf(0)), Err(VfAssignmentError::AlreadyPresent(vf(0))));
    let missing = manager.assign(&mut card, vf(5), BOB).unwrap_err();
    assert_eq!(missing.to_string(), "vf5 does not exist: 2 VFs are enabled");
}

#[test]
fn restored_manager_has_the_vfs_and_their_owners() {
    let (mut card, mut manager) = enabled(2);
    manager.assign(&mut card, vf(1), ALICE).unwrap();
    manager.config_write(&mut card, vf(1), 4, &START);
    let mut state = manager.save();
    let successor = SrIovManager::restore(&mut card, PF, &state).unwrap();
    assert_eq!((successor.save(), rids(&successor)), (state.clone(), rids(&manager)));
    assert!(card.bus_master(vf(1)), "the guest does not notice");
    state.slots[0].function.config = [(0xffff, 0)].into_iter().collect();
    let damaged = SrIovManager::restore(&mut card, PF, &state).unwrap_err();
    assert_eq!(damaged, ManagerRestoreError::Damaged(vf(0)));
    state.slots.pop();
    let fewer = SrIovManager::restore(&mut card, PF, &state).unwrap_err();
    assert_eq!(fewer, ManagerRestoreError::Mismatch { saved: 1, enabled: 2 });
}

#[derive(Debug, Clone)]
enum ManagerTestAction {
    Enable(u16),
    Disable,
    Add(u8),
    Remove(u8),
    Assign(u8, u64),
    Unassign(u8),
    Reset(u8),
    Write(u8, u64, Vec<u8>),
    Busy(bool),
}

fn step() -> impl Strategy<Value = ManagerTestAction> {
    let bytes = prop::collection::vec(any::<u8>(), 0..6);
    prop_oneof![
        (0u16..10).prop_map(ManagerTestAction::Enable),
        Just(ManagerTestAction::Disable),
        (0u8..8).prop_map(ManagerTestAction::Add),
        (0u8..8).prop_map(ManagerTestAction::Remove),
        (0u8..8, 0u64..3).prop_map(|(vf, owner)| ManagerTestAction::Assign(vf, owner)),
        (0u8..8).prop_map(ManagerTestAction::Unassign),
        (0u8..8).prop_map(ManagerTestAction::Reset),
        (0u8..8, 0u64..0xb0, bytes)
            .prop_map(|(vf, offset, bytes)| ManagerTestAction::Write(vf, offset, bytes)),
        (0u8..8).prop_map(|vf| ManagerTestAction::Write(vf, 4, START.to_vec())),
        any::<bool>().prop_map(ManagerTestAction::Busy),
    ]
}

/// Performs an action of the random test, and ignores its result: the test checks only the invariants
/// afterwards.
fn perform(step: ManagerTestAction, card: &mut SrIovTestCard, manager: &mut SrIovManager) {
    match step {
        ManagerTestAction::Enable(n) => _ = manager.enable(card, n, BusRouting::Flat),
        ManagerTestAction::Disable => _ = manager.disable(card),
        ManagerTestAction::Add(n) => _ = manager.add(card, vf(n)),
        ManagerTestAction::Remove(n) => _ = manager.remove(card, vf(n)),
        ManagerTestAction::Assign(n, owner) => _ = manager.assign(card, vf(n), VfOwner(owner)),
        ManagerTestAction::Unassign(n) => _ = manager.unassign(card, vf(n)),
        ManagerTestAction::Reset(n) => _ = manager.reset(card, vf(n)),
        ManagerTestAction::Write(n, offset, bytes) => _ = manager.config_write(card, vf(n), offset, &bytes),
        ManagerTestAction::Busy(busy) => card.busy = busy,
    }
}

proptest! {
    #[test]
    fn only_a_vf_with_an_owner_issues_memory_requests(steps in prop::collection::vec(step(), 0..120)) {
        let mut card = SrIovTestCard::new();
        let mut manager = SrIovManager::discover(&mut card, PF).unwrap();
        for step in steps {
            perform(step, &mut card, &mut manager);
            prop_assert_eq!(card.vfs.len(), usize::from(manager.num_vfs()));
            for vf in VfIndex::all() {
                let asked = manager.function(vf).is_some_and(|function| function.endpoint().bus_master());
                let owned = matches!(manager.state(vf), VfAssignmentState::Assigned(_));
                prop_assert_eq!(card.bus_master(vf), owned && asked, "{} {:?}", vf, manager.state(vf));
            }
        }
    }
}
