//! Shell commands against the rules: a script is parsed by a real grammar and every
//! command that it can run is judged, wherever it stands. What cannot be read is
//! recorded and, if any rule restricts, asked about; it is never allowed.

mod feed;
mod lexical;
mod mask;
mod options;
mod outside;
mod patches;
mod quote;
mod tree;
mod unfold;
mod verdict;
mod word;
mod wrappers;

use std::collections::{HashMap, HashSet, VecDeque};
use std::rc::Rc;

use checkrein_core::input::ToolFacts;
use tree_sitter::Parser;

use crate::own;
use crate::rules::{RuleSet, basename};
use feed::Feed;
pub use patches::{PatchCommand, PatchText, PatchTool, patches, patches_of_words};
use unfold::Inner;
use verdict::Verdict;
use word::{Known, Word};

/// Bytes of a script that is parsed; a longer one is only scanned.
const MAX_SCRIPT: usize = 1 << 20;
/// Bytes of all scripts inside scripts.
const MAX_BYTES: usize = 4 << 20;
/// Scripts and wrappers inside one another.
const MAX_DEPTH: u16 = 24;
/// Commands of one request that are unfolded; the rest is only scanned.
const MAX_COMMANDS: usize = 200_000;
/// Words of a command of unsure shape that are each tried as a command.
const MAX_TRIED: usize = 64;

/// Judges every command that a shell script can run.
///
/// The overall rule is `Allow` only if every command has an allow rule of its own and
/// nothing is unresolved; with a prompt or forbidden rule loaded, anything unresolved
/// makes it at least `Prompt`.
pub fn judge_script(rules: &RuleSet, script: &str) -> ToolFacts {
    let mut judge = Judge::new(rules);
    judge.script(script, Feed::Nothing, 0);
    judge.finish()
}

/// Judges a command that an agent gives as words, without a shell; what it runs in turn
/// (`bash -lc TEXT`, `env`, ...) included.
pub fn judge_argv<S: AsRef<str>>(rules: &RuleSet, argv: &[S]) -> ToolFacts {
    let mut judge = Judge::new(rules);
    let words: Vec<Word> = argv.iter().map(|word| Word::fixed(word.as_ref())).collect();
    judge.push(Command {
        words: words.into(),
        from: 0,
        feed: Feed::Nothing,
        depth: 0,
        sure: true,
    });
    judge.finish()
}

/// Judges a tool call that writes these files: the rules that no config switches off.
pub fn judge_writes(rules: &RuleSet, paths: &[String]) -> ToolFacts {
    let mut verdict = Verdict::new(rules);
    for path in paths {
        verdict.written(path);
    }
    verdict.finish()
}

/// A command to judge.
struct Command {
    words: Rc<[Word]>,
    /// Its first word: wrappers share the rest with what they run.
    from: usize,
    feed: Feed,
    depth: u16,
    /// Whether it is one. If not, it only counts if a rule restricts it.
    sure: bool,
}

struct Judge<'r> {
    verdict: Verdict<'r>,
    parser: Option<Parser>,
    pending: VecDeque<Command>,
    aliases: HashMap<String, String>,
    bytes: usize,
    commands: usize,
    /// Scripts read already, each with what it was fed: a shell that is fed itself would
    /// double with every level.
    read: HashSet<(String, Feed)>,
}

impl<'r> Judge<'r> {
    fn new(rules: &'r RuleSet) -> Self {
        Self {
            verdict: Verdict::new(rules),
            parser: None,
            pending: VecDeque::new(),
            aliases: HashMap::new(),
            bytes: 0,
            commands: 0,
            read: HashSet::new(),
        }
    }

    fn finish(mut self) -> ToolFacts {
        while let Some(command) = self.pending.pop_front() {
            self.command(&command);
        }
        self.verdict.finish()
    }

    fn push(&mut self, command: Command) {
        self.pending.push_back(command);
    }

    fn unreadable(&mut self, piece: &str) {
        self.verdict.unresolved(piece);
        self.verdict.scan(piece);
    }

