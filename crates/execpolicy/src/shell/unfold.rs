//! From one command to the code it runs in turn: the command of a wrapper, the text of
//! a shell, what an alias stands for.

use super::feed::Feed;
use super::options::{Seen, Start, past};
use super::prints;
use super::word::{Known, Word};
use super::wrappers::{self, Wrapper};
use crate::rules::basename;

/// Bytes of a text that `xargs` makes words of.
const MAX_TOLD: usize = 4 << 10;

/// Code that a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Inner {
    /// Words of another command.
    Command(Vec<Word>),
    /// What a script is given, as `$1` and so on.
    Given(Vec<Word>),
    /// The words from this one on, as they stand.
    From(usize),
    /// A text that a shell reads; not `sure` if expansions stand in it.
    Script {
        /// The text.
        text: String,
        /// Whether all of it is known.
        sure: bool,
    },
    /// From this word on it cannot be told which is the command: any may be.
    AnyFrom(usize),
    /// Code of another language.
    Code(String),
    /// Something that cannot be read.
    Unreadable(String),
    /// The same, from the network.
    Fetched(String),
    /// Nothing yet: it reads what is typed while it runs.
    Typed,
    /// A name that stands for other words from here on.
    Alias(String, String),
}

/// What the command `words`, whose program is `name`, runs.
pub(crate) fn unfold(name: &str, words: &[Word], feed: &Feed) -> Vec<Inner> {
    let Some(wrapper) = wrappers::of(name) else {
        return Vec::new();
    };
    match wrapper {
        Wrapper::Runs(options) => {
            let (start, seen) = past(words, &options);
            let inner = from(start, words);
            let shell = matches!(name, "sudo" | "doas")
                && seen
                    .iter()
                    .any(|(name, _)| matches!(name.as_str(), "s" | "i" | "shell" | "login"));
            match inner {
                // `flock FILE -c TEXT`: the option stands behind the operand.
                Some(Inner::From(at)) if name == "flock" && is(words.get(at), "-c") => {
                    words.get(at + 1).map(script).into_iter().collect()
                }
                Some(inner) => vec![inner],
                None if shell => fed(feed),
                None => Vec::new(),
            }
        }
        Wrapper::RunsText(options) => match past(words, &options).0 {
            Start::At(at) => joined(words.get(at..).unwrap_or(&[]), name, feed),
            Start::Nothing => Vec::new(),
            Start::Unsure => vec![Inner::AnyFrom(1)],
        },
        Wrapper::Shell => shell(words, feed),
        Wrapper::Eval => {
            let skip = 1 + usize::from(is(words.get(1), "--"));
            joined(words.get(skip..).unwrap_or(&[]), name, &Feed::Nothing)
        }
        Wrapper::Trap => trap(words),
        Wrapper::Source => words
            .get(1)
            .map_or_else(Vec::new, |file| code_file(file, feed)),
        Wrapper::Alias => words.iter().skip(1).filter_map(alias).collect(),
        Wrapper::Find => find(words, name),
        Wrapper::Env => env(words),
        Wrapper::Xargs => xargs(words, feed),
        Wrapper::TextOption => text_option(words, feed),
        Wrapper::Ssh => match past(words, &wrappers::SSH).0 {
            Start::At(at) => match words.get(at..) {
                Some([dashes, rest @ ..]) if is(Some(dashes), "--") && !rest.is_empty() => {
                    joined(rest, name, feed)
                }
                Some(rest) if !rest.is_empty() => joined(rest, name, feed),
                _ => fed(feed),
            },
            Start::Nothing => Vec::new(),
            Start::Unsure => vec![Inner::AnyFrom(1)],
        },
        Wrapper::Inline(letters, longs) => inline(words, letters, longs, feed),
        Wrapper::Awk => awk(words),
        Wrapper::Queue => fed(feed),
        Wrapper::Checkrein => started_by_checkrein(words),
    }
}

/// The folder in which a wrapper starts its command, if it is told one: `env -C FOLDER COMMAND`.
pub(crate) fn started_in(name: &str, words: &[Word]) -> Option<Word> {
    let (seen, letter, long) = match (name, wrappers::of(name)?) {
        (_, Wrapper::Env) => (past(words, &wrappers::ENV).1, "C", "chdir"),
        ("sudo", Wrapper::Runs(options)) => (past(words, &options).1, "D", "chdir"),
        ("systemd-run", Wrapper::Runs(options)) => {
            (past(words, &options).1, "", "working-directory")
        }
        _ => return None,
    };
    let told = seen.into_iter().rev();
    let mut told = told.filter(|(name, _)| name == letter || name == long);
    told.next()?.1
}

