//! Streams of model providers: read within bounds or refused, and the same answer however the
//! line cuts them. The first byte says which format, the second where the cut is.
#![no_main]

use checkrein_models::{Call, Reply, Wire, read};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [wire, at, stream @ ..] = bytes else {
        return;
    };
    let wire = match wire {
        b'a' => Wire::Anthropic,
        b'r' => Wire::Responses,
        b'c' => Wire::Chat,
        _ => Wire::Gemini,
    };
    let (before, after) = stream.split_at(usize::from(*at).min(stream.len()));
    let whole = read(wire, [stream]);
    if let Some(reply) = &whole {
        assert!(reply.text.len() <= stream.len());
        assert!(reply.calls.iter().all(|call| !call.tool.is_empty()));
    }
    assert_eq!(plain(whole), plain(read(wire, [before, after])));
    assert_eq!(
        plain(read(wire, [stream])),
        plain(read(wire, stream.chunks(1)))
    );
});

/// Without the ids that are made by chance where the provider gives none.
fn plain(reply: Option<Reply>) -> Option<Reply> {
    reply.map(|reply| Reply {
        calls: reply
            .calls
            .into_iter()
            .map(|call| Call {
                id: String::new(),
                ..call
            })
            .collect(),
        ..reply
    })
}
