//! Names that are similar to an unknown one, for messages.

/// Largest number of similar names in a message.
const SHOWN: usize = 5;

/// Returns the known names that are similar to `name`, the most similar first.
pub(crate) fn similar<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let likeness = |known: &str| {
        if known.contains(name) || name.contains(known) { 1.0 } else { strsim::jaro_winkler(name, known) }
    };
    let mut close: Vec<_> = known.iter().map(|known| (likeness(known), *known)).collect();
    close.retain(|(likeness, _)| *likeness > 0.75);
    close.sort_by(|a, b| b.0.total_cmp(&a.0));
    close.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}
