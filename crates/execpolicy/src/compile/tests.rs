//! The language of rules files, its errors and its bounds.

use checkrein_core::input::RuleDecision::{self, Allow, Prompt};

use super::*;

/// The rules as `head tail...=decision`, alternatives joined by `|`.
fn compiled(text: &str) -> Vec<String> {
    compile(&[("test.rules", text)])
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .into_rules()
        .into_iter()
        .map(|rule| {
            let mut words = vec![rule.head];
            words.extend(rule.tail.iter().map(|options| options.join("|")));
            let why = rule
                .justification
                .map_or(String::new(), |why| format!(" ({why})"));
            let canonical = if rule.canonical { "~" } else { "" };
            format!("{canonical}{}={:?}{why}", words.join(" "), rule.decision)
        })
        .collect()
}

fn refused(text: &str) -> String {
    compile(&[("test.rules", text)])
        .expect_err(text)
        .to_string()
}

#[test]
fn the_language() {
    let check = |text: &str, expected: &[&str]| assert_eq!(compiled(text), expected, "{text}");
    check("", &[]);
    check("# nothing\n", &[]);
    check("prefix_rule(pattern=['ls'])", &["ls=Allow"]);
    check("prefix_rule(['rm'], 'forbidden')", &["rm=Forbidden"]);
    check(
        "prefix_rule(['rm'], 'prompt', ['rm x'], ['ls'], 'why')",
        &["rm=Prompt (why)"],
    );
    check(
        "prefix_rule(pattern=[['npm', 'yarn'], ['i', 'install'], 'x'], decision='prompt')",
        &["npm i|install x=Prompt", "yarn i|install x=Prompt"],
    );
    check(
        "prefix_rule(pattern=[['one'], ['two']])",
        &["one two=Allow"],
    );
    check("prefix_rule(pattern=[''])", &["=Allow"]);
    check(
        "prefix_rule(['A', 'b'], canonical_matching=True, match=['a B'])",
        &["~A b=Allow"],
    );
    check(
        "host_executable('a', ['/opt/a'])\n\
         prefix_rule(['a'], match=['/opt/a', './../opt/a'], not_match=['/bin/a'])",
        &["a=Allow"],
    );
    check(
        "def deny(name):\n    prefix_rule(pattern=[name], decision='forbidden')\n\
         for n in ['a', 'b']:\n    if n != 'x':\n        deny(f'{n}-tool')\n",
        &["a-tool=Forbidden", "b-tool=Forbidden"],
    );
    check(
        "x = ['c' + str(n) for n in range(2)]\nprefix_rule([x])",
        &["c0=Allow", "c1=Allow"],
    );
    check(
        "prefix_rule(['a', 'b'], match=['a b c', ['a', 'b'], '/usr/bin/a b'], not_match=['a c', 'x/ab b'])",
        &["a b=Allow"],
    );
}

#[test]
fn what_is_wrong_is_said_with_file_and_line() {
    let check = |text: &str, fragment: &str| {
        let said = refused(text);
        assert!(
            said.contains(fragment),
            "{text}\n said: {said}\n want: {fragment}"
        );
        assert!(said.starts_with("test.rules:"), "{text}\n said: {said}");
    };
    check(
        "\n\nprefix_rule(['a'], decision='Allow')",
        "test.rules:3: starlark error: invalid decision: Allow",
    );
    check(
        "prefix_rule(pattern=[])",
        "invalid pattern element: pattern cannot be empty",
    );
    check(
        "prefix_rule([[]])",
        "invalid pattern element: pattern alternatives cannot be empty",
    );
    check(
        "prefix_rule([['a', 1]])",
        "pattern alternative must be a string (got int)",
    );
    check(
        "prefix_rule([3])",
        "pattern element must be a string or list of strings (got int)",
    );
    check(
        "prefix_rule([('a',)])",
        "pattern element must be a string or list of strings (got tuple)",
    );
    check(
        "prefix_rule(pattern='ls')",
        "Type of parameter `pattern` doesn't match, expected `list",
    );
    check(
        "prefix_rule(pattern=('ls',))",
        "Type of parameter `pattern` doesn't match",
    );
    check(
        "prefix_rule(['a'], decision=None)",
        "Type of parameter `decision` doesn't match",
    );
    check(
        "prefix_rule(['a'], reviewer='user')",
        "extra named parameter(s)",
    );
    check("prefix_rule()", "Missing parameter");
    check(
        "prefix_rule(['a'], justification=' ')",
        "invalid rule: justification cannot be empty",
    );
    check(
        "prefix_rule(['a'], match=[1])",
        "invalid example: example must be a string or list of strings",
    );
    check(
        "prefix_rule(['a'], match=[['a', 1]])",
        "invalid example: example tokens must be strings (got int)",
    );
    check(
        "prefix_rule(['a'], match=[''])",
        "invalid example: example cannot be an empty string",
    );
    check(
        "prefix_rule(['a'], not_match=[[]])",
        "invalid example: example cannot be an empty list",
    );
    check(
        "prefix_rule(['a'], match=['a \"b'])",
        "invalid example: example string has invalid shell syntax",
    );
    check(
        "x = 1\nprefix_rule(['a'], match=['b c', 'a', ['d e']])",
        "test.rules:2: expected every example to match at least one rule; unmatched examples: [\"b c\", \"'d e'\"]",
    );
    check(
        "prefix_rule(['a'], not_match=['a b'])",
        "expected example to not match rule",
    );
    // `not_match` is looked at before `match`, and both after the file was evaluated.
    check(
        "prefix_rule(['a'], match=['b'], not_match=['a'])",
        "to not match rule",
    );
    check("prefix_rule(['a'], match=['b'])\nfail('later')", "later");
    check(
        "prefix_rule(['a'], not_match=['/bin/a x'])",
        "to not match rule",
    );
    // Another call's rules do not help.
    check(
        "prefix_rule(['b'])\nprefix_rule(['a'], match=['b'])",
        "test.rules:2:",
    );
    check("nope()", "Variable `nope` not found");
    check("print('x')", "Variable `print` not found");
    check("load('a.star', 'b')", "starlark error");
    check("while True:\n  pass", "starlark error");
    check("import os", "starlark error");
    check("fail('sorry')", "sorry");
    check(
        "\nhost_executable('git', ['git'])",
        "test.rules:2: starlark error: invalid rule: host_executable paths must be absolute (got git)",
    );
    check(
        "host_executable('git', ['/x'])",
        "path `/x` must have basename `git`",
    );
    check(
        "host_executable('git', ['/git/..'])",
        "must have basename `git`",
    );
    check(
        "host_executable('git', [3])",
        "paths must be strings (got int)",
    );
    check(
        "host_executable('git', '/git')",
        "Type of parameter `paths` doesn't match",
    );
    check(
        "host_executable('a/git', [])",
        "must be a bare executable name (got a/git)",
    );
    check(
        "host_executable('..', [])",
        "must be a bare executable name (got ..)",
    );
    check(
        "host_executable('', [])",
        "host_executable name cannot be empty",
    );
    check(
        "network_rule('a', 'gopher', 'block')",
        "invalid rule: network_rule protocol must be one of http, https, socks5_tcp, socks5_udp (got gopher)",
    );
    check(
        "network_rule('*', 'http', 'block', ' ')",
        "invalid decision: block",
    );
    check(
        "network_rule('*', 'http', 'deny', ' ')",
        "justification cannot be empty",
    );
    check(
        "network_rule('*', 'http', 'deny')",
        "wildcards are not allowed",
    );
    check("network_rule('a', 'http')", "Missing parameter `decision`");
    check(
        "prefix_rule(['a'], canonical_matching='yes')",
        "Type of parameter `canonical_matching` doesn't match",
    );
    // A path that the file lends to nobody, said after the example or before.
    check(
        "prefix_rule(['a'], match=['/bin/a'])\nhost_executable('a', ['/opt/a'])",
        "unmatched examples: [\"/bin/a\"]",
    );
    // The line is that of the call also when a function makes it.
    check(
        "def f():\n    prefix_rule(['a'], match=['b'])\nf()",
        "test.rules:2:",
    );
}

