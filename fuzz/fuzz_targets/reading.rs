//! What a model said: read or not, never a panic. What is signed carries the number, what is plain JSON
//! is read as what it is, and whatever is read lies within its bounds.
#![no_main]

use checkrein_models::answers::{
    MAX_TEXT, RequiredAnswerKeys, UnreadableAnswerCause, parse_model_answer,
};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;

const WANTED: RequiredAnswerKeys = RequiredAnswerKeys {
    number: 48_213_947,
    keys: &["verdict", "confidence", "new_args"],
};

const WORDS: &[(&str, &str)] = &[("allow", "allow"), ("veto", "veto"), ("rewrite", "rewrite")];

fuzz_target!(|text: &str| {
    let answer = match parse_model_answer(text, WANTED) {
        Ok(answer) => answer,
        Err(cause) => {
            assert!(cause.to_string().len() < 300, "{cause}");
            assert_eq!(
                matches!(cause, UnreadableAnswerCause::TooLarge { .. }),
                text.len() > MAX_TEXT
            );
            return;
        }
    };
    if answer.echoes_request_nonce() {
        assert!(text.contains("48213947"), "signed by nobody");
    }
    if let Ok(share) = answer.read_thousandths_from_answer("confidence") {
        assert!(share <= 1000);
    }
    let word = answer.parse_enum_field("verdict", WORDS);
    let _ = (
        answer.object_valued_field("new_args"),
        answer.answer_json_field("x"),
    );
    if let Some(reason) = answer.answer_text_field("reason") {
        assert!(reason.len() <= text.len());
    }
    if let Ok(Value::Object(plain)) = serde_json::from_str::<Value>(text)
        && let (Some(Value::String(said)), Ok(word)) = (plain.get("verdict"), word)
    {
        assert_eq!(said.trim().to_ascii_lowercase(), word);
    }
});
