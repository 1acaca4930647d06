//! An `accept` expression: parsed or refused; true if every verifier passes and false if
//! none does, for there is no `not`.
#![no_main]

use std::collections::BTreeSet;

use checkrein_core::accept::{Accept, Truth};
use checkrein_core::ids::VerifierName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let known: BTreeSet<VerifierName> =
        ["a", "b", "tests", "judge_a"].map(VerifierName::new).into();
    if let Ok(accept) = Accept::parse(text, &known) {
        assert!(accept.names().iter().all(|name| known.contains(*name)));
        assert_eq!(accept.evaluate(&|_| Truth::True), Truth::True);
        assert_eq!(accept.evaluate(&|_| Truth::False), Truth::False);
    }
});
