//! Source guard: the addresses that a port may name as its own in IP, ARP and neighbour discovery.

use super::reason::GuardReason;
use units::{IpPrefix, MacAddress};

/// Most options of a neighbour discovery message that are read.
const MOST_OPTIONS: usize = 16;
/// ICMPv6 types that a station without an address sends: multicast listener reports and done (RFC 2710, RFC 3810), router
/// and neighbour solicitations (RFC 4861).
const WITHOUT_ADDRESS: [u8; 5] = [131, 132, 143, 133, 135];
const SOLICITATION: u8 = 135;
const ADVERTISEMENT: u8 = 136;
/// Options with the Ethernet address of the sender, and of the target.
const SOURCE_LINK: u8 = 1;
const TARGET_LINK: u8 = 2;

/// Addresses of a port.
#[derive(Clone, Copy)]
pub(super) struct SourceGuard<'a> {
    pub(super) ips: &'a [IpPrefix],
    /// Tells whether an Ethernet address is the port's.
    pub(super) owns: &'a dyn Fn(MacAddress) -> bool,
}

impl SourceGuard<'_> {
    /// Returns `true` if an IPv4 packet may have this source. `asks` is true for a packet that asks a DHCP server.
    pub(super) fn admits_ipv4(&self, source: [u8; 4], asks: bool) -> bool {
        self.ips.iter().any(|prefix| prefix.has_v4(source)) || asks && source == [0; 4]
    }

    /// Returns `true` if the sender of an ARP or RARP packet for Ethernet and IPv4 is the port. A probe has no protocol
    /// address yet (RFC 5227).
    pub(super) fn admits_arp(&self, packet: &[u8; 28], reverse: bool) -> bool {
        let [kind @ .., operation, m0, m1, m2, m3, m4, m5, a, b, c, d, _, _, _, _, _, _, _, _, _, _] =
            *packet;
        let known = kind == [0, 1, 8, 0, 6, 4, 0];
        let probes = [a, b, c, d] == [0; 4] && (reverse || operation == 1);
        known
            && (self.owns)(MacAddress([m0, m1, m2, m3, m4, m5]))
            && (probes || self.admits_ipv4([a, b, c, d], false))
    }

    /// Returns `true` if an IPv6 address is the port's: a listed one, or the link-local one that follows from its Ethernet
    /// address (RFC 4291, appendix A).
    fn owns_ipv6(&self, address: [u8; 16]) -> bool {
        let [0xfe, 0x80, 0, 0, 0, 0, 0, 0, a, b, c, 0xff, 0xfe, d, e, f] = address else {
            return self.ips.iter().any(|prefix| prefix.has_v6(address));
        };
        (self.owns)(MacAddress([a ^ 2, b, c, d, e, f]))
            || self.ips.iter().any(|prefix| prefix.has_v6(address))
    }

    /// Returns the reason to drop an IPv6 packet. `message` is its ICMPv6 message, and true if that is fragmented.
    pub(super) fn refuses_ipv6(
        &self,
        header: &[u8; 40],
        message: Option<(&[u8], bool)>,
    ) -> Option<GuardReason> {
        let mut source = [0; 16];
        source.copy_from_slice(&header[8..24]);
        let kind = message.and_then(|(message, _)| message.first().copied());
        let unspecified = source == [0; 16];
        let whole = message.is_some_and(|(_, fragmented)| !fragmented);
        let may_lack = unspecified && whole && kind.is_some_and(|kind| WITHOUT_ADDRESS.contains(&kind));
        if !may_lack && !self.owns_ipv6(source) {
            return Some(GuardReason::SourceIp);
        }
        match (message, kind) {
            (Some((message, fragmented)), Some(kind @ 133..=137)) => {
                // Messages of neighbour discovery are never fragmented (RFC 6980).
                let right = !fragmented && self.admits_neighbor(kind, message, unspecified);
                (!right).then_some(GuardReason::SourceNeighbor)
            }
            _ => None,
        }
    }

    /// Returns `true` if a neighbour discovery message names only addresses of the port as the sender's.
    fn admits_neighbor(&self, kind: u8, message: &[u8], unspecified: bool) -> bool {
        let options = match kind {
            133 => 8,
            134 => 16,
            137 => 40,
            _ => 24,
        };
        let target = message.get(8..24).and_then(|target| target.first_chunk::<16>());
        let claims = kind == ADVERTISEMENT || kind == SOLICITATION && unspecified;
        if claims && !target.is_some_and(|target| self.owns_ipv6(*target)) {
            return false;
        }
        let Some(mut rest) = message.get(options..) else { return false };
        for _ in 0..MOST_OPTIONS {
            let [option, units, ..] = *rest else { return rest.is_empty() };
            let Some((this, after)) = rest.split_at_checked(usize::from(units) * 8).filter(|_| units > 0)
            else {
                return false;
            };
            let of_sender = option == SOURCE_LINK || option == TARGET_LINK && kind == ADVERTISEMENT;
            let own = || MacAddress::from_slice(&this[2..]).is_some_and(self.owns);
            if of_sender && (unspecified || units != 1 || !own()) {
                return false;
            }
            rest = after;
        }
        rest.is_empty()
    }
}
