//! Config texts against what they mean, and against what is said of the bad ones.

use checkrein_core::policy::VerifyOnChangeOrAlways;

use super::*;

fn source(text: &str) -> NamedConfigText {
    NamedConfigText {
        name: PathBuf::from("checkrein.toml"),
        text: text.to_owned(),
    }
}

fn compiled(text: &str) -> CompiledPolicy {
    compile_repo_and_personal_config(Some(&source(text)), None, TaskDriverKind::Hook).unwrap()
}

fn refused(text: &str) -> String {
    compile_repo_and_personal_config(Some(&source(text)), None, TaskDriverKind::Hook)
        .unwrap_err()
        .to_string()
}

#[test]
fn the_shipped_defaults_are_the_compiled_defaults() {
    let shipped = compiled(DEFAULTS);
    assert_eq!(
        shipped.policy,
        compile_repo_and_personal_config(None, None, TaskDriverKind::Hook)
            .unwrap()
            .policy
    );
    assert_eq!(shipped.warnings, Vec::<String>::new());
}

#[test]
fn accept_defaults_to_all_that_are_not_advisory() {
    let policy = compiled(
        "[[verifier]]\nname = \"a\"\nrun = \"true\"\n[[verifier]]\nname = \"b\"\nrun = \"true\"\nadvisory = true\n",
    )
    .policy;
    assert!(policy.is_required_verifier(&"a".into()) && !policy.is_required_verifier(&"b".into()));
}

#[test]
fn unknown_keys_are_refused_with_their_lines_and_what_was_meant() {
    let said = refused(
        "[caps]\ntool_cals = 3\n[zzz]\nx = 1\n[[verifiers]]\nname = 'a'\n[[verifier]]\nname = 'a'\nrun = 'x'\ntimout = '1m'\n",
    );
    assert_eq!(
        said.lines().collect::<Vec<_>>(),
        [
            "checkrein.toml:2:1: unknown key 'caps.tool_cals'; did you mean 'caps.tool_calls'?",
            "checkrein.toml:3:2: unknown table [zzz]; known here: [caps], [session_caps], [subagents], [token_budget], [loops], [stance], [policy], [approvals], [ui], [store], [[verifier]], [veto], [progress], [[middleware]], [[detector]], [profile]",
            "checkrein.toml:5:3: unknown table [[verifiers]]; did you mean [[verifier]]?",
            "checkrein.toml:10:1: unknown key 'verifier.timout'; did you mean 'verifier.timeout'?",
        ]
    );
}

#[test]
fn a_key_in_the_wrong_place_is_told_where_it_belongs() {
    for (text, expected) in [
        (
            "[caps]\naccept = 'a'\n",
            "'accept' belongs to the top of the file, above the first [table]",
        ),
        (
            "tool_calls = 3\n",
            "'tool_calls' is a key of [caps] and [session_caps]",
        ),
        (
            "verifier = [{ name = 'a', run = 'x', timout = '1m' }]\n",
            "checkrein.toml:1:38: unknown key",
        ),
        (
            "goal = { objective = 'x' }\n",
            "does not act on '[goal]' yet",
        ),
    ] {
        let said = refused(text);
        assert!(said.contains(expected), "{text}: {said}");
    }
}

#[test]
fn no_more_mistakes_are_told_than_anybody_reads() {
    let text: String = (0..30).map(|n| format!("zzzzzzzzz{n} = 1\n")).collect();
    let said = refused(&text);
    assert_eq!(said.lines().count(), 11, "{said}");
    assert!(said.ends_with("checkrein.toml: and 20 more"), "{said}");
}

