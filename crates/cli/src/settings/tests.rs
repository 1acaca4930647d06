//! Edits of settings, to the byte: every fixture, put in and taken out, untouched and with
//! edits in between.

use checkrein_adapters::find_adapter;
use checkrein_adapters::settings::ParsedHookSettings;

use super::json::{self, HookEventEntry};
use super::{EditedSettingsText, OrderedJson, remove_inserted_settings_texts, toml};

/// Name and text of each settings file that somebody could have.
fn fixtures() -> Vec<(String, String)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/fixtures/settings");
    let mut found: Vec<(String, String)> = std::fs::read_dir(folder)
        .unwrap()
        .flatten()
        .filter(|file| file.path().extension().is_some_and(|kind| kind == "json"))
        .map(|file| {
            let name = file.file_name().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(file.path()).unwrap())
        })
        .collect();
    found.sort();
    assert!(found.len() >= 20);
    found
}

fn entries(deadline: u64) -> Vec<HookEventEntry> {
    ["SessionStart", "PreToolUse", "Stop"]
        .map(|event| {
            let handler = OrderedJson::Object(vec![
                ("type", OrderedJson::new_json_string("command")),
                ("command", OrderedJson::new_json_string("/opt/checkrein")),
                (
                    "args",
                    OrderedJson::List(vec![
                        OrderedJson::new_json_string("hook"),
                        OrderedJson::new_json_string("claude-code"),
                    ]),
                ),
                ("timeout", OrderedJson::Number(deadline)),
            ]);
            (
                event,
                OrderedJson::Object(vec![("hooks", OrderedJson::List(vec![handler]))]),
            )
        })
        .into()
}

fn install(text: &str) -> EditedSettingsText {
    json::add_hook_entries_to_settings_json(text, &entries(30)).unwrap()
}

fn read(text: &str) -> ParsedHookSettings {
    find_adapter("claude-code")
        .unwrap()
        .parse_hook_settings(text.as_bytes())
        .unwrap()
}

/// Handlers of other people.
fn others(text: &str) -> Vec<String> {
    let reading = read(text);
    let foreign = reading
        .hooks
        .iter()
        .filter(|hook| !hook.call.is_checkrein_hook());
    foreign
        .map(|hook| format!("{} {:?} {:?}", hook.event, hook.matcher, hook.call))
        .collect()
}

#[test]
fn what_is_put_in_is_seen_by_the_agent_and_others_stay() {
    for (name, before) in fixtures() {
        let edited = install(&before);
        let ours: Vec<String> = read(&edited.text)
            .hooks
            .iter()
            .filter(|hook| hook.call.is_checkrein_hook())
            .map(|hook| hook.event.clone())
            .collect();
        // Comments and trailing commas are nothing for this agent: that is said elsewhere.
        if !read(&before).faults_make_agent_ignore_file() {
            let mut ours = ours;
            ours.sort();
            assert_eq!(
                ours,
                ["PreToolUse", "SessionStart", "Stop"],
                "{name}:\n{}",
                edited.text
            );
            assert_eq!(others(&edited.text), others(&before), "{name}");
            assert!(
                !read(&edited.text).faults_make_agent_ignore_file(),
                "{name}:\n{}",
                edited.text
            );
        }
        assert!(
            json::has_checkrein_entries(&edited.text),
            "{name}:\n{}",
            edited.text
        );
    }
}

#[test]
fn nothing_but_our_text_is_put_in() {
    for (name, before) in fixtures() {
        let edited = install(&before);
        assert_eq!(
            remove_inserted_settings_texts(&edited.text, &edited.inserted).as_deref(),
            Some(before.as_str()),
            "{name}"
        );
        assert_eq!(
            json::remove_hook_entries(&edited.text, &edited.inserted).unwrap(),
            before,
            "{name}"
        );
    }
}

#[test]
fn lines_end_as_they_did() {
    for (name, before) in fixtures() {
        let text = install(&before).text;
        let bare = text.replace("\r\n", "").contains('\n');
        assert_eq!(
            bare,
            !before.contains("\r\n") && text.contains('\n'),
            "{name}"
        );
        if !before.contains('\n')
            && before.len() > 4
            && !before.starts_with("{\"hooks\": ")
            && name.contains("minified")
        {
            assert!(!text.contains('\n'), "{name}");
        }
    }
}

