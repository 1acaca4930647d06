//! Generates rules and commands from a seed: alternatives, rules that overlap, names that stand for
//! paths, letter case, words that need quoting, and every kind of mistake.

use super::RulesParityQuestion;

/// First words of commands. Among rules whose names differ in letter case only, Codex has no fixed
/// order, except that the one spelt as the command comes first. So there are two spellings of each
/// name at most.
const HEADS: &[&str] = &[
    "git",
    "GIT",
    "rm",
    "npm",
    "/usr/bin/git",
    "/bin/rm",
    "./git",
    "é",
    "É",
    "",
    "x y",
    "日本",
    "a'b",
];
const WORDS: &[&str] = &[
    "status",
    "push",
    "-f",
    "--force",
    "-rf",
    "STATUS",
    "",
    "e\u{301}",
    "é",
    "x y",
    "it's",
    "\"q\"",
    "*",
    "$HOME",
    "\\",
    "a\tb",
    "日本語",
    "~",
    "=",
    "#c",
];
const DECISIONS: &[&str] = &["allow", "prompt", "forbidden"];

/// Statements that are wrong, each in another way.
const BROKEN: &[&str] = &[
    "prefix_rule([\"a\"], decision=\"Allow\")",
    "prefix_rule([\"a\"], \"deny\")",
    "prefix_rule([])",
    "prefix_rule([[]])",
    "prefix_rule([\"a\", []])",
    "prefix_rule([[\"a\", 1]])",
    "prefix_rule([3])",
    "prefix_rule([None])",
    "prefix_rule([(\"a\",)])",
    "prefix_rule(pattern=\"ls\")",
    "prefix_rule(pattern=(\"ls\",))",
    "prefix_rule([\"a\"], reviewer=\"user\")",
    "prefix_rule([\"a\"], \"allow\", [], [], \"x\", True, 7)",
    "prefix_rule()",
    "prefix_rule([\"a\"], decision=None)",
    "prefix_rule([\"a\"], canonical_matching=1)",
    "prefix_rule([\"a\"], justification=\" \")",
    "prefix_rule([\"a\"], justification=3)",
    "prefix_rule([\"a\"], match=[3])",
    "prefix_rule([\"a\"], match=[[\"a\", 3]])",
    "prefix_rule([\"a\"], match=[\"\"])",
    "prefix_rule([\"a\"], not_match=[[]])",
    "prefix_rule([\"a\"], match=[\"a 'b\"])",
    "prefix_rule([\"a\"], match=\"a\")",
    "host_executable(\"git\", [\"git\"])",
    "host_executable(\"git\", [\"~/git\"])",
    "host_executable(\"git\", [\"/x\"])",
    "host_executable(\"git\", [3])",
    "host_executable(\"git\", \"/git\")",
    "host_executable(\"a/git\", [])",
    "host_executable(\"\", [])",
    "host_executable(\"..\", [])",
    "host_executable(\"git\")",
    "network_rule(\"*.x\", \"http\", \"allow\")",
    "network_rule(\"http://x\", \"http\", \"allow\")",
    "network_rule(\"x y\", \"http\", \"allow\")",
    "network_rule(\"[x\", \"http\", \"allow\")",
    "network_rule(\"[x]y\", \"http\", \"allow\")",
    "network_rule(\".\", \"http\", \"allow\")",
    "network_rule(\"x\", \"gopher\", \"allow\")",
    "network_rule(\"x\", \"http\", \"block\")",
    "network_rule(\"x\", \"http\")",
    "nope(\"x\")",
    "print(\"x\")",
    "fail(\"so\")",
    "load(\"a.star\", \"b\")",
    "while True:\n    pass",
    "import os",
    "x = [1][7]",
    "x = {}[\"a\"]",
    "x = 1 // 0",
    "x = \"a\" + 1",
    "x = \"abc",
    "prefix_rule([\"a\"]",
    "def f():\n    prefix_rule([\"a\"], \"no\")\nf()",
    "  prefix_rule([\"a\"])",
    "return 1",
    "x = y",
];

/// Returns the `number`th question of this seed.
pub(super) fn generate_rules_parity_question(seed: u64, number: u64) -> RulesParityQuestion {
    // Seed and number are mixed, so that a question does not depend on those before it.
    let mut dice = RuleRng(
        seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd134_2543_de82_ef95),
    );
    let mut patterns = Vec::new();
    // One file in two of three questions, else two.
    let count = 1 + dice.random_below(3) / 2;
    let files = (0..count)
        .map(|_| Some(random_rules_file(&mut dice, &mut patterns).into_bytes()))
        .collect();
    RulesParityQuestion {
        files,
        argv: random_command_for_rules(&mut dice, &patterns),
        resolve: dice.random_bool(50),
    }
}

type RandomRulePattern = Vec<Vec<String>>;

