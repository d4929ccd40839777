//! Parsers of options of `softiov vf set`. Their errors name valid values; clap adds the option and its value.

/// Parses "on" or "off", and their usual synonyms.
pub(super) fn on_or_off(text: &str) -> Result<bool, String> {
    match text.to_ascii_lowercase().as_str() {
        "on" | "true" | "yes" | "y" | "t" | "1" => Ok(true),
        "off" | "false" | "no" | "n" | "f" | "0" => Ok(false),
        _ => Err("write on or off".to_owned()),
    }
}

/// Parses the id of a port VLAN, or 0 for none.
pub(super) fn port_vlan(text: &str) -> Result<u16, String> {
    within(text, 4095, "write a VLAN from 1 to 4095, or 0 for no port VLAN")
}

/// Parses a limit of the packet length, or 0 for none.
pub(super) fn mtu(text: &str) -> Result<u16, String> {
    within(text, 9706, "write a length from 68 to 9706 bytes, or 0 for no limit")
}

fn within(text: &str, most: u16, remedy: &str) -> Result<u16, String> {
    text.parse().ok().filter(|number| *number <= most).ok_or_else(|| remedy.to_owned())
}

#[cfg(test)]
mod tests {
    use super::{mtu, on_or_off, port_vlan};

    #[test]
    fn invalid_option_of_vf_set_names_valid_values() {
        assert_eq!([on_or_off("ON"), on_or_off("no")], [Ok(true), Ok(false)]);
        assert_eq!([port_vlan("0"), port_vlan("4095"), mtu("9706")], [Ok(0), Ok(4095), Ok(9706)]);
        assert_eq!(on_or_off("maybe"), Err("write on or off".into()));
        for text in ["-1", "4096", "x"] {
            assert!(port_vlan(text).is_err_and(|remedy| remedy.contains("1 to 4095")), "{text}");
        }
        assert!(mtu("70000").is_err_and(|remedy| remedy.contains("68 to 9706")));
    }
}