/// Whether what these words run in turn runs on another machine.
pub(crate) fn runs_elsewhere(words: &[Word]) -> bool {
    let program = words.first().and_then(Word::as_program);
    if program.map(basename) != Some("ssh") {
        return false;
    }
    let Start::At(at) = past(words, &wrappers::SSH).0 else {
        return false;
    };
    let host = at.checked_sub(1).and_then(|at| words.get(at));
    let host = host.and_then(Word::as_fixed).map(|host| {
        let host = host.trim_start_matches("ssh://");
        host.rsplit('@').next().unwrap_or(host).to_owned()
    });
    let here = ["localhost", "127.", "::1", "[::1]", "0.0.0.0"];
    host.is_none_or(|host| !here.iter().any(|name| host.starts_with(name)))
}

/// What `checkrein run` and `checkrein mcp-proxy` start: the words behind `--`, or an agent with
/// them. What `checkrein policy check` is asked about is not run.
fn started_by_checkrein(words: &[Word]) -> Vec<Inner> {
    let end = words.iter().position(|word| is(Some(word), "--"));
    let before = words.get(1..end.unwrap_or(words.len())).unwrap_or(&[]);
    let named = |name: &str| before.iter().any(|word| is(Some(word), name));
    if before.iter().any(|word| word.known == Known::Many) {
        return vec![Inner::AnyFrom(1)];
    }
    if named("policy") || !(named("run") || named("mcp-proxy")) {
        return Vec::new();
    }
    let Some(from) = end.map(|end| end + 1) else {
        return Vec::new();
    };
    let agent = before.iter().enumerate().find_map(|(at, word)| {
        let attached = word
            .after('=')
            .filter(|_| word.lead().starts_with("--agent="));
        attached.or_else(|| {
            before
                .get(at + 1)
                .filter(|_| is(Some(word), "--agent"))
                .cloned()
        })
    });
    match agent {
        None if from < words.len() => vec![Inner::From(from)],
        None => Vec::new(),
        Some(agent) => {
            let program = match agent.as_fixed() {
                Some("claude-code") => Word::fixed("claude"),
                _ => agent,
            };
            let rest = words.get(from..).unwrap_or(&[]).iter().cloned();
            vec![Inner::Command(
                std::iter::once(program).chain(rest).collect(),
            )]
        }
    }
}

fn is(word: Option<&Word>, text: &str) -> bool {
    word.and_then(Word::as_fixed) == Some(text)
}

fn from(start: Start, words: &[Word]) -> Option<Inner> {
    match start {
        Start::At(at) => (at < words.len()).then_some(Inner::From(at)),
        Start::Nothing => None,
        Start::Unsure => Some(Inner::AnyFrom(1)),
    }
}

fn script(word: &Word) -> Inner {
    Inner::Script {
        text: word.text.clone(),
        sure: word.known == Known::Fixed,
    }
}

/// Commands on standard input.
fn fed(feed: &Feed) -> Vec<Inner> {
    match feed {
        Feed::Open => vec![Inner::Typed],
        Feed::Nothing => Vec::new(),
        Feed::Text { text, sure } => {
            vec![Inner::Script {
                text: text.to_string(),
                sure: *sure,
            }]
        }
        Feed::Unknown | Feed::Paths(_) => {
            vec![Inner::Unreadable("commands read from a pipe".to_owned())]
        }
        Feed::Fetched => vec![Inner::Fetched("commands read from a pipe".to_owned())],
    }
}

fn joined(words: &[Word], name: &str, feed: &Feed) -> Vec<Inner> {
    if words.is_empty() {
        return if matches!(name, "parallel") {
            fed(feed)
        } else {
            Vec::new()
        };
    }
    let text = words
        .iter()
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    vec![Inner::Script {
        text,
        sure: words.iter().all(|word| word.known == Known::Fixed),
    }]
}

fn shell(words: &[Word], feed: &Feed) -> Vec<Inner> {
    let (mut text, mut stdin, mut at) = (false, false, 1);
    while let Some(word) = words.get(at) {
        let lead = word.lead();
        // A file by a name that the shell makes.
        if word.text.starts_with("<(") {
            break;
        }
        if word.known == Known::Many && lead.is_empty() {
            return vec![Inner::AnyFrom(1), Inner::Unreadable(word.text.clone())];
        }
        match word.as_fixed() {
            Some("--" | "-") => {
                at += 1;
                break;
            }
            Some("--rcfile" | "--init-file") => {
                at += 2;
                continue;
            }
            // Behind another option it may be its value.
            Some("--version" | "--help") if at == 1 => return Vec::new(),
            _ => {}
        }
        if lead.starts_with("--") {
            at += 1;
            continue;
        }
        let Some(cluster) = lead.strip_prefix(['-', '+']) else {
            break;
        };
        text |= lead.starts_with('-') && cluster.contains('c');
        stdin |= cluster.contains('s');
        if word.known != Known::Fixed {
            return vec![Inner::AnyFrom(1), Inner::Unreadable(word.text.clone())];
        }
        at += 1 + cluster.matches(['o', 'O']).count();
    }
    match words.get(at) {
        Some(word) if text => vec![
            Inner::Given(words.get(at + 1..).unwrap_or(&[]).to_vec()),
            script(word),
        ],
        Some(file) if !stdin => code_file(file, feed),
        None if text => Vec::new(),
        _ => fed(feed),
    }
}

