//! Where effects decide, with one forbidden rule: everyday commands go through, spellings of the
//! forbidden one and other destructive acts do not.

mod table;

use checkrein_core::input::RuleDecision;
use checkrein_execpolicy::evaluate_script;
use table::{Share, allowed, digest, lines, policy};

#[test]
fn everyday_commands_go_through() {
    let rules = policy(&["/workspace/project"]).unwrap();
    let mut share = Share::default();
    for script in lines(include_str!("data/everyday.txt")) {
        share.add(&rules, &script);
    }
    let rows: Vec<String> = share
        .interrupted
        .iter()
        .map(|(unit, (why, script))| format!("{unit}: {why} ({script})"))
        .collect();
    assert!(share.count().0 > 200);
    assert!(
        share.per_mille() >= 970,
        "{}: {} of 1000:\n{}",
        digest().unwrap(),
        share.per_mille(),
        rows.join("\n")
    );
}

#[test]
fn no_spelling_of_a_forbidden_command_is_allowed() {
    let rules = policy(&[]).unwrap();
    let known = lines(include_str!("data/known.txt"));
    let spellings = lines(include_str!("data/spellings.txt"));
    assert!(known.len() == 18 && spellings.len() >= 150);
    let loose = allowed(&rules, &[known, spellings].concat());
    assert!(loose.is_empty(), "{loose:#?}");
}

#[test]
fn destructive_acts_are_asked_about() {
    let acts = lines(include_str!("data/destructive.txt"));
    assert!(acts.len() >= 60);
    for roots in [&[][..], &["/home/dev/repo"]] {
        let loose = allowed(&policy(roots).unwrap(), &acts);
        assert!(loose.is_empty(), "{loose:#?}");
    }
}

#[test]
fn large_and_deep_scripts_end() {
    let rules = policy(&[]).unwrap();
    let deep = |open: &str, close: &str| open.repeat(10_000) + "rm x" + &close.repeat(10_000);
    for script in [
        "echo a; ".repeat(1_250_000),
        "[ -d ~ ] && ".repeat(80_000) + "rm x",
        "echo ==; ".to_owned() + &"[ $(".repeat(100_000),
        "echo ==; ".repeat(100_000),
        "set -- \"$@\" a\nset -- a b\n".repeat(300) + &"\"$@\"\n".repeat(100_000),
        "$(".repeat(5_000_000),
        "cd a; ".repeat(100_000) + "rm x",
        deep("(", ")"),
        deep("$(", ")"),
        deep("if true; then ", "; fi"),
        deep("{ ", "; }"),
        deep("cd a && (", ")"),
        "echo ".to_owned() + &"$(".repeat(40_000),
        "a=".to_owned()
            + &"A".repeat(1_000)
            + "\nb="
            + &"$a".repeat(99)
            + "\nc="
            + &"$b".repeat(99)
            + "\nrm $c",
        "find ".to_owned() + &"a ".repeat(10_000) + &"-exec rm \\; ".repeat(5_000),
        "set -e\n".to_owned() + &"cd $v\n".repeat(32) + &"rm f\n".repeat(20_000),
    ] {
        assert_ne!(
            evaluate_script(&rules, &script).rule,
            Some(RuleDecision::Allow)
        );
    }
}
