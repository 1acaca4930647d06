//! Lines of a log: read or refused, written again as they mean, folded without a panic, and
//! the folded state survives the cache.
#![no_main]

use checkrein_core::event::{decode, encode};
use checkrein_core::state::State;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut state = State::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(event) = decode(line) else { continue };
        assert_eq!(
            decode(&encode(&event)).expect("what was written is readable"),
            event
        );
        state.apply(&event);
    }
    let cached = postcard::to_stdvec(&state).expect("a state can be cached");
    assert_eq!(
        postcard::from_bytes::<State>(&cached).expect("and read"),
        state
    );
});