/// A file of commands: opaque, unless this very script makes what is in it.
fn code_file(file: &Word, feed: &Feed) -> Vec<Inner> {
    match file.as_fixed() {
        Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => fed(feed),
        None if file.text.starts_with("<(") || file.text.starts_with("=(") => {
            let mut found = vec![Inner::Unreadable(file.text.clone())];
            if let Some(text @ Feed::Text { .. }) = prints::of(&file.text) {
                found.extend(fed(&text));
            }
            found
        }
        _ => Vec::new(),
    }
}

fn trap(words: &[Word]) -> Vec<Inner> {
    let mut rest = words.iter().skip(1).peekable();
    if rest
        .peek()
        .is_some_and(|word| word.as_fixed() == Some("--"))
    {
        rest.next();
    }
    match rest.next() {
        Some(word) if matches!(word.as_fixed(), Some("" | "-" | "-l" | "-p")) => Vec::new(),
        Some(word) => vec![script(word)],
        None => Vec::new(),
    }
}

fn alias(word: &Word) -> Option<Inner> {
    if word.known != Known::Fixed {
        return Some(Inner::Unreadable(word.text.clone()));
    }
    let (name, value) = word.text.split_once('=')?;
    Some(Inner::Alias(name.to_owned(), value.to_owned()))
}

fn find(words: &[Word], name: &str) -> Vec<Inner> {
    let mut found = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        if !matches!(
            word.as_fixed(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
        ) {
            continue;
        }
        let rest = words.get(at..).unwrap_or(&[]);
        let ends = |word: &Word| matches!(word.as_fixed(), Some(";" | "+"));
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let own = rest.get(..length).unwrap_or(&[]);
        let command = own.iter().map(|word| word.with_placeholder("{}"));
        // `fd` adds what it finds where nothing stands for it.
        let adds =
            matches!(name, "fd" | "fdfind") && !own.iter().any(|word| word.text.contains('{'));
        let added = adds.then(|| Word::fixed("{}").with_placeholder("{}"));
        found.push(Inner::Command(command.chain(added).collect()));
        at += length;
    }
    found
}

fn env(words: &[Word]) -> Vec<Inner> {
    let (start, seen) = past(words, &wrappers::ENV);
    let split = seen
        .iter()
        .find(|(name, value)| matches!(name.as_str(), "S" | "split-string") && value.is_some());
    let (Start::At(at), Some((_, Some(text)))) = (&start, split) else {
        return from(start, words).into_iter().collect();
    };
    let Some(mut command) = text.as_fixed().and_then(shlex::split) else {
        return vec![Inner::AnyFrom(1), Inner::Unreadable(text.text.clone())];
    };
    command.insert(0, "env".to_owned());
    let mut command: Vec<Word> = command.into_iter().map(Word::fixed).collect();
    command.extend(words.iter().skip(*at).cloned());
    vec![Inner::Command(command)]
}

fn xargs(words: &[Word], feed: &Feed) -> Vec<Inner> {
    let (start, seen) = past(words, &wrappers::XARGS);
    let at = match start {
        Start::At(at) if at < words.len() => at,
        // Without a command it prints its input.
        Start::At(_) | Start::Nothing => return Vec::new(),
        Start::Unsure => return vec![Inner::AnyFrom(1)],
    };
    let placeholder = placeholder(&seen);
    let command = words.iter().skip(at);
    vec![Inner::Command(match placeholder {
        Some(text) => command.map(|word| word.with_placeholder(&text)).collect(),
        None => command.cloned().chain(added(feed, &seen)).collect(),
    })]
}

/// What `xargs` adds to a command: what it is told, or anything.
fn added(feed: &Feed, seen: &Seen) -> Vec<Word> {
    let told = match feed {
        Feed::Text { text, sure: true } if text.len() <= MAX_TOLD => {
            let whole =
                |(name, _): &(String, _)| matches!(name.as_str(), "0" | "d" | "null" | "delimiter");
            match seen.iter().any(whole) {
                true => Some(text.lines().map(str::to_owned).collect()),
                false => shlex::split(text),
            }
        }
        _ => None,
    };
    told.map_or_else(
        || vec![Word::open("", Known::Many)],
        |told| told.into_iter().map(Word::fixed).collect(),
    )
}

