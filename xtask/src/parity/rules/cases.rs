//! Lists the known cases: one for each thing that is documented of the language of Codex's rules,
//! and one for each corner that was found by asking the real program.

use super::RulesParityQuestion;

/// Rules and a command.
const PLAIN: &[(&str, &[&str])] = &[
    // The language.
    ("", &["x"]),
    ("# nothing\n", &["x"]),
    (
        "def deny(n):\n    prefix_rule([n], \"forbidden\")\nfor n in [\"a\", \"b\"]:\n    if n != \"a\":\n        deny(f\"{n}-x\")\n",
        &["b-x"],
    ),
    (
        "x = [\"c\" + str(n) for n in range(3)]\nprefix_rule([x])",
        &["c2"],
    ),
    (
        "prefix_rule([\"x\"])\r\nprefix_rule([\"x\", \"y\"])\r\n",
        &["x", "y"],
    ),
    ("prefix_rule([\"x\"]); prefix_rule([\"x\"])", &["x"]),
    ("while True:\n    pass", &["x"]),
    ("import os", &["x"]),
    ("print(1)", &["x"]),
    ("fail(\"x\", 1)", &["x"]),
    ("load(\"a\", \"b\")", &["x"]),
    ("struct(a=1)", &["x"]),
    ("json.encode(1)", &["x"]),
    ("record(a=int)", &["x"]),
    ("enum(\"a\")", &["x"]),
    ("partial(len)", &["x"]),
    ("map(len, [])", &["x"]),
    ("set([1])", &["x"]),
    ("call_stack()", &["x"]),
    ("breakpoint()", &["x"]),
    ("debug(1)", &["x"]),
    ("pprint(1)", &["x"]),
    ("typing.Any", &["x"]),
    ("isinstance(1, int)", &["x"]),
    ("eval_type(int)", &["x"]),
    ("x: int = 3", &["x"]),
    ("def f(x: int) -> int:\n    return x\nf(1)", &["x"]),
    ("lambda x: x", &["x"]),
    ("f\"{x}\"", &["x"]),
    ("assert True", &["x"]),
    ("class A:\n    pass", &["x"]),
    ("return 1", &["x"]),
    ("break", &["x"]),
    ("x = [", &["x"]),
    ("x = \"abc", &["x"]),
    ("(1", &["x"]),
    ("1)", &["x"]),
    ("\tprefix_rule([\"x\"])", &["x"]),
    ("\u{feff}prefix_rule([\"x\"])", &["x"]),
    ("x = 1\nx = 2\nx += 1", &["x"]),
    ("x = x", &["x"]),
    ("[1][5]", &["x"]),
    ("{}[\"a\"]", &["x"]),
    ("1 // 0", &["x"]),
    ("1 / 0", &["x"]),
    ("\"a\" + 1", &["x"]),
    ("\"a\".foo()", &["x"]),
    ("None.x", &["x"]),
    ("def f(): return f()", &["x"]),
    ("f(a=1, a=2)", &["x"]),
    ("prefix_rule = 3", &["x"]),
    ("prefix_rule", &["x"]),
    ("\"%s\" % 1", &["x"]),
    ("\"\\q\"", &["x"]),
    ("0777", &["x"]),
    ("try: pass", &["x"]),
    ("del a", &["x"]),
    ("@a", &["x"]),
    ("...", &["x"]),
    ("*a", &["x"]),
    // prefix_rule
    ("prefix_rule(pattern=[\"ls\"])", &["ls", "-l"]),
    (
        "prefix_rule([\"rm\"], \"forbidden\", [\"rm x\"], [\"ls\"], \"use trash\")",
        &["rm", "x"],
    ),
    (
        "prefix_rule([[\"npm\", \"yarn\"], [\"i\", \"install\"], \"x\"], \"prompt\")",
        &["yarn", "install", "x", "y"],
    ),
    (
        "prefix_rule([[\"npm\", \"yarn\"], [\"i\", \"install\"]])",
        &["npm", "run"],
    ),
    ("prefix_rule([[\"one\"], [\"two\"]])", &["one", "two"]),
    ("prefix_rule([[\"a\", \"a\"]])", &["a"]),
    ("prefix_rule([\"a\", [\"b\", \"b\"]])", &["a", "b"]),
    ("prefix_rule([\"\"])", &[""]),
    ("prefix_rule([\"a\", \"\"])", &["a", ""]),
    (
        "prefix_rule([\"a\"], justification=\"é \\\"q\\\" <b>\\n\\t\\u2028\")",
        &["a"],
    ),
    ("prefix_rule([\"a\"], decision=\"Allow\")", &["a"]),
    ("prefix_rule([\"a\"], decision=\"\")", &["a"]),
    ("prefix_rule([\"a\"], decision=3)", &["a"]),
    ("prefix_rule([\"a\"], decision=None)", &["a"]),
    ("prefix_rule(pattern=[])", &["a"]),
    ("prefix_rule([[]])", &["a"]),
    ("prefix_rule([\"a\", []])", &["a"]),
    ("prefix_rule([[\"a\", 1]])", &["a"]),
    ("prefix_rule([[\"a\", []]])", &["a"]),
    ("prefix_rule([3])", &["a"]),
    ("prefix_rule([None])", &["a"]),
    ("prefix_rule([(\"a\",)])", &["a"]),
    ("prefix_rule(pattern=\"ls\")", &["a"]),
    ("prefix_rule(pattern=(\"ls\",))", &["a"]),
    ("prefix_rule(pattern=3)", &["a"]),
    ("prefix_rule([\"a\"], reviewer=\"user\")", &["a"]),
    ("prefix_rule([\"a\"], pattern=[\"b\"])", &["a"]),
    ("prefix_rule()", &["a"]),
    (
        "prefix_rule([\"a\"], \"allow\", [], [], \"x\", True)",
        &["a"],
    ),
    ("prefix_rule([\"a\"], \"allow\", [], [], \"x\", 3)", &["a"]),
    (
        "prefix_rule([\"a\"], \"allow\", [], [], \"x\", True, 4)",
        &["a"],
    ),
    ("prefix_rule([\"a\"], justification=\" \\t\")", &["a"]),
    ("prefix_rule([\"a\"], justification=None)", &["a"]),
    ("prefix_rule([\"a\"], match=None)", &["a"]),
    ("prefix_rule([\"a\"], match=\"a\")", &["a"]),
    ("prefix_rule([\"a\"], match=[1])", &["a"]),
    ("prefix_rule([\"a\"], match=[None])", &["a"]),
    ("prefix_rule([\"a\"], match=[[\"a\", 1]])", &["a"]),
    ("prefix_rule([\"a\"], match=[(\"a\",)])", &["a"]),
    ("prefix_rule([\"a\"], match=[\"\"])", &["a"]),
    ("prefix_rule([\"a\"], match=[\"# c\"])", &["a"]),
    ("prefix_rule([\"a\"], match=[\"a # c\"])", &["a"]),
    ("prefix_rule([\"a\"], not_match=[[]])", &["a"]),
    ("prefix_rule([\"a\"], match=[\"a \\\"b\"])", &["a"]),
    ("prefix_rule([\"a\"], match=[\"a \\\\\"])", &["a"]),
    (
        "prefix_rule([\"a\"], match=[\"b c\", \"a\", [\"d e\", \"f\"]])",
        &["a"],
    ),
    (
        "prefix_rule([\"a\"], match=[[\"x\\\"'y\", \"\\n\"], [\"é\"], [\"\\u0000\"], [\"~x\", \"=y\", \"\", \"*\"]])",
        &["a"],
    ),
    ("prefix_rule([\"a\"], not_match=[\"x\", \"a c\"])", &["a"]),
    (
        "prefix_rule([[\"a\", \"c\"], [\"b\", \"d\"]], \"prompt\", justification=\"j\", not_match=[[\"a\", \"b\", \"x y\"]])",
        &["a"],
    ),
    (
        "prefix_rule([\"a\"], match=[\"b\"], not_match=[\"a\"])",
        &["a"],
    ),
    (
        "prefix_rule([\"a\"], match=[\"b\"])\nfail(\"later\")",
        &["a"],
    ),
    (
        "prefix_rule([\"b\"])\nprefix_rule([\"a\"], match=[\"b\"])",
        &["a"],
    ),
    (
        "prefix_rule([\"a\"], match=[\"/usr/bin/a x\", \"./a\", \"~/a\"])",
        &["a"],
    ),
    ("prefix_rule([\"a\"], not_match=[\"/usr/bin/a x\"])", &["a"]),
    (
        "prefix_rule([\"a\"], match=[\"/x/a\"])\nhost_executable(\"a\", [\"/y/a\"])",
        &["a"],
    ),
    (
        "prefix_rule([\"a\"], not_match=[\"/x/a\"])\nhost_executable(\"a\", [])",
        &["a"],
    ),
    // Which of several mistakes is reported.
    (
        "prefix_rule([], \"bad\", justification=\" \", match=[1])",
        &["a"],
    ),
    (
        "prefix_rule([3], \"allow\", justification=\" \", match=[1])",
        &["a"],
    ),
    ("prefix_rule([3], \"allow\", match=[1])", &["a"]),
    ("prefix_rule([\"a\"], match=[1], not_match=[2.5])", &["a"]),
    ("network_rule(\"*\", \"x\", \"y\", \" \")", &["a"]),
    ("network_rule(\"*\", \"http\", \"y\", \" \")", &["a"]),
    ("network_rule(\"*\", \"http\", \"deny\", \" \")", &["a"]),
    ("host_executable(\"g/t\", [3])", &["a"]),
    ("host_executable(\"git\", [\"x\", 3])", &["a"]),
    ("host_executable(\"git\", [\"/a\", 3])", &["a"]),
    // host_executable
    (
        "host_executable(\"git\", [\"/usr/bin/git\", \"/usr/bin/git\"])",
        &["git"],
    ),
    (
        "host_executable(name=\"git\", paths=[\"/git\"], x=1)",
        &["a"],
    ),
    ("host_executable(\"git\", [\"/git\"], 1)", &["a"]),
    ("host_executable()", &["a"]),
    ("host_executable(\"git\")", &["a"]),
    ("host_executable(3, [])", &["a"]),
    ("host_executable(\"git\", None)", &["a"]),
    ("host_executable(\"git\", \"/a\")", &["a"]),
    ("host_executable(\"git\", (\"/a\",))", &["a"]),
    ("host_executable(\"git\", [3])", &["a"]),
    ("host_executable(\"git\", [\"git\"])", &["a"]),
    ("host_executable(\"git\", [\"\"])", &["a"]),
    ("host_executable(\"git\", [\"~/git\"])", &["a"]),
    ("host_executable(\"git\", [\"/\"])", &["a"]),
    ("host_executable(\"git\", [\"/x/git/..\"])", &["a"]),
    ("host_executable(\"git\", [\"/x/../git/.//\"])", &["a"]),
    ("host_executable(\"git\", [\"C:\\\\git\"])", &["a"]),
    ("host_executable(\"\", [])", &["a"]),
    ("host_executable(\".\", [])", &["a"]),
    ("host_executable(\"..\", [])", &["a"]),
    ("host_executable(\"a/git\", [])", &["a"]),
    ("host_executable(\"/git\", [])", &["a"]),
    ("host_executable(\"git/\", [])", &["a"]),
    ("host_executable(\" \", [\"/ \"])", &["a"]),
    ("host_executable(\"a\\\\b\", [\"/x/a\\\\b\"])", &["a"]),
    // network_rule
    (
        "network_rule(\"Example.com.:443\", \"https\", \"allow\", \"why\")",
        &["a"],
    ),
    ("network_rule(\"[::1]:80\", \"http\", \"deny\")", &["a"]),
    (
        "network_rule(\"::1\", \"https_connect\", \"prompt\")",
        &["a"],
    ),
    (
        "network_rule(\":80\", \"http-connect\", \"forbidden\")",
        &["a"],
    ),
    ("network_rule(\"a .\", \"socks5_tcp\", \"deny\")", &["a"]),
    ("network_rule(\". .\", \"socks5_udp\", \"deny\")", &["a"]),
    ("network_rule(\"a\", \"http_connect\", \"deny\")", &["a"]),
    ("network_rule(\"a\", \"HTTP\", \"deny\")", &["a"]),
    ("network_rule(\"a\", \"http\", \"Deny\")", &["a"]),
    ("network_rule(\"a\", \"http\", \"allow\", None)", &["a"]),
    ("network_rule(\"a\", \"http\", \"allow\", \"\")", &["a"]),
    ("network_rule(\"a\", \"http\", \"allow\", \"x\", 4)", &["a"]),
    ("network_rule(\"a\", \"http\")", &["a"]),
    ("network_rule(3, \"http\", \"allow\")", &["a"]),
    ("network_rule(\"\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\" . \", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[ ]\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"*.b\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[* b]\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"http://a\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"a*/b\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[a/]x\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"a?b\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"a#b\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"a b:80\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"a: 80\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[a\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[a]:\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[a].\", \"http\", \"allow\")", &["a"]),
    ("network_rule(\"[[a]]\", \"http\", \"allow\")", &["a"]),
    (
        "network_rule(\"[a]:\u{ff18}0\", \"http\", \"allow\")",
        &["a"],
    ),
    // Matching.
    (
        "prefix_rule([\"git\"], \"prompt\")\nprefix_rule([\"git\", \"status\"])",
        &["git", "status"],
    ),
    (
        "prefix_rule([\"git\"], \"prompt\")\nprefix_rule([\"git\"], \"forbidden\")",
        &["git", "status"],
    ),
    ("prefix_rule([\"git\", \"status\"])", &["git"]),
    ("prefix_rule([\"git\", \"status\"])", &["git status"]),
    ("prefix_rule([\"git\"])", &["Git"]),
    (
        "prefix_rule([\"rm\"], \"forbidden\")",
        &["bash", "-lc", "rm x"],
    ),
    ("prefix_rule([\"rm\"], \"forbidden\")", &["/bin/rm", "x"]),
    (
        "prefix_rule([\"/bin/rm\"], \"forbidden\")",
        &["/bin/rm", "x"],
    ),
    ("prefix_rule([\"--\"])", &["--", "--pretty"]),
    (
        "prefix_rule([\"a\"])",
        &["a", "--pretty", "-r", "x", "--help"],
    ),
    // Letter case.
    (
        "prefix_rule([\"git\", \"status\"], canonical_matching=True)",
        &["GIT", "Status"],
    ),
    (
        "prefix_rule([\"é\"], canonical_matching=True)",
        &["E\u{301}"],
    ),
    (
        "prefix_rule([\"straße\"], canonical_matching=True)",
        &["STRASSE"],
    ),
    (
        "prefix_rule([\"\u{130}\"], canonical_matching=True)",
        &["i\u{307}"],
    ),
    (
        "prefix_rule([\"\u{1f80}\"], canonical_matching=True)",
        &["\u{1f00}\u{3b9}"],
    ),
    (
        "prefix_rule([\"\u{2460}\"], canonical_matching=True)",
        &["1"],
    ),
    (
        "prefix_rule([\"I\"], canonical_matching=True)",
        &["\u{131}"],
    ),
    (
        "prefix_rule([\"a\", [\"B\", \"b\"]], canonical_matching=True)",
        &["A", "b"],
    ),
    (
        "prefix_rule([[\"a\", \"A\"]], canonical_matching=True)",
        &["a"],
    ),
    (
        "prefix_rule([\"a\"], canonical_matching=True, match=[\"A\"])",
        &["x"],
    ),
    (
        "prefix_rule([\"GIT\"], justification=\"1\")\nprefix_rule([\"GIT\"], canonical_matching=True, justification=\"2\")\nprefix_rule([\"git\"], canonical_matching=True, justification=\"3\")\nprefix_rule([\"git\"], justification=\"4\")",
        &["git"],
    ),
];

/// Rules and a command, where paths may stand for names.
const RESOLVED: &[(&str, &[&str])] = &[
    ("prefix_rule([\"git\"])", &["git", "x"]),
    ("prefix_rule([\"git\"])", &["/usr/bin/git", "x"]),
    ("prefix_rule([\"git\"])", &["//usr//bin/./git/", "x"]),
    ("prefix_rule([\"git\"])", &["/usr/bin/x/../git", "x"]),
    ("prefix_rule([\"git\"])", &["/../../git", "x"]),
    ("prefix_rule([\"git\"])", &["./git"]),
    ("prefix_rule([\"git\"])", &["x/../../git"]),
    (
        "prefix_rule([\"git\"])",
        &["../../../../../../../../../git"],
    ),
    ("prefix_rule([\"git\"])", &["~/git"]),
    ("prefix_rule([\"git\"])", &["~//git"]),
    ("prefix_rule([\"git\"])", &["~/../git"]),
    ("prefix_rule([\"git\"])", &["~git"]),
    ("prefix_rule([\"git\"])", &["~dev/git"]),
    ("prefix_rule([\"dev\"])", &["~"]),
    ("prefix_rule([\"dev\"])", &["~/"]),
    ("prefix_rule([\"git\"])", &["git/."]),
    ("prefix_rule([\"git\"])", &[" /git"]),
    ("prefix_rule([\"git\"])", &["/x/git\n"]),
    ("prefix_rule([\"git\"])", &["/"]),
    ("prefix_rule([\"\"])", &["/"]),
    ("prefix_rule([\"..\"])", &["/usr/.."]),
    ("prefix_rule([\"usr\"])", &["/usr/bin/.."]),
    ("prefix_rule([\"git\"])", &["/usr/bin/git.exe"]),
    ("prefix_rule([\"git\"])", &["/usr/bin/GIT"]),
    ("prefix_rule([\"é\"])", &["/x/é"]),
    (
        "prefix_rule([\"git\"], match=[\"./git\", \"~/git\"])",
        &["/x/git"],
    ),
    (
        "prefix_rule([\"git\"])\nhost_executable(\"git\", [\"/usr/bin/git\"])",
        &["/usr/bin/git"],
    ),
    (
        "prefix_rule([\"git\"])\nhost_executable(\"git\", [\"/usr/bin/../bin/git/\"])",
        &["/usr/bin/git"],
    ),
    (
        "prefix_rule([\"git\"])\nhost_executable(\"git\", [\"/usr/bin/git\"])",
        &["/opt/git"],
    ),
    (
        "prefix_rule([\"git\"])\nhost_executable(\"git\", [])",
        &["/usr/bin/git"],
    ),
    (
        "host_executable(\"git\", [\"/usr/bin/git\"])\nhost_executable(\"git\", [\"/opt/git\"])\nprefix_rule([\"git\"])",
        &["/usr/bin/git"],
    ),
    (
        "host_executable(\"hg\", [\"/usr/bin/hg\"])\nprefix_rule([\"git\"])",
        &["/usr/bin/git"],
    ),
    (
        "prefix_rule([\"git\"], \"prompt\")\nprefix_rule([\"/usr/bin/git\"])",
        &["/usr/bin/git"],
    ),
    (
        "prefix_rule([\"git\"], \"prompt\", justification=\"why\")\nprefix_rule([\"/usr/bin/git\", \"y\"])",
        &["/usr/bin/git", "x"],
    ),
    (
        "prefix_rule([\"git\"], canonical_matching=True)",
        &["/usr/bin/GIT"],
    ),
    (
        "prefix_rule([\"git\"], canonical_matching=True)\nhost_executable(\"git\", [\"/usr/bin/git\"])",
        &["/usr/bin/GIT"],
    ),
    (
        "prefix_rule([\"git\"], canonical_matching=True)\nhost_executable(\"GIT\", [])",
        &["/usr/bin/git"],
    ),
    (
        "prefix_rule([\"git\"], canonical_matching=True)\nprefix_rule([\"GIT\"], \"prompt\")",
        &["./GIT"],
    ),
    (
        "prefix_rule([\"/x/git\"], canonical_matching=True)\nprefix_rule([\"GIT\"])",
        &["/X/GIT"],
    ),
];

/// Several files that are read together, and a command.
const MANY: &[(&[&str], &[&str])] = &[
    (
        &["prefix_rule([\"a\"], \"prompt\")", "prefix_rule([\"a\"])"],
        &["a"],
    ),
    (&["prefix_rule([\"a\"])", "prefix_rule([\"a\"])"], &["a"]),
    (&["y = 1", "prefix_rule([[\"x\", \"z\"][y]])"], &["z"]),
    (&["prefix_rule([\"a\"], match=[\"b\"])", "nope"], &["a"]),
    (&["prefix_rule([\"a\"])", "\nnope"], &["a"]),
    (
        &[
            "prefix_rule([\"a\"], match=[\"/x/a\"])",
            "host_executable(\"a\", [\"/y/a\"])",
        ],
        &["/x/a"],
    ),
    (
        &[
            "host_executable(\"a\", [\"/y/a\"])",
            "prefix_rule([\"a\"], match=[\"/x/a\"])",
        ],
        &["/y/a"],
    ),
    (
        &[
            "host_executable(\"a\", [\"/y/a\"])",
            "host_executable(\"a\", [\"/x/a\"])\nprefix_rule([\"a\"])",
        ],
        &["/x/a"],
    ),
];

pub(super) fn parity_rule_questions() -> Vec<RulesParityQuestion> {
    let one = |rules: &str, argv: &[&str], resolve| {
        rules_parity_question(&[Some(rules.as_bytes())], argv, resolve)
    };
    let mut all = Vec::new();
    for (rules, argv) in PLAIN {
        all.push(one(rules, argv, false));
    }
    for (rules, argv) in RESOLVED {
        // With the flag and without: paths may stand for names only with it.
        all.extend([one(rules, argv, true), one(rules, argv, false)]);
    }
    for (files, argv) in MANY {
        let files: Vec<Option<&[u8]>> = files.iter().map(|text| Some(text.as_bytes())).collect();
        all.push(rules_parity_question(&files, argv, true));
    }
    let ok: Option<&[u8]> = Some(b"prefix_rule([\"a\"])");
    // Files that cannot be read, before and after files that can.
    all.push(rules_parity_question(&[None], &["a"], false));
    all.push(rules_parity_question(&[ok, None], &["a"], false));
    all.push(rules_parity_question(&[None, Some(b"nope")], &["a"], false));
    all.push(rules_parity_question(&[Some(b"nope"), None], &["a"], false));
    all.push(rules_parity_question(&[Some(b"\xff")], &["a"], false));
    // Usage errors: no rules file, and no command.
    all.push(rules_parity_question(&[], &["a"], false));
    all.push(rules_parity_question(&[ok], &[], false));
    all
}

fn rules_parity_question(
    files: &[Option<&[u8]>],
    argv: &[&str],
    resolve: bool,
) -> RulesParityQuestion {
    RulesParityQuestion {
        files: files.iter().map(|file| file.map(<[u8]>::to_vec)).collect(),
        argv: argv.iter().map(|word| (*word).to_owned()).collect(),
        resolve,
    }
}
