//! Tests of IOMMU page tables, IOTLB and faults, including random mappings compared with a list of pages.

use super::fault::MAX_STORED;
use super::{
    DmaRights, DmaTranslationWork, Iommu, IommuAccessKind, IommuFault, IommuFaultReason, IommuMapError,
    IommuPageSize, IommuPageTables, Iotlb, IotlbCounts,
};
use crate::domain::DomainId;
use pcie::Rid;
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::vec::Vec;

const VF: Rid = Rid(0x0110);
const OTHER: Rid = Rid(0x0112);
const FIRST: DomainId = DomainId::new(1);
const SECOND: DomainId = DomainId::new(2);

/// Creates an IOMMU that assigns `VF` to the first domain and `OTHER` to the second. The first domain has a
/// small page at 1000h and a large page at 200000h.
fn machine() -> Iommu {
    let mut iommu = Iommu::new(Iotlb::new(16, 4));
    iommu.attach(VF, FIRST);
    iommu.attach(OTHER, SECOND);
    iommu.domain(FIRST).map(0x1000, 0x7000_0000, IommuPageSize::Small, DmaRights::ALL).unwrap();
    iommu.domain(FIRST).map(0x20_0000, 0x4000_0000, IommuPageSize::Large, DmaRights::READ).unwrap();
    iommu
}

fn reached(iommu: &mut Iommu, rid: Rid, iova: u64) -> Result<u64, IommuFaultReason> {
    iommu.translate(rid, iova, IommuAccessKind::Read).map(|t| t.address).map_err(|fault| fault.reason)
}

#[test]
fn pci_function_reaches_the_pages_of_its_iommu_domain() {
    let mut iommu = machine();
    let small = iommu.translate(VF, 0x1234, IommuAccessKind::Write).unwrap();
    assert_eq!((small.address, small.room, small.loads), (0x7000_0234, 0xdcc, 4));
    let large = iommu.translate(VF, 0x21_2345, IommuAccessKind::Read).unwrap();
    assert_eq!((large.address, large.room, large.loads), (0x4001_2345, 0x1e_dcbb, 3));
    assert_eq!(
        (iommu.translate(VF, 0x1000, IommuAccessKind::Read).unwrap().loads, iommu.faults().count()),
        (0, 0)
    );
    assert_eq!(iommu.tlb().counts(), IotlbCounts { hits: 1, misses: 2 });
}

#[test]
fn iommu_blocks_unmapped_and_forbidden_accesses() {
    let mut iommu = machine();
    for (rid, iova, access, reason) in [
        (VF, 0x2000, IommuAccessKind::Read, IommuFaultReason::Unmapped),
        (VF, 0x0fff, IommuAccessKind::Read, IommuFaultReason::Unmapped),
        (VF, 0x20_0000, IommuAccessKind::Write, IommuFaultReason::Rights),
        (VF, 1 << 48 | 0x1000, IommuAccessKind::Read, IommuFaultReason::Width),
        (OTHER, 0x1000, IommuAccessKind::Read, IommuFaultReason::Unmapped),
        (Rid(0x0111), 0x1000, IommuAccessKind::Read, IommuFaultReason::UnknownFunction),
        (Rid(0xff00), 0x1000, IommuAccessKind::Write, IommuFaultReason::UnknownFunction),
    ] {
        let fault = IommuFault { rid, iova, access, reason };
        assert_eq!(iommu.translate(rid, iova, access), Err(fault));
        assert_eq!(iommu.faults().kept().last(), Some(&fault));
    }
}

#[test]
fn address_above_48_bits_never_hits_the_iotlb() {
    let mut iommu = machine();
    assert_eq!(reached(&mut iommu, VF, 0x1000), Ok(0x7000_0000));
    for bit in 48..64 {
        assert_eq!(reached(&mut iommu, VF, 1 << bit | 0x1000), Err(IommuFaultReason::Width), "bit {bit}");
    }
}

#[test]
fn iommu_domains_translate_equal_addresses_independently() {
    let mut iommu = machine();
    iommu.domain(SECOND).map(0x1000, 0x9000_0000, IommuPageSize::Small, DmaRights::ALL).unwrap();
    for _ in 0..2 {
        assert_eq!(reached(&mut iommu, VF, 0x1000), Ok(0x7000_0000));
        assert_eq!(reached(&mut iommu, OTHER, 0x1000), Ok(0x9000_0000));
    }
}

