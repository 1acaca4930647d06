//! What is hidden before it is kept: any text comes back as redact_text, twice is once, JSON stays JSON, and
//! a secret that is planted is gone.
#![no_main]

use std::borrow::Cow;
use std::collections::BTreeMap;

use checkrein_redaction::Redactor;
use libfuzzer_sys::fuzz_target;

const VALUE: &str = "planted value 1";

fuzz_target!(|data: &str| {
    let env = BTreeMap::from([("PLANTED_SECRET".into(), VALUE.into())]);
    let redactor = Redactor::new_from_secret_variables(&env);
    let once = redactor.redact_text(data);
    assert_eq!(redactor.redact_text(&once), once, "twice");
    if let Cow::Borrowed(same) = once {
        assert_eq!(same, data);
    }
    let half = data.floor_char_boundary(data.len() / 2);
    let (before, after) = data.split_at(half);
    let planted = format!("{before} {VALUE} {after}");
    assert!(!redactor.redact_text(&planted).contains(VALUE));
    let json = serde_json::json!({ "command": data, "more": [before, after] }).to_string();
    let hidden = redactor.redact_text(&json);
    assert!(
        serde_json::from_str::<serde_json::Value>(&hidden).is_ok(),
        "{hidden}"
    );
});
