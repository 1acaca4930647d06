//! Finds the code that a command runs in turn: the command of a wrapper, the text of a shell, the
//! expansion of an alias.

use super::stdin::StdinSource;
use super::substitution_output;
use super::word::{CommandWord, WordKnowledge};
use super::wrapper_options::{SeenOptions, WrappedCommandPosition, skip_program_options};
use super::wrappers::{self, WrapperKind};
use crate::rule_set::basename;

/// Bytes of a text that `xargs` splits into words.
const MAX_XARGS_TEXT: usize = 4 << 10;

/// Code that a command runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum NestedCode {
    /// Words of another command.
    Command(Vec<CommandWord>),
    /// The arguments of a script: `$1` and so on.
    PositionalArgs(Vec<CommandWord>),
    /// The words of this command from this index on, unchanged.
    WordsFrom(usize),
    /// A text that a shell reads; not `sure` if expansions stand in it.
    Script {
        /// The text.
        text: String,
        /// Whether all of it is known.
        sure: bool,
    },
    /// From this index on, any word may be the command.
    AnyWordFrom(usize),
    /// Code of another language.
    Code(String),
    /// Something that cannot be read.
    Unreadable(String),
    /// Code from the network, which cannot be read.
    Downloaded(String),
    /// Code that is typed while the program runs.
    Interactive,
    /// A name that stands for other words from here on.
    Alias(String, String),
}

/// Returns the code that the command `words`, whose program is `name`, runs.
pub(crate) fn code_run_by_command(
    name: &str,
    words: &[CommandWord],
    feed: &StdinSource,
) -> Vec<NestedCode> {
    let Some(wrapper) = wrappers::wrapper_kind(name) else {
        return Vec::new();
    };
    match wrapper {
        WrapperKind::Runs(options) => {
            let (start, seen) = skip_program_options(words, &options);
            let inner = nested_command_starting_at_word(start, words);
            // `sudo -s` without a command starts a shell, which reads its commands from standard
            // input.
            let shell = matches!(name, "sudo" | "doas")
                && seen
                    .iter()
                    .any(|(name, _)| matches!(name.as_str(), "s" | "i" | "shell" | "login"));
            match inner {
                // `flock FILE -c TEXT`: the option stands behind the operand.
                Some(NestedCode::WordsFrom(at))
                    if name == "flock" && word_is(words.get(at), "-c") =>
                {
                    words
                        .get(at + 1)
                        .map(nested_script_from_word)
                        .into_iter()
                        .collect()
                }
                Some(inner) => vec![inner],
                None if shell => stdin_commands(feed),
                None => Vec::new(),
            }
        }
        WrapperKind::RunsText(options) => match skip_program_options(words, &options).0 {
            WrappedCommandPosition::At(at) => {
                nested_code_from_joined_words(words.get(at..).unwrap_or(&[]), name, feed)
            }
            WrappedCommandPosition::Nothing => Vec::new(),
            WrappedCommandPosition::Unsure => vec![NestedCode::AnyWordFrom(1)],
        },
        WrapperKind::Shell => code_run_by_shell_program(words, feed),
        WrapperKind::Eval => {
            let skip = 1 + usize::from(word_is(words.get(1), "--"));
            nested_code_from_joined_words(
                words.get(skip..).unwrap_or(&[]),
                name,
                &StdinSource::PlainFile,
            )
        }
        WrapperKind::Trap => trap_code(words),
        WrapperKind::Source => words
            .get(1)
            .map_or_else(Vec::new, |file| known_script_file_code(file, feed)),
        WrapperKind::Alias => words
            .iter()
            .skip(1)
            .filter_map(code_from_alias_definition)
            .collect(),
        WrapperKind::Find => commands_of_find_exec_options(words, name),
        WrapperKind::Env => commands_run_by_env(words),
        WrapperKind::Xargs => xargs_command(words, feed),
        WrapperKind::TextOption => command_option_code(words, feed),
        // `ssh` joins the words after the host into a text for the shell there. Without any, that
        // shell reads standard input.
        WrapperKind::Ssh => match skip_program_options(words, &wrappers::SSH).0 {
            WrappedCommandPosition::At(at) => match words.get(at..) {
                Some([dashes, rest @ ..]) if word_is(Some(dashes), "--") && !rest.is_empty() => {
                    nested_code_from_joined_words(rest, name, feed)
                }
                Some(rest) if !rest.is_empty() => nested_code_from_joined_words(rest, name, feed),
                _ => stdin_commands(feed),
            },
            WrappedCommandPosition::Nothing => Vec::new(),
            WrappedCommandPosition::Unsure => vec![NestedCode::AnyWordFrom(1)],
        },
        WrapperKind::Inline(letters, longs) => interpreter_code(words, letters, longs, feed),
        WrapperKind::Awk => awk_code_that_runs_commands(words),
        WrapperKind::Queue => stdin_commands(feed),
        WrapperKind::Checkrein => commands_wrapped_by_checkrein(words),
    }
}

