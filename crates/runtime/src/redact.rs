//! Hides secrets before anything is kept: known forms of tokens, and the values of
//! environment variables whose names say that they are secret. A pure function of text and
//! values. What decides never reads the text: digests are taken of it as it was.
//!
//! Most text holds no secret, and a hook must stay quick: a form's regular expression is
//! compiled only for text that holds one of its marks.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::sync::OnceLock;

use aho_corasick::{AhoCorasick, AhoCorasickKind};
use memchr::memmem;
use regex::bytes::{Captures, Regex};

/// A shorter value of a variable is a word of everyday.
const SHORTEST_VALUE: usize = 8;

/// Words of a variable's name that say that its value is secret.
const SECRET_NAMES: &[&str] = &[
    "KEY",
    "TOKEN",
    "SECRET",
    "PASSWORD",
    "PASSWD",
    "PASSPHRASE",
    "CREDENTIAL",
    "PRIVATE",
    "COOKIE",
];
/// Ends of names that say that the value is where something is, not what it is.
const PLACES: &[&str] = &["_FILE", "_PATH", "_DIR", "_SOCK", "_HOME", "_CONTROL"];

/// A text of a hook is mostly shorter; to make an automaton of the marks would take longer than
/// to look for each of them. The output of a check is read in larger pieces.
const LARGE: usize = 16 * 1024;

static ALL_MARKS: OnceLock<(Option<AhoCorasick>, Vec<usize>)> = OnceLock::new();

/// A known form of secrets.
struct Form {
    /// What stands in its place: `[redacted:KIND]`.
    kind: &'static str,
    /// One of these, in lower case, is part of every match.
    marks: &'static [&'static str],
    /// The secret is the first group that took part, or the whole match if there is none.
    /// Bytes, not characters: it must begin and end at ASCII, or where ASCII does.
    pattern: &'static str,
    is_secret: fn(&[u8]) -> bool,
    compiled: OnceLock<Option<Regex>>,
}

const fn form(
    kind: &'static str,
    marks: &'static [&'static str],
    pattern: &'static str,
    is_secret: fn(&[u8]) -> bool,
) -> Form {
    Form {
        kind,
        marks,
        pattern,
        is_secret,
        compiled: OnceLock::new(),
    }
}

/// In this order: what an earlier one hid is not looked at by a later one.
static FORMS: [Form; 13] = [
    form(
        "private-key",
        &["private key"],
        r"(?-u)-----BEGIN [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----(?:[A-Za-z0-9+/=\s\\:,.()-]*?-----END [A-Z0-9 ]*PRIVATE KEY(?: BLOCK)?-----|[A-Za-z0-9+/=\s\\]*)",
        any,
    ),
    form(
        "anthropic-key",
        &["sk-ant-"],
        r"(?-u)\bsk-ant-[A-Za-z0-9_-]{8,}",
        any,
    ),
    form(
        "api-key",
        &[
            "sk-",
            "sk_",
            "rk_",
            "xai-",
            "gsk_",
            "hf_",
            "npm_",
            "pypi-",
            "glpat-",
            "dckr_pat_",
            "ya29.",
            "aiza",
            "sg.",
        ],
        r"(?-u)\b(?:sk-|sk_|rk_|xai-|gsk_|hf_|npm_|pypi-|glpat-|dckr_pat_|ya29\.|AIza|SG\.)[A-Za-z0-9_.-]{16,}",
        has_digit,
    ),
    form(
        "github-token",
        &["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"],
        r"(?-u)\b(?:gh[pousr]_[A-Za-z0-9]{16,}|github_pat_[A-Za-z0-9_]{16,})",
        any,
    ),
    form(
        "slack-token",
        &["xox", "xapp-"],
        r"(?-u)\b(?:xox[a-z]-|xapp-)[A-Za-z0-9-]{8,}",
        has_digit,
    ),
    form(
        "aws-key",
        &["akia", "asia"],
        r"(?-u)\b(?:AKIA|ASIA)[A-Z0-9]{16}\b",
        any,
    ),
    form(
        "jwt",
        &["eyj"],
        r"(?-u)\beyJ[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]{6,}\.[A-Za-z0-9_-]*",
        any,
    ),
    form(
        "url-password",
        &["://"],
        r#"(?-u)[A-Za-z][A-Za-z0-9+.-]*://(?:[^\s/:@"'\\]*:([^\s/@"'\\]+)|([^\s/:@"'\\]{20,}))@"#,
        any,
    ),
    form(
        "authorization",
        &["authorization"],
        r#"(?i-u)authorization(?:\\*["'])?\s*[:=]\s*(?:\\*["'])?(?:[a-z]+\s+)?([^\s"'\\,;]{6,})"#,
        is_value,
    ),
    form(
        "bearer",
        &["bearer"],
        r"(?i-u)\bbearer\s+([A-Za-z0-9._~+/=-]{12,})",
        has_digit,
    ),
    form(
        "password",
        &["curl"],
        r#"(?-u)\bcurl\b[^\n|;&]*?\s(?:-u|--user)[\s=]+["'\\]*[^\s:"'\\]+:([^\s"'\\]+)"#,
        is_value,
    ),
    form(
        "password",
        &["passw", "pwd", "passphrase"],
        r#"(?i-u)(?:(?:passw(?:or)?d|pwd|passphrase)s?(?:\\*["'])?\s*[:=]{1,2}>?\s*|--?[a-z0-9-]*(?:passw(?:or)?d|passphrase)\s+)(?:\\*"([^"\\]{4,})|\\*'([^'\\]{4,})|([^\s"'\\,;&|<>$(){}\[\]`][^\s"'\\,;&|<>`]{3,}))"#,
        is_value,
    ),
    form(
        "token",
        &["token", "secret", "key", "credential"],
        r#"(?i-u)(?:(?:token|secret|api[_-]?key|access[_-]?key|private[_-]?key|auth[_-]?key|credential)s?(?:\\*["'])?\s*[:=]{1,2}>?\s*|--?[a-z0-9-]*(?:token|secret|key)\s+)(?:\\*"([^"\\]{8,})|\\*'([^'\\]{8,})|([^\s"'\\,;&|<>$(){}\[\]`][^\s"'\\,;&|<>`]{7,}))"#,
        is_token,
    ),
];