#[test]
fn bad_configs_say_what_where_and_what_next() {
    for (text, expected) in [
        (
            "[caps]\ntool_calls = 0",
            "caps.tool_calls must be 1 or more",
        ),
        ("[caps]\ncontinues = -1", "caps.continues must be 1 or more"),
        (
            "[caps]\nwall_clock = \"0s\"",
            "caps.wall_clock must be more than no time",
        ),
        (
            "[caps]\nwall_clock = \"soon\"",
            "caps.wall_clock must be a span of time such as \"90s\", \"10m\" or \"4h\", not \"soon\"",
        ),
        ("[caps]\ncost_usd = 0", "caps.cost_usd must be more than 0"),
        (
            "[session_caps]\ncost_usd = -1.5",
            "session_caps.cost_usd must be more than 0",
        ),
        ("[veto]\nenabled = true", "veto.model is missing"),
        (
            "[progress]\nenabled = true\nmodel = \"x/y\"",
            "progress.model",
        ),
        ("[veto]\nmin_confidence = 60", "must be from 0 to 1"),
        (
            "[[verifier]]\nname = \"h\"\nkind = \"http\"",
            "kind = \"http\": this build does not act on that value yet",
        ),
        (
            "[[verifier]]\nname = \"j\"\nkind = \"jugde\"",
            "kind must be \"command\", \"schema\", \"human\" or \"judge\", not \"jugde\"; did you mean \"judge\"?",
        ),
        ("[[verifier]]\nname = \"a\"", "run is missing"),
        (
            "[[verifier]]\nname = \"a b\"\nrun = \"x\"",
            "must be letters",
        ),
        (
            "[[verifier]]\nname = \"a\"\nrun = \"x\"\ninputs = [\"{\"]",
            "verifier 'a': inputs cannot be used",
        ),
        (
            "accept = \"tests\"",
            "no verifier is named 'tests'; there is no [[verifier]]",
        ),
        (
            "accept = \"test\"\n[[verifier]]\nname = \"tests\"\nrun = \"x\"",
            "no verifier is named 'test'; known: tests",
        ),
        (
            "[verifier]\nname = \"tests\"\nrun = \"x\"",
            "a verifier is written with two brackets: [[verifier]]",
        ),
        (
            "[profile.ci.verifier]\nname = \"tests\"",
            "written with two brackets: [[profile.ci.verifier]]",
        ),
        (
            "[[verifier]]\nname = \"tests\"\nrunn = \"x\"",
            "'verifier.runn'; did you mean 'verifier.run'?",
        ),
        (
            "[[verifier]]\nnmae = \"tests\"\nrun = \"x\"",
            "'verifier.nmae'; did you mean 'verifier.name'?",
        ),
        (
            "[caps]\nwall_clock = 4",
            "such as \"90s\", \"10m\" or \"4h\", not 4",
        ),
        (
            "[store]\nmax_size = 4",
            "such as \"500MB\" or \"2GB\", not 4",
        ),
        (
            "[[verifier]]\nname = tests\nrun = \"x\"",
            "text needs quotes: name = \"tests\"",
        ),
        ("[loops]\npreset = \"hermes\"", "does not act on"),
        (
            "[loops]\npreset = \"x\"",
            "must be \"default\", \"balanced\", \"seed\", \"openclaw\" or \"off\", not \"x\"",
        ),
        (
            "[policy]\nrules = [\"none/*.rules\"]",
            "nothing matches 'none/*.rules'",
        ),
        ("goal = 3", "goal must be text in quotes, not 3"),
        ("goal = ", "checkrein.toml:1:"),
    ] {
        let said = refused(text);
        assert!(said.contains(expected), "{text:?} said {said:?}");
        assert!(said.contains("checkrein.toml"), "{said:?} names no file");
    }
}

#[test]
fn the_persons_own_file_only_tightens() {
    let repo = source("[caps]\ntool_calls = 100\n[stance]\nstop = \"block\"\n");
    let own = source("[caps]\ntool_calls = 5000\ncontinues = 2\n[stance]\nstop = \"allow\"\n");
    let policy = compile_repo_and_personal_config(Some(&repo), Some(&own), TaskDriverKind::Hook)
        .unwrap()
        .policy;
    assert_eq!(policy.caps.tool_calls, Some(100));
    assert_eq!(policy.caps.continues, 2);
    assert_eq!(policy.stance.stop, Stance::Block);
    for own in [
        "[[verifier]]\nname = \"a\"\nrun = \"true\"\n",
        "goal = \"x\"",
        "[token_budget]\nthreshold = 0.5",
        "[loops]\npreset = \"off\"",
    ] {
        assert!(
            compile_repo_and_personal_config(Some(&repo), Some(&source(own)), TaskDriverKind::Hook)
                .is_err(),
            "{own}"
        );
    }
}

#[test]
fn spans_of_time() {
    for (text, ms) in [
        ("90s", 90_000),
        ("1h 30m", 5_400_000),
        ("250ms", 250),
        ("2d", 172_800_000),
    ] {
        assert_eq!(
            ConfigDuration::parse_time_span(text),
            Some(ConfigDuration { ms }),
            "{text}"
        );
    }
    for text in ["", "5", "m", "5x", "-5s", "99999999999999999999s"] {
        assert_eq!(ConfigDuration::parse_time_span(text), None, "{text}");
    }
}