#[test]
fn unmapped_page_is_reached_until_iotlb_invalidation() {
    let mut iommu = machine();
    assert_eq!(reached(&mut iommu, VF, 0x1000), Ok(0x7000_0000));
    iommu.domain(FIRST).unmap(0x1000, IommuPageSize::Small).unwrap();
    assert_eq!(
        reached(&mut iommu, VF, 0x1000),
        Ok(0x7000_0000),
        "the IOTLB keeps the stale entry, as in hardware"
    );
    iommu.tlb().invalidate_page(FIRST, 0x1000);
    assert_eq!(reached(&mut iommu, VF, 0x1000), Err(IommuFaultReason::Unmapped));
    assert_eq!(reached(&mut iommu, VF, 0x20_0000), Ok(0x4000_0000));
    iommu.unmap_and_flush(FIRST, 0x20_0000, IommuPageSize::Large).unwrap();
    assert_eq!(reached(&mut iommu, VF, 0x20_0000), Err(IommuFaultReason::Unmapped));
}

#[test]
fn iotlb_invalidation_affects_only_its_domain() {
    let mut iommu = machine();
    iommu.domain(SECOND).map(0x1000, 0x9000_0000, IommuPageSize::Small, DmaRights::ALL).unwrap();
    let loads = |iommu: &mut Iommu, rid| iommu.translate(rid, 0x1000, IommuAccessKind::Read).unwrap().loads;
    assert_eq!((loads(&mut iommu, VF), loads(&mut iommu, OTHER)), (4, 4));
    iommu.tlb().invalidate_domain(FIRST);
    assert_eq!((loads(&mut iommu, VF), loads(&mut iommu, OTHER)), (4, 0));
    iommu.tlb().invalidate_all();
    assert_eq!((loads(&mut iommu, VF), loads(&mut iommu, OTHER)), (4, 4));
}

#[test]
fn reassigned_pci_function_cannot_reach_its_old_domain() {
    let mut iommu = machine();
    assert!(reached(&mut iommu, VF, 0x1000).is_ok());
    iommu.attach(VF, SECOND);
    assert_eq!(
        (reached(&mut iommu, VF, 0x1000), iommu.owner(VF)),
        (Err(IommuFaultReason::Unmapped), Some(SECOND))
    );
    iommu.detach(VF);
    assert_eq!(reached(&mut iommu, VF, 0x1000), Err(IommuFaultReason::UnknownFunction));
}

#[test]
fn dma_range_is_translated_in_pieces_up_to_the_fault() {
    let mut iommu = machine();
    iommu.domain(FIRST).map(0x2000, 0x5000_0000, IommuPageSize::Small, DmaRights::ALL).unwrap();
    let mut pieces = Vec::new();
    let effort = iommu
        .translate_range(VF, 0x1f00, 0x300, IommuAccessKind::Write, |at, length| pieces.push((at, length)));
    assert_eq!(effort, Ok(DmaTranslationWork { pages: 2, misses: 2, loads: 8 }));
    assert_eq!(pieces, [(0x7000_0f00, 0x100), (0x5000_0000, 0x200)]);
    let fault = iommu
        .translate_range(VF, 0x2f00, 0x300, IommuAccessKind::Write, |at, length| pieces.push((at, length)));
    assert_eq!(fault.map_err(|fault| fault.iova), Err(0x3000));
    assert_eq!(pieces[2..], [(0x5000_0f00, 0x100)]);
    assert!(iommu.translate_range(VF, u64::MAX, 9, IommuAccessKind::Read, |_, _| ()).is_err());
}

#[test]
fn iommu_counts_but_does_not_store_a_flood_of_faults() {
    let mut iommu = machine();
    for n in 0..1000 {
        let _ = iommu.translate(VF, 0x5000_0000 + n, IommuAccessKind::Write);
    }
    assert_eq!((iommu.faults().count(), iommu.faults().kept().len()), (1000, MAX_STORED));
    iommu.faults().clear();
    let _ = iommu.translate(VF, 0x1, IommuAccessKind::Write);
    assert_eq!(iommu.faults().kept().len(), 1);
}

#[test]
fn iommu_translations_and_faults_do_not_allocate() {
    let mut iommu = machine();
    let allocated = allocation_counter::measure(|| {
        for _ in 0..2 * MAX_STORED {
            assert!(reached(&mut iommu, VF, 0x1000).is_ok() && reached(&mut iommu, VF, 0x9000).is_err());
        }
    });
    assert_eq!(allocated.count_total, 0);
}

#[test]
fn iotlb_evicts_the_least_recently_used_entry() {
    let mut iommu = Iommu::new(Iotlb::new(1, 2));
    iommu.attach(VF, FIRST);
    iommu.domain(FIRST).map_range(0, 0, 0x4000, DmaRights::ALL).unwrap();
    let mut loads = |iova| iommu.translate(VF, iova, IommuAccessKind::Read).unwrap().loads;
    assert_eq!([loads(0x1000), loads(0x2000), loads(0x1000)], [4, 4, 0]);
    assert_eq!([loads(0x3000), loads(0x1000), loads(0x2000)], [4, 0, 4]);
}

