//! What is hidden in which text, and what is not.

use super::*;
use proptest::prelude::*;

fn redactor(variables: &[(&str, &str)]) -> Redactor {
    let variable = |(name, value): &(&str, &str)| (OsString::from(name), OsString::from(value));
    Redactor::new_from_secret_variables(&variables.iter().map(variable).collect())
}

fn check(text: &str, expected: &str) {
    let none = redactor(&[]);
    assert_eq!(none.redact_text(text), expected, "{text}");
    assert_eq!(
        none.redact_text(expected),
        expected,
        "once more changes nothing"
    );
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
        assert_eq!(redactor(&[]).redact_text(text), text);
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
        assert_eq!(known.redact_text(text), expected);
    }
}

#[test]
fn words_of_a_command_are_hidden_one_by_one() {
    let mut words: Vec<String> = ["mysql", "--password", "hunter2", "-H", "token: abc12345"]
        .map(str::to_owned)
        .to_vec();
    redactor(&[]).redact_command_words(&mut words);
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

const PIECES: &[&str] = &[
    "mysql ",
    "-p",
    "sshpass ",
    "hunter2",
    "password",
    "=",
    ": ",
    "\"",
    "'",
    "\\",
    "\n",
    " ",
    "token",
    "0123456789abcdef",
    "hvs.",
    "://",
    "@",
    "[redacted:",
    "password]",
    "]",
    "|",
    "sudo -S ",
    "echo ",
    "<<<",
    ",",
    "ey",
    "J",
    ".",
    "curl -u ",
    "machine x login y ",
    "é",
    "{",
    "}",
    "[",
    "$",
    "`",
    "-----BEGIN PRIVATE KEY-----",
    "okta",
    "00",
    "AKIA",
    "IOSFODNN7EXAMPLE",
];

proptest! {
    /// Wherever it is planted, whatever is around it.
    #[test]
    fn a_planted_value_is_never_left(
        before in "\\PC{0,40}", after in "\\PC{0,40}", secret in "[A-Za-z0-9+/ \"\\\\é]{8,40}",
    ) {
        prop_assume!(secret.trim().len() >= SHORTEST_VALUE);
        let known = redactor(&[("PLANTED_SECRET", &secret)]);
        let text = format!("{before}{secret}{after}");
        let hidden = known.redact_text(&text).into_owned();
        prop_assert!(!hidden.contains(secret.trim()), "{hidden}");
        let args = serde_json::json!({ "command": text }).to_string();
        let hidden = known.redact_text(&args).into_owned();
        let quoted = serde_json::to_string(secret.trim()).unwrap();
        let escaped = quoted.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
        prop_assert!(!hidden.contains(escaped.unwrap()), "{hidden}");
    }

    /// Pieces of which secrets are made, in any order: twice is once, and JSON stays JSON.
    #[test]
    fn redacting_twice_changes_nothing_more(pieces in proptest::collection::vec(proptest::sample::select(PIECES), 0..24)) {
        let none = redactor(&[]);
        let text = pieces.concat();
        let once = none.redact_text(&text).into_owned();
        prop_assert_eq!(none.redact_text(&once), once.as_str(), "{}", text);
        let json = serde_json::json!({ "command": text, "argv": pieces }).to_string();
        let hidden = none.redact_text(&json).into_owned();
        prop_assert!(serde_json::from_str::<serde_json::Value>(&hidden).is_ok(), "{hidden}");
        prop_assert_eq!(none.redact_text(&hidden), hidden.as_str(), "{}", json);
    }

    /// Text of any kind comes back as text, and twice is once.
    #[test]
    fn redacted_text_stays_utf8(text in "\\PC{0,80}(password|token|sk-ant-|://|bearer |-----BEGIN PRIVATE KEY-----)\\PC{0,80}") {
        let none = redactor(&[]);
        let once = none.redact_bytes(text.as_bytes()).unwrap_or_else(|| text.clone().into_bytes());
        prop_assert!(std::str::from_utf8(&once).is_ok());
    }
}

/// Each line with a secret in brackets, which is what must go. One of a kind each.
const COMMANDS_WITH_SECRETS: &str = include_str!("../tests/commands_with_secrets.txt");
const COMMANDS_WITHOUT: &str = include_str!("../tests/commands_without_secrets.txt");

fn lines(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.lines()
        .filter(|line| !line.is_empty() && !line.starts_with("# "))
}

/// A line, and the secrets that it marks.
fn planted(line: &str) -> (String, Vec<String>) {
    let mut secrets = Vec::new();
    let mut text = String::new();
    for (nth, part) in line.split(['«', '»']).enumerate() {
        if nth % 2 == 1 {
            secrets.push(part.to_owned());
        }
        text.push_str(part);
    }
    (text, secrets)
}

/// In prose, as a script of another shell, as arguments in JSON, and as JSON in JSON.
fn settings(command: &str) -> Vec<String> {
    let json = serde_json::json!({ "command": command, "timeout": 3 }).to_string();
    let lines = serde_json::json!({ "command": format!("cd x\n{command}\nrm -rf y") }).to_string();
    let nested = serde_json::json!({ "arguments": lines, "call_id": "1" }).to_string();
    vec![
        command.to_owned(),
        format!("I ran it:\n\n    {command}\n\nand it works."),
        json,
        lines,
        nested,
    ]
}

#[test]
fn passwords_of_command_lines_go_and_all_else_stays() {
    let none = redactor(&[]);
    let mut wrong = Vec::new();
    for line in lines(COMMANDS_WITH_SECRETS) {
        let (command, secrets) = planted(line);
        assert!(!secrets.is_empty(), "{line}");
        let hidden = none.redact_text(&command).into_owned();
        let mut rest = hidden.as_str();
        for (nth, kept) in line.split(['«', '»']).enumerate() {
            // Quotes around a secret may go with it.
            if nth % 2 == 0 {
                match rest.split_once(kept.trim_matches(['"', '\''])) {
                    Some((_, behind)) => rest = behind,
                    None => wrong.push(format!("{line}\n    {hidden}: without {kept:?}")),
                }
            }
        }
        for text in settings(&command) {
            let hidden = none.redact_text(&text);
            let again = none.redact_text(&hidden);
            if again != hidden {
                wrong.push(format!("twice: {hidden}\n    {again}"));
            }
            for secret in &secrets {
                let quoted = serde_json::to_string(secret).unwrap();
                let escaped = quoted.trim_matches('"');
                if hidden.contains(secret.as_str()) || hidden.contains(escaped) {
                    wrong.push(format!("{text}\n    {hidden}"));
                }
            }
            let is_json = text.starts_with('{');
            if is_json && serde_json::from_str::<serde_json::Value>(&hidden).is_err() {
                wrong.push(format!("no JSON any more: {hidden}"));
            }
            if text.contains("rm -rf y") && !hidden.contains("rm -rf y") {
                wrong.push(format!("hides a command: {hidden}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

/// A quote that nobody closes ends with its string.
#[test]
fn json_stays_json() {
    let none = redactor(&[]);
    for said in [
        "sshpass ='hunter2",
        "password='hunter2",
        "PASSWORD: 'hunter2 and more",
        "API_TOKEN='hunter2hunter2",
        "DB_PWD='hunter2",
    ] {
        for args in [
            serde_json::json!({ "command": said }),
            serde_json::json!({ "command": said, "argv": ["a", "b' c", "d"] }),
            serde_json::json!({ "argv": [said, said], "n": 1 }),
        ] {
            for text in [args.to_string(), format!("{args:#}")] {
                let hidden = none.redact_text(&text);
                let read: Result<serde_json::Value, _> = serde_json::from_str(&hidden);
                assert!(
                    read.is_ok() && !hidden.contains("hunter2"),
                    "{text} {hidden}"
                );
            }
        }
    }
    check(
        "password='my \"secret\" word' x",
        "password='[redacted:password]' x",
    );
}

/// A text, what of it is secret, and what is not.
fn check_here_document(command: &str) {
    let none = redactor(&[]);
    let (plain, secrets) = planted(command);
    let mut expected = plain.clone();
    for secret in &secrets {
        expected = expected.replace(secret.as_str(), "[redacted:password]");
    }
    assert_eq!(none.redact_text(&plain), expected);
    for text in settings(&plain) {
        let hidden = none.redact_text(&text).into_owned();
        for secret in &secrets {
            assert!(!hidden.contains(secret.as_str()), "{hidden}");
        }
        assert_eq!(none.redact_text(&hidden), hidden);
    }
}

#[test]
fn what_a_here_document_hands_to_a_program_is_hidden() {
    for command in [
        "sudo -S apt-get update <<EOF\n«hunter2»\nEOF\necho done",
        "sudo -kS tee /etc/motd <<'EOF' >/dev/null\n«hunter2»\nwelcome here\nEOF",
        "docker login -u bot --password-stdin <<EOF\n«hunter2»\nEOF",
        "docker login -u bot --password-stdin r.example.com <<-PW && docker push r\n\t«hunter2»\n\tPW\nmake",
        "chpasswd <<END\n«me:hunter2»\n«you:hunter3»\nEND",
        "gh auth login --with-token <<\"EOT\"\n«s3cr3troot»\nEOT",
        "cryptsetup open /dev/sdb1 box <<X\n«two words»\nX",
        // A script is read as one.
        "bash <<EOF\nmysql -p«hunter2» shop\nEOF",
    ] {
        check_here_document(command);
    }
    for command in [
        "cat > a <<EOF\nhunter2\nEOF",
        "cat <<EOF | sudo tee /etc/motd\nwelcome\nEOF",
        "sudo -S id <<EOF\n$PW\nEOF",
        "docker login --password-stdin <<EOF\n${PW}\nEOF\necho hello",
        "docker login --password-stdin < pw.txt\necho hello\nEOF",
        "docker login --password-stdin <<EOF\nhello without an end",
        "python3 <<EOF\nprint(1 << 2)\nEOF",
    ] {
        assert_eq!(redactor(&[]).redact_text(command), command);
    }
}

#[test]
fn commands_without_secrets_stay() {
    let none = redactor(&[]);
    let mut wrong = Vec::new();
    for command in lines(COMMANDS_WITHOUT) {
        for text in settings(command) {
            let hidden = none.redact_text(&text);
            if hidden != text {
                wrong.push(format!("{text}\n    {hidden}"));
            }
        }
    }
    assert!(wrong.is_empty(), "{}:\n{}", wrong.len(), wrong.join("\n"));
}

#[test]
fn words_of_an_argv_are_hidden_as_those_of_a_script_are() {
    let none = redactor(&[]);
    let mut argv: Vec<_> = ["mysql", "-h", "db", "-phunter2", "-e", "select 1"]
        .map(str::to_owned)
        .to_vec();
    none.redact_command_words(&mut argv);
    assert_eq!(
        argv,
        [
            "mysql",
            "-h",
            "db",
            "-p[redacted:password]",
            "-e",
            "select 1"
        ]
    );
}

/// A megabyte of what rules begin with and never end: what a rule costs grows with the text only.
#[test]
fn hostile_text_is_read_in_linear_time() {
    let none = redactor(&[]);
    for piece in [
        "-----BEGIN PRIVATE KEY-----",
        "a://b:",
        "a://a@",
        "curl -u ",
        "mysql 'mysql \"",
        "\\\"",
        "password=\"",
        "machine a login b ",
        "echo x | sudo -S ",
        "sudo -S <<EOF\n",
        "sudo -S <<EOF\nx\nEOF\n",
        "set -x A_KEY ",
        "sshpass -f <(echo ",
        "password send \"",
        "fly secrets set a=b ",
        "token: ",
        "eyJaaaaaa.",
        "[redacted:",
    ] {
        let text = piece.repeat((1 << 20) / piece.len());
        let hidden = none.redact_text(&text).into_owned();
        assert!(hidden.len() <= 8 * text.len(), "{piece}");
    }
}

/// A password whose quote opens before it: the quote that closes stays, or what follows it is read
/// as if it were quoted.
#[test]
fn what_follows_a_quoted_password_is_read_as_before() {
    let script = "smbclient -U 'me%hunter2' //host/share\n\
                  echo 'machine example.com login me password hunter2' >> ~/.netrc\n\
                  printf 'machine example.com\nlogin me\npassword hunter2\n' > ~/.netrc\n";
    let hidden = "smbclient -U 'me%[redacted:password]' //host/share\n\
                  echo 'machine example.com login me password [redacted:netrc-password]' >> ~/.netrc\n\
                  printf 'machine example.com\nlogin me\npassword [redacted:netrc-password]\n' > ~/.netrc\n";
    let redactor = Redactor::default();
    assert_eq!(redactor.redact_text(script), hidden);
    assert_eq!(redactor.redact_text(hidden), hidden);
}

#[test]
fn a_quote_that_sql_leaves_open_does_not_reach_beyond_its_string() {
    let text = r#"{"a":"IDENTIFIED BY '","b":["IDENTIFIED","BY '"]}"#;
    assert_eq!(Redactor::default().redact_text(text), text);
    let hidden = Redactor::default()
        .redact_text(r#"{"a":"IDENTIFIED BY 'my\"word'"}"#)
        .into_owned();
    assert!(!hidden.contains("word'"), "{hidden}");
}
