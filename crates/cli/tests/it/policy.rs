//! `checkrein policy`: the answer of Codex beside our own, the rules' own examples, and rules
//! from another agent's permissions.

use serde_json::{Value, json};

use crate::world::{Said, World};

const RULES: &str = "prefix_rule([\"git\"], \"prompt\", justification=\"ask first\", match=[\"git push\"])\n\
                     prefix_rule([\"rm\"], \"forbidden\", justification=\"use trash\", not_match=[\"rmdir x\"])\n\
                     prefix_rule([[\"ls\", \"cat\"]])\n\
                     host_executable(\"git\", [\"/usr/bin/git\"])\n";

fn world() -> World {
    let world = World::new();
    world.write("rules/own.rules", RULES);
    world.config("[policy]\nrules = [\"rules/*.rules\"]\n");
    world
}

#[track_caller]
fn check(world: &World, args: &[&str], code: i32) -> Said {
    let mut all = vec!["policy", "check"];
    all.extend(args);
    let said = world.says(&all);
    assert_eq!(said.code, Some(code), "{args:?}: {said:?}");
    said
}

#[test]
fn the_answer_of_codex_to_the_byte() {
    let world = world();
    let codex = |args: &[&str], code: i32| {
        let mut all = vec!["--codex-exit", "--rules", "rules/own.rules"];
        all.extend(args);
        check(&world, &all, code)
    };
    let none = "{\"matchedRules\":[]}\n";
    let rm = "{\"matchedRules\":[{\"prefixRuleMatch\":{\"matchedPrefix\":[\"rm\"],\"decision\":\"forbidden\",\"justification\":\"use trash\"}}],\"decision\":\"forbidden\"}\n";
    let git = "{\"matchedRules\":[{\"prefixRuleMatch\":{\"matchedPrefix\":[\"git\"],\"decision\":\"prompt\",\"resolvedProgram\":\"/usr/bin/git\",\"justification\":\"ask first\"}}],\"decision\":\"prompt\"}\n";
    // The status never says the verdict, nothing is split, a path is not its name.
    assert_eq!(codex(&["--", "rm", "-rf", "x"], 0).stdout, rm);
    assert_eq!(codex(&["--", "bash", "-lc", "rm x"], 0).stdout, none);
    assert_eq!(codex(&["--", "/bin/rm", "x"], 0).stdout, none);
    assert_eq!(codex(&["--", "checkrein", "off"], 0).stdout, none);
    let resolve = "--resolve-host-executables";
    assert_eq!(codex(&[resolve, "--", "/usr/bin/git", "x"], 0).stdout, git);
    assert_eq!(codex(&[resolve, "--", "/opt/git", "x"], 0).stdout, none);
    let beside = "{\"matchedRules\":[{\"prefixRuleMatch\":{\"matchedPrefix\":[\"ls\"],\"decision\":\"allow\",\"resolvedProgram\":";
    let said = codex(&[resolve, "--", "./ls"], 0).stdout;
    assert!(
        said.starts_with(beside) && said.contains("/repo/ls\""),
        "{said}"
    );
    // Also what a terminal would not be shown.
    world.write(
        "odd.rules",
        "prefix_rule(['a'], justification='x\u{2028}y')\n",
    );
    let said = check(&world, &["--codex-exit", "-r", "odd.rules", "--", "a"], 0);
    assert!(said.stdout.contains("x\u{2028}y"), "{said:?}");
    world.write("odd.rules", "\u{feff}prefix_rule(['a'])\n");
    let said = check(&world, &["--codex-exit", "-r", "odd.rules", "--", "a"], 1);
    assert!(said.stderr.contains("invalid input `\u{feff}`"), "{said:?}");
    // What is wrong with rules is said in its words.
    world.write("bad.rules", "\nprefix_rule([\"a\"], \"no\")\n");
    let said = check(&world, &["--codex-exit", "-r", "bad.rules", "--", "a"], 1);
    assert_eq!(said.stdout, "");
    assert!(
        said.stderr.starts_with(
            "Error: failed to parse policy at bad.rules\n\nCaused by:\n    starlark error: Traceback (most recent call last):\n"
        ) && said.stderr.contains("    error: invalid decision: no\n     --> bad.rules:2:1\n"),
        "{}",
        said.stderr
    );
    let said = check(&world, &["--codex-exit", "-r", "none.rules", "--", "a"], 1);
    assert_eq!(
        said.stderr,
        "Error: failed to read policy at none.rules\n\nCaused by:\n    No such file or directory (os error 2)\n"
    );
    check(&world, &["--codex-exit", "--", "a"], 2);
    check(
        &world,
        &["--codex-exit", "-r", "bad.rules", "--script", "a"],
        2,
    );
}