    fn script(&mut self, text: &str, feed: Feed, depth: u16) {
        // Breadth first: what was read before was read at a lesser depth.
        if depth > 0 && !self.read.insert((text.to_owned(), feed.clone())) {
            return;
        }
        self.bytes = self.bytes.saturating_add(text.len());
        if text.len() > MAX_SCRIPT || self.bytes > MAX_BYTES || depth > MAX_DEPTH {
            self.unreadable(text);
            return;
        }
        let Some(mut parser) = self.parser.take().or_else(bash_parser) else {
            self.unreadable(text);
            return;
        };
        let script = tree::read(&mut parser, text, &feed);
        self.parser = Some(parser);
        if script.broken {
            self.unreadable(text);
        }
        for target in &script.written {
            self.verdict.written(&target.text);
        }
        for path in own::patched(text) {
            self.verdict.written(path);
        }
        for piece in &script.doubtful {
            self.unreadable(piece);
        }
        for found in script.commands {
            let (words, feed) = (found.words.into(), found.feed);
            self.push(Command {
                words,
                from: 0,
                feed,
                depth,
                sure: true,
            });
        }
    }

    fn command(&mut self, command: &Command) {
        let words = command.words.get(command.from..).unwrap_or(&[]);
        let Some(first) = words.first() else { return };
        self.commands += 1;
        if self.commands > MAX_COMMANDS || command.depth > MAX_DEPTH {
            let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
            self.unreadable(&texts.join(" "));
            return;
        }
        let Some(program) = first.as_program() else {
            if command.sure {
                self.verdict.unresolved(&first.text);
                self.verdict.nameless(words);
            }
            // An unquoted expansion may be empty, and the next word the command.
            if first.known == Known::Many && command.sure {
                self.any_from(command, 1);
            }
            return;
        };
        self.verdict.command(words, program, command.sure);
        self.alias(command, words, program);
        for inner in unfold::unfold(basename(program), words, &command.feed) {
            self.inner(command, words, inner);
        }
    }

    fn alias(&mut self, command: &Command, words: &[Word], program: &str) {
        // Removed while in use, as the shell does: `alias ls='ls -l'` is no loop.
        let Some(text) = self.aliases.remove(program) else {
            return;
        };
        if let Some(value) = shlex::split(&text).filter(|value| !value.is_empty()) {
            let value = value.into_iter().map(Word::fixed);
            let words: Vec<Word> = value.chain(words.iter().skip(1).cloned()).collect();
            self.push(Command {
                words: words.into(),
                from: 0,
                feed: command.feed.clone(),
                depth: command.depth + 1,
                sure: command.sure,
            });
        }
        self.aliases.insert(program.to_owned(), text);
    }

    fn inner(&mut self, command: &Command, words: &[Word], inner: Inner) {
        let depth = command.depth + 1;
        match inner {
            Inner::From(at) => self.push(Command {
                words: Rc::clone(&command.words),
                from: command.from + at,
                feed: command.feed.clone(),
                depth,
                sure: command.sure,
            }),
            Inner::Command(words) => self.push(Command {
                words: words.into(),
                from: 0,
                feed: command.feed.clone(),
                depth,
                sure: command.sure,
            }),
            Inner::Script { text, sure } => {
                if !sure {
                    self.verdict.unresolved(&text);
                }
                self.script(&text, command.feed.clone(), depth);
            }
            Inner::AnyFrom(at) => {
                let texts: Vec<&str> = words.iter().map(|word| word.text.as_str()).collect();
                // A guess about a guess adds nothing: its words are being tried already.
                if command.sure {
                    self.verdict.unresolved(&texts.join(" "));
                    self.any_from(command, at);
                }
            }
            Inner::Unreadable(piece) => {
                if command.sure {
                    self.verdict.unresolved(&piece);
                }
            }
            Inner::Alias(name, text) => {
                self.script(&text, Feed::Nothing, depth);
                self.aliases.insert(name, text);
            }
        }
    }

    /// Tries every suffix of the words as a command.
    fn any_from(&mut self, command: &Command, at: usize) {
        for from in (command.from + at..command.words.len()).take(MAX_TRIED) {
            self.push(Command {
                words: Rc::clone(&command.words),
                from,
                feed: command.feed.clone(),
                depth: command.depth + 1,
                sure: false,
            });
        }
        for from in (command.from + at..command.words.len()).skip(MAX_TRIED) {
            let words = command.words.get(from..).unwrap_or(&[]);
            if let Some(program) = words.first().and_then(Word::as_program) {
                self.verdict.command(words, program, false);
            }
        }
    }
}

fn bash_parser() -> Option<Parser> {
    let mut parser = Parser::new();
    parser
        .set_language(&tree_sitter_bash::LANGUAGE.into())
        .ok()?;
    Some(parser)
}

#[cfg(test)]
mod tests;
