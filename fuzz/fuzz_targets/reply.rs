//! Streams of model providers: read within bounds or refused, and the same answer however the
//! line cuts them. The first byte says which format, the second where the cut is.
#![no_main]

use checkrein_models::{ModelReply, RequestedToolCall, WireFormat, decode_recorded_model_reply};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|bytes: &[u8]| {
    let [wire, at, stream @ ..] = bytes else {
        return;
    };
    let wire = match wire {
        b'a' => WireFormat::Anthropic,
        b'r' => WireFormat::Responses,
        b'c' => WireFormat::Chat,
        _ => WireFormat::Gemini,
    };
    let (before, after) = stream.split_at(usize::from(*at).min(stream.len()));
    let whole = decode_recorded_model_reply(wire, [stream]);
    if let Some(reply) = &whole {
        assert!(reply.text.len() <= stream.len());
        assert!(reply.calls.iter().all(|call| !call.tool.is_empty()));
    }
    assert_eq!(
        plain(whole),
        plain(decode_recorded_model_reply(wire, [before, after]))
    );
    assert_eq!(
        plain(decode_recorded_model_reply(wire, [stream])),
        plain(decode_recorded_model_reply(wire, stream.chunks(1)))
    );
});

/// Without the ids that are made by chance where the provider gives none.
fn plain(reply: Option<ModelReply>) -> Option<ModelReply> {
    reply.map(|reply| ModelReply {
        calls: reply
            .calls
            .into_iter()
            .map(|call| RequestedToolCall {
                id: String::new(),
                ..call
            })
            .collect(),
        ..reply
    })
}