/// Returns the folder in which a wrapper starts its command, if an option names one:
/// `env -C FOLDER COMMAND`.
pub(crate) fn wrapper_command_start_folder(
    name: &str,
    words: &[CommandWord],
) -> Option<CommandWord> {
    let (seen, letter, long) = match (name, wrappers::wrapper_kind(name)?) {
        (_, WrapperKind::Env) => (skip_program_options(words, &wrappers::ENV).1, "C", "chdir"),
        ("sudo", WrapperKind::Runs(options)) => {
            (skip_program_options(words, &options).1, "D", "chdir")
        }
        ("systemd-run", WrapperKind::Runs(options)) => (
            skip_program_options(words, &options).1,
            "",
            "working-directory",
        ),
        _ => return None,
    };
    // If the option is repeated, the last one counts.
    let told = seen.into_iter().rev();
    let mut told = told.filter(|(name, _)| name == letter || name == long);
    told.next()?.1
}

/// Returns whether the code that these words run is run on another machine.
pub(crate) fn runs_on_other_machine(words: &[CommandWord]) -> bool {
    let program = words.first().and_then(CommandWord::program_path_if_known);
    if program.map(basename) != Some("ssh") {
        return false;
    }
    let WrappedCommandPosition::At(at) = skip_program_options(words, &wrappers::SSH).0 else {
        return false;
    };
    // The host is the operand before the command. One that is not known counts as another machine.
    let host = at.checked_sub(1).and_then(|at| words.get(at));
    let host = host.and_then(CommandWord::as_literal).map(|host| {
        let host = host.trim_start_matches("ssh://");
        host.rsplit('@').next().unwrap_or(host).to_owned()
    });
    let here = ["localhost", "127.", "::1", "[::1]", "0.0.0.0"];
    host.is_none_or(|host| !here.iter().any(|name| host.starts_with(name)))
}

/// Returns the command that `checkrein run` and `checkrein mcp-proxy` start: the words after `--`,
/// or an agent with these words. The command that `checkrein policy check` is asked about does not
/// run.
fn commands_wrapped_by_checkrein(words: &[CommandWord]) -> Vec<NestedCode> {
    let end = words.iter().position(|word| word_is(Some(word), "--"));
    let before = words.get(1..end.unwrap_or(words.len())).unwrap_or(&[]);
    let named = |name: &str| before.iter().any(|word| word_is(Some(word), name));
    // An unquoted expansion before `--` could be any subcommand.
    if before
        .iter()
        .any(|word| word.knowledge == WordKnowledge::Unbounded)
    {
        return vec![NestedCode::AnyWordFrom(1)];
    }
    if named("policy") || !(named("run") || named("mcp-proxy")) {
        return Vec::new();
    }
    let Some(from) = end.map(|end| end + 1) else {
        return Vec::new();
    };
    let agent = before.iter().enumerate().find_map(|(at, word)| {
        let attached = word
            .suffix_after_char('=')
            .filter(|_| word.literal_prefix_of_word().starts_with("--agent="));
        attached.or_else(|| {
            before
                .get(at + 1)
                .filter(|_| word_is(Some(word), "--agent"))
                .cloned()
        })
    });
    match agent {
        None if from < words.len() => vec![NestedCode::WordsFrom(from)],
        None => Vec::new(),
        Some(agent) => {
            // The agent's name is not always the name of its program.
            let program = match agent.as_literal() {
                Some("claude-code") => CommandWord::new_literal_word("claude"),
                _ => agent,
            };
            let rest = words.get(from..).unwrap_or(&[]).iter().cloned();
            vec![NestedCode::Command(
                std::iter::once(program).chain(rest).collect(),
            )]
        }
    }
}

