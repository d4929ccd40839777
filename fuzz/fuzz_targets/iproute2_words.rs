//! The words of `softiov ip`, as scripts pass them.
//!
//! Each byte above ASCII is a word of the language; a space ends a word. Checked: no panic, and a refusal that says why.
#![cfg_attr(not(test), no_main)]

use softiov_fuzz::text;

softiov_fuzz::target!(run);

/// Output of a command, which the target does not print.
mod output {
    pub(crate) fn print_last_error(_: String) {}
}

#[path = "../../crates/softiov/src/tools/ip/attributes.rs"]
mod attributes;
#[path = "../../crates/softiov/src/tools/ip/options.rs"]
mod options;
#[path = "../../crates/softiov/src/tools/ip/set.rs"]
mod set;
#[path = "../../crates/softiov/src/tools/tool_exit.rs"]
mod tool_exit;
#[path = "../../crates/softiov/src/tools/ip/words.rs"]
mod words;

use tool_exit::ToolExit;
use words::IpCommandWords;

const WORDS: [&str; 40] = [
    " pf0 ",
    " dev ",
    " up ",
    " vf ",
    " 0 ",
    " 3 ",
    " mac ",
    " 02:00:00:00:00:01 ",
    " vlan ",
    " 4095 ",
    " qos ",
    " 7 ",
    " proto ",
    " 802.1Q ",
    " 802.1ad ",
    " 0x88a8 ",
    " rate ",
    " max_tx_rate ",
    " min_tx_rate ",
    " spoofchk ",
    " on ",
    " off ",
    " query_rss ",
    " state ",
    " auto ",
    " enable ",
    " disable ",
    " trust ",
    " node_guid ",
    " port_guid ",
    " 00:11:22:33:44:55:66:77 ",
    " help ",
    " -s ",
    " -j ",
    " -d ",
    " -o ",
    " -br ",
    " mtu ",
    " 1.2.3.4 ",
    " 010 ",
];

fn run(data: &[u8]) {
    let words: Vec<String> = text(data, &WORDS).split(' ').map(str::to_owned).collect();
    let words: Vec<String> = words.into_iter().filter(|word| !word.is_empty()).collect();
    let mut rest = IpCommandWords::new(&words);
    if let Err(refusal) = options::parse(&mut rest).and_then(|_| set::parse(&mut rest)) {
        assert!(!refusal.text.trim().is_empty(), "a refusal without a reason: {words:?}");
    }
}
