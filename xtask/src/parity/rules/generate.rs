//! Rules and commands by chance, from one seed: alternatives, rules that overlap, names lent to
//! paths, letter case, words that need quoting, and every kind of mistake.

use super::Question;

/// First words. Codex has no fixed order among rules whose names differ in letter case only, but
/// for the one that is spelt as the command is: so there are two spellings of each at most.
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

/// Each is a mistake of one kind.
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

/// The `number`th question of this seed.
pub(super) fn question(seed: u64, number: u64) -> Question {
    let mut dice =
        Dice(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ number.wrapping_mul(0xd134_2543_de82_ef95));
    let mut patterns = Vec::new();
    let count = 1 + dice.below(3) / 2;
    let files = (0..count)
        .map(|_| Some(file(&mut dice, &mut patterns).into_bytes()))
        .collect();
    Question {
        files,
        argv: command(&mut dice, &patterns),
        resolve: dice.chance(50),
    }
}

type Pattern = Vec<Vec<String>>;

fn file(dice: &mut Dice, patterns: &mut Vec<Pattern>) -> String {
    let mut text = String::new();
    let broken = dice.chance(15);
    let count = 1 + dice.below(6);
    let place = dice.below(count);
    for at in 0..count {
        if broken && at == place {
            text.push_str(dice.pick(BROKEN));
        } else {
            text.push_str(&statement(dice, patterns));
        }
        text.push_str(dice.pick(&["\n", "\n", "\n", "\r\n", " # why\n", "\n\n"]));
    }
    text
}

fn statement(dice: &mut Dice, patterns: &mut Vec<Pattern>) -> String {
    match dice.below(12) {
        0 | 1 => host(dice),
        2 => network(dice),
        3 => {
            let heads = [dice.word(HEADS), dice.word(HEADS)];
            patterns.extend(heads.iter().map(|head| vec![vec![head.clone()]]));
            let list = heads.map(|head| literal(&head)).join(", ");
            format!("for n in [{list}]:\n    prefix_rule([n], \"prompt\")")
        }
        4 => computed(dice, patterns),
        _ => prefix(dice, patterns),
    }
}