/// The text that `xargs` puts its input in place of.
pub(crate) fn xargs_placeholder(words: &[Word]) -> Option<String> {
    placeholder(&past(words, &wrappers::XARGS).1)
}

fn placeholder(seen: &Seen) -> Option<String> {
    seen.iter()
        .rev()
        .find_map(|(name, value)| match name.as_str() {
            "I" | "J" => value.as_ref().map(|word| word.text.clone()),
            "i" | "replace" => Some(
                value
                    .as_ref()
                    .map_or("{}".to_owned(), |word| word.text.clone()),
            ),
            _ => None,
        })
}

fn text_option(words: &[Word], feed: &Feed) -> Vec<Inner> {
    let mut rest = words.iter().skip(1);
    let mut found = Vec::new();
    while let Some(word) = rest.next() {
        if word.known == Known::Many {
            return vec![Inner::AnyFrom(1)];
        }
        let lead = word.lead();
        if matches!(lead, "--command" | "--session-command") {
            found.extend(rest.next().map(script));
        } else if lead.starts_with("--command=") || lead.starts_with("--session-command=") {
            let text = word
                .text
                .split_once('=')
                .map_or("", |(_, text)| text)
                .to_owned();
            found.push(Inner::Script {
                text,
                sure: word.known == Known::Fixed,
            });
        } else if lead.starts_with('-') && !lead.starts_with("--") {
            match word.text.split_once('c') {
                Some((_, "")) => found.extend(rest.next().map(script)),
                Some((_, text)) => found.push(Inner::Script {
                    text: text.to_owned(),
                    sure: word.known == Known::Fixed,
                }),
                None => {}
            }
        } else if lead == "--" {
            // `runuser -u NAME -- COMMAND`
            let at = words.len() - rest.len();
            if at < words.len() {
                found.push(Inner::From(at));
            }
            break;
        }
    }
    if found.is_empty() { fed(feed) } else { found }
}

fn inline(words: &[Word], letters: &str, longs: &[&str], feed: &Feed) -> Vec<Inner> {
    let mut value = false;
    for (at, word) in words.iter().enumerate().skip(1) {
        if std::mem::take(&mut value) {
            continue;
        }
        let code = || {
            words
                .get(at + 1)
                .map_or_else(|| word.text.clone(), |code| code.text.clone())
        };
        let lead = word.lead();
        if let Some(long) = lead.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            if longs.contains(&name) {
                return vec![Inner::Code(code())];
            }
        } else if let Some(cluster) = lead.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            value = matches!(word.as_fixed(), Some("-W" | "-X" | "-I" | "-M"))
                || (cluster == "r" && letters != "rBRE");
            // What follows these letters is their value, not a cluster.
            let own = cluster
                .split(['m', 'W', 'X', 'I', 'M', 'r'])
                .next()
                .unwrap_or("");
            let own = if letters.contains('r') { cluster } else { own };
            if own.contains(|c| letters.contains(c)) {
                return vec![Inner::Code(code())];
            }
            if cluster.contains('m') && letters == "c" {
                return Vec::new();
            }
        } else if word.known == Known::Many && lead.is_empty() {
            return vec![Inner::Code(word.text.clone())];
        } else if word.as_fixed() != Some("-") {
            return code_file(word, feed);
        }
    }
    match feed {
        Feed::Open if words.iter().any(shows) => Vec::new(),
        Feed::Open => vec![Inner::Typed],
        Feed::Nothing => Vec::new(),
        Feed::Text { text, .. } => vec![Inner::Code(text.to_string())],
        Feed::Unknown | Feed::Paths(_) => {
            vec![Inner::Code("a program read from a pipe".to_owned())]
        }
        Feed::Fetched => vec![Inner::Fetched("a program read from a pipe".to_owned())],
    }
}

/// An option with which an interpreter does something else than read what is typed at it.
fn shows(word: &Word) -> bool {
    word.as_fixed().is_some_and(|text| {
        matches!(
            text,
            "-version" | "-V" | "-VV" | "-v" | "-help" | "-h" | "-?"
        ) || text.starts_with("--") && text != "--interactive"
    })
}

fn awk(words: &[Word]) -> Vec<Inner> {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_fixed() {
            Some("-f" | "--file") => return Vec::new(),
            Some("-F" | "-v") => {
                rest.next();
            }
            Some(text) if text.len() > 1 && text.starts_with('-') => {}
            _ => {
                let text = word.text.replace("||", "");
                let runs = text.contains("system") || text.contains('|') || text.contains("@load");
                return if runs {
                    vec![Inner::Code(word.text.clone())]
                } else {
                    Vec::new()
                };
            }
        }
    }
    Vec::new()
}
