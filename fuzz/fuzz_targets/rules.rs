//! A `.rules` file: compiled within bounds or refused; what was compiled survives its text form and
//! answers as before; the listing tells the same rules, and our own judging is never looser than
//! the answer of Codex.
#![no_main]

use checkrein_execpolicy::{
    ListedRule, ProgramPathBaseFolders, RuleSet, compile_and_list_rules,
    compile_execpolicy_rules_files,
};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let here = ProgramPathBaseFolders::default();
    let Ok(rules) = compile_execpolicy_rules_files(&[("fuzz.rules", text)]) else {
        // Whatever is wrong, but for an example, is wrong for the listing, too.
        let _ = compile_and_list_rules(&[("fuzz.rules", text)], &here);
        return;
    };
    let again = RuleSet::deserialize_rule_set(&rules.rules_to_json())
        .expect("what was written can be read");
    assert_eq!(again, rules);
    let (listed, files) = compile_and_list_rules(&[("fuzz.rules", text)], &here)
        .expect("what compiles can be listed");
    assert_eq!(listed, rules);
    for entry in files.iter().flat_map(|file| &file.entries).take(64) {
        let ListedRule::Prefix {
            pattern, examples, ..
        } = &entry.rule
        else {
            continue;
        };
        assert!(examples.iter().all(|example| example.holds));
        let words = pattern.iter().filter_map(|options| options.last());
        let argv: Vec<&str> = words.map(String::as_str).collect();
        let said = rules.codex_execpolicy_check_result(&argv, None);
        assert!(
            said.strictest_rule_decision().is_some(),
            "a rule holds for its own words"
        );
        assert_eq!(said, again.codex_execpolicy_check_result(&argv, None));
        let strictest = rules
            .matching_rules(&argv)
            .iter()
            .map(|hit| hit.decision)
            .max();
        assert!(strictest >= said.strictest_rule_decision());
        let path = rules
            .codex_execpolicy_check_result(&argv, Some(&here))
            .to_codex_check_json();
        assert!(path.starts_with("{\"matchedRules\":["), "{path}");
    }
});
