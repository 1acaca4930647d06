//! An `accept` expression: parsed or refused; true if every verifier passes and false if
//! none does, for there is no `not`.
#![no_main]

use std::collections::BTreeSet;

use checkrein_core::accept::{AcceptExpr, TruthValue};
use checkrein_core::ids::VerifierName;
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let known: BTreeSet<VerifierName> =
        ["a", "b", "tests", "judge_a"].map(VerifierName::new).into();
    if let Ok(accept) = AcceptExpr::parse(text, &known) {
        assert!(
            accept
                .verifiers_in_accept_expression()
                .iter()
                .all(|name| known.contains(*name))
        );
        assert_eq!(accept.evaluate(&|_| TruthValue::True), TruthValue::True);
        assert_eq!(accept.evaluate(&|_| TruthValue::False), TruthValue::False);
    }
});