#[test]
fn our_own_answer_is_stricter_and_says_why() {
    let world = world();
    assert!(
        check(&world, &["--", "ls", "-l"], 0)
            .stdout
            .starts_with("allow\n")
    );
    assert_eq!(
        check(&world, &["--", "make"], 0).stdout,
        "no rule says anything\n"
    );
    let said = check(&world, &["--", "env", "git", "push"], 3).stdout;
    assert!(said.starts_with("prompt: ask first\n"), "{said}");
    let said = check(&world, &["--", "bash", "-lc", "ls && /bin/rm x"], 4).stdout;
    assert!(said.starts_with("forbidden: use trash\n"), "{said}");
    let lines: Vec<Vec<&str>> = said
        .lines()
        .skip(2)
        .map(|line| {
            line.split("  ")
                .filter(|cell| !cell.is_empty())
                .map(str::trim)
                .collect()
        })
        .collect();
    assert_eq!(
        lines,
        [
            vec!["COMMAND", "ANSWER", "RULE", "WHY"],
            vec!["bash -lc 'ls && /bin/rm x'", "-"],
            vec!["ls", "allow", "ls"],
            vec!["/bin/rm x", "forbidden", "rm", "use trash"],
        ]
    );
    let said = check(&world, &["--script", "ls; $CMD x"], 3).stdout;
    assert!(said.contains("\ncannot be read beforehand: $CMD"), "{said}");
    // What no config switches off holds without any rule.
    world.config("");
    let said = check(&world, &["--", "checkrein", "off"], 4);
    assert!(said.stderr.contains("no rules are loaded"), "{said:?}");
}

#[test]
fn documents_for_machines() {
    let world = world();
    let said = check(&world, &["--json", "--", "/bin/rm", "x"], 4).json();
    let hit = json!({ "prefixRuleMatch": {
        "matchedPrefix": ["rm"], "decision": "forbidden",
        "resolvedProgram": "/bin/rm", "justification": "use trash",
    } });
    assert_eq!(said["schema"], "checkrein/policy-check/1");
    assert_eq!(
        (&said["decision"], &said["matchedRules"]),
        (&json!("forbidden"), &json!([hit]))
    );
    // As in Codex: no rule, no key.
    let said = check(&world, &["--json", "--", "make"], 0).json();
    assert_eq!(
        (said.get("decision"), &said["matchedRules"]),
        (None, &json!([]))
    );
    let script = "cat x | rm -r \"$Y\" $(git status)";
    let said = check(&world, &["--json", "--script", script], 4).json();
    assert_eq!(
        (&said["decision"], said.get("matchedRules")),
        (&json!("forbidden"), None)
    );
    let commands: Vec<(&Value, &Value, usize)> = said["commands"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| {
            let rules = one["matchedRules"].as_array().unwrap().len();
            (&one["argv"][0], &one["decision"], rules)
        })
        .collect();
    assert_eq!(commands.len(), 3, "{commands:?}");
    for expected in [
        (&json!("cat"), &json!("allow"), 1),
        (&json!("rm"), &json!("forbidden"), 1),
        (&json!("git"), &json!("prompt"), 1),
    ] {
        assert!(commands.contains(&expected), "{commands:?}");
    }
    let said = check(&world, &["--json", "--script", "make; $X"], 3).json();
    assert_eq!(
        (&said["decision"], &said["unresolved"]),
        (&json!("prompt"), &json!(["$X"]))
    );
}

