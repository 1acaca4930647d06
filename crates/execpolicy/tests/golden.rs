//! Compiled rules as sessions have them in their sealed policies, of every format: each is read,
//! written back to the byte, judges as it did, and is what today's build compiles. A file is added
//! with a new format and never edited: the first line is the text, the others are what it decides.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::path::{Path, PathBuf};

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::{
    EffectPolicy, RuleSet, UnmatchedDecision, compile_execpolicy_rules_files, evaluate_script,
};

const PLAIN: &str = "prefix_rule(pattern = ['git', ['push', 'fetch']], decision = 'prompt', justification = 'it leaves this machine')
prefix_rule(['git', 'gc'], 'forbidden', justification = 'never here')
prefix_rule(['git', 'log'])
host_executable('git', ['/usr/bin/git'])
network_rule('example.com', 'https', 'deny', 'not there')
";
const CANONICAL: &str = "prefix_rule(['Deploy'], 'forbidden', canonical_matching = True)\n";

/// What each format was made for, as of the first.
fn made() -> [RuleSet; 5] {
    let rules = |text: &str| compile_execpolicy_rules_files(&[("own.rules", text)]).unwrap();
    let bounded = EffectPolicy {
        unmatched: UnmatchedDecision::ByEffect,
        opaque_asks: true,
        reach_asks: true,
        protect: vec!["tests/**".to_owned()],
        ..EffectPolicy::default()
    };
    let floored = EffectPolicy {
        forbids_destruction: true,
        ..bounded.clone()
    };
    let both = format!("{PLAIN}{CANONICAL}");
    [
        rules(PLAIN),
        rules(&both),
        rules(&both).with_effect_policy(bounded),
        rules(&both)
            .with_effect_policy(floored)
            .with_protected_paths(vec!["/home/dev/.config/checkrein".to_owned()]),
        rules("").with_effect_policy(EffectPolicy::builtin_default_policy()),
    ]
}

const SCRIPTS: &[&str] = &[
    "git push origin main",
    "git gc --prune=now",
    "cd src && git log -1",
    "DEPLOY now",
    "rm -rf /",
    "echo x > tests/a.txt",
    "echo $(git fetch)",
];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/golden")
}

fn file(format: usize) -> PathBuf {
    folder().join(format!("format-{format}.txt"))
}

fn decided(rules: &RuleSet, script: &str) -> &'static str {
    match evaluate_script(rules, script).rule {
        None => "nothing",
        Some(RuleDecision::Allow) => "allow",
        Some(RuleDecision::Prompt) => "prompt",
        Some(RuleDecision::Forbidden) => "forbidden",
    }
}

fn as_file(rules: &RuleSet) -> String {
    let lines = SCRIPTS
        .iter()
        .map(|script| format!("{} {script}\n", decided(rules, script)));
    format!("{}\n{}", rules.rules_to_json(), lines.collect::<String>())
}

#[test]
fn rules_of_every_format_are_read_written_and_judge_as_they_did() {
    let formats = std::fs::read_dir(folder()).unwrap().count();
    for format in 1..=formats {
        let text = std::fs::read_to_string(file(format)).unwrap();
        let (compiled, decisions) = text.split_once('\n').unwrap();
        assert!(compiled.starts_with(&format!("{{\"v\":{format},")));
        let rules = RuleSet::deserialize_rule_set(compiled).unwrap();
        assert_eq!(rules.rules_to_json(), compiled, "format {format}");
        assert!(decisions.lines().count() > 0);
        for line in decisions.lines() {
            let (decision, script) = line.split_once(' ').unwrap();
            assert_eq!(
                decided(&rules, script),
                decision,
                "format {format}: {script}"
            );
        }
    }
    let later = format!("{{\"v\":{},\"rules\":[]}}", formats + 1);
    assert!(
        RuleSet::deserialize_rule_set(&later).is_err(),
        "a format without a golden file is read"
    );
}

#[test]
fn today_the_same_rules_are_compiled_to_the_same_text() {
    let formats = 1..;
    for (format, rules) in formats.zip(made()) {
        if std::env::var_os("CHECKREIN_WRITE_GOLDEN").is_some() && !file(format).exists() {
            std::fs::write(file(format), as_file(&rules)).unwrap();
        }
        let text = std::fs::read_to_string(file(format)).unwrap();
        assert_eq!(text.lines().next(), Some(rules.rules_to_json().as_str()));
    }
}