#[test]
fn added_iommu_access_rights_need_no_iotlb_invalidation() {
    let mut iommu = machine();
    assert!(reached(&mut iommu, VF, 0x20_0000).is_ok());
    iommu.domain(FIRST).unmap(0x20_0000, IommuPageSize::Large).unwrap();
    iommu.domain(FIRST).map(0x20_0000, 0x4000_0000, IommuPageSize::Large, DmaRights::ALL).unwrap();
    assert!(
        iommu.translate(VF, 0x20_0000, IommuAccessKind::Write).is_ok(),
        "a missing right in the IOTLB causes another walk"
    );
}

#[test]
fn invalid_iommu_mappings_are_rejected() {
    let mut tables = IommuPageTables::default();
    let map = IommuPageTables::map;
    assert_eq!(
        map(&mut tables, 0x1800, 0, IommuPageSize::Small, DmaRights::ALL),
        Err(IommuMapError::Misaligned)
    );
    assert_eq!(
        map(&mut tables, 0x20_0000, 0x1000, IommuPageSize::Large, DmaRights::ALL),
        Err(IommuMapError::Misaligned)
    );
    assert_eq!(map(&mut tables, 1 << 48, 0, IommuPageSize::Small, DmaRights::ALL), Err(IommuMapError::Width));
    let nothing = DmaRights { read: false, write: false };
    assert_eq!(map(&mut tables, 0, 0, IommuPageSize::Small, nothing), Err(IommuMapError::NoRights));
    map(&mut tables, 0x20_0000, 0, IommuPageSize::Large, DmaRights::ALL).unwrap();
    assert_eq!(
        map(&mut tables, 0x20_1000, 0, IommuPageSize::Small, DmaRights::ALL),
        Err(IommuMapError::Occupied)
    );
    assert_eq!(tables.unmap(0x20_1000, IommuPageSize::Small), Err(IommuMapError::Unmapped));
    map(&mut tables, 0x40_1000, 0, IommuPageSize::Small, DmaRights::ALL).unwrap();
    assert_eq!(
        map(&mut tables, 0x40_0000, 0, IommuPageSize::Large, DmaRights::ALL),
        Err(IommuMapError::Occupied)
    );
    assert_eq!(tables.unmap(0x40_0000, IommuPageSize::Large), Err(IommuMapError::Unmapped));
}

#[test]
fn emptied_iommu_page_tables_are_reused() {
    let mut tables = IommuPageTables::default();
    for n in 0..1000 {
        tables.map(n << 30, 0, IommuPageSize::Small, DmaRights::ALL).unwrap();
        assert_eq!(tables.tables(), 4);
        tables.unmap(n << 30, IommuPageSize::Small).unwrap();
        assert_eq!(tables.tables(), 1);
    }
}

proptest! {
    #[test]
    fn device_reaches_exactly_the_pages_mapped_in_the_iommu(
        steps in prop::collection::vec((0u8..4, 0u64..2048, 0u64..1000), 0..200),
    ) {
        let mut iommu = Iommu::new(Iotlb::new(4, 2));
        iommu.attach(VF, FIRST);
        let mut pages: BTreeMap<u64, u64> = BTreeMap::new();
        for (what, page, host) in steps {
            // Pages near the ends of two large pages.
            let (iova, host) = (page << 12, host << 21);
            let size = if what == 1 { IommuPageSize::Large } else { IommuPageSize::Small };
            let iova = iova & !(size.bytes() - 1);
            let span = (iova..iova + size.bytes()).step_by(4096);
            match what {
                0 | 1 => {
                    let free = span.clone().all(|at| !pages.contains_key(&at));
                    let mapped = iommu.domain(FIRST).map(iova, host, size, DmaRights::ALL).is_ok();
                    prop_assert_eq!(mapped, free);
                    if mapped {
                        pages.extend(span.map(|at| (at, host + at - iova)));
                    }
                }
                2 => {
                    let wanted = [IommuPageSize::Small, IommuPageSize::Large];
                    for size in wanted {
                        let iova = iova & !(size.bytes() - 1);
                        if iommu.unmap_and_flush(FIRST, iova, size).is_ok() {
                            pages.retain(|&at, _| !(iova..iova + size.bytes()).contains(&at));
                        }
                    }
                }
                _ => {
                    let found = iommu.translate(VF, iova + 5, IommuAccessKind::Write).map(|t| t.address - 5);
                    prop_assert_eq!(found.ok(), pages.get(&iova).copied());
                }
            }
        }
    }
}