fn under(text: &str, profile: ProfileRequest<'_>) -> Result<Policy, ConfigError> {
    let repo = ConfigWithNamedFiles::gather_files_named_by_config(source(text))?;
    let compiled = compile_gathered_configs(Some(&repo), None, TaskDriverKind::Hook, profile)?;
    assert_eq!(compiled.warnings, Vec::<String>::new());
    Ok(compiled.policy)
}

#[test]
fn a_profile_overrides_any_table() {
    let text = "accept = 'a'\n[caps]\ntool_calls = 7\ncontinues = 5\n\
                [[verifier]]\nname = 'a'\nrun = 'one'\ntimeout = '1m'\n\
                [profile.ci]\naccept = 'a and b'\nverify_on = 'always'\n[profile.ci.caps]\ntool_calls = 3\n\
                [profile.ci.stance]\nstop = 'block'\n\
                [[profile.ci.verifier]]\nname = 'a'\nrun = 'two'\n\
                [[profile.ci.verifier]]\nname = 'b'\nrun = 'three'\n";
    let plain = under(text, ProfileRequest::Plain).unwrap();
    assert_eq!((plain.caps.tool_calls, plain.verifiers.len()), (Some(7), 1));
    for profile in [ProfileRequest::Named("ci"), ProfileRequest::IfThere("ci")] {
        let ci = under(text, profile).unwrap();
        assert_eq!((ci.caps.tool_calls, ci.caps.continues), (Some(3), 5));
        assert_eq!(ci.verify_on, VerifyOnChangeOrAlways::Always);
        assert_eq!(ci.stance.stop, Stance::Block);
        let seen: Vec<(&str, bool, u64)> = ci
            .verifiers
            .iter()
            .map(|spec| {
                let two = spec.definition.contains("two");
                (spec.name.as_str(), two, spec.timeout_ms)
            })
            .collect();
        assert_eq!(seen, [("a", true, 60_000), ("b", false, 600_000)]);
    }
    assert_eq!(
        under(text, ProfileRequest::IfThere("local")).unwrap(),
        plain
    );
    let error = under(text, ProfileRequest::Named("local"))
        .unwrap_err()
        .to_string();
    assert!(
        error.contains("'local'") && error.contains("there is: ci"),
        "{error}"
    );
}

#[test]
fn what_is_wrong_in_a_profile_is_said_without_asking_for_it() {
    let check = |text: &str, expected: &str| {
        let repo = ConfigWithNamedFiles::gather_files_named_by_config(source(text));
        let compiled = repo.and_then(|repo| {
            compile_gathered_configs(
                Some(&repo),
                None,
                TaskDriverKind::Hook,
                ProfileRequest::Plain,
            )
        });
        let said = match compiled {
            Ok(compiled) => compiled.warnings.join("\n"),
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected), "{text}: {said}");
    };
    check(
        "[profile.ci.cap]\nattempts = 1\n",
        "unknown table [profile.ci.cap]; did you mean [profile.ci.caps]?",
    );
    check(
        "[profile.ci.policy]\nrewrite = \"grant\"\n",
        "does not act on 'profile.ci.policy.rewrite' yet",
    );
    check(
        "[profile.ci.caps]\nattempts = 'x'\n",
        "checkrein.toml:2:12: profile.ci.caps.attempts must be 1 or more",
    );
    check("[profile.ci.profile.x]\n", "cannot hold another profile");
}