fn any(_: &[u8]) -> bool {
    true
}

fn has_digit(secret: &[u8]) -> bool {
    secret.iter().any(u8::is_ascii_digit)
}

/// Not what we or the shell put there.
fn is_value(secret: &[u8]) -> bool {
    !secret.starts_with(b"$") && !secret.starts_with(b"[redacted:") && !secret.starts_with(b"{")
}

/// Code is full of tokens, keys and counts of them.
fn is_token(secret: &[u8]) -> bool {
    is_value(secret)
        && (has_digit(secret) || secret.len() >= 24)
        && !secret
            .iter()
            .all(|byte| byte.is_ascii_digit() || b"._,".contains(byte))
}

/// Hears of what is hidden.
type Told<'a> = dyn FnMut(&[u8]) + 'a;

/// Knows the secrets of an environment.
#[derive(Debug, Default)]
pub(crate) struct Redactor {
    /// Variables and what hides in them; longest value first: one may be part of another.
    secrets: Vec<(String, Vec<u8>)>,
}

impl Redactor {
    /// The values of variables with secret-looking names.
    pub(crate) fn of_environment(env: &BTreeMap<OsString, OsString>) -> Self {
        let mut secrets = Vec::new();
        for (name, value) in env {
            let (Some(name), Some(value)) = (name.to_str(), value.to_str()) else {
                continue;
            };
            if !is_secret_name(name) {
                continue;
            }
            // Whole, as it stands within JSON, and line by line: output is read in lines.
            let quoted = serde_json::to_string(value.trim()).unwrap_or_default();
            let escaped = quoted
                .get(1..quoted.len().saturating_sub(1))
                .unwrap_or_default();
            let forms = [value, escaped].into_iter().chain(value.lines());
            for value in forms.map(str::trim) {
                if value.len() >= SHORTEST_VALUE {
                    secrets.push((name.to_owned(), value.as_bytes().to_vec()));
                }
            }
        }
        secrets.sort_by(|(_, a), (_, b)| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        secrets.dedup_by(|(_, a), (_, b)| a == b);
        Self { secrets }
    }

    /// The text without its secrets.
    pub(crate) fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        self.text_telling(text, &mut |_| {})
    }

    /// The same; whatever is hidden is told of as it was.
    pub(crate) fn text_telling<'t>(&self, text: &'t str, told: &mut Told<'_>) -> Cow<'t, str> {
        match self.bytes_telling(text.as_bytes(), told) {
            None => Cow::Borrowed(text),
            Some(bytes) => Cow::Owned(
                String::from_utf8(bytes)
                    .unwrap_or_else(|error| String::from_utf8_lossy(error.as_bytes()).into_owned()),
            ),
        }
    }

    /// The same for bytes of any kind; `None` if there is nothing to hide.
    pub(crate) fn bytes(&self, text: &[u8]) -> Option<Vec<u8>> {
        self.bytes_telling(text, &mut |_| {})
    }