fn word_is(word: Option<&CommandWord>, text: &str) -> bool {
    word.and_then(CommandWord::as_literal) == Some(text)
}

fn nested_command_starting_at_word(
    start: WrappedCommandPosition,
    words: &[CommandWord],
) -> Option<NestedCode> {
    match start {
        WrappedCommandPosition::At(at) => (at < words.len()).then_some(NestedCode::WordsFrom(at)),
        WrappedCommandPosition::Nothing => None,
        WrappedCommandPosition::Unsure => Some(NestedCode::AnyWordFrom(1)),
    }
}

fn nested_script_from_word(word: &CommandWord) -> NestedCode {
    NestedCode::Script {
        text: word.text.clone(),
        sure: word.knowledge == WordKnowledge::Literal,
    }
}

/// Returns the commands that a program reads from standard input.
fn stdin_commands(feed: &StdinSource) -> Vec<NestedCode> {
    match feed {
        StdinSource::Interactive => vec![NestedCode::Interactive],
        StdinSource::PlainFile => Vec::new(),
        StdinSource::Text { text, sure } => {
            vec![NestedCode::Script {
                text: text.to_string(),
                sure: *sure,
            }]
        }
        StdinSource::CommandOutput | StdinSource::Paths(_) => {
            vec![NestedCode::Unreadable(
                "commands read from a pipe".to_owned(),
            )]
        }
        StdinSource::Downloaded => vec![NestedCode::Downloaded(
            "commands read from a pipe".to_owned(),
        )],
    }
}

fn nested_code_from_joined_words(
    words: &[CommandWord],
    name: &str,
    feed: &StdinSource,
) -> Vec<NestedCode> {
    // `parallel` without a command takes each line of its input as a command.
    if words.is_empty() {
        return if matches!(name, "parallel") {
            stdin_commands(feed)
        } else {
            Vec::new()
        };
    }
    let text = words
        .iter()
        .map(|word| word.text.as_str())
        .collect::<Vec<_>>()
        .join(" ");
    vec![NestedCode::Script {
        text,
        sure: words
            .iter()
            .all(|word| word.knowledge == WordKnowledge::Literal),
    }]
}

