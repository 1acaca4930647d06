//! Our delimiters in every spelling that the input chooses, in every part of what a witness is shown: none survives, no
//! part passes for another, and the number of the question stands in its two delimiters only.
#![no_main]

use checkrein_models::{ChatMessage, RequestedToolCall};
use checkrein_verifiers::{progress, veto};
use libfuzzer_sys::fuzz_target;

const BRACKETS: [&str; 16] = [
    "<",
    "</",
    "< / ",
    "＜/",
    "‹/",
    "⟨⁄",
    "«/",
    "&lt;/",
    "&#60;&#47;",
    "\\u003c/",
    "\\x3c\\x2f",
    "%3C%2F",
    "[/",
    "{",
    "【/",
    "<!-- ",
];
const LETTERS: [[&str; 6]; 6] = [
    ["q", "Q", "ｑ", "ԛ", "𝐪", "ⓠ"],
    ["u", "U", "ｕ", "υ", "𝐮", "ü"],
    ["o", "O", "ｏ", "о", "𝐨", "0"],
    ["t", "T", "ｔ", "т", "𝐭", "ⓣ"],
    ["e", "E", "ｅ", "е", "𝐞", "é"],
    ["d", "D", "ｄ", "ԁ", "𝐝", "ⓓ"],
];
const BETWEEN: [&str; 12] = [
    "", "", "", " ", "\t", "\n", "\u{200b}", "\u{200d}", "\u{feff}", "\u{ad}", "\u{2060}",
    "\u{2028}",
];
const ENDS: [&str; 5] = [">", " 12345678>", " 12345678 call>", "›", ""];

/// Chooses by one byte each; by nothing the first.
struct Dice<'a>(std::slice::Iter<'a, u8>);

impl Dice<'_> {
    fn of<'b>(&mut self, choices: &[&'b str]) -> &'b str {
        let byte = self.0.next().copied().unwrap_or(0);
        choices[usize::from(byte) % choices.len()]
    }

    fn spelled(&mut self) -> String {
        let mut spelled = self.of(&BRACKETS).to_owned();
        for letter in &LETTERS {
            spelled.push_str(self.of(letter));
            spelled.push_str(self.of(&BETWEEN));
        }
        spelled + self.of(&ENDS)
    }
}

fuzz_target!(|bytes: &[u8]| {
    let mut dice = Dice(bytes.iter());
    let spelled = dice.spelled();
    let rest = String::from_utf8_lossy(dice.0.as_slice()).into_owned();
    let (before, after) = rest.split_at(rest.floor_char_boundary(rest.len() / 2));
    let data = format!("{before}{spelled}{after}");
    let json = serde_json::json!({ "a": data, data.as_str(): [spelled.as_str()] });
    let history = [
        ChatMessage::User(data.clone()),
        ChatMessage::Assistant {
            text: spelled.clone(),
            calls: vec![RequestedToolCall {
                id: spelled.clone(),
                tool: spelled.clone(),
                arguments: Err(data.clone()),
                provider_state: None,
            }],
        },
        ChatMessage::ToolResult {
            call: spelled.clone(),
            tool: spelled.clone(),
            text: spelled.clone(),
            failed: bytes.len() % 2 == 0,
        },
    ];
    let arguments = json.to_string();
    let call = veto::ToolCallForVeto {
        goal: &data,
        tool: &spelled,
        arguments: &arguments,
        history: &history,
    };
    let step = progress::AgentStepToRate {
        goal: &spelled,
        summary: &data,
        history: &history,
    };
    let kinds = [
        (
            veto::build_model_question_about_call(None, None, call),
            "call",
            &["tool", "arguments"][..],
        ),
        (progress::step_rating_request(step), "step", &["step"][..]),
    ];
    for (asking, label, own) in kinds {
        let [ChatMessage::User(prompt)] = &asking.request.messages[..] else {
            panic!("one message");
        };
        let number = &prompt["<quoted ".len()..][..8];
        assert!(number.bytes().all(|byte| byte.is_ascii_digit()), "{prompt}");
        assert_eq!(prompt.matches(number).count(), 2, "{prompt}");
        let inner = prompt
            .strip_prefix(&format!("<quoted {number} {label}>\n"))
            .and_then(|rest| rest.strip_suffix(&format!("\n</quoted {number}>\n")))
            .expect("it stands between our delimiters");
        assert!(
            !plain(inner).contains(&plain(&spelled)),
            "{spelled:?} in {inner:?}"
        );
        // Nothing but our own words begins a line, and each of them once.
        let names: Vec<&str> = inner.split(breaks).map(name).collect();
        let history = |name: &&str| ["user", "assistant", "result", "failed"].contains(name);
        let [goal, told @ ..] = &names[..] else {
            panic!("no line");
        };
        let lines = told.len() - own.len();
        assert!(*goal == "goal" && lines <= 3, "{inner:?}");
        assert!(told[..lines].iter().all(|name| history(name)), "{inner:?}");
        assert_eq!(&told[lines..], own, "{inner:?}");
    }
});

fn name(line: &str) -> &str {
    line.split_once(": ").map_or(line, |(name, _)| name)
}

fn breaks(c: char) -> bool {
    c.is_control() || matches!(c, '\u{2028}' | '\u{2029}')
}

/// Without what a reader does not see, or sees as a blank.
fn plain(text: &str) -> String {
    let shown = |c: &char| {
        !c.is_whitespace() && !c.is_control() && !BETWEEN.iter().any(|between| between.contains(*c))
    };
    text.chars().filter(shown).collect()
}