fn random_rules_file(dice: &mut RuleRng, patterns: &mut Vec<RandomRulePattern>) -> String {
    let mut text = String::new();
    // At most one mistake in a file: the first ends it, and a second would never be seen.
    let broken = dice.random_bool(15);
    let count = 1 + dice.random_below(6);
    let place = dice.random_below(count);
    for at in 0..count {
        if broken && at == place {
            text.push_str(dice.pick_random_text(BROKEN));
        } else {
            text.push_str(&random_rule_file_statement(dice, patterns));
        }
        text.push_str(dice.pick_random_text(&["\n", "\n", "\n", "\r\n", " # why\n", "\n\n"]));
    }
    text
}

fn random_rule_file_statement(dice: &mut RuleRng, patterns: &mut Vec<RandomRulePattern>) -> String {
    match dice.random_below(12) {
        0 | 1 => random_host_executable_rule(dice),
        2 => random_network_rule(dice),
        3 => {
            let heads = [dice.pick_word(HEADS), dice.pick_word(HEADS)];
            patterns.extend(heads.iter().map(|head| vec![vec![head.clone()]]));
            let list = heads.map(|head| quote_as_starlark_string(&head)).join(", ");
            format!("for n in [{list}]:\n    prefix_rule([n], \"prompt\")")
        }
        4 => random_computed_rule(dice, patterns),
        _ => random_prefix_rule_text(dice, patterns),
    }
}

/// Returns a rule whose words are computed.
fn random_computed_rule(dice: &mut RuleRng, patterns: &mut Vec<RandomRulePattern>) -> String {
    let (head, word) = (dice.pick_word(HEADS), dice.pick_word(WORDS));
    let (one, two) = (
        quote_as_starlark_string(&head),
        quote_as_starlark_string(&word),
    );
    patterns.push(vec![vec![head], vec![word]]);
    match dice.random_below(7) {
        0 => format!("prefix_rule([{one} + \"\", {two} * 1])"),
        1 => format!("words = [{one}]\nwords += [{two}]\nprefix_rule(words, \"prompt\")"),
        2 => format!("a, b = {one}, {two}\nprefix_rule([f\"{{a}}\", \"%s\" % b])"),
        3 => format!("prefix_rule([w for w in [{one}, {two}, None] if w != None], \"forbidden\")"),
        4 => format!(
            "def rule(*words, why=\"so\"):\n    return prefix_rule(list(words), justification=why.strip())\nrule({one}, {two})"
        ),
        5 => format!("prefix_rule([\"{{}}\".format({one}), \"\".join([{two}])])"),
        _ => format!("prefix_rule([{one}, {two} + 1])"),
    }
}

fn random_host_executable_rule(dice: &mut RuleRng) -> String {
    let name = dice.pick_random_text(&["git", "GIT", "rm", "npm", "é"]);
    let paths: Vec<String> = (0..dice.random_below(3))
        .map(|_| {
            let folder = dice.pick_random_text(&[
                "/usr/bin",
                "/bin",
                "/usr//local/../bin/.",
                "/home/dev",
                "/opt",
            ]);
            quote_as_starlark_string(&format!("{folder}/{name}"))
        })
        .collect();
    format!(
        "host_executable({}, [{}])",
        quote_as_starlark_string(name),
        paths.join(", ")
    )
}

fn random_network_rule(dice: &mut RuleRng) -> String {
    let host = dice.pick_random_text(&[
        "example.com",
        "Example.com.:443",
        "[::1]:80",
        "::1",
        " a.b ",
        "10.0.0.1",
    ]);
    let protocol = dice.pick_random_text(&[
        "http",
        "https",
        "https_connect",
        "http-connect",
        "socks5_tcp",
        "socks5_udp",
    ]);
    let decision = dice.pick_random_text(&["allow", "prompt", "forbidden", "deny"]);
    format!(
        "network_rule({}, \"{protocol}\", \"{decision}\")",
        quote_as_starlark_string(host)
    )
}

fn random_prefix_rule_text(dice: &mut RuleRng, patterns: &mut Vec<RandomRulePattern>) -> String {
    let mut pattern = vec![random_word_alternatives(dice, HEADS)];
    for _ in 0..dice.random_below(3) {
        pattern.push(random_word_alternatives(dice, WORDS));
    }
    let positions: Vec<String> = pattern
        .iter()
        .map(|options| render_rule_pattern_position(dice, options))
        .collect();
    let mut call = format!("prefix_rule(pattern=[{}]", positions.join(", "));
    if dice.random_bool(80) {
        call.push_str(&format!(
            ", decision=\"{}\"",
            dice.pick_random_text(DECISIONS)
        ));
    }
    if dice.random_bool(25) {
        let why = dice.pick_random_text(&["use trash", "wegen \"so\"\n", "é ✓ <b>", "a\\b"]);
        call.push_str(&format!(
            ", justification={}",
            quote_as_starlark_string(why)
        ));
    }
    if dice.random_bool(15) {
        call.push_str(
            dice.pick_random_text(&[", canonical_matching=True", ", canonical_matching=False"]),
        );
    }
    if dice.random_bool(25) {
        let examples: Vec<String> = (0..1 + dice.random_below(2))
            .map(|_| {
                // An example that does not match makes the whole file invalid, so nearly all of
                // them do.
                let argv = match dice.random_bool(97) {
                    true => generate_matching_command(dice, &pattern),
                    false => random_command(dice),
                };
                argv_as_rule_example(dice, &argv)
            })
            .collect();
        call.push_str(&format!(", match=[{}]", examples.join(", ")));
    }
    if dice.random_bool(8) {
        let argv = random_command(dice);
        call.push_str(&format!(
            ", not_match=[{}]",
            argv_as_rule_example(dice, &argv)
        ));
    }
    call.push(')');
    patterns.push(pattern);
    call
}

