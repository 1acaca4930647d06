//! An option that only says what would happen takes effects away only where it is certain that the
//! program reads it so; a wrapper of ours is seen through.

use checkrein_core::input::RuleDecision::{Allow, Forbidden};
use checkrein_execpolicy::{
    EffectPolicy, RuleSet, UnmatchedDecision, compile_execpolicy_rules_files, evaluate_script,
};

/// `rules = ["builtin:default"]` and `unmatched = "by-effect"`
fn by_effect() -> RuleSet {
    RuleSet::default().with_effect_policy(EffectPolicy {
        unmatched: UnmatchedDecision::ByEffect,
        roots: vec!["/home/dev/repo".to_owned()],
        ..EffectPolicy::builtin_default_policy()
    })
}

/// Where effects decide, none of these goes on unasked.
const DOES_SOMETHING: &[&str] = &[
    // A word that is an operand, or a value.
    "POSIXLY_CORRECT=1 unlink ~/x --help",
    "export POSIXLY_CORRECT=1; shred ~/notes --version",
    "mv ~/notes /tmp/x --help",
    "cargo yank --version 1.0.0 c",
    "cargo yank c --version 1.0.0",
    "helm upgrade app chart --version 1.2.3",
    "helm install app chart --version 1.2.3 --help",
    "npm publish --tag --help",
    "npm publish -- --help",
    "kubectl delete pod x -- --help",
    "python3 -W --version -c 'import os; os.system(\"x\")'",
    "python3 -X --help -c 'import os; os.system(\"x\")'",
    "node --title --version -e 'require(\"child_process\").exec(\"x\")'",
    "php -d --version -r 'system(\"x\");'",
    "psql -c --version < x.sql",
    // A value that switches it off.
    "kubectl delete deploy web --dry-run=none",
    "kubectl delete deploy web --dry-run=client --dry-run=none",
    "kubectl delete deploy web --dry-run none",
    "kubectl delete deploy web --dry-run=$MODE",
    "helm uninstall x --dry-run=false",
    "helm rollback x 1 --dry-run=none",
    "helm uninstall x --dry-run false",
    "helm install x c --dry-run --post-renderer ./x.sh",
    "npm publish --dry-run=false",
    "npm publish --dry-run false",
    "npm publish --dry-run --no-dry-run",
    "npm publish --tag --dry-run",
    "poetry publish --dry-run=no",
    "cargo publish --registry --dry-run",
    "cargo publish -pn",
    "cargo publish -- --dry-run",
    "cargo release --dry-run --execute",
    "cargo release -n -x",
    // Options that undo it.
    "iptables -L -F",
    "iptables -LF",
    "iptables -S -A INPUT -j DROP",
    "ip6tables --list --flush",
    "nft list ruleset \\; flush ruleset",
    "sysctl -a -w kernel.panic=1",
    "swapon --show -a",
    "losetup -a -D",
    "hwclock --show -w",
    "timedatectl status set-ntp false",
    "git clean -n --no-dry-run -fdx",
    "git clean -fdxe -n",
    "git clean -fdx -- -n",
];

/// And these do.
const DOES_NOTHING: &[&str] = &[
    "rm --help",
    "shred --version",
    "cargo yank --help",
    "kubectl delete --help",
    "helm --help",
    "helm uninstall x --dry-run",
    "kubectl delete deploy web --dry-run=client",
    "kubectl delete deploy web --dry-run=server --all",
    "cargo yank c --dry-run",
    "git clean -n",
    "git clean -ndx",
    "rsync -avn ./ ~/backup/",
    "iptables -L -n -v",
    "sysctl kernel.panic",
    "sysctl -a",
    "python3 --version",
    "node --version",
    "php -l x.php",
];

#[test]
fn what_only_may_be_inert_keeps_its_effects() {
    let rules = by_effect();
    let loose: Vec<&&str> = DOES_SOMETHING
        .iter()
        .filter(|script| evaluate_script(&rules, script).rule <= Some(Allow))
        .collect();
    assert!(loose.is_empty(), "{loose:#?}");
}

#[test]
fn what_is_certainly_inert_goes_on() {
    let rules = by_effect();
    let stopped: Vec<String> = DOES_NOTHING
        .iter()
        .map(|script| (script, evaluate_script(&rules, script)))
        .filter(|(_, facts)| facts.rule != Some(Allow))
        .map(|(script, facts)| format!("{script}: {:?}", facts.reason))
        .collect();
    assert!(stopped.is_empty(), "{stopped:#?}");
}

