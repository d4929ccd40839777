//! The rules of grants: who may reach what, for how long, and how far.

use super::{Access, Error, Grants, PAGE, Place, Reference};
use crate::domain::DomainId;

const GUEST: DomainId = DomainId::new(1);
const BACK: DomainId = DomainId::new(2);
const OTHER: DomainId = DomainId::new(3);

/// Three domains of four pages.
fn machine() -> Grants {
    let mut grants = Grants::new();
    [GUEST, BACK, OTHER].iter().for_each(|domain| grants.add_domain(*domain, 4, 8));
    grants
}

fn grant(grants: &mut Grants, page: u32, access: Access) -> Place {
    let reference = grants.domain(GUEST).unwrap().grant(BACK, page, access).unwrap();
    Place { owner: GUEST, reference, offset: 0 }
}

#[test]
fn a_granted_page_is_copied_to_and_from_by_the_domain_it_is_granted_to() {
    let mut grants = machine();
    let place = Place { offset: 100, ..grant(&mut grants, 2, Access::Write) };
    grants.copy_to(BACK, place, b"frame").unwrap();
    assert_eq!(&grants.domain(GUEST).unwrap().page(2).unwrap()[100..105], b"frame");
    let mut read = [0; 5];
    grants.copy_from(BACK, place, &mut read).unwrap();
    assert_eq!(&read, b"frame");
}

#[test]
fn nobody_else_reaches_it_by_copy_or_map() {
    let mut grants = machine();
    let place = grant(&mut grants, 2, Access::Write);
    assert_eq!(grants.copy_to(OTHER, place, b"x"), Err(Error::NotGranted));
    assert_eq!(grants.map(OTHER, GUEST, place.reference, Access::Read), Err(Error::NotGranted));
    let handle = grants.map(BACK, GUEST, place.reference, Access::Read).unwrap();
    assert_eq!(grants.mapped(OTHER, handle).err(), Some(Error::Handle));
    assert_eq!(grants.unmap(OTHER, handle), Err(Error::Handle));
}

#[test]
fn an_access_stays_in_its_page() {
    let mut grants = machine();
    let place = grant(&mut grants, 0, Access::Write);
    let at = |offset| Place { offset, ..place };
    assert_eq!(grants.copy_to(BACK, at(4_095), b"x"), Ok(()));
    assert_eq!(grants.copy_to(BACK, at(4_095), b"xy"), Err(Error::Bounds));
    assert_eq!(grants.copy_from(BACK, at(u16::MAX), &mut [0]), Err(Error::Bounds));
    assert_eq!(grants.copy(BACK, at(1), at(0), PAGE), Err(Error::Bounds));
}

#[test]
fn a_page_granted_for_reading_is_not_written() {
    let mut grants = machine();
    let place = grant(&mut grants, 1, Access::Read);
    assert_eq!(grants.copy_to(BACK, place, b"x"), Err(Error::ReadOnly));
    assert_eq!(grants.map(BACK, GUEST, place.reference, Access::Write), Err(Error::ReadOnly));
    let handle = grants.map(BACK, GUEST, place.reference, Access::Read).unwrap();
    assert_eq!(grants.mapped(BACK, handle).map(<[u8]>::len), Ok(PAGE));
    assert_eq!(grants.mapped_mut(BACK, handle).err(), Some(Error::ReadOnly));
}

#[test]
fn a_page_that_the_domain_does_not_have_is_found_out_when_it_is_used() {
    let mut grants = machine();
    let place = grant(&mut grants, u32::MAX, Access::Write);
    assert_eq!(grants.copy_to(BACK, place, b"x"), Err(Error::Page));
    assert_eq!(grants.map(BACK, GUEST, place.reference, Access::Read), Err(Error::Page));
    let nowhere = Place { reference: Reference(7_000), ..place };
    assert_eq!(grants.copy_to(BACK, nowhere, b"x"), Err(Error::Reference));
}

#[test]
fn a_grant_is_not_ended_while_the_page_is_mapped() {
    let mut grants = machine();
    let Place { reference, .. } = grant(&mut grants, 3, Access::Write);
    let maps = [(); 2].map(|()| grants.map(BACK, GUEST, reference, Access::Read).unwrap());
    for handle in maps {
        assert_eq!(grants.domain(GUEST).unwrap().end_access(reference), Err(Error::InUse));
        assert_eq!(grants.unmap(BACK, handle), Ok(()));
        assert_eq!(grants.unmap(BACK, handle), Err(Error::Handle), "once is enough");
    }
    assert_eq!(grants.domain(GUEST).unwrap().end_access(reference), Ok(()));
    assert_eq!(grants.domain(GUEST).unwrap().end_access(reference), Err(Error::Reference));
    assert_eq!(grants.map(BACK, GUEST, reference, Access::Read), Err(Error::Reference));
}

#[test]
fn a_copy_between_granted_pages_needs_both() {
    let mut grants = machine();
    let from = grant(&mut grants, 0, Access::Read);
    grants.domain(GUEST).unwrap().page_mut(0).unwrap()[..4].copy_from_slice(b"from");
    let reference = grants.domain(OTHER).unwrap().grant(BACK, 1, Access::Write).unwrap();
    let to = Place { owner: OTHER, reference, offset: 8 };
    assert_eq!(grants.copy(BACK, from, to, 4), Ok(()));
    assert_eq!(&grants.domain(OTHER).unwrap().page(1).unwrap()[8..12], b"from");
    assert_eq!(grants.copy(BACK, to, from, 4), Err(Error::ReadOnly));
    assert_eq!(grants.copy(OTHER, from, to, 4), Err(Error::NotGranted));
    let within = grant(&mut grants, 1, Access::Write);
    assert_eq!(grants.copy(BACK, from, within, 4), Ok(()));
    assert_eq!(&grants.domain(GUEST).unwrap().page(1).unwrap()[..4], b"from");
}

#[test]
fn a_table_has_so_many_entries() {
    let mut grants = machine();
    let own = grants.domain(GUEST).unwrap();
    let all: alloc::vec::Vec<_> = (0..8).map(|_| own.grant(BACK, 0, Access::Read).unwrap()).collect();
    assert_eq!(own.grant(BACK, 0, Access::Read), Err(Error::Full));
    own.end_access(all[5]).unwrap();
    assert_eq!(own.grant(BACK, 0, Access::Read), Ok(all[5]));
}
