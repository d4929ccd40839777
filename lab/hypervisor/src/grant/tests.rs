//! Tests of the grant rules: permitted domains, lifetimes and bounds.

use super::{GrantAccess, GrantAddress, GrantError, GrantReference, GrantTables, PAGE};
use crate::domain::DomainId;

const GUEST: DomainId = DomainId::new(1);
const BACK: DomainId = DomainId::new(2);
const OTHER: DomainId = DomainId::new(3);

/// Creates the grant tables of three domains with four pages each.
fn machine() -> GrantTables {
    let mut grants = GrantTables::new();
    [GUEST, BACK, OTHER].iter().for_each(|domain| grants.add_domain(*domain, 4, 8));
    grants
}

fn grant(grants: &mut GrantTables, page: u32, access: GrantAccess) -> GrantAddress {
    let reference = grants.domain(GUEST).unwrap().grant(BACK, page, access).unwrap();
    GrantAddress { owner: GUEST, reference, offset: 0 }
}

#[test]
fn grantee_copies_to_and_from_a_granted_page() {
    let mut grants = machine();
    let address = GrantAddress { offset: 100, ..grant(&mut grants, 2, GrantAccess::Write) };
    grants.copy_to(BACK, address, b"frame").unwrap();
    assert_eq!(&grants.domain(GUEST).unwrap().page(2).unwrap()[100..105], b"frame");
    let mut read = [0; 5];
    grants.copy_from(BACK, address, &mut read).unwrap();
    assert_eq!(&read, b"frame");
}

#[test]
fn other_domain_cannot_copy_or_map_a_granted_page() {
    let mut grants = machine();
    let address = grant(&mut grants, 2, GrantAccess::Write);
    assert_eq!(grants.copy_to(OTHER, address, b"x"), Err(GrantError::NotGranted));
    assert_eq!(grants.map(OTHER, GUEST, address.reference, GrantAccess::Read), Err(GrantError::NotGranted));
    let handle = grants.map(BACK, GUEST, address.reference, GrantAccess::Read).unwrap();
    assert_eq!(grants.mapped(OTHER, handle).err(), Some(GrantError::Handle));
    assert_eq!(grants.unmap(OTHER, handle), Err(GrantError::Handle));
}

#[test]
fn access_beyond_a_granted_page_is_rejected() {
    let mut grants = machine();
    let address = grant(&mut grants, 0, GrantAccess::Write);
    let at = |offset| GrantAddress { offset, ..address };
    assert_eq!(grants.copy_to(BACK, at(4_095), b"x"), Ok(()));
    assert_eq!(grants.copy_to(BACK, at(4_095), b"xy"), Err(GrantError::Bounds));
    assert_eq!(grants.copy_from(BACK, at(u16::MAX), &mut [0]), Err(GrantError::Bounds));
    assert_eq!(grants.copy(BACK, at(1), at(0), PAGE), Err(GrantError::Bounds));
}

#[test]
fn read_only_grant_rejects_writes() {
    let mut grants = machine();
    let address = grant(&mut grants, 1, GrantAccess::Read);
    assert_eq!(grants.copy_to(BACK, address, b"x"), Err(GrantError::ReadOnly));
    assert_eq!(grants.map(BACK, GUEST, address.reference, GrantAccess::Write), Err(GrantError::ReadOnly));
    let handle = grants.map(BACK, GUEST, address.reference, GrantAccess::Read).unwrap();
    assert_eq!(grants.mapped(BACK, handle).map(<[u8]>::len), Ok(PAGE));
    assert_eq!(grants.mapped_mut(BACK, handle).err(), Some(GrantError::ReadOnly));
}

#[test]
fn copy_or_map_of_a_missing_granted_page_is_refused() {
    let mut grants = machine();
    let address = grant(&mut grants, u32::MAX, GrantAccess::Write);
    assert_eq!(grants.copy_to(BACK, address, b"x"), Err(GrantError::Page));
    assert_eq!(grants.map(BACK, GUEST, address.reference, GrantAccess::Read), Err(GrantError::Page));
    let nowhere = GrantAddress { reference: GrantReference(7_000), ..address };
    assert_eq!(grants.copy_to(BACK, nowhere, b"x"), Err(GrantError::Reference));
}

#[test]
fn grant_cannot_end_while_the_page_is_mapped() {
    let mut grants = machine();
    let GrantAddress { reference, .. } = grant(&mut grants, 3, GrantAccess::Write);
    let maps = [(); 2].map(|()| grants.map(BACK, GUEST, reference, GrantAccess::Read).unwrap());
    for handle in maps {
        assert_eq!(grants.domain(GUEST).unwrap().end_access(reference), Err(GrantError::InUse));
        assert_eq!(grants.unmap(BACK, handle), Ok(()));
        assert_eq!(grants.unmap(BACK, handle), Err(GrantError::Handle), "a page cannot be unmapped twice");
    }
    assert_eq!(grants.domain(GUEST).unwrap().end_access(reference), Ok(()));
    assert_eq!(grants.domain(GUEST).unwrap().end_access(reference), Err(GrantError::Reference));
    assert_eq!(grants.map(BACK, GUEST, reference, GrantAccess::Read), Err(GrantError::Reference));
}

#[test]
fn copy_between_two_domains_pages_needs_both_grants() {
    let mut grants = machine();
    let from = grant(&mut grants, 0, GrantAccess::Read);
    grants.domain(GUEST).unwrap().page_mut(0).unwrap()[..4].copy_from_slice(b"from");
    let reference = grants.domain(OTHER).unwrap().grant(BACK, 1, GrantAccess::Write).unwrap();
    let to = GrantAddress { owner: OTHER, reference, offset: 8 };
    assert_eq!(grants.copy(BACK, from, to, 4), Ok(()));
    assert_eq!(&grants.domain(OTHER).unwrap().page(1).unwrap()[8..12], b"from");
    assert_eq!(grants.copy(BACK, to, from, 4), Err(GrantError::ReadOnly));
    assert_eq!(grants.copy(OTHER, from, to, 4), Err(GrantError::NotGranted));
    let within = grant(&mut grants, 1, GrantAccess::Write);
    assert_eq!(grants.copy(BACK, from, within, 4), Ok(()));
    assert_eq!(&grants.domain(GUEST).unwrap().page(1).unwrap()[..4], b"from");
}

#[test]
fn grant_table_refuses_grants_beyond_its_size() {
    let mut grants = machine();
    let own = grants.domain(GUEST).unwrap();
    let all: alloc::vec::Vec<_> = (0..8).map(|_| own.grant(BACK, 0, GrantAccess::Read).unwrap()).collect();
    assert_eq!(own.grant(BACK, 0, GrantAccess::Read), Err(GrantError::Full));
    own.end_access(all[5]).unwrap();
    assert_eq!(own.grant(BACK, 0, GrantAccess::Read), Ok(all[5]));
}
