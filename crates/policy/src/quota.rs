//! Checks the quotas of a VF's filters against the tables of a family.

use crate::error::PolicyError;
use crate::filters::{FilterKind, FilterQuota, FilterQuotas, FilterTables};

/// Checks that a family can keep the quotas, or that no quota is set if the family has no filters.
///
/// # Errors
/// [`PolicyError`].
pub(crate) fn check(
    quotas: &FilterQuotas,
    filters: &Result<FilterTables, &'static str>,
) -> Result<(), PolicyError> {
    match filters {
        Ok(tables) => FilterKind::ALL
            .into_iter()
            .try_for_each(|kind| check_one(quotas.of(kind), kind, tables.most(kind))),
        Err(why) => changed(quotas).map_or(Ok(()), |setting| Err(PolicyError::Unsupported(setting, why))),
    }
}

fn check_one(quota: FilterQuota, kind: FilterKind, most: u16) -> Result<(), PolicyError> {
    for (setting, value) in [(kind.min_setting(), quota.min), (kind.max_setting(), quota.max)] {
        if value > most {
            return Err(PolicyError::FilterQuota(setting, value, most));
        }
    }
    if quota.max > 0 && quota.min > quota.max {
        return Err(PolicyError::FilterQuotas(kind, quota.min, quota.max));
    }
    Ok(())
}

/// Returns the name of the first quota that is not its default.
fn changed(quotas: &FilterQuotas) -> Option<&'static str> {
    let default = FilterQuotas::default();
    FilterKind::ALL.into_iter().find_map(|kind| {
        let (own, default) = (quotas.of(kind), default.of(kind));
        let settings =
            [(own.min != default.min, kind.min_setting()), (own.max != default.max, kind.max_setting())];
        settings.into_iter().find_map(|(changed, setting)| changed.then_some(setting))
    })
}