/// Places between two tokens of the text: a blank there changes nothing.
fn gaps(text: &str) -> Vec<usize> {
    let (mut inside, mut escaped, mut comment) = (false, false, "");
    let mut gaps = Vec::new();
    let mut before = ' ';
    for (at, c) in text.char_indices() {
        let next = text[at..].chars().nth(1).unwrap_or(' ');
        if inside {
            (inside, escaped) = (escaped || c != '"', !escaped && c == '\\');
        } else if comment == "//" {
            if c == '\n' {
                comment = "";
            }
        } else if comment == "/*" {
            if before == '*' && c == '/' {
                comment = "";
            }
        } else if c == '/' {
            comment = if next == '/' { "//" } else { "/*" };
        } else {
            if "{}[],:\"".contains(c) || "{}[],:\"".contains(before) {
                gaps.push(at);
            }
            inside = c == '"';
        }
        before = c;
    }
    gaps.retain(|at| !text[..*at].ends_with('\u{feff}') && *at > 0);
    gaps
}

#[test]
fn edits_in_between_stay_and_nothing_else() {
    let mut tried = 0;
    for (name, before) in fixtures() {
        let edited = install(&before);
        for gap in gaps(&before) {
            // The same place of the text with our entries in it.
            let mut shifted = gap;
            let mut from = 0;
            for piece in &edited.inserted {
                let at = from + edited.text[from..].find(piece.as_str()).unwrap();
                if at < shifted || (at == shifted && before[gap..].starts_with(['}', ']', ','])) {
                    shifted += piece.len();
                }
                from = at + piece.len();
            }
            for word in [" ", "\t\t"] {
                let mut mine = before.clone();
                mine.insert_str(gap, word);
                let mut with_ours = edited.text.clone();
                with_ours.insert_str(shifted, word);
                let kept = json::remove_hook_entries(&with_ours, &edited.inserted).unwrap();
                assert_eq!(kept, mine, "{name} at {gap}");
                tried += 1;
            }
        }
    }
    assert!(tried > 1_000, "{tried}");
}

#[test]
fn a_rewritten_file_loses_our_entries_and_only_them() {
    for (name, before) in fixtures() {
        let edited = install(&before);
        let Ok(value) =
            serde_json::from_str::<serde_json::Value>(edited.text.trim_start_matches('\u{feff}'))
        else {
            continue;
        };
        // As a tool that knows nothing of our text would write it.
        for rewritten in [
            value.to_string(),
            serde_json::to_string_pretty(&value).unwrap(),
        ] {
            let kept = json::remove_hook_entries(&rewritten, &edited.inserted).unwrap();
            assert!(!json::has_checkrein_entries(&kept), "{name}:\n{kept}");
            let mut expected: serde_json::Value =
                serde_json::from_str(before.trim_start_matches('\u{feff}'))
                    .unwrap_or_else(|_| serde_json::json!({}));
            let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
            if name.contains("duplicate") {
                expected["hooks"] = kept["hooks"].clone();
            }
            assert_eq!(kept, expected, "{name}");
        }
    }
}

#[test]
fn new_entries_beside_ours_survive() {
    for (name, before) in fixtures() {
        let edited = install(&before);
        let ours = &entries(30)[2].1;
        for airy in [true, false] {
            let group = ours.render_json_on_one_line(airy);
            let theirs = group.replace("/opt/checkrein", "/opt/other");
            for both in [format!("{group},\n{theirs}"), format!("{theirs}, {group}")] {
                // The stop's group, which is the last of its kind.
                let Some(at) = edited.text.rfind(&group) else {
                    continue;
                };
                let mut text = edited.text.clone();
                text.replace_range(at..at + group.len(), &both);
                let kept = json::remove_hook_entries(&text, &edited.inserted).unwrap();
                assert!(!json::has_checkrein_entries(&kept), "{name}:\n{kept}");
                assert_eq!(kept.matches("/opt/other").count(), 1, "{name}:\n{kept}");
                if !read(&before).faults_make_agent_ignore_file() {
                    assert_eq!(
                        read(&kept).faults.len(),
                        read(&before).faults.len(),
                        "{name}:\n{kept}"
                    );
                    assert_eq!(
                        others(&kept).len(),
                        others(&before).len() + 1,
                        "{name}:\n{kept}"
                    );
                }
            }
        }
    }
}