#[test]
fn what_is_said_of_commands_and_paths_beside_the_rules() {
    let rules = |repo: &str, own: Option<&str>| {
        let source = |text: &str| NamedConfigText {
            name: PathBuf::from("/r/checkrein.toml"),
            text: text.to_owned(),
        };
        let own = own.map(source);
        let compiled = compile_repo_and_personal_config(
            Some(&source(repo)),
            own.as_ref(),
            TaskDriverKind::Hook,
        );
        compiled.map(|compiled| {
            checkrein_execpolicy::RuleSet::deserialize_rule_set(&compiled.policy.rules).unwrap()
        })
    };
    let judged = |rules: &checkrein_execpolicy::RuleSet, script: &str| {
        checkrein_execpolicy::evaluate_script(rules, script).rule
    };
    use checkrein_core::input::RuleDecision::{Allow, Forbidden, Prompt};
    let shipped = rules(
        "[policy]\nrules = ['builtin:default']\nprotect = ['tests/**']",
        None,
    )
    .unwrap();
    for (script, expected) in [
        ("git status", None),
        ("frobnicate", None),
        ("$RUN now", None),
        ("git push --force", Some(Prompt)),
        // It may write what is protected.
        ("git reset --hard", Some(Prompt)),
        ("shutdown now", Some(Forbidden)),
        ("echo x > tests/a", Some(Forbidden)),
    ] {
        assert_eq!(judged(&shipped, script), expected, "{script}");
    }
    // Where effects decide, it is beside them.
    let by_effect = "[policy]\nrules = ['builtin:default']\nunmatched = 'by-effect'";
    let by_effect = rules(by_effect, None).unwrap();
    for (script, expected) in [
        ("git status", Allow),
        ("frobnicate", Prompt),
        ("git push --force", Prompt),
        ("shutdown now", Forbidden),
    ] {
        assert_eq!(judged(&by_effect, script), Some(expected), "{script}");
    }
    // Without the key its forbidden part is in force, and what it asks about is not.
    for (repo, own, expected) in [
        ("", None, Some(Forbidden)),
        ("[policy]\napproval = 'never'", None, Some(Forbidden)),
        ("[policy]\nrules = []", None, None),
        (
            "[policy]\nrules = ['builtin:default']",
            None,
            Some(Forbidden),
        ),
        // A person's own file takes nothing back, and can put it in force.
        ("", Some("[policy]\nrules = []"), Some(Forbidden)),
        ("[policy]\nrules = []", Some("[caps]\nattempts = 2"), None),
        (
            "[policy]\nrules = []",
            Some("[policy]\nrules = ['builtin:default']"),
            Some(Forbidden),
        ),
    ] {
        let rules = rules(repo, own).unwrap();
        for script in ["rm -rf ~", "mkfs.ext4 /dev/sda1", "dd if=x of=/dev/sda"] {
            assert_eq!(judged(&rules, script), expected, "{repo} {own:?}: {script}");
        }
        let asks = judged(&rules, "git push -f origin main") == Some(Prompt);
        let shipped = repo.contains("builtin") || own.is_some_and(|own| own.contains("builtin"));
        assert_eq!(asks, shipped, "{repo} {own:?}");
    }
    // The person's own file tightens and never loosens.
    let own = rules(
        "[policy]\nunmatched = 'by-effect'",
        Some("[policy]\nunmatched = 'allow'\nopaque = 'prompt'"),
    )
    .unwrap();
    assert_eq!(judged(&own, "make"), Some(Prompt));
    assert_eq!(judged(&own, "ls"), Some(Allow));
    let asks = rules("", Some("[policy]\nunmatched = 'prompt'")).unwrap();
    assert_eq!(judged(&asks, "ls"), Some(Prompt));
    for wrong in ["/etc/**", "../x", "", "a/{b,c}"] {
        assert!(
            rules(&format!("[policy]\nprotect = ['{wrong}']"), None).is_err(),
            "{wrong}"
        );
    }
}

#[test]
fn of_two_approval_modes_the_stricter_one_counts_and_none_is_an_error() {
    use checkrein_core::policy::ApprovalMode::{self, Always, Both, Never, OnRequest};
    let mode = |repo: &str, own: &str| -> ApprovalMode {
        let source = |mode: &str| NamedConfigText {
            name: PathBuf::from("/r/checkrein.toml"),
            text: format!("[policy]\napproval = '{mode}'"),
        };
        let compiled = compile_repo_and_personal_config(
            Some(&source(repo)),
            Some(&source(own)),
            TaskDriverKind::Hook,
        );
        compiled.unwrap().policy.approval
    };
    for (repo, own, expected) in [
        ("on-request", "on-request", OnRequest),
        ("on-request", "always", Always),
        ("always", "on-request", Always),
        ("never", "on-request", Never),
        ("never", "never", Never),
        ("never", "always", Both),
        ("always", "never", Both),
    ] {
        assert_eq!(mode(repo, own), expected, "{repo} and {own}");
    }
}