fn code_run_by_shell_program(words: &[CommandWord], feed: &StdinSource) -> Vec<NestedCode> {
    // The options decide whether the first operand is code (`-c`), a file, or an argument of
    // commands on standard input (`-s`).
    let (mut text, mut stdin, mut at) = (false, false, 1);
    while let Some(word) = words.get(at) {
        let lead = word.literal_prefix_of_word();
        // `<(...)` is the name of a file that the shell makes, so it is an operand.
        if word.text.starts_with("<(") {
            break;
        }
        // An unquoted expansion could hold `-c`, and then any later word could be code.
        if word.knowledge == WordKnowledge::Unbounded && lead.is_empty() {
            return vec![
                NestedCode::AnyWordFrom(1),
                NestedCode::Unreadable(word.text.clone()),
            ];
        }
        match word.as_literal() {
            Some("--" | "-") => {
                at += 1;
                break;
            }
            Some("--rcfile" | "--init-file") => {
                at += 2;
                continue;
            }
            // After another option this word may be that option's value.
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
        if word.knowledge != WordKnowledge::Literal {
            return vec![
                NestedCode::AnyWordFrom(1),
                NestedCode::Unreadable(word.text.clone()),
            ];
        }
        // Each `o` or `O` takes a word as its value: `bash -eo pipefail`.
        at += 1 + cluster.matches(['o', 'O']).count();
    }
    match words.get(at) {
        Some(word) if text => vec![
            NestedCode::PositionalArgs(words.get(at + 1..).unwrap_or(&[]).to_vec()),
            nested_script_from_word(word),
        ],
        Some(file) if !stdin => known_script_file_code(file, feed),
        None if text => Vec::new(),
        _ => stdin_commands(feed),
    }
}

/// Returns what is known of a file of commands: nothing, unless this script itself makes its
/// content.
fn known_script_file_code(file: &CommandWord, feed: &StdinSource) -> Vec<NestedCode> {
    match file.as_literal() {
        Some("/dev/stdin" | "/dev/fd/0" | "/proc/self/fd/0") => stdin_commands(feed),
        None if file.text.starts_with("<(") || file.text.starts_with("=(") => {
            let mut found = vec![NestedCode::Unreadable(file.text.clone())];
            if let Some(text @ StdinSource::Text { .. }) =
                substitution_output::shell_substitution_output(&file.text)
            {
                found.extend(stdin_commands(&text));
            }
            found
        }
        _ => Vec::new(),
    }
}

fn trap_code(words: &[CommandWord]) -> Vec<NestedCode> {
    let mut rest = words.iter().skip(1).peekable();
    if rest
        .peek()
        .is_some_and(|word| word.as_literal() == Some("--"))
    {
        rest.next();
    }
    match rest.next() {
        // An empty text ignores the signal, `-` resets it, and the options only print.
        Some(word) if matches!(word.as_literal(), Some("" | "-" | "-l" | "-p")) => Vec::new(),
        Some(word) => vec![nested_script_from_word(word)],
        None => Vec::new(),
    }
}

fn code_from_alias_definition(word: &CommandWord) -> Option<NestedCode> {
    if word.knowledge != WordKnowledge::Literal {
        return Some(NestedCode::Unreadable(word.text.clone()));
    }
    let (name, value) = word.text.split_once('=')?;
    Some(NestedCode::Alias(name.to_owned(), value.to_owned()))
}

fn commands_of_find_exec_options(words: &[CommandWord], name: &str) -> Vec<NestedCode> {
    let mut found = Vec::new();
    let mut at = 1;
    while let Some(word) = words.get(at) {
        at += 1;
        if !matches!(
            word.as_literal(),
            Some("-exec" | "-execdir" | "-ok" | "-okdir" | "-x" | "-X" | "--exec" | "--exec-batch")
        ) {
            continue;
        }
        let rest = words.get(at..).unwrap_or(&[]);
        let ends = |word: &CommandWord| matches!(word.as_literal(), Some(";" | "+"));
        // Without `;` or `+` all remaining words are taken, so a command is judged rather than
        // missed.
        let length = rest.iter().position(ends).unwrap_or(rest.len());
        let own = rest.get(..length).unwrap_or(&[]);
        let command = own
            .iter()
            .map(|word| word.replace_placeholder_by_unknown("{}"));
        // `fd` appends the names that it finds if no placeholder stands for them.
        let adds =
            matches!(name, "fd" | "fdfind") && !own.iter().any(|word| word.text.contains('{'));
        let added =
            adds.then(|| CommandWord::new_literal_word("{}").replace_placeholder_by_unknown("{}"));
        found.push(NestedCode::Command(command.chain(added).collect()));
        at += length;
    }
    found
}

fn commands_run_by_env(words: &[CommandWord]) -> Vec<NestedCode> {
    let (start, seen) = skip_program_options(words, &wrappers::ENV);
    let split = seen
        .iter()
        .find(|(name, value)| matches!(name.as_str(), "S" | "split-string") && value.is_some());
    let (WrappedCommandPosition::At(at), Some((_, Some(text)))) = (&start, split) else {
        return nested_command_starting_at_word(start, words)
            .into_iter()
            .collect();
    };
    let Some(mut command) = text.as_literal().and_then(shlex::split) else {
        return vec![
            NestedCode::AnyWordFrom(1),
            NestedCode::Unreadable(text.text.clone()),
        ];
    };
    // The text may hold options and assignments of `env`, so it is read as another call of `env`.
    command.insert(0, "env".to_owned());
    let mut command: Vec<CommandWord> = command
        .into_iter()
        .map(CommandWord::new_literal_word)
        .collect();
    command.extend(words.iter().skip(*at).cloned());
    vec![NestedCode::Command(command)]
}

fn xargs_command(words: &[CommandWord], feed: &StdinSource) -> Vec<NestedCode> {
    let (start, seen) = skip_program_options(words, &wrappers::XARGS);
    let at = match start {
        WrappedCommandPosition::At(at) if at < words.len() => at,
        // Without a command it prints its input.
        WrappedCommandPosition::At(_) | WrappedCommandPosition::Nothing => return Vec::new(),
        WrappedCommandPosition::Unsure => return vec![NestedCode::AnyWordFrom(1)],
    };
    let placeholder = placeholder_from_xargs_options(&seen);
    let command = words.iter().skip(at);
    vec![NestedCode::Command(match placeholder {
        Some(text) => command
            .map(|word| word.replace_placeholder_by_unknown(&text))
            .collect(),
        None => command
            .cloned()
            .chain(xargs_added_words(feed, &seen))
            .collect(),
    })]
}

/// Returns the words that `xargs` adds to a command: those of a known input, or one that may be
/// anything.
fn xargs_added_words(feed: &StdinSource, seen: &SeenOptions) -> Vec<CommandWord> {
    let told = match feed {
        StdinSource::Text { text, sure: true } if text.len() <= MAX_XARGS_TEXT => {
            // With `-0` or `-d`, quotes in the input are ordinary characters.
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
        || {
            vec![CommandWord::word_from_unresolved_text(
                "",
                WordKnowledge::Unbounded,
            )]
        },
        |told| {
            told.into_iter()
                .map(CommandWord::new_literal_word)
                .collect()
        },
    )
}

/// Returns the text that `xargs` replaces by its input.
pub(crate) fn xargs_placeholder(words: &[CommandWord]) -> Option<String> {
    placeholder_from_xargs_options(&skip_program_options(words, &wrappers::XARGS).1)
}

fn placeholder_from_xargs_options(seen: &SeenOptions) -> Option<String> {
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

fn command_option_code(words: &[CommandWord], feed: &StdinSource) -> Vec<NestedCode> {
    let mut rest = words.iter().skip(1);
    let mut found = Vec::new();
    while let Some(word) = rest.next() {
        if word.knowledge == WordKnowledge::Unbounded {
            return vec![NestedCode::AnyWordFrom(1)];
        }
        let lead = word.literal_prefix_of_word();
        if matches!(lead, "--command" | "--session-command") {
            found.extend(rest.next().map(nested_script_from_word));
        } else if lead.starts_with("--command=") || lead.starts_with("--session-command=") {
            let text = word
                .text
                .split_once('=')
                .map_or("", |(_, text)| text)
                .to_owned();
            found.push(NestedCode::Script {
                text,
                sure: word.knowledge == WordKnowledge::Literal,
            });
        } else if lead.starts_with('-') && !lead.starts_with("--") {
            // The text stands behind the letter or in the next word: `su -lc TEXT`.
            match word.text.split_once('c') {
                Some((_, "")) => found.extend(rest.next().map(nested_script_from_word)),
                Some((_, text)) => found.push(NestedCode::Script {
                    text: text.to_owned(),
                    sure: word.knowledge == WordKnowledge::Literal,
                }),
                None => {}
            }
        } else if lead == "--" {
            // `runuser -u NAME -- COMMAND`
            let at = words.len() - rest.len();
            if at < words.len() {
                found.push(NestedCode::WordsFrom(at));
            }
            break;
        }
    }
    // Without a command these programs start a shell, which reads standard input.
    if found.is_empty() {
        stdin_commands(feed)
    } else {
        found
    }
}

fn interpreter_code(
    words: &[CommandWord],
    letters: &str,
    longs: &[&str],
    feed: &StdinSource,
) -> Vec<NestedCode> {
    // Whether this word is the value of the option before it.
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
        let lead = word.literal_prefix_of_word();
        if let Some(long) = lead.strip_prefix("--") {
            let name = long.split('=').next().unwrap_or(long);
            if longs.contains(&name) {
                return vec![NestedCode::Code(code())];
            }
        } else if let Some(cluster) = lead.strip_prefix('-').filter(|cluster| !cluster.is_empty()) {
            value = matches!(word.as_literal(), Some("-W" | "-X" | "-I" | "-M"))
                || (cluster == "r" && letters != "rBRE");
            // What follows these letters is their value, not a cluster.
            let own = cluster
                .split(['m', 'W', 'X', 'I', 'M', 'r'])
                .next()
                .unwrap_or("");
            let own = if letters.contains('r') { cluster } else { own };
            if own.contains(|c| letters.contains(c)) {
                return vec![NestedCode::Code(code())];
            }
            // With `-m`, Python runs a module that is not part of the command.
            if cluster.contains('m') && letters == "c" {
                return Vec::new();
            }
        } else if word.knowledge == WordKnowledge::Unbounded && lead.is_empty() {
            return vec![NestedCode::Code(word.text.clone())];
        } else if word.as_literal() != Some("-") {
            return known_script_file_code(word, feed);
        }
    }
    // Neither code nor a file is named, so the program comes from standard input.
    match feed {
        StdinSource::Interactive if words.iter().any(option_prevents_interactive_mode) => {
            Vec::new()
        }
        StdinSource::Interactive => vec![NestedCode::Interactive],
        StdinSource::PlainFile => Vec::new(),
        StdinSource::Text { text, .. } => vec![NestedCode::Code(text.to_string())],
        StdinSource::CommandOutput | StdinSource::Paths(_) => {
            vec![NestedCode::Code("a program read from a pipe".to_owned())]
        }
        StdinSource::Downloaded => vec![NestedCode::Downloaded(
            "a program read from a pipe".to_owned(),
        )],
    }
}

/// Returns whether with this option an interpreter does something other than read what is typed.
fn option_prevents_interactive_mode(word: &CommandWord) -> bool {
    word.as_literal().is_some_and(|text| {
        matches!(
            text,
            "-version" | "-V" | "-VV" | "-v" | "-help" | "-h" | "-?"
        ) || text.starts_with("--") && text != "--interactive"
    })
}

fn awk_code_that_runs_commands(words: &[CommandWord]) -> Vec<NestedCode> {
    let mut rest = words.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_literal() {
            // A program in a file is not part of the command.
            Some("-f" | "--file") => return Vec::new(),
            Some("-F" | "-v") => {
                rest.next();
            }
            Some(text) if text.len() > 1 && text.starts_with('-') => {}
            _ => {
                // `||` is an operator of awk, not a pipe to a command.
                let text = word.text.replace("||", "");
                let runs = text.contains("system") || text.contains('|') || text.contains("@load");
                return if runs {
                    vec![NestedCode::Code(word.text.clone())]
                } else {
                    Vec::new()
                };
            }
        }
    }
    Vec::new()
}