#[test]
fn putting_in_anew_replaces_what_was_there() {
    for (name, before) in fixtures() {
        let first = install(&before);
        let bare = json::remove_hook_entries(&first.text, &[]).unwrap();
        let again = json::add_hook_entries_to_settings_json(&bare, &entries(60)).unwrap();
        assert_eq!(again.text.matches("/opt/checkrein").count(), 3, "{name}");
        assert!(
            !again.text.contains(": 30") && !again.text.contains(":30"),
            "{name}"
        );
    }
}

#[test]
fn what_cannot_be_edited_is_named() {
    for (text, place) in [
        ("{", "line 1, column 1"),
        ("{\n  'a': 1\n}", "line 2, column 3"),
        ("[]", "line 1, column 1"),
        ("{\"hooks\": []}", "hooks"),
        ("{\"hooks\": {\"Stop\": {}}}", "hooks.Stop"),
        ("{\"a\" 1}", "line 1, column 6"),
    ] {
        let trouble = json::add_hook_entries_to_settings_json(text, &entries(30)).unwrap_err();
        assert_eq!(trouble.place, place, "{text}: {}", trouble.what);
    }
}

#[test]
fn reviews_go_in_and_out_to_the_byte() {
    let reviews: Vec<toml::ReviewedHookDigest> = vec![
        (
            "/home/dev/a b/.codex/hooks.json:stop:0:0".to_owned(),
            "sha256:aa".to_owned(),
        ),
        (
            "C:\\dev\\\"x\"\\hooks.json:stop:0:1".to_owned(),
            "sha256:bb".to_owned(),
        ),
    ];
    let keys: Vec<String> = reviews.iter().map(|(key, _)| key.clone()).collect();
    let theirs = "[hooks.state.\"/x/hooks.json:stop:0:0\"]\ntrusted_hash = \"sha256:cc\"";
    for before in [
        String::new(),
        "model = \"m\"\n".to_owned(),
        "# mine\nmodel = \"m\" # the big one\n\n\n[projects.\"/x\"]\ntrust_level=\"trusted\""
            .to_owned(),
        "model = \"m\"\r\n[tui]\r\nx = 1\r\n".to_owned(),
        theirs.to_owned(),
        format!(
            "[hooks]\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\ntype = \"command\"\ncommand = \"x\"\n{theirs}\n"
        ),
    ] {
        let edited = toml::write_codex_hook_reviews(&before, &reviews).unwrap();
        let config = checkrein_adapters::codex_trust::parse_codex_config(&edited.text).unwrap();
        for (key, hash) in &reviews {
            assert_eq!(
                config.reviewed_hook_digest(key),
                Some(hash.as_str()),
                "{}",
                edited.text
            );
        }
        assert_eq!(
            before.contains("sha256:cc"),
            config
                .reviewed_hook_digest("/x/hooks.json:stop:0:0")
                .is_some()
        );
        assert_eq!(
            toml::remove_hook_reviews(&edited.text, &edited.inserted, &keys).unwrap(),
            before
        );
        // The person added something at the end and changed something above.
        let changed = format!("# new\n{}\n[tui2]\ny = 2 # two\n", edited.text);
        let kept = toml::remove_hook_reviews(&changed, &edited.inserted, &keys).unwrap();
        assert_eq!(kept, format!("# new\n{before}\n[tui2]\ny = 2 # two\n"));
        // Without the text that was put in, the names are enough.
        let kept = toml::remove_hook_reviews(&edited.text, &[], &keys).unwrap();
        assert!(
            !kept.contains("sha256:aa") && !kept.contains("sha256:bb"),
            "{kept}"
        );
        assert_eq!(
            before.contains("sha256:cc"),
            kept.contains("sha256:cc"),
            "{kept}"
        );
        // Again, and renewed.
        let again = toml::write_codex_hook_reviews(&edited.text, &reviews).unwrap();
        assert_eq!(again.text, edited.text);
        let mut renewed = reviews.clone();
        renewed[0].1 = "sha256:dd".to_owned();
        let again = toml::write_codex_hook_reviews(&edited.text, &renewed).unwrap();
        assert!(again.text.contains("sha256:dd") && !again.text.contains("sha256:aa"));
    }
    let inline = "hooks = { }\n";
    let edited = toml::write_codex_hook_reviews(inline, &reviews).unwrap();
    assert!(
        checkrein_adapters::codex_trust::parse_codex_config(&edited.text)
            .unwrap()
            .reviewed_hook_digest(&keys[0])
            .is_some()
    );
    assert!(toml::write_codex_hook_reviews("[", &reviews).is_err());
}

