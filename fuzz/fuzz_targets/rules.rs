//! A `.rules` file: compiled within bounds or refused; what was compiled survives its text form.
#![no_main]

use checkrein_execpolicy::{RuleSet, compile};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    if let Ok(rules) = compile(&[("fuzz.rules", text)]) {
        assert_eq!(RuleSet::from_text(&rules.to_text()).ok(), Some(rules));
    }
});