/// Files that nobody writes are not written by a patch that is said to be shown only.
#[test]
fn a_patch_that_is_also_applied_is_no_look() {
    let bounds = EffectPolicy {
        protect: vec!["tests/**".to_owned()],
        ..EffectPolicy::default()
    };
    let rules = RuleSet::default().with_effect_policy(bounds);
    let judge = |options: &str| {
        let patch = "--- a/tests/a\n+++ b/tests/a\n@@ -1 +1 @@\n-a\n+b\n";
        evaluate_script(&rules, &format!("{options} <<'EOF'\n{patch}EOF")).rule
    };
    for options in [
        "git apply",
        "git apply --stat --apply",
        "git apply --check --apply",
        "git apply --numstat --no-numstat",
        "git apply --summary --app",
        "git apply -- --stat",
        "patch -p1",
        "POSIXLY_CORRECT=1 patch tests/a --dry-run",
    ] {
        assert!(judge(options) > Some(Allow), "{options}");
    }
    for options in [
        "git apply --stat",
        "git apply -p1 --check",
        "git apply --check -v",
        "patch --dry-run -p1",
        "patch -p1 --dry-run",
    ] {
        assert!(judge(options) <= Some(Allow), "{options}");
    }
    for options in ["git apply --stat", "git apply --stat --apply"] {
        let words: Vec<&str> = options.split(' ').chain(["e.patch"]).collect();
        let read = checkrein_execpolicy::patch_commands_in_argv(&words);
        assert_eq!(read.is_empty(), options == "git apply --stat", "{options}");
    }
}

/// What `checkrein` starts is held to the rules, whatever stands around it.
#[test]
fn what_checkrein_starts_is_judged() {
    let text = "prefix_rule(['rm'], 'forbidden')";
    let rules = compile_execpolicy_rules_files(&[("rm.rules", text)]).unwrap();
    for script in [
        "checkrein mcp-proxy -- rm -rf ~",
        "checkrein mcp-proxy --name x -- rm -rf src",
        "checkrein run -- rm x",
        "checkrein run --task 'say -- it' -- rm x",
        "checkrein run --attempts 2 -- sh -c 'rm x'",
        "/usr/local/bin/checkrein mcp-proxy -- rm x",
        "./target/debug/checkrein mcp-proxy -- /bin/rm x",
        "env X=1 nice checkrein mcp-proxy -- sh -c 'rm -rf ~'",
        "checkrein mcp-proxy -- checkrein run -- rm x",
        "checkrein mcp-proxy -- env -i bash -c 'true && rm x'",
        "find . -exec checkrein mcp-proxy -- rm {} +",
        "ls | xargs checkrein mcp-proxy -- rm",
        "xargs -I{} checkrein run -- rm {} < list",
        "timeout 9 checkrein mcp-proxy -- rm x &",
        "c=checkrein; \"$c\" mcp-proxy -- rm x; checkrein mcp-proxy -- rm x",
        "checkrein $OPTIONS mcp-proxy -- rm x",
        "checkrein mcp-proxy -- checkrein off --for 1h --reason x",
        "checkrein run --agent claude-code task -- --bare",
        "checkrein run --agent=codex task -- --disable hooks",
    ] {
        assert_eq!(
            evaluate_script(&rules, script).rule,
            Some(Forbidden),
            "{script}"
        );
    }
    for script in [
        "checkrein policy check -- rm -rf x",
        "checkrein policy check --json -- checkrein mcp-proxy -- rm x",
        "checkrein mcp-proxy -- npx server",
        "checkrein sessions",
    ] {
        assert_eq!(evaluate_script(&rules, script).rule, None, "{script}");
    }
    // Without any rule what no config switches off still holds.
    let none = RuleSet::default();
    for script in [
        "checkrein run -- checkrein seal",
        "checkrein mcp-proxy -- tee .claude/settings.json",
    ] {
        assert_eq!(
            evaluate_script(&none, script).rule,
            Some(Forbidden),
            "{script}"
        );
    }
    // The checks of another tree are code that somebody wrote just now.
    let rules = by_effect();
    let written =
        "mkdir /tmp/x; echo '[[verifier]]' > /tmp/x/checkrein.toml; checkrein check --root /tmp/x";
    assert!(evaluate_script(&rules, written).rule > Some(Allow));
}