/// Random numbers that are the same everywhere.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % sides
    }

    fn pick<'a>(&mut self, of: &[&'a str]) -> &'a str {
        of[self.roll(of.len() as u64) as usize]
    }

    /// Blanks, and now and then a comment.
    fn gap(&mut self, comments: bool) -> String {
        let blanks = self.pick(&["", "", " ", "\n", "\n  ", "\r\n\t", "  "]);
        match comments && self.roll(9) == 0 {
            true => format!("{blanks}{}", self.pick(&["/* , } ] */", "// { [ \"\n"])),
            false => blanks.to_owned(),
        }
    }

    fn holder(&mut self, open: char, close: char, items: Vec<String>, lax: bool) -> String {
        let mut text = open.to_string();
        let last = items.len();
        for (at, item) in items.into_iter().enumerate() {
            text += &(self.gap(lax) + &item + &self.gap(lax));
            if at + 1 < last || (lax && self.roll(3) == 0) {
                text.push(',');
            }
        }
        text + &self.gap(lax) + &close.to_string()
    }

    fn member(&mut self, key: &str, value: String, lax: bool) -> String {
        format!("\"{key}\"{}:{}{value}", self.gap(lax), self.gap(lax))
    }

    fn handler(&mut self, lax: bool) -> String {
        let command = self.pick(&["\"a \\\"b\\\" é\"", "\"checkrein check\"", "\"x\""]);
        let mut fields = vec![
            self.member("type", "\"command\"".to_owned(), lax),
            self.member("command", command.to_owned(), lax),
        ];
        if self.roll(2) == 0 {
            fields.swap(0, 1);
        }
        self.holder('{', '}', fields, lax)
    }

    fn settings(&mut self, lax: bool) -> String {
        let mut events = Vec::new();
        for event in ["Stop", "PreToolUse", "Notification"] {
            if self.roll(2) == 0 {
                continue;
            }
            let mut groups = Vec::new();
            for _ in 0..self.roll(3) {
                let handlers = (0..self.roll(3)).map(|_| self.handler(lax)).collect();
                let handlers = self.holder('[', ']', handlers, lax);
                let group = vec![self.member("hooks", handlers, lax)];
                groups.push(self.holder('{', '}', group, lax));
            }
            let groups = self.holder('[', ']', groups, lax);
            events.push(self.member(event, groups, lax));
        }
        let mut members = Vec::new();
        if self.roll(4) > 0 {
            let events = self.holder('{', '}', events, lax);
            members.push(self.member("hooks", events, lax));
        }
        for key in ["model", "env"] {
            if self.roll(2) == 0 {
                let member = self.member(key, "\"hooks: [,] //\"".to_owned(), lax);
                members.insert(self.roll(members.len() as u64 + 1) as usize, member);
            }
        }
        let mark = self.pick(&["", "", "\u{feff}"]);
        let before = self.gap(lax);
        let body = self.holder('{', '}', members, lax);
        format!("{mark}{before}{body}{}", self.gap(false))
    }
}

#[test]
fn random_settings_survive() {
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for round in 0..1_000 {
        let lax = round % 2 == 0;
        let before = dice.settings(lax);
        let edited = json::add_hook_entries_to_settings_json(&before, &entries(30))
            .unwrap_or_else(|trouble| panic!("{trouble:?}\n{before}"));
        assert_eq!(
            json::remove_hook_entries(&edited.text, &edited.inserted).unwrap(),
            before
        );
        // By what they call, as if nothing were known of what was put in.
        let by_name = json::remove_hook_entries(&edited.text, &[]).unwrap();
        assert!(!json::has_checkrein_entries(&by_name), "{by_name}");
        // Again, on top of it: one entry each, never two.
        let again = json::add_hook_entries_to_settings_json(&by_name, &entries(60)).unwrap();
        assert_eq!(
            again.text.matches("/opt/checkrein").count(),
            3,
            "{}",
            again.text
        );
        if lax {
            continue;
        }
        let (old, new) = (read(&before), read(&edited.text));
        assert!(
            !old.faults_make_agent_ignore_file() && !new.faults_make_agent_ignore_file(),
            "{before}\n{}",
            edited.text
        );
        assert_eq!(others(&edited.text), others(&before), "{before}");
        assert_eq!(new.hooks.len(), old.hooks.len() + 3, "{before}");
        assert_eq!(others(&by_name), others(&before), "{by_name}");
        assert!(!read(&by_name).faults_make_agent_ignore_file(), "{by_name}");
    }
}