/// A rule whose words are worked out.
fn computed(dice: &mut Dice, patterns: &mut Vec<Pattern>) -> String {
    let (head, word) = (dice.word(HEADS), dice.word(WORDS));
    let (one, two) = (literal(&head), literal(&word));
    patterns.push(vec![vec![head], vec![word]]);
    match dice.below(7) {
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

fn host(dice: &mut Dice) -> String {
    let name = dice.pick(&["git", "GIT", "rm", "npm", "é"]);
    let paths: Vec<String> = (0..dice.below(3))
        .map(|_| {
            let folder = dice.pick(&[
                "/usr/bin",
                "/bin",
                "/usr//local/../bin/.",
                "/home/dev",
                "/opt",
            ]);
            literal(&format!("{folder}/{name}"))
        })
        .collect();
    format!("host_executable({}, [{}])", literal(name), paths.join(", "))
}

fn network(dice: &mut Dice) -> String {
    let host = dice.pick(&[
        "example.com",
        "Example.com.:443",
        "[::1]:80",
        "::1",
        " a.b ",
        "10.0.0.1",
    ]);
    let protocol = dice.pick(&[
        "http",
        "https",
        "https_connect",
        "http-connect",
        "socks5_tcp",
        "socks5_udp",
    ]);
    let decision = dice.pick(&["allow", "prompt", "forbidden", "deny"]);
    format!(
        "network_rule({}, \"{protocol}\", \"{decision}\")",
        literal(host)
    )
}

fn prefix(dice: &mut Dice, patterns: &mut Vec<Pattern>) -> String {
    let mut pattern = vec![alternatives(dice, HEADS)];
    for _ in 0..dice.below(3) {
        pattern.push(alternatives(dice, WORDS));
    }
    let positions: Vec<String> = pattern
        .iter()
        .map(|options| position(dice, options))
        .collect();
    let mut call = format!("prefix_rule(pattern=[{}]", positions.join(", "));
    if dice.chance(80) {
        call.push_str(&format!(", decision=\"{}\"", dice.pick(DECISIONS)));
    }
    if dice.chance(25) {
        let why = dice.pick(&["use trash", "wegen \"so\"\n", "é ✓ <b>", "a\\b"]);
        call.push_str(&format!(", justification={}", literal(why)));
    }
    if dice.chance(15) {
        call.push_str(dice.pick(&[", canonical_matching=True", ", canonical_matching=False"]));
    }
    if dice.chance(25) {
        let examples: Vec<String> = (0..1 + dice.below(2))
            .map(|_| {
                let argv = match dice.chance(97) {
                    true => spelt(dice, &pattern),
                    false => random(dice),
                };
                example(dice, &argv)
            })
            .collect();
        call.push_str(&format!(", match=[{}]", examples.join(", ")));
    }
    if dice.chance(8) {
        let argv = random(dice);
        call.push_str(&format!(", not_match=[{}]", example(dice, &argv)));
    }
    call.push(')');
    patterns.push(pattern);
    call
}

fn alternatives(dice: &mut Dice, from: &[&str]) -> Vec<String> {
    let count = if dice.chance(25) {
        1 + dice.below(3)
    } else {
        1
    };
    (0..count).map(|_| dice.word(from)).collect()
}

fn position(dice: &mut Dice, options: &[String]) -> String {
    match options {
        [one] if dice.chance(90) => literal(one),
        options => {
            let options: Vec<String> = options.iter().map(|option| literal(option)).collect();
            format!("[{}]", options.join(", "))
        }
    }
}

/// A command that begins as the pattern says.
fn spelt(dice: &mut Dice, pattern: &Pattern) -> Vec<String> {
    let mut argv: Vec<String> = pattern
        .iter()
        .map(|options| {
            let at = dice.below(options.len());
            options.get(at).cloned().unwrap_or_default()
        })
        .collect();
    if dice.chance(50) {
        argv.push(dice.word(WORDS));
    }
    argv
}

fn random(dice: &mut Dice) -> Vec<String> {
    let mut argv = vec![dice.word(HEADS)];
    for _ in 0..dice.below(3) {
        argv.push(dice.word(WORDS));
    }
    argv
}

/// A command that mostly has to do with the rules.
fn command(dice: &mut Dice, patterns: &[Pattern]) -> Vec<String> {
    let chosen = dice.below(patterns.len().max(1));
    let mut argv = match patterns.get(chosen) {
        Some(pattern) if dice.chance(80) => spelt(dice, pattern),
        _ => random(dice),
    };
    if dice.chance(15) {
        argv.truncate(argv.len().saturating_sub(1).max(1));
    }
    let Some(head) = argv.first_mut() else {
        return argv;
    };
    match dice.below(10) {
        0 | 1 => {
            *head = format!(
                "{}/{head}",
                dice.pick(&["/usr/bin", "/bin", "/opt/./x/..", "//usr//bin"])
            )
        }
        2 => *head = format!("{}{head}", dice.pick(&["./", "~/", "../", "~/../", "~"])),
        // Two spellings, both known: see `HEADS`.
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

fn example(dice: &mut Dice, argv: &[String]) -> String {
    if dice.chance(50) {
        let words: Vec<String> = argv.iter().map(|word| literal(word)).collect();
        return format!("[{}]", words.join(", "));
    }
    let words: Vec<String> = argv
        .iter()
        .map(|word| format!("'{}'", word.replace('\'', "'\\''")))
        .collect();
    literal(&words.join(" "))
}

/// As a string of the rules language.
fn literal(text: &str) -> String {
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

/// SplitMix64.
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `end`; 0 if that is 0.
    fn below(&mut self, end: usize) -> usize {
        let end = u64::try_from(end.max(1)).unwrap_or(1);
        usize::try_from(self.next() % end).unwrap_or(0)
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.next() % 100 < percent
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        let at = self.below(from.len());
        from.get(at).copied().unwrap_or_default()
    }

    fn word(&mut self, from: &[&str]) -> String {
        self.pick(from).to_owned()
    }
}