    fn bytes_telling(&self, text: &[u8], told: &mut Told<'_>) -> Option<Vec<u8>> {
        let mut hidden: Option<Vec<u8>> = None;
        for (name, value) in &self.secrets {
            let now = hidden.as_deref().unwrap_or(text);
            if let Some(done) = without(now, value, name, told) {
                hidden = Some(done);
            }
        }
        for form in marked(text) {
            if let Some(done) = form.hide(hidden.as_deref().unwrap_or(text), told) {
                hidden = Some(done);
            }
        }
        hidden
    }

    /// Words of a command. A flag may say what the next word is.
    pub(crate) fn words(&self, words: &mut [String]) {
        let together = words.join(" ");
        if self.bytes(together.as_bytes()).is_none() {
            return;
        }
        let mut flag = String::new();
        for word in words {
            let before = std::mem::replace(&mut flag, word.clone());
            if let Cow::Owned(hidden) = self.text(word) {
                *word = hidden;
            } else if before.starts_with('-') {
                let pair = format!("{before} {word}");
                // The flag itself is no secret: what was hidden is the word.
                if let Cow::Owned(hidden) = self.text(&pair)
                    && let Some(hidden) = hidden.strip_prefix(&format!("{before} "))
                {
                    *word = hidden.to_owned();
                }
            }
        }
    }
}

/// The forms of which the text holds a mark, in order.
fn marked(text: &[u8]) -> Vec<&'static Form> {
    if text.len() > LARGE {
        let mut found = [false; FORMS.len()];
        let (marks, owners) = ALL_MARKS.get_or_init(all_marks);
        for hit in marks
            .iter()
            .flat_map(|marks| marks.find_overlapping_iter(text))
        {
            let owner = owners.get(hit.pattern().as_usize());
            if let Some(found) = owner.and_then(|owner| found.get_mut(*owner)) {
                *found = true;
            }
        }
        let forms = FORMS.iter().zip(found);
        return forms
            .filter_map(|(form, found)| found.then_some(form))
            .collect();
    }
    let lower = text.to_ascii_lowercase();
    let has = |mark: &&str| memmem::find(&lower, mark.as_bytes()).is_some();
    FORMS
        .iter()
        .filter(|form| form.marks.iter().any(has))
        .collect()
}

/// All marks as one automaton, and the form that each belongs to.
fn all_marks() -> (Option<AhoCorasick>, Vec<usize>) {
    let marks = || {
        FORMS
            .iter()
            .enumerate()
            .flat_map(|(at, form)| form.marks.iter().map(move |mark| (at, mark)))
    };
    let automaton = AhoCorasick::builder()
        .ascii_case_insensitive(true)
        .kind(Some(AhoCorasickKind::DFA))
        .build(marks().map(|(_, mark)| mark));
    (automaton.ok(), marks().map(|(at, _)| at).collect())
}

impl Form {
    fn hide(&self, text: &[u8], told: &mut Told<'_>) -> Option<Vec<u8>> {
        let regex = self.compiled.get_or_init(|| Regex::new(self.pattern).ok());
        let mut hidden = Vec::new();
        let mut copied = 0;
        for found in regex.as_ref()?.captures_iter(text) {
            let Some(secret) =
                secret_of(&found).filter(|secret| (self.is_secret)(secret.as_bytes()))
            else {
                continue;
            };
            hidden.extend_from_slice(text.get(copied..secret.start()).unwrap_or_default());
            put_mark(&mut hidden, self.kind);
            told(secret.as_bytes());
            copied = secret.end();
        }
        if copied == 0 {
            return None;
        }
        hidden.extend_from_slice(text.get(copied..).unwrap_or_default());
        Some(hidden)
    }
}

fn secret_of<'t>(found: &Captures<'t>) -> Option<regex::bytes::Match<'t>> {
    let group = found.iter().skip(1).flatten().next();
    group.or_else(|| found.get(0))
}

fn without(text: &[u8], secret: &[u8], kind: &str, told: &mut Told<'_>) -> Option<Vec<u8>> {
    let mut hidden = Vec::new();
    let mut copied = 0;
    for at in memmem::find_iter(text, secret) {
        hidden.extend_from_slice(text.get(copied..at).unwrap_or_default());
        put_mark(&mut hidden, kind);
        told(secret);
        copied = at + secret.len();
    }
    if copied == 0 {
        return None;
    }
    hidden.extend_from_slice(text.get(copied..).unwrap_or_default());
    Some(hidden)
}

fn put_mark(text: &mut Vec<u8>, kind: &str) {
    text.extend_from_slice(b"[redacted:");
    text.extend_from_slice(kind.as_bytes());
    text.push(b']');
}

