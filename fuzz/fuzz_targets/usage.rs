//! A transcript, by every adapter: read in two pieces it counts what it counts in one.
#![no_main]

use checkrein_adapters::ALL;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let Some((at, transcript)) = bytes.split_first() else {
        return;
    };
    for adapter in ALL {
        let name = adapter.agent_name();
        let cut = transcript.len() * usize::from(*at) / 255;
        let Some(whole) = adapter.transcript_token_usage(transcript, "") else {
            continue;
        };
        let first = adapter.transcript_token_usage(&transcript[..cut], "");
        let (counted, cursor) = first.map_or((0, String::new()), |used| (used.output, used.cursor));
        let next = usize::try_from(adapter.transcript_offset(&cursor)).unwrap_or(usize::MAX);
        assert!(next <= cut, "{name}: reads on behind what it was given");
        // A piece with nothing but responses of an unknown format is not known, and is read
        // again with the next: nothing is lost, but there is nothing to compare.
        let Some(second) = adapter.transcript_token_usage(&transcript[next..], &cursor) else {
            continue;
        };
        let both = counted.saturating_add(second.output);
        assert_eq!(whole.output, both, "{name}: cut at {cut}");
        assert_eq!(
            adapter.transcript_offset(&whole.cursor),
            adapter.transcript_offset(&second.cursor),
            "{name}: cut at {cut}"
        );
    }
});
