//! Names that are similar to an unknown one, for messages.

/// Largest number of similar names in a message.
const SHOWN: usize = 5;

/// Returns the known names that are similar to `name`, the most similar first. Case does not matter.
pub(crate) fn similar<'a>(name: &str, known: &[&'a str]) -> Vec<&'a str> {
    let name = name.to_lowercase();
    let likeness = |known: &str| {
        let known = known.to_lowercase();
        let has_part = !name.is_empty() && (known.contains(&name) || name.contains(&known));
        (has_part, strsim::jaro_winkler(&name, &known))
    };
    let mut close: Vec<_> = known.iter().map(|known| (likeness(known), *known)).collect();
    close.retain(|((has_part, likeness), _)| *has_part || *likeness > 0.75);
    close.sort_by(|((a_part, a), _), ((b_part, b), _)| b_part.cmp(a_part).then(b.total_cmp(a)));
    close.into_iter().take(SHOWN).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::similar;

    #[test]
    fn similar_names_are_found_in_any_case_nearest_first() {
        let known = ["cost.hypercall_hvm", "cost.vm_transition", "vms", "policy"];
        assert_eq!(similar("VMS", &known), ["vms"]);
        assert_eq!(similar("vm", &known)[0], "vms");
        assert!(similar("zzz", &known).is_empty() && similar("", &known).is_empty());
    }
}