/// Every hook asks this of its whole environment: one pass over the name, and words are only
/// compared where one of them may begin.
fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_uppercase().into_bytes();
    let begins = |at: usize| {
        let rest = name.get(at..).unwrap_or_default();
        matches!(rest.first(), Some(b'K' | b'T' | b'S' | b'P' | b'C'))
            && SECRET_NAMES
                .iter()
                .any(|word| rest.starts_with(word.as_bytes()))
    };
    (0..name.len()).any(begins) && !PLACES.iter().any(|end| name.ends_with(end.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn redactor(variables: &[(&str, &str)]) -> Redactor {
        let variable = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
        Redactor::of_environment(&variables.iter().map(variable).collect())
    }

    fn check(text: &str, expected: &str) {
        let none = redactor(&[]);
        assert_eq!(none.text(text), expected, "{text}");
        assert_eq!(none.text(expected), expected, "once more changes nothing");
    }

    #[test]
    fn every_word_of_a_secret_name_is_found_where_it_stands() {
        for word in SECRET_NAMES {
            for name in [
                (*word).to_owned(),
                format!("MY_{word}"),
                word.to_lowercase() + "_1",
            ] {
                assert!(is_secret_name(&name), "{name}");
            }
            assert!(!is_secret_name(&format!("{word}_FILE")));
        }
        assert!(!is_secret_name("PATH"));
    }

    #[test]
    fn every_form_can_be_compiled() {
        for form in &FORMS {
            Regex::new(form.pattern).unwrap();
        }
    }

    #[test]
    fn a_large_text_is_searched_as_a_small_one_is() {
        assert!(all_marks().0.is_some());
        let filler = "ordinary words. ".repeat(LARGE / 8);
        for form in &FORMS {
            for mark in form.marks {
                let text = mark.to_uppercase();
                let large = format!("{filler}{text}{filler}");
                let kinds = |text: &str| -> Vec<_> {
                    marked(text.as_bytes())
                        .iter()
                        .map(|form| form.pattern)
                        .collect()
                };
                assert_eq!(kinds(&text), kinds(&large));
                assert!(kinds(&text).contains(&form.pattern));
            }
        }
        let hidden = redactor(&[])
            .text(&format!("{filler}password=hunter2"))
            .into_owned();
        assert!(hidden.ends_with("password=[redacted:password]"));
    }

    #[test]
    fn known_forms_go_and_the_words_around_them_stay() {
        check(
            "use sk-ant-api03-AbCdEf_123-xyz now",
            "use [redacted:anthropic-key] now",
        );
        check(
            "OPENAI=sk-proj-aaaaBBBB1111ccccDDDD;",
            "OPENAI=[redacted:api-key];",
        );
        check(
            "git push https://bot:hunter2@git.example.com/x.git",
            "git push https://bot:[redacted:url-password]@git.example.com/x.git",
        );
        check(
            "ghp_0123456789abcdefghijABCDEFGHIJ456789.",
            "[redacted:github-token].",
        );
        check(
            "github_pat_11AAAAAAA0abcdefghijkl",
            "[redacted:github-token]",
        );
        check("xoxb-123456789012-abcdef", "[redacted:slack-token]");
        check("id AKIAIOSFODNN7EXAMPLE", "id [redacted:aws-key]");
        check(
            "AIzaSyA1234567890abcdefghijklmnopqrstuv",
            "[redacted:api-key]",
        );
        check(
            "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.abc-DEF_123",
            "[redacted:jwt]",
        );
        check(
            r#"curl -H "Authorization: Bearer abc123def456ghi""#,
            r#"curl -H "Authorization: Bearer [redacted:authorization]""#,
        );
        check(
            "with bearer abc123def456ghi",
            "with bearer [redacted:bearer]",
        );
        check(
            "curl -s -u me:hunter2 https://x.example",
            "curl -s -u me:[redacted:password] https://x.example",
        );
        check(
            "-----BEGIN RSA PRIVATE KEY-----\nMIIE+/=\nabc\n-----END RSA PRIVATE KEY-----\nafter",
            "[redacted:private-key]\nafter",
        );
        check(
            "-----BEGIN OPENSSH PRIVATE KEY-----\nb3BlbnNzaC1rZXk",
            "[redacted:private-key]",
        );
    }

    #[test]
    fn assignments_are_hidden_by_their_names() {
        check("password=hunter2", "password=[redacted:password]");
        check(
            "DB_PASSWORD: 'two words'",
            "DB_PASSWORD: '[redacted:password]'",
        );
        check(
            "mysql --password hunter2 -e x",
            "mysql --password [redacted:password] -e x",
        );
        check(
            "gh --token abcdef0123 list",
            "gh --token [redacted:token] list",
        );
        check(
            r#"{"command":"export API_KEY=\"abc123def\" && run"}"#,
            r#"{"command":"export API_KEY=\"[redacted:token]\" && run"}"#,
        );
        check(
            r#"{"apiKey": "abc123def456"}"#,
            r#"{"apiKey": "[redacted:token]"}"#,
        );
        check(
            "client_secret: 0a1b2c3d4e",
            "client_secret: [redacted:token]",
        );
    }

    #[test]
    fn ordinary_text_stays() {
        for text in [
            "cargo test --workspace",
            "the token budget is 1000000 tokens",
            "token_budget = 1_000_000",
            "max_tokens=4096",
            "tokens: 12,345",
            "unexpected token: identifier",
            "let token = parser.next();",
            "export TOKEN=$GITHUB_TOKEN",
            "password: ${{ secrets.PASSWORD }}",
            "reset the password and tell me",
            "https://example.com/a:b@c",
            "git clone git@github.com:a/b.git",
            "ssh://git@github.com/a/b",
            "task-force-of-1000-people sk-learn",
            "-----BEGIN CERTIFICATE-----\nMIIE",
            "src/keyboard.rs:12: key: value",
            "pwd",
            "ünïcödé",
        ] {
            assert_eq!(redactor(&[]).text(text), text);
        }
    }

    #[test]
    fn values_of_secret_variables_are_hidden_wherever_they_stand() {
        let known = redactor(&[
            ("MY_API_KEY", "correct horse"),
            ("MY_LONG_TOKEN", "correct horse battery"),
            ("MULTI_SECRET", "first line\nsecond line"),
            ("QUOTED_PASSWORD", "say \"friend\""),
            ("SSH_AUTH_SOCK", "/tmp/agent.sock"),
            ("TLS_KEY_FILE", "/etc/tls/server.key"),
            ("SHORT_KEY", "short"),
            ("EDITOR", "something-else"),
        ]);
        for (text, expected) in [
            ("a correct horse b", "a [redacted:MY_API_KEY] b"),
            ("correct horse battery", "[redacted:MY_LONG_TOKEN]"),
            ("x second line", "x [redacted:MULTI_SECRET]"),
            (
                r#"{"a":"first line\nsecond line"}"#,
                r#"{"a":"[redacted:MULTI_SECRET]"}"#,
            ),
            (
                r#"{"a":"say \"friend\"!"}"#,
                r#"{"a":"[redacted:QUOTED_PASSWORD]!"}"#,
            ),
            (
                "/tmp/agent.sock /etc/tls/server.key short something-else",
                "/tmp/agent.sock /etc/tls/server.key short something-else",
            ),
        ] {
            assert_eq!(known.text(text), expected);
        }
    }

    #[test]
    fn words_of_a_command_are_hidden_one_by_one() {
        let mut words: Vec<String> = ["mysql", "--password", "hunter2", "-H", "token: abc12345"]
            .map(str::to_owned)
            .to_vec();
        redactor(&[]).words(&mut words);
        assert_eq!(
            words,
            [
                "mysql",
                "--password",
                "[redacted:password]",
                "-H",
                "token: [redacted:token]"
            ]
        );
    }

    proptest! {
        /// Wherever it is planted, whatever is around it.
        #[test]
        fn a_planted_value_is_never_left(
            before in "\\PC{0,40}", after in "\\PC{0,40}", secret in "[A-Za-z0-9+/ \"\\\\é]{8,40}",
        ) {
            prop_assume!(secret.trim().len() >= SHORTEST_VALUE);
            let known = redactor(&[("PLANTED_SECRET", &secret)]);
            let text = format!("{before}{secret}{after}");
            let hidden = known.text(&text).into_owned();
            prop_assert!(!hidden.contains(secret.trim()), "{hidden}");
            let args = serde_json::json!({ "command": text }).to_string();
            let hidden = known.text(&args).into_owned();
            let quoted = serde_json::to_string(secret.trim()).unwrap();
            let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
            prop_assert!(!hidden.contains(escaped.unwrap()), "{hidden}");
        }

        /// Text of any kind comes back as text, and twice is once.
        #[test]
        fn nothing_is_broken(text in "\\PC{0,80}(password|token|sk-ant-|://|bearer |-----BEGIN PRIVATE KEY-----)\\PC{0,80}") {
            let none = redactor(&[]);
            let once = none.bytes(text.as_bytes()).unwrap_or_else(|| text.clone().into_bytes());
            prop_assert!(std::str::from_utf8(&once).is_ok());
        }
    }
}
