//! Lines of a log: read or refused, written again as they mean, folded without a panic, and
//! the folded state survives the cache.
#![no_main]

use checkrein_core::event::{decode_event, encode_event};
use checkrein_core::state::SessionState;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let mut state = SessionState::default();
    for line in bytes.split(|byte| *byte == b'\n') {
        let Ok(event) = decode_event(line) else {
            continue;
        };
        assert_eq!(
            decode_event(&encode_event(&event)).expect("what was written is readable"),
            event
        );
        state.apply_event(&event);
    }
    let cached = postcard::to_stdvec(&state).expect("a state can be cached");
    assert_eq!(
        postcard::from_bytes::<SessionState>(&cached).expect("and read"),
        state
    );
});
