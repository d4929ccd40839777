//! Card families of a simulated port's functions.

use crate::config::file::CardFamily;
use i82576::MacAddress;
use vhost_client::VirtioNetConfig;
use virtio::VirtioFeatures;

/// Maximum number of guests in most lives.
const FEW: usize = 8;
/// Number of guests in one life of [`MANY_LIVES`]: all VFs of an AVF or virtio port.
const MANY: usize = 64;
/// Number of lives of which one has [`MANY`] guests.
const MANY_LIVES: u32 = 50;

/// Offloads of a virtio driver: the device segments TCP over IPv4, and either side completes checksums.
const OFFLOADS: VirtioFeatures =
    VirtioFeatures::CSUM.with(VirtioFeatures::HOST_TSO4).with(VirtioFeatures::GUEST_CSUM);

/// Card family of a guest's function, with the rings that a virtio driver chooses.
#[derive(Debug, Clone, Copy)]
pub(super) enum SimulatedFamily {
    I82576,
    Avf,
    Virtio {
        packed: bool,
        events: bool,
        in_order: bool,
        /// True if the device segments packets and completes checksums.
        offloads: bool,
        descriptors: u16,
    },
}

impl SimulatedFamily {
    /// Chooses the families of a port's functions: one, or AVFs and virtio devices together.
    pub(super) fn draw_all(random: &mut fastrand::Rng) -> Vec<Self> {
        let port = random.u32(0..4);
        // An 82576 has at most eight VFs.
        let has_many = random.u32(0..MANY_LIVES) == 0 && port != 0;
        let guests = if has_many { MANY } else { random.usize(1..=FEW) };
        let mut draw = || match port {
            0 => Self::I82576,
            1 => Self::Avf,
            3 if random.bool() => Self::Avf,
            _ => Self::draw_virtio(random),
        };
        (0..guests).map(|_| draw()).collect()
    }

    fn draw_virtio(random: &mut fastrand::Rng) -> Self {
        let [packed, events, in_order] = [random.bool(), random.bool(), random.bool()];
        // Only packed rings may have sizes that are no powers of two (VIRTIO 1.2, sections 2.7 and 2.8).
        let sizes: [u16; 3] = if packed { [16, 50, 64] } else { [16, 64, 256] };
        let descriptors = sizes[random.usize(0..sizes.len())];
        Self::Virtio { packed, events, in_order, offloads: random.bool(), descriptors }
    }

    pub(super) fn of_card(self) -> CardFamily {
        match self {
            Self::I82576 => CardFamily::I82576,
            Self::Avf => CardFamily::Avf,
            Self::Virtio { .. } => CardFamily::Virtio,
        }
    }

    /// Returns the configuration of a virtio driver, or `None` for another family.
    pub(super) fn virtio(self) -> Option<VirtioNetConfig> {
        let Self::Virtio { packed, events, in_order, offloads, descriptors } = self else { return None };
        let chosen = [
            (offloads, OFFLOADS),
            (packed, VirtioFeatures::RING_PACKED),
            (events, VirtioFeatures::EVENT_IDX),
            (in_order, VirtioFeatures::IN_ORDER),
        ];
        let features = chosen.iter().filter(|(is_chosen, _)| *is_chosen);
        let features = features.fold(VirtioFeatures::NONE, |all, (_, feature)| all.with(*feature));
        Some(VirtioNetConfig { features, descriptors })
    }

    /// Returns the configuration of a port with functions of these families, and with these further keys of the port.
    pub(super) fn configuration(families: &[Self], keys: &str) -> String {
        let family = |of: &Self| of.of_card().name();
        let mut config = format!(
            "[[port]]\nfamily = \"{}\"\nmac = \"02:00:00:00:00:01\"\nvfs = {}\n{keys}",
            family(&families[0]),
            families.len()
        );
        for (vf, of) in families.iter().enumerate() {
            // By default addresses follow from the machine and the folder.
            let (name, mac) = (family(of), configured_mac(vf));
            config +=
                &format!("[[port.vf]]\nindex = {vf}\nfamily = \"{name}\"\nmac = \"{mac}\"\nvlans = \"\"\n");
        }
        config
    }
}

/// Returns the address of a guest's function in the configuration.
pub(super) fn configured_mac(guest: usize) -> MacAddress {
    mac_of(guest, false)
}

/// Returns the first or second address of a guest's function. The administrator chooses the one in force.
pub(super) fn mac_of(guest: usize, is_second: bool) -> MacAddress {
    MacAddress([2, 0, 0, 0, 1 + u8::from(is_second), guest as u8])
}

/// Returns the guest that has an address, and true for its second one.
pub(super) fn guest_of(address: MacAddress) -> Option<(usize, bool)> {
    let guest = usize::from(address.0[5]);
    let is_second = [false, true].into_iter().find(|is_second| mac_of(guest, *is_second) == address)?;
    Some((guest, is_second))
}