fn random_word_alternatives(dice: &mut RuleRng, from: &[&str]) -> Vec<String> {
    let count = if dice.random_bool(25) {
        1 + dice.random_below(3)
    } else {
        1
    };
    (0..count).map(|_| dice.pick_word(from)).collect()
}

fn render_rule_pattern_position(dice: &mut RuleRng, options: &[String]) -> String {
    match options {
        [one] if dice.random_bool(90) => quote_as_starlark_string(one),
        options => {
            let options: Vec<String> = options
                .iter()
                .map(|option| quote_as_starlark_string(option))
                .collect();
            format!("[{}]", options.join(", "))
        }
    }
}

/// A command that begins as the pattern says.
fn generate_matching_command(dice: &mut RuleRng, pattern: &RandomRulePattern) -> Vec<String> {
    let mut argv: Vec<String> = pattern
        .iter()
        .map(|options| {
            let at = dice.random_below(options.len());
            options.get(at).cloned().unwrap_or_default()
        })
        .collect();
    if dice.random_bool(50) {
        argv.push(dice.pick_word(WORDS));
    }
    argv
}

fn random_command(dice: &mut RuleRng) -> Vec<String> {
    let mut argv = vec![dice.pick_word(HEADS)];
    for _ in 0..dice.random_below(3) {
        argv.push(dice.pick_word(WORDS));
    }
    argv
}

/// Returns a command that mostly begins as one of the rules does; at random it would hardly ever
/// match.
fn random_command_for_rules(dice: &mut RuleRng, patterns: &[RandomRulePattern]) -> Vec<String> {
    let chosen = dice.random_below(patterns.len().max(1));
    let mut argv = match patterns.get(chosen) {
        Some(pattern) if dice.random_bool(80) => generate_matching_command(dice, pattern),
        _ => random_command(dice),
    };
    // Sometimes a word too few for the pattern.
    if dice.random_bool(15) {
        argv.truncate(argv.len().saturating_sub(1).max(1));
    }
    let Some(head) = argv.first_mut() else {
        return argv;
    };
    match dice.random_below(10) {
        0 | 1 => {
            *head = format!(
                "{}/{head}",
                dice.pick_random_text(&["/usr/bin", "/bin", "/opt/./x/..", "//usr//bin"])
            )
        }
        2 => {
            *head = format!(
                "{}{head}",
                dice.pick_random_text(&["./", "~/", "../", "~/../", "~"])
            )
        }
        // Only the two spellings that `HEADS` has, for the reason given there.
        3 if head.is_ascii() => {
            *head = match head.as_str() {
                "git" => "GIT".to_owned(),
                "GIT" => "git".to_owned(),
                other => other.to_owned(),
            }
        }
        4 => *head = format!("{head}/"),
        _ => {}
    }
    argv
}

fn argv_as_rule_example(dice: &mut RuleRng, argv: &[String]) -> String {
    // An example may be a list of words or one text in shell quoting.
    if dice.random_bool(50) {
        let words: Vec<String> = argv
            .iter()
            .map(|word| quote_as_starlark_string(word))
            .collect();
        return format!("[{}]", words.join(", "));
    }
    let words: Vec<String> = argv
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    quote_as_starlark_string(&words.join(" "))
}

/// Quotes a text as a string of the rules language.
fn quote_as_starlark_string(text: &str) -> String {
    let mut quoted = String::from("\"");
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            '\n' => quoted.push_str("\\n"),
            '\t' => quoted.push_str("\\t"),
            c => quoted.push(c),
        }
    }
    quoted.push('"');
    quoted
}

/// The SplitMix64 generator.
struct RuleRng(u64);

impl RuleRng {
    fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Returns a number below `end`; 0 if that is 0.
    fn random_below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.next_u64() % end).unwrap_or(0)
    }

    fn random_bool(&mut self, percent: u64) -> bool {
        self.next_u64() % 100 < percent
    }

    fn pick_random_text<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.random_below(from.len());
        from.get(at).copied().unwrap_or_default()
    }

    fn pick_word(&mut self, from: &[&str]) -> String {
        self.pick_random_text(from).to_owned()
    }
}
