//! The words of `softiov vf set`: iproute2's, where it has one. Left out: what they mean, which the host checks.

use clap::ValueEnum;
use daemon::control::status::LinkState;
use daemon::policy::{Change, Coalesce};

/// What to change; at least one thing.
#[derive(Debug, clap::Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Wishes {
    /// Its link: as the port's, up, or down.
    #[arg(long, value_enum)]
    state: Option<State>,
    /// Its address, which the guest may then not change; all zeros leave the choice to the guest again. A running
    /// guest takes it when its driver is loaded anew.
    #[arg(long, value_name = "ADDRESS")]
    mac: Option<String>,
    /// Port VLAN, 1 to 4094: the guest sends and receives in this one, untagged; 0 is none.
    #[arg(long, value_name = "ID")]
    vlan: Option<u16>,
    /// Priority of the port VLAN, 0 to 7.
    #[arg(long, value_name = "PRIORITY")]
    qos: Option<u8>,
    /// Protocol of the port VLAN: 802.1Q is all that the card has.
    #[arg(long, value_name = "PROTOCOL")]
    proto: Option<String>,
    /// The VLANs that the guest may join: any, or ids and ranges such as 10,20,100-199; "" is none.
    #[arg(long, value_name = "LIST")]
    vlans: Option<String>,
    /// Drop frames with a source address or VLAN that is not the guest's.
    #[arg(long, value_enum)]
    spoofchk: Option<Switch>,
    /// Let the guest change an address that was set here.
    #[arg(long, value_enum)]
    trust: Option<Switch>,
    /// The most that the guest may send, Mb/s, 1 to 1000; 0 lifts the limit.
    #[arg(long, value_name = "MBPS", alias = "max_tx_rate")]
    max_tx_rate: Option<u32>,
    /// The least that the guest may send: 0, because the card guarantees nothing.
    #[arg(long, value_name = "MBPS", alias = "min_tx_rate")]
    min_tx_rate: Option<u32>,
    /// Let the guest ask for every multicast frame.
    #[arg(long, value_enum)]
    allmulti: Option<Switch>,
    /// The longest packet that the guest may ask to receive, 68 to 9706; 0 lifts the limit.
    #[arg(long, value_name = "BYTES", alias = "max_mtu")]
    max_mtu: Option<u16>,
    /// Spread what the guest receives over its two queues by flow. Its driver has to use both, as DPDK's can and Linux
    /// igbvf does not: otherwise half of the flows are lost.
    #[arg(long, value_enum)]
    rss: Option<Switch>,
    /// Interrupt the guest at least so often, a second, when there is something to say; 0 leaves it to the guest.
    #[arg(long, value_name = "HERTZ")]
    min_interrupts: Option<u32>,
    /// Interrupt the guest at most so often, a second; 0 leaves it to the guest.
    #[arg(long, value_name = "HERTZ")]
    max_interrupts: Option<u32>,
    /// Who chooses the guest's interrupt rate within these bounds: its driver, or the host by the packet rate.
    #[arg(long, value_enum)]
    coalesce: Option<Chooser>,
    /// Shut the VF in, so that it moves no frame and sees no link, or let it out.
    #[arg(long, value_enum)]
    quarantine: Option<Switch>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum Chooser {
    Guest,
    Adaptive,
}

impl From<Chooser> for Coalesce {
    fn from(chooser: Chooser) -> Self {
        match chooser {
            Chooser::Guest => Self::Guest,
            Chooser::Adaptive => Self::Adaptive,
        }
    }
}

/// A VF's link, in iproute2's words.
#[derive(Debug, Clone, Copy, ValueEnum)]
enum State {
    /// As the port's.
    Auto,
    /// Up, whatever the port's is.
    Enable,
    /// Down.
    Disable,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl From<Switch> for bool {
    fn from(switch: Switch) -> bool {
        switch == Switch::On
    }
}

impl From<State> for LinkState {
    fn from(state: State) -> Self {
        match state {
            State::Auto => Self::Auto,
            State::Enable => Self::Enable,
            State::Disable => Self::Disable,
        }
    }
}

impl From<Wishes> for Change {
    fn from(wishes: Wishes) -> Self {
        Self {
            state: wishes.state.map(LinkState::from),
            mac: wishes.mac,
            vlan: wishes.vlan,
            qos: wishes.qos,
            proto: wishes.proto,
            vlans: wishes.vlans,
            spoofchk: wishes.spoofchk.map(bool::from),
            trust: wishes.trust.map(bool::from),
            max_tx_rate: wishes.max_tx_rate,
            min_tx_rate: wishes.min_tx_rate,
            allmulti: wishes.allmulti.map(bool::from),
            max_mtu: wishes.max_mtu,
            rss: wishes.rss.map(bool::from),
            min_interrupts: wishes.min_interrupts,
            max_interrupts: wishes.max_interrupts,
            coalesce: wishes.coalesce.map(Coalesce::from),
            quarantine: wishes.quarantine.map(bool::from),
        }
    }
}
