//! Lists of VLANs in text: `any`, or ids and ranges such as `10,20,100-199`.

use policy::{VLANS, VlanSet};

/// Parses a list of VLANs such as "10,20-29". The result `None` stands for "any".
///
/// # Errors
/// Message that names the part which is neither an id nor a range.
pub fn parse(text: &str) -> Result<Option<VlanSet>, String> {
    if text == "any" {
        return Ok(None);
    }
    let mut set = VlanSet::untagged();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let (first, last) = part.split_once('-').unwrap_or((part, part));
        let id = |text: &str| text.trim().parse().ok().filter(|id| VLANS.contains(id));
        let (first, last) = id(first).zip(id(last)).ok_or_else(|| {
            format!(
                "{part:?} is neither a VLAN ({}-{}) nor a range such as 100-199; \"any\" allows all VLANs",
                VLANS.start(),
                VLANS.end()
            )
        })?;
        if first > last {
            return Err(format!("the range {part:?} ends before it begins; write {last}-{first}"));
        }
        (first..=last).for_each(|vlan| set.insert(vlan));
    }
    Ok(Some(set))
}

/// Formats a list of VLANs so that [`parse`] reads it back.
#[must_use]
pub fn print(vlans: Option<&VlanSet>) -> String {
    let Some(vlans) = vlans else { return "any".to_owned() };
    let mut ranges: Vec<(u16, u16)> = Vec::new();
    for vlan in vlans.iter().filter(|vlan| VLANS.contains(vlan)) {
        match ranges.last_mut() {
            Some((_, last)) if *last + 1 == vlan => *last = vlan,
            _ => ranges.push((vlan, vlan)),
        }
    }
    let range = |(first, last): &(u16, u16)| {
        if first == last { first.to_string() } else { format!("{first}-{last}") }
    };
    ranges.iter().map(range).collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::{parse, print};

    #[test]
    fn printed_vlan_list_parses_to_itself() {
        for text in ["any", "", "10", "1,3,5-7,4095", "100-199"] {
            assert_eq!(print(parse(text).unwrap().as_ref()), text);
        }
        assert_eq!(print(parse(" 7, 5-6 ,").unwrap().as_ref()), "5-7");
    }

    #[test]
    fn invalid_vlan_is_named_in_the_error() {
        for text in ["0", "4096", "x", "5-", "-5", "1,all", "70000"] {
            assert!(parse(text).unwrap_err().contains("4095"), "{text}");
        }
        assert!(parse("1,7-5").unwrap_err().contains("write 5-7"));
    }
}