#[test]
fn words_that_cannot_be_taken() {
    let world = world();
    for args in [
        &[][..],
        &["--"],
        &["--script", "x", "--", "y"],
        &["git", "status"],
        &[
            "--resolve-host-executables",
            "--rules",
            "rules/own.rules",
            "--",
            "x",
        ],
        &["--rules", "none.rules", "--", "x"],
        &["--rules", "rules", "--", "x"],
    ] {
        check(&world, args, 2);
    }
    world.write("bad.rules", "prefix_rule([])\n");
    let said = check(&world, &["--rules", "bad.rules", "--", "x"], 2);
    assert!(
        said.stderr.contains("bad.rules:1: starlark error"),
        "{said:?}"
    );
    world.write("rules/own.rules", "nope");
    check(&world, &["--", "x"], 2);
}

#[test]
fn rules_are_tried_by_their_own_examples() {
    let world = world();
    let said = world.says(&["policy", "test"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    for part in [
        "own.rules\n",
        "     1  prompt     git  1 example  ask first\n",
        "     3  allow      ls|cat\n",
        "     4  host       git may be /usr/bin/git\n",
        "4 rules, 2 examples: all hold\n",
    ] {
        assert!(said.stdout.contains(part), "{part:?}: {}", said.stdout);
    }
    // The digest is that of the policy, wherever it lies and however it is named.
    let digest = |args: &[&str]| {
        let said = world.says(args);
        let line = said.stdout.lines().last().unwrap().to_owned();
        assert!(line.starts_with("digest "), "{said:?}");
        line
    };
    let configured = digest(&["policy", "test"]);
    world.write("elsewhere.rules", &format!("# moved\n{RULES}"));
    assert_eq!(
        digest(&["policy", "test", "--rules", "elsewhere.rules"]),
        configured
    );
    world.write("elsewhere.rules", &format!("{RULES}prefix_rule([\"x\"])"));
    assert_ne!(
        digest(&["policy", "test", "--rules", "elsewhere.rules"]),
        configured
    );
    // Every example that is not true is named, not only the first.
    world.write(
        "rules/own.rules",
        "prefix_rule([\"a\"], match=[\"b c\", \"a\"])\n\nprefix_rule([\"a\"], not_match=[\"/bin/a x\"])",
    );
    let said = world.says(&["policy", "test"]);
    assert_eq!(said.code, Some(1), "{said:?}");
    for part in [
        "✗ does not match, and should: b c\n",
        "✗ matches, and should not: /bin/a x\n",
        "2 rules, 3 examples: 2 do not hold\n",
    ] {
        assert!(said.stdout.contains(part), "{part:?}: {}", said.stdout);
    }
    let said = world.says(&["policy", "test", "--json"]).json();
    assert_eq!(
        (&said["failing"], &said["files"][0]["rules"][1]["line"]),
        (&json!(2), &json!(3))
    );
    let examples = &said["files"][0]["rules"][0]["examples"];
    assert_eq!(
        examples[0],
        json!({ "command": "b c", "matches": true, "holds": false })
    );
    world.write("rules/own.rules", "\nnope");
    let said = world.says(&["policy", "test"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(
        said.stderr.contains("own.rules:2: starlark error"),
        "{said:?}"
    );
}

#[test]
fn rules_from_claude_codes_permissions() {
    let world = World::new();
    let said = world.says(&["policy", "import"]);
    assert_eq!(said.code, Some(2), "{said:?}");
    assert!(said.stderr.contains("looked at"), "{said:?}");
    let settings = json!({ "permissions": {
        "allow": ["Bash(npm run test:*)", "Bash(git status)", "Bash(ls *)", "Bash(cargo b*)", "Read(**)", "Bash", "mcp__db__read"],
        "ask": ["Bash(git push:*)", "mcp__mail"],
        "deny": ["Bash(rm:*)", "Bash(curl \"a b\" *)", "Bash(git * main)", "Bash(echo $X)", "Bash(FOO=1 x)",
                 "WebFetch(domain:Evil.example)", "Edit(tests/**)", "Bash(sudo\n*)", "mcp__db__drop", "mcp__db__d*"],
    } });
    world.write(".claude/settings.json", &settings.to_string());
    world.write(
        ".claude/settings.local.json",
        r#"{"permissions":{"deny":["Bash(rm:*)","Bash(dd)"]}}"#,
    );
    let said = world.says(&["policy", "import"]);
    assert_eq!(said.code, Some(0), "{said:?}");
    let rules: Vec<&str> = said
        .stdout
        .lines()
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(|line| line.split(", match=").next().unwrap())
        .collect();
    assert_eq!(
        rules,
        [
            "prefix_rule(pattern=[\"rm\"], decision=\"forbidden\"",
            "prefix_rule(pattern=[\"curl\", \"a b\"], decision=\"forbidden\"",
            "network_rule(host=\"Evil.example\", protocol=\"https\", decision=\"deny\")",
            "prefix_rule(pattern=[\"mcp\", \"db\", \"drop\"], decision=\"forbidden\"",
            "prefix_rule(pattern=[\"git\", \"push\"], decision=\"prompt\"",
            "prefix_rule(pattern=[\"mcp\", \"mail\"], decision=\"prompt\"",
            "prefix_rule(pattern=[\"npm\", \"run\", \"test\"], decision=\"allow\"",
            "prefix_rule(pattern=[\"ls\"], decision=\"allow\"",
            "prefix_rule(pattern=[\"cargo\", \"b\"], decision=\"allow\"",
            "prefix_rule(pattern=[\"dd\"], decision=\"forbidden\"",
        ],
        "{}",
        said.stdout
    );
    // Nothing is lost without a word, and nothing is allowed that was not.
    for part in [
        "# allow Bash(git status): this very command only",
        "# prefix_rule(pattern=[\"git\", \"status\"]",
        "# deny Bash(git * main): ",
        "# deny Bash(echo $X): ",
        "# deny Bash(FOO=1 x): ",
        "# deny Bash(sudo *): ",
        "# allow Bash: ",
        "# allow Read(**): ",
        "# allow mcp__db__read: rules restrict tools",
        "# deny mcp__db__d*: ",
        "[policy] protect = [\"tests/**\"]",
    ] {
        assert!(said.stdout.contains(part), "{part:?}: {}", said.stdout);
    }
    // What comes out is a rules file whose examples hold.
    world.write("made.rules", &said.stdout);
    let tested = world.says(&["policy", "test", "--rules", "made.rules"]);
    assert_eq!(tested.code, Some(0), "{tested:?}");
    let denied = check(
        &world,
        &["--rules", "made.rules", "--", "rm", "-rf", "x"],
        4,
    )
    .stdout;
    assert!(
        denied.starts_with("forbidden: Claude Code's settings deny Bash(rm:*)\n"),
        "{denied}"
    );
    world.write("not.json", "[]");
    for file in ["not.json", "none.json"] {
        let said = world.says(&["policy", "import", file]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains(file), "{said:?}");
    }
    // A permission that is written wrongly is not lost without a word.
    for (settings, place) in [
        (r#"{"permissions":[]}"#, "`permissions` is not an object"),
        (
            r#"{"permissions":{"deny":"Bash(rm:*)"}}"#,
            "`permissions.deny` is not a list",
        ),
        (
            r#"{"permissions":{"deny":["Read",["x"]]}}"#,
            "`permissions.deny[1]` is not a text",
        ),
    ] {
        world.write("wrong.json", settings);
        let said = world.says(&["policy", "import", "wrong.json"]);
        assert_eq!(said.code, Some(2), "{said:?}");
        assert!(said.stderr.contains("wrong.json: no settings"), "{said:?}");
        assert!(said.stderr.contains(place), "{said:?}");
    }
}
