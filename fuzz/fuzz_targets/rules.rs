//! A `.rules` file: compiled within bounds or refused; what was compiled survives its text form and
//! answers as before; the listing tells the same rules, and our own judging is never looser than
//! the answer of Codex.
#![no_main]

use checkrein_execpolicy::{RuleSet, Says, Surroundings, compile, list};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let here = Surroundings::default();
    let Ok(rules) = compile(&[("fuzz.rules", text)]) else {
        // Whatever is wrong, but for an example, is wrong for the listing, too.
        let _ = list(&[("fuzz.rules", text)], &here);
        return;
    };
    let again = RuleSet::from_text(&rules.to_text()).expect("what was written can be read");
    assert_eq!(again, rules);
    let (listed, files) =
        list(&[("fuzz.rules", text)], &here).expect("what compiles can be listed");
    assert_eq!(listed, rules);
    for entry in files.iter().flat_map(|file| &file.entries).take(64) {
        let Says::Prefix {
            pattern, examples, ..
        } = &entry.says
        else {
            continue;
        };
        assert!(examples.iter().all(|example| example.holds));
        let words = pattern.iter().filter_map(|options| options.last());
        let argv: Vec<&str> = words.map(String::as_str).collect();
        let said = rules.check(&argv, None);
        assert!(said.decision().is_some(), "a rule holds for its own words");
        assert_eq!(said, again.check(&argv, None));
        let strictest = rules.matches(&argv).iter().map(|hit| hit.decision).max();
        assert!(strictest >= said.decision());
        let path = rules.check(&argv, Some(&here)).to_json();
        assert!(path.starts_with("{\"matchedRules\":["), "{path}");
    }
});