#[test]
fn hostile_files_end() {
    let check = |text: &str, fragment: &str| {
        let said = refused(text);
        assert!(
            said.contains(fragment),
            "{}\n said: {said}",
            text.chars().take(80).collect::<String>()
        );
    };
    check("[0 for a in range(100000) for b in range(100000)]", "tick");
    check(
        "def f():\n  for a in range(100000):\n    for b in range(100000):\n      x = b\nf()",
        "too many",
    );
    check("def f(): f()\nf()", "overflow");
    check(
        &format!("s = 'x' * 100000\n{}", "s = s + s\n".repeat(40)),
        "emory",
    );
    check(&"[".repeat(100_000), "nested too deep");
    check(&format!("x = {}1", "-".repeat(100_000)), "nested too deep");
    check(&"#".repeat(MAX_FILE + 1), "larger than");
}

#[test]
fn several_files_keep_their_order_and_say_which_is_wrong() {
    let files = [
        ("one.rules", "prefix_rule(['a'], match=['/bin/a'])"),
        (
            "two.rules",
            "prefix_rule(['a'], 'prompt')\nhost_executable('a', [])",
        ),
    ];
    let rules = compile(&files).unwrap();
    let said: Vec<RuleDecision> = rules
        .matches(&["a"])
        .iter()
        .map(|hit| hit.decision)
        .collect();
    assert_eq!(said, [Allow, Prompt]);
    let error = compile(&[("one.rules", ""), ("two.rules", "\nx")]).unwrap_err();
    assert!(error.to_string().starts_with("two.rules:2:"), "{error}");
    assert_eq!(compile(&[]).unwrap(), RuleSet::default());
}

#[test]
fn a_listing_tells_every_call_and_tries_its_examples() {
    let text = "prefix_rule([['a', 'b'], 'c'], 'prompt', ['a c', 'x'], ['b c d'], 'why')\n\
                host_executable('a', ['/a/../a'])\n\
                network_rule('Example.com:443', 'https_connect', 'deny')";
    let from = Surroundings::default();
    let (rules, listings) = list(&[("t.rules", text)], &from).unwrap();
    assert_eq!(rules.matches(&["b", "c"]).len(), 1);
    assert_eq!((rules.network().len(), listings.len()), (1, 1));
    let entries = &listings[0].entries;
    assert_eq!(
        entries.iter().map(|one| one.line).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let Says::Prefix {
        pattern, examples, ..
    } = &entries[0].says
    else {
        panic!("{entries:?}");
    };
    assert_eq!(pattern, &[vec!["a", "b"], vec!["c"]]);
    let tried: Vec<(&str, bool, bool)> = examples
        .iter()
        .map(|one| (one.command.as_str(), one.matches, one.holds))
        .collect();
    assert_eq!(
        tried,
        [
            ("b c d", false, false),
            ("a c", true, true),
            ("x", true, false)
        ]
    );
    let host = Says::Host {
        name: "a".to_owned(),
        paths: vec!["/a".to_owned()],
    };
    assert_eq!(entries[1].says, host);
    let Says::Network(network) = &entries[2].says else {
        panic!("{entries:?}");
    };
    assert_eq!(network.host, "example.com");
    assert!(list(&[("t.rules", "x")], &from).is_err());
}
