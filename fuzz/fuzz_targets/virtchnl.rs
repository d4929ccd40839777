//! Messages of virtchnl: requests of a VF, and bodies of the PF's replies.
//!
//! The first byte selects the operation, the rest is the body. Checked: no panic, and a request that is the same after it
//! was encoded and decoded again.
#![cfg_attr(not(test), no_main)]

use avf::virtchnl::reply::{decode, encode};
use avf::virtchnl::{
    EtherAddress, MessageListElement, QueuePairInfo, QueueSet, VfTrafficStatistics, VirtchnlOpcode,
    VirtchnlRequest, VirtchnlVersion, VlanFilter, VlanSetting,
};

softiov_fuzz::target!(run);

/// Decodes a body as a `T`, and checks that its encoding decodes to the same bytes.
fn check<T: MessageListElement>(body: &[u8]) {
    if let Some(value) = decode::<T>(body) {
        let bytes = encode(&value);
        let again = decode::<T>(&bytes).expect("an encoded body decodes");
        assert_eq!(encode(&again), bytes);
    }
}

fn run(data: &[u8]) {
    let Some((op, body)) = data.split_first() else { return };
    let number = VirtchnlOpcode::ALL
        .get(usize::from(*op) % (VirtchnlOpcode::ALL.len() + 1))
        .map_or(u32::from(*op), |op| op.number());
    if let Ok(request) = VirtchnlRequest::decode(number, body) {
        assert_eq!(request.op().number(), number);
        let bytes = request.encode();
        let again = VirtchnlRequest::decode(number, &bytes).expect("an encoded request decodes");
        assert_eq!(again.encode(), bytes, "{request:?}");
    }
    check::<EtherAddress>(body);
    check::<QueuePairInfo>(body);
    check::<QueueSet>(body);
    check::<VfTrafficStatistics>(body);
    check::<VirtchnlVersion>(body);
    check::<VlanFilter>(body);
    check::<VlanSetting>(body);
}
