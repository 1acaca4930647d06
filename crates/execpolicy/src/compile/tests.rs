//! The language of rules files, its errors and its bounds.

use checkrein_core::input::RuleDecision::{self, Allow, Prompt};

use super::*;

/// The rules as `head tail...=decision`, alternatives joined by `|`.
fn compiled(text: &str) -> Vec<String> {
    compile_execpolicy_rules_files(&[("test.rules", text)])
        .unwrap_or_else(|error| panic!("{text}: {error}"))
        .into_prefix_rules()
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
    compile_execpolicy_rules_files(&[("test.rules", text)])
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
    check("\u{b}\u{b}", "test.rules:1: starlark error: Parse error");
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
    check(
        "[0 for a in range(100000) for b in range(100000)]",
        "limit of",
    );
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

/// One step of the evaluator each, which it does not count.
#[test]
fn hostile_steps_end() {
    let check = |text: &str| {
        let error = compile_execpolicy_rules_files(&[("test.rules", text)]).expect_err(text);
        let said = error.to_string();
        let ours = [
            "too many steps or too much memory",
            "limit of",
            "come to more than 16 MiB",
            "take too long to be tried",
        ];
        let ours = ours.iter().any(|words| said.contains(words));
        assert!(ours, "{text}\n said: {said}");
        assert!(said.starts_with("test.rules:"), "{said}");
    };
    check("x = [0] * 1000000000");
    check("x = 'a' * 3000000000");
    check("x = [0]\nx *= 1000000000");
    check("x = 1 << 1000000000");
    check("x = 7\nx <<= 1000000000");
    check("x = max(range(2000000000))");
    check("x = sorted(range(100000000))");
    check("x = list(range(1000000000))");
    check("x = []\nx.extend(range(1000000000))");
    check("x = []\nx += range(1000000000)");
    check("x = any([0] * 10000 + list(range(2000000000)))");
    check("x = dict(enumerate(range(2000000000)))");
    check("def f(*a): pass\nf(*range(2000000000))");
    check("x = 3 in range(2000000000)");
    // A little at a time.
    check("x = [i for i in range(90000)]\ny = [x + x for i in range(10000)]");
    check("x = 'a' * 1000\ny = x.replace('a', 'b' * 10000).replace('b', 'c' * 10000)");
    check("x = ','.join(['x' * 10000 for i in range(10000)])");
    check("x = '{}' * 1000\ny = x.format(*[x * 1000 for i in range(1000)])");
    check("x = 0x7fffffffffffffff\ndef f(a): return a * a\nfor i in range(60): x = f(x)");
    // Lists in lists, each twice in the next.
    let tower = "x = ['a']\nfor i in range(60): x = [x, x]\n";
    for last in [
        "y = str(x)",
        "y = x == list(x)",
        "y = f'{x}'",
        "y = '%s' % x",
        "y = hash(tuple(x))",
        "fail(x)",
    ] {
        check(&format!("{tower}{last}"));
    }
    check(
        "x = ['a']\nfor i in range(60):\n  y = []\n  y.append(x)\n  y.append(x)\n  x = y\nz = repr(x)",
    );
    // Where functions are made, and where something is put.
    check("def f(x=[0] * 1000000000): pass");
    check("def f(a, *, x=[0] * 1000000000): pass");
    check("f = lambda x=[0] * 1000000000: x");
    check("x = [1]\nx[len([0] * 1000000000)] = 1");
    check("x = [1]\n[x, [0] * 1000000000][0][0] = 1");
    check("x = [1]\nx[len([0] * 1000000000)] += 1");
    check("x = [1]\nfor x[len([0] * 1000000000)] in [1]: pass");
    check("x = [1]\ny = [0 for x[len([0] * 1000000000)] in [1]]");
    // What our own functions make of what they are given.
    let many = |count: usize| {
        let words: Vec<String> = (0..count).map(|word| format!("'w{word}'")).collect();
        format!("a = [{}]\n", words.join(", "))
    };
    check(&format!("{}prefix_rule([a, a])", many(12_000)));
    check(&format!(
        "{}for i in range(3000): prefix_rule([a, a])",
        many(3_000)
    ));
    check(&format!(
        "{}b = 'x' * 10000\nprefix_rule([a], justification=b * 20)",
        many(12_000)
    ));
    check(&format!(
        "{}for i in range(3000): prefix_rule(['a'], match=a)",
        many(3_000)
    ));
    check(&format!(
        "{}prefix_rule([['x' for i in a], 'y'], not_match=['x z' for i in a])",
        many(20_000)
    ));
    check(
        "a = ['/' + str(i) + '/x' for i in range(9000)]\n\
         for i in range(1000): host_executable('x', a)",
    );
    // Nobody gets around it.
    for text in [
        "def __meter(x, y): return x\ny = [0] * 1000000000",
        "x = __meter(1, 0) + 1",
    ] {
        let said = refused(text);
        assert!(said.contains("no name that a rules file may use"), "{said}");
    }
    for text in [
        "def f(__meter): return [0] * 1000000000\nf(1)",
        "x = [0 for __meter in [1 + 1]]",
        "x = 1 + 1\nfor __meter in [1]: pass",
        "x = 1\n\nx, __meter = 1, 2 + 2",
        "x = lambda __meter: [0] * 1000000000",
        "__meter = 1\nx = f'{__meter}'",
    ] {
        let said = refused(text);
        assert!(said.contains("no name that a rules file may use"), "{said}");
    }
    assert!(refused("x = 1\n\nx, __meter = 1, 2 + 2").starts_with("test.rules:3:"));
    // A comment or a text names nothing.
    assert_eq!(
        compiled("# see __meter\nx = '__meter' + 'a'\nprefix_rule([x])"),
        ["__metera=Allow"]
    );
    // What is never reached is not computed.
    assert_eq!(
        compiled("def f(): return [0] * 1000000000\nprefix_rule(['a'])"),
        ["a=Allow"]
    );
}

#[test]
fn the_deepest_that_is_read_does_not_overflow_the_stack() {
    let evaluates = |text: String| {
        let said = compile_execpolicy_rules_files(&[("test.rules", text.as_str())])
            .map_err(|error| error.to_string());
        // Whatever is said of it, it is said.
        let crashed = said.as_ref().is_err_and(|said| said.contains("crashed"));
        assert!(!crashed, "{}", text.chars().take(40).collect::<String>());
    };
    evaluates(format!("x = {}1", "1 + ".repeat(990)));
    evaluates(format!("x = {}1 + 1", "-".repeat(1_900)));
    evaluates(format!("x = {}1 + 1", "not ".repeat(1_900)));
    evaluates(format!("x = {}1 + 1", "lambda: ".repeat(650)));
    evaluates(format!("x = {}1 + 1{}", "[".repeat(900), "]".repeat(900)));
    evaluates(format!("x = {}1 + 1{}", "f(".repeat(600), ")".repeat(600)));
    evaluates(format!(
        "x = {}1 + 1{}",
        "{1: ".repeat(600),
        "}".repeat(600)
    ));
    evaluates(format!("x = ''{}", ".strip()".repeat(490)));
    evaluates(format!("x = [1] + [2]{}", "[0]".repeat(600)));
    evaluates(format!("x = {}1", "1 if 1 + 1 else ".repeat(280)));
    evaluates(format!(
        "{}{}x = 2",
        (0..390)
            .map(|n| " ".repeat(n) + "if 1 + 1:\n")
            .collect::<String>(),
        " ".repeat(390)
    ));
}

#[test]
fn files_that_compute_mean_what_they_say() {
    let check = |text: &str, expected: &[&str]| assert_eq!(compiled(text), expected, "{text}");
    check(
        "prefix_rule(['a' + 'b', 'c' * 3, '-%s' % 'd'])",
        &["ab ccc -d=Allow"],
    );
    check(
        "x = ['a']\nx += ['b']\nx *= 2\nprefix_rule(x)",
        &["a b a b=Allow"],
    );
    check(
        "n = 3\nif n > 2: n -= 1; n *= 2\nprefix_rule([str(n)])",
        &["4=Allow"],
    );
    check(
        "prefix_rule(' '.join(['a', 'b']).split(' '))",
        &["a b=Allow"],
    );
    check(
        "x = {'k': 1}\nx['k'] += 1\nprefix_rule([str(x['k'])])",
        &["2=Allow"],
    );
    check(
        "def f(a, b='x'):\n  return[a, b]\nprefix_rule(f('y'))",
        &["y x=Allow"],
    );
    check(
        "f = lambda x: x + 'z'\nprefix_rule([f('y')])",
        &["yz=Allow"],
    );
    check(
        "x, y = 'a', 'b' + 'c'\nprefix_rule([x, y][::-1])",
        &["bc a=Allow"],
    );
    check("n = 'é'\nprefix_rule([f'{n}-{n}'])", &["é-é=Allow"]);
    check(
        "x = {n: n + '!' for n in ['a', 'b'] if n != 'b'}\nprefix_rule([x['a']])",
        &["a!=Allow"],
    );
    check(
        "calls = []\ndef f():\n  calls.append(1)\n  return 0\na = [1]\na[f()] += 1\nprefix_rule([str(len(calls))])",
        &["1=Allow"],
    );
    // A mistake is said in the file's own words, at its own place.
    assert_eq!(
        refused("x = 1 + 1\n\ny = 'a' + x"),
        "test.rules:3: starlark error: Operation `+` not supported for types `string` and `int`"
    );
    let many: Vec<String> = (0..10_000).map(|n| format!("'tool-{n}'")).collect();
    let text = format!(
        "def all(names):\n  for n in names:\n    prefix_rule([n + '-x'])\nall([{}])",
        many.join(", ")
    );
    assert_eq!(compiled(&text).len(), 10_000);
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
    let rules = compile_execpolicy_rules_files(&files).unwrap();
    let said: Vec<RuleDecision> = rules
        .matching_rules(&["a"])
        .iter()
        .map(|hit| hit.decision)
        .collect();
    assert_eq!(said, [Allow, Prompt]);
    let error =
        compile_execpolicy_rules_files(&[("one.rules", ""), ("two.rules", "\nx")]).unwrap_err();
    assert!(error.to_string().starts_with("two.rules:2:"), "{error}");
    assert_eq!(
        compile_execpolicy_rules_files(&[]).unwrap(),
        RuleSet::default()
    );
}

#[test]
fn a_listing_tells_every_call_and_tries_its_examples() {
    let text = "prefix_rule([['a', 'b'], 'c'], 'prompt', ['a c', 'x'], ['b c d'], 'why')\n\
                host_executable('a', ['/a/../a'])\n\
                network_rule('Example.com:443', 'https_connect', 'deny')";
    let from = ProgramPathBaseFolders::default();
    let (rules, listings) = compile_and_list_rules(&[("t.rules", text)], &from).unwrap();
    assert_eq!(rules.matching_rules(&["b", "c"]).len(), 1);
    assert_eq!((rules.network_rules().len(), listings.len()), (1, 1));
    let entries = &listings[0].entries;
    assert_eq!(
        entries.iter().map(|one| one.line).collect::<Vec<_>>(),
        [1, 2, 3]
    );
    let ListedRule::Prefix {
        pattern, examples, ..
    } = &entries[0].rule
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
    let host = ListedRule::Host {
        name: "a".to_owned(),
        paths: vec!["/a".to_owned()],
    };
    assert_eq!(entries[1].rule, host);
    let ListedRule::Network(network) = &entries[2].rule else {
        panic!("{entries:?}");
    };
    assert_eq!(network.host, "example.com");
    assert!(compile_and_list_rules(&[("t.rules", "x")], &from).is_err());
}
