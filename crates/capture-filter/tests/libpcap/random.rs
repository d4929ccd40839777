//! Compares random filters with libpcap: filters of the list, joined in every way.

use crate::{LibpcapComparison, filters};
use proptest::prelude::{BoxedStrategy, Strategy, prop_assert_eq, prop_oneof, proptest};
use proptest::sample::select;
use std::sync::LazyLock;

static COMPARISON: LazyLock<Option<LibpcapComparison>> =
    LazyLock::new(|| LibpcapComparison::new("random filters beside libpcap"));

/// Generates random filters: accepted filters of the list, joined by `and` and `or`, negated and put in
/// brackets.
fn filter() -> BoxedStrategy<String> {
    let is_part = |text: &&str| {
        COMPARISON
            .as_ref()
            .is_none_or(|known| known.select(text).is_ok() && known.is_the_same_in_all_versions(text))
    };
    let parts: Vec<_> = filters::all().into_iter().filter(is_part).collect();
    let joint = select(vec![" and ", " or "]);
    let part = select(parts).prop_map(str::to_owned);
    part.prop_recursive(3, 12, 4, move |inner| {
        let more = proptest::collection::vec((joint.clone(), inner.clone()), 1..4);
        prop_oneof![
            1 => inner.clone().prop_map(|part| format!("not ({part})")),
            1 => inner.clone().prop_map(|part| format!("({part})")),
            4 => (inner, more).prop_map(|(first, more)| {
                more.iter().fold(first, |joined, (joint, part)| joined + joint + part)
            }),
        ]
    })
    .boxed()
}

proptest! {
    #[test]
    fn random_filter_combinations_select_frames_like_libpcap(text in filter()) {
        if let Some(comparison) = COMPARISON.as_ref() {
            prop_assert_eq!(comparison.check(&text, |_| true), Ok(()));
        }
    }
}
