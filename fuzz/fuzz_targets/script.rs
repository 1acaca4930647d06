//! A shell script: judged the same twice, and no text behind a forbidden command, on a line
//! of its own, makes the whole allowed.
#![no_main]

use std::sync::LazyLock;

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::{RuleSet, compile_execpolicy_rules_files, evaluate_script};
use libfuzzer_sys::fuzz_target;

static RULES: LazyLock<RuleSet> = LazyLock::new(|| {
    let text = "prefix_rule(['rm'], 'forbidden')\nprefix_rule(['git', 'push'], 'prompt')\nprefix_rule(['ls'])";
    compile_execpolicy_rules_files(&[("fuzz.rules", text)]).expect("the target's own rules")
});

fuzz_target!(|script: &str| {
    let facts = evaluate_script(&RULES, script);
    assert_eq!(facts, evaluate_script(&RULES, script));
    assert!(facts.commands.len() <= 64 && facts.unresolved.len() <= 16);
    let behind = evaluate_script(&RULES, &format!("rm -rf x\n{script}"));
    assert!(behind.rule >= Some(RuleDecision::Prompt), "{behind:?}");
});