#[test]
fn a_slip_in_a_schema_is_a_warning_and_one_that_asks_for_nothing_an_error() {
    let compiled = |schema: &str| {
        let config =
            "[[verifier]]\nname = 'r'\nkind = 'schema'\nschema = 's.json'\ntarget = 'out.json'";
        let mut repo = ConfigWithNamedFiles::gather_files_named_by_config(source(config)).unwrap();
        repo.schemas = vec![NamedConfigText {
            name: PathBuf::from("s.json"),
            text: schema.to_owned(),
        }];
        compile_gathered_configs(
            Some(&repo),
            None,
            TaskDriverKind::Hook,
            ProfileRequest::Plain,
        )
    };
    let warnings = compiled(r#"{"type": "object", "requierd": ["a"]}"#);
    let warnings = warnings.unwrap().warnings;
    let said = "s.json: unknown keyword 'requierd' is ignored; did you mean 'required'?";
    assert_eq!(warnings, [said]);
    let error = compiled(r#"{"requierd": ["a"]}"#).unwrap_err().to_string();
    assert!(error.contains("asks for nothing"), "{error}");
    assert!(error.contains(said), "{error}");
}

#[test]
fn what_says_nothing_to_a_person_is_a_mistake() {
    let check = |lines: &str, fragment: &str| {
        let text = format!("[[verifier]]\nname = 'look'\nkind = 'human'\n{lines}\n");
        let said = refused(&text);
        assert!(said.contains(fragment), "{lines}\n said: {said}");
    };
    check("", "ask is missing");
    check("ask = 'x'\nrun = 'true'", "run says nothing to a person");
    check(
        "ask = 'x'\noutputs = ['o']",
        "outputs says nothing to a person",
    );
    check(
        "ask = 'x'\ntarget = 'message'\ninputs = ['a']",
        "inputs are files",
    );
    check("ask = 'x'\nexpires = '31d'", "expires must be 30d or less");
    let said = refused("[approvals]\nexpires = '99999999d'\n");
    assert!(
        said.contains("approvals.expires must be 30d or less"),
        "{said}"
    );
}

/// A file that a pattern means is read, or is a mistake to tell: it is never passed over.
#[cfg(unix)]
#[test]
fn no_rules_file_is_passed_over_for_being_a_link() {
    use std::os::unix::fs::symlink;
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| folder.path().join(name);
    std::fs::create_dir(at("rules")).unwrap();
    std::fs::write(at("rules/a.rules"), "# nothing\n").unwrap();
    std::fs::write(at("b.rules"), "# linked\n").unwrap();
    symlink("../b.rules", at("rules/b.rules")).unwrap();
    let gathered = || {
        ConfigWithNamedFiles::gather_files_named_by_config(NamedConfigText {
            name: at("checkrein.toml"),
            text: "[policy]\nrules = [\"rules/*.rules\"]\n".to_owned(),
        })
    };
    let read = gathered().unwrap();
    let texts: Vec<&str> = read.rules.iter().map(|source| &*source.text).collect();
    assert_eq!(texts, ["# nothing\n", "# linked\n"]);
    std::fs::remove_file(at("b.rules")).unwrap();
    let error = gathered().unwrap_err().to_string();
    assert!(
        error.contains("rules/b.rules: cannot be read: it is a link that leads nowhere"),
        "{error}"
    );
}

#[test]
fn a_person_who_says_nothing_of_loops_changes_nothing_of_them() {
    let own = source("[caps]\ntool_calls = 100\n");
    for loops in [
        "preset = \"off\"\ndetectors = [\"cycle\"]",
        "preset = \"balanced\"\ndetectors = [\"cycle\"]",
        "preset = \"seed\"\nbreaker_counts = \"no_progress\"",
    ] {
        let repo = source(&format!("[loops]\n{loops}\n"));
        let compiled = |own| {
            let compiled = compile_repo_and_personal_config(Some(&repo), own, TaskDriverKind::Hook);
            compiled
                .unwrap_or_else(|error| panic!("{loops}: {error}"))
                .policy
                .loops
        };
        assert_eq!(compiled(Some(&own)), compiled(None), "{loops}");
    }
    // A preset of theirs adds its detectors, and nothing of what the repo says changes.
    let repo = source("[loops]\npreset = \"balanced\"\n");
    let own = source("[loops]\npreset = \"seed\"\n");
    let both = compile_repo_and_personal_config(Some(&repo), Some(&own), TaskDriverKind::Hook)
        .unwrap()
        .policy
        .loops;
    assert!(
        both.detectors
            .iter()
            .any(|name| name.as_str() == "ping_pong")
    );
    assert!(!both.literal_breaker);
}
