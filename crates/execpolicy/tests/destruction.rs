//! What destroys a home, a disk or the system is refused without any rule, in every spelling that
//! the grammar resolves; everyday work beside it is not.

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::{
    EffectPolicy, RuleSet, evaluate_argv, evaluate_file_writes, evaluate_script,
};

/// No rules file at all.
fn without_rules(root: &str) -> RuleSet {
    RuleSet::default().with_effect_policy(EffectPolicy {
        forbids_destruction: true,
        roots: vec![root.to_owned()],
        ..EffectPolicy::default()
    })
}

/// `rules = ["builtin:default"]`
fn shipped(root: &str) -> RuleSet {
    RuleSet::default().with_effect_policy(EffectPolicy {
        roots: vec![root.to_owned()],
        ..EffectPolicy::builtin_default_policy()
    })
}

const DESTROYS: &str = include_str!("data/destruction.txt");
const BESIDE: &str = include_str!("data/not_destruction.txt");

fn scripts(text: &'static str) -> impl Iterator<Item = String> {
    let lines = text
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "));
    lines.map(|line| line.replace("\\n", "\n"))
}

#[test]
fn every_spelling_is_forbidden_with_and_without_the_shipped_rules() {
    let mut loose = Vec::new();
    for root in ["/home/dev/repo", "/srv/build/repo", "/tmp/work"] {
        for rules in [without_rules(root), shipped(root)] {
            loose.extend(
                scripts(DESTROYS)
                    .filter(|script| {
                        evaluate_script(&rules, script).rule != Some(RuleDecision::Forbidden)
                    })
                    .map(|script| format!("{root}: {script}")),
            );
        }
    }
    assert!(scripts(DESTROYS).count() > 100);
    assert!(loose.is_empty(), "{loose:#?}");
}

#[test]
fn everyday_work_beside_it_is_not_forbidden_and_without_rules_not_asked_about() {
    let mut stopped = Vec::new();
    for root in ["/home/dev/repo", "/srv/build/repo", "/tmp/work"] {
        for script in scripts(BESIDE) {
            let facts = evaluate_script(&without_rules(root), &script);
            if facts.rule.is_some() {
                stopped.push(format!("{root}: {script}: {:?}", facts.reason));
            }
            let facts = evaluate_script(&shipped(root), &script);
            if facts.rule == Some(RuleDecision::Forbidden) {
                stopped.push(format!("{root}, shipped: {script}: {:?}", facts.reason));
            }
        }
    }
    assert!(scripts(BESIDE).count() > 60);
    assert!(stopped.is_empty(), "{stopped:#?}");
}

#[test]
fn what_cannot_be_read_is_recorded_and_not_asked_about() {
    let rules = without_rules("/home/dev/repo");
    let facts = evaluate_script(&rules, "eval \"$CMD\"; $RUN now");
    assert_eq!(facts.rule, None);
    assert!(!facts.unresolved.is_empty());
    assert!(!rules.has_restricting_rules() && !rules.has_prompting_rule());
}

#[test]
fn the_refusal_names_the_rule_the_reason_and_who_can_change_it() {
    let facts = evaluate_script(&without_rules("/srv/build/repo"), "cd /tmp && rm -rf ~");
    assert_eq!(
        facts.reason.as_deref(),
        Some(
            "`builtin:default` forbids this: it removes a home folder: ~. If it is meant, \
             the person does it in a terminal of their own, or changes `[policy] rules` of the \
             project"
        )
    );
}

#[test]
fn the_home_of_another_is_named_as_it_was() {
    let facts = evaluate_script(&without_rules("/srv/build/repo"), "userdel -r bob");
    let reason = facts.reason.unwrap_or_default();
    assert!(reason.contains("removes a home folder: ~bob."), "{reason}");
}

#[test]
fn words_without_a_shell_and_tools_that_write_are_held_to_it() {
    let rules = without_rules("/home/dev/repo");
    let forbidden = Some(RuleDecision::Forbidden);
    assert_eq!(
        evaluate_argv(&rules, &["rm", "-rf", "/home/dev"]).rule,
        forbidden
    );
    assert_eq!(
        evaluate_argv(&rules, &["bash", "-lc", "rm -rf ~"]).rule,
        forbidden
    );
    let written = |path: &str| evaluate_file_writes(&rules, &[path.to_owned()]).rule;
    assert_eq!(written("/dev/sda"), forbidden);
    assert_eq!(written("/home/dev/repo/src/lib.rs"), None);
}

/// A project whose top is a folder of the system may be emptied; a home and `/` may not.
#[test]
fn a_project_may_lie_anywhere() {
    let judge = |root: &str, script: &str| evaluate_script(&without_rules(root), script).rule;
    assert_eq!(judge("/srv", "rm -rf ./*"), None);
    assert_eq!(judge("/opt", "rm -rf target"), None);
    assert_eq!(judge("/", "rm -rf build"), None);
    for root in ["/", "/home/dev", "/root"] {
        assert_eq!(
            judge(root, "rm -rf ./*"),
            Some(RuleDecision::Forbidden),
            "{root}"
        );
    }
}

/// What older versions sealed says nothing of it, and means what it meant.
#[test]
fn an_older_sealed_policy_forbids_nothing_new() {
    for text in [
        "",
        r#"{"v":1,"rules":[],"protected":["/state"]}"#,
        r#"{"v":3,"rules":[],"bounds":{"unmatched":"allow","opaque_asks":false,"protect":["a"],"roots":["/home/dev/repo"]}}"#,
    ] {
        let rules = RuleSet::deserialize_rule_set(text).unwrap();
        assert_eq!(rules.rules_to_json(), text);
        assert_eq!(
            evaluate_script(&rules, "rm -rf /home/dev").rule,
            None,
            "{text}"
        );
    }
    let rules = without_rules("/home/dev/repo");
    assert!(rules.rules_to_json().starts_with(r#"{"v":4,"#));
    assert_eq!(
        RuleSet::deserialize_rule_set(&rules.rules_to_json()).unwrap(),
        rules
    );
}
