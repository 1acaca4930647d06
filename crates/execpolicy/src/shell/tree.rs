//! From the syntax tree of a script to its commands: every node is visited, so a
//! command is found wherever it stands. Iterative, since a script may nest as deep as
//! it likes. Where grammar and shell could disagree, the piece is reported as doubtful.

mod redirects;
mod variables;

use std::collections::HashMap;

use tree_sitter::Node;

use super::dirs::{self, Dirs};
use super::feed::{Feed, printed};
use super::fetched;
use super::mask;
use super::parsed::ParsedScripts;
use super::quote;
use super::sums;
use super::word::{self, Word};

/// Commands whose doing, or whose output, is known to be what their names say.
const BELIEVED: &[&str] = &[
    "cd", "pushd", "popd", "pwd", "date", "nproc", "whoami", "hostname", "uname", "basename",
    "dirname", "mktemp", "seq", "id", "expr", "find", "fd", "ls", "git", "grep", "rg", "echo",
    "printf", "cat", "read", "xargs", "wc", "test", "[", "exit", "return", "set", "unset",
    "export", "eval", "exec", "command", "builtin", "source",
];

/// Brackets inside one another; the parser takes memory for each.
const MAX_DEPTH: usize = 2_000;
/// Nodes of a statement in which one that fetches is looked for.
const MAX_LOOKED_AT: usize = 256;
/// Heredocs of a script; each is looked at with those around it.
const MAX_HEREDOCS: usize = 512;
/// Bytes that the grammar may look at for patterns: behind each `==` it can go to the end.
const MAX_PATTERN_BYTES: usize = 32 << 20;

/// How deep brackets can stand in one another.
fn depth_of(text: &str) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    for byte in text.bytes() {
        match byte {
            b'(' => depth += 1,
            b')' => depth = depth.saturating_sub(1),
            _ => {}
        }
        deepest = deepest.max(depth);
    }
    deepest
}

/// How many operators there are behind which a pattern can stand.
fn patterns_of(text: &str) -> usize {
    text.matches("==").count() + text.matches("=~").count()
}

/// A command as the script spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Found {
    /// Its words; never empty.
    pub(crate) words: Vec<Word>,
    /// Its standard input.
    pub(crate) feed: Feed,
    /// The folders it can run in.
    pub(crate) dirs: Dirs,
    /// Whether it runs when something else calls it.
    called: bool,
}

/// A file that a redirect names.
#[derive(Debug, Clone)]
pub(crate) struct Redirected {
    /// Its path.
    pub(crate) path: Word,
    /// Whether it is written, not read.
    pub(crate) written: bool,
    /// Whether it goes behind what is there.
    pub(crate) appended: bool,
    /// Whether what is written comes from the network.
    pub(crate) fetched: bool,
    /// The folders from which it is named.
    pub(crate) dirs: Dirs,
}

/// What a script holds.
#[derive(Debug, Default)]
pub(crate) struct Script {
    /// Its commands, in the order of the text.
    pub(crate) commands: Vec<Found>,
    /// Files that its redirects write or read.
    pub(crate) redirected: Vec<Redirected>,
    /// What variables are set to; `None` if only the run knows.
    pub(crate) assigned: Vec<(String, Option<Word>)>,
    /// Names of its functions.
    pub(crate) functions: Vec<String>,
    /// Pieces that the grammar and the shell may read differently.
    pub(crate) doubtful: Vec<String>,
    /// Texts that would run if something read them as a sum.
    pub(crate) traps: Vec<String>,
    /// Whether something reads sums.
    pub(crate) sums: bool,
    /// Whether the grammar could not read all of it.
    pub(crate) broken: bool,
    /// Whether something is tried where something else fails: `a || b`, but for what only says
    /// so or ends.
    pub(crate) tried: bool,
    /// The folders that it can end in.
    pub(crate) ends_in: Option<Dirs>,
}

impl Script {
    /// A script of one command, read without the grammar.
    pub(super) fn of_words(words: Vec<Word>, written: Vec<Word>, feed: Feed, dirs: &Dirs) -> Self {
        let redirected = written.into_iter().map(|path| Redirected {
            path,
            written: true,
            appended: false,
            fetched: false,
            dirs: dirs.clone(),
        });
        let command = (!words.is_empty()).then(|| Found {
            words,
            feed,
            dirs: dirs.clone(),
            called: false,
        });
        Self {
            commands: command.into_iter().collect(),
            redirected: redirected.collect(),
            ..Self::default()
        }
    }
}

/// Reads a script whose commands inherit `feed` and start in `dirs`.
pub(crate) fn read(scripts: &ParsedScripts, text: &str, feed: &Feed, dirs: &Dirs) -> Script {
    // No program can be given a NUL, so no shell can be meant.
    if text.contains('\0')
        || depth_of(text) > MAX_DEPTH
        || text.matches("<<").count() > MAX_HEREDOCS
        || patterns_of(text).saturating_mul(text.len()) > MAX_PATTERN_BYTES
    {
        return Script {
            broken: true,
            ..Script::default()
        };
    }
    let Some(tree) = scripts.tree(text) else {
        return Script {
            broken: true,
            ..Script::default()
        };
    };
    let root = tree.root_node();
    let mut walk = Walk {
        text,
        script: Script {
            broken: root.has_error(),
            ..Script::default()
        },
        attached: HashMap::new(),
        pending: vec![Item::Node(root, feed.clone())],
        now: dirs.clone(),
        all: dirs.clone(),
        chained: 0,
        called: 0,
        ends_on_error: false,
        fed_anew: false,
        backquoted: false,
    };
    while let Some(item) = walk.pending.pop() {
        match item {
            Item::Node(node, feed) => walk.visit(node, feed),
            Item::Leave(leave) => walk.leave(leave),
        }
    }
    // Between backquotes, a backslash before one begins another substitution.
    if walk.backquoted && (text.contains("\\`") || text.contains("\\$(")) {
        walk.script.doubtful.push(text.to_owned());
    }
    let inherits = |found: &&mut Found| matches!(found.feed, Feed::Open | Feed::Nothing);
    if walk.fed_anew {
        for found in walk.script.commands.iter_mut().filter(inherits) {
            found.feed = Feed::Unknown;
        }
    }
    // A function runs wherever it is called.
    for found in walk.script.commands.iter_mut().filter(|found| found.called) {
        found.dirs = walk.all.clone();
    }
    walk.script.ends_in = Some(walk.now);
    walk.script
}

/// What is still to be done; a stack.
enum Item<'t> {
    /// A node to visit, with the standard input it inherits.
    Node(Node<'t>, Feed),
    /// Something that `cd` does not reach beyond has been visited.
    Leave(Leave),
}

/// The state before it was visited.
struct Leave {
    before: Dirs,
    chained: usize,
    how: How,
}

enum How {
    /// What it did is undone: a subshell.
    Undone,
    /// It may not have run.
    Maybe,
    /// What follows in the same chain runs only if it was done.
    Chain,
    /// Its right side ran only if its left side was done.
    Sure,
    /// As `Maybe`, for the body of a function.
    Function,
}

/// What redirects around a command add to it.
#[derive(Default)]
struct Attached<'t> {
    /// Words behind a redirect's target belong to the command: `env > out rm x`.
    words: Vec<Node<'t>>,
    /// Its standard input.
    feed: Option<Feed>,
    /// A last word `-`, which the grammar drops before a heredoc.
    dash: bool,
}

struct Walk<'t, 's> {
    text: &'s str,
    script: Script,
    attached: HashMap<usize, Attached<'t>>,
    pending: Vec<Item<'t>>,
    /// The folders that the next command can run in.
    now: Dirs,
    /// Those of all commands so far.
    all: Dirs,
    /// How many `&&` the next command stands in.
    chained: usize,
    /// How many functions it stands in.
    called: usize,
    /// `set -e`.
    ends_on_error: bool,
    /// Standard input is another from somewhere on.
    fed_anew: bool,
    /// A substitution is written with backquotes.
    backquoted: bool,
}

impl<'t, 's> Walk<'t, 's> {
    fn source(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn doubt(&mut self, node: Node<'_>) {
        let piece = self.source(node).to_owned();
        self.script.doubtful.push(piece);
    }

    fn visit(&mut self, node: Node<'t>, feed: Feed) {
        let attached = self.attached.remove(&node.id()).unwrap_or_default();
        let feed = attached.feed.unwrap_or(feed);
        self.enter(node);
        self.script.sums |= sums::reads(node.kind(), self.source(node));
        self.backquoted |=
            node.kind() == "command_substitution" && self.source(node).starts_with('`');
        match node.kind() {
            "command" => {
                // The grammar took a keyword for a name, and what follows may be cut wrongly.
                let name = node.child_by_field_name("name");
                self.script.broken |= name.is_some_and(|name| mask::is_keyword(self.source(name)));
                self.script.broken |= self.runs_on(node);
                let (words, own) = self.command_parts(node, attached.words);
                let feed = own.unwrap_or(feed);
                self.found(words, &feed);
                if let Some(last) = self.script.commands.last_mut().filter(|_| attached.dash) {
                    last.words.push(Word::fixed("-"));
                }
                self.descend(node, &feed);
            }
            "declaration_command" | "unset_command" => {
                let (words, _) = self.command_parts(node, attached.words);
                self.found(words, &feed);
                self.descend(node, &feed);
            }
            "test_command" => {
                let name = if self.source(node).starts_with("[[") {
                    "[["
                } else {
                    "["
                };
                let text = self.source(node);
                // Without a blank behind it, it is a word.
                let behind = text.strip_prefix(name).unwrap_or("");
                if text.starts_with('[') && !behind.starts_with(|c: char| c.is_whitespace()) {
                    self.doubt(node);
                }
                if sums::is_trap(text) {
                    self.script.traps.push(text.to_owned());
                }
                self.script.commands.push(Found {
                    words: vec![Word::fixed(name)],
                    feed: Feed::Nothing,
                    dirs: self.now.clone(),
                    called: false,
                });
                self.descend(node, &feed);
            }
            "redirected_statement" => self.redirected(node, feed),
            "file_redirect" => {
                let operator = self
                    .source(node)
                    .trim_start_matches(|c: char| c.is_ascii_digit());
                let target = node.child_by_field_name("destination");
                self.refeeds(node);
                let written = !operator.starts_with('<') || operator.starts_with("<>");
                let duplicates = operator.starts_with("<&");
                // The shell wants the target on this line.
                let line =
                    target.and_then(|target| self.text.get(node.start_byte()..target.start_byte()));
                if line.is_some_and(|line| line.replace("\\\n", "").contains('\n')) {
                    self.doubt(node);
                }
                if !duplicates
                    && let Some(path) = target.and_then(|node| word::read(node, self.text))
                {
                    let dirs = self.now.clone();
                    let fetched = written && node.parent().is_some_and(|node| self.fetches(node));
                    let redirected = Redirected {
                        path,
                        written,
                        appended: operator.contains(">>"),
                        fetched,
                        dirs,
                    };
                    self.script.redirected.push(redirected);
                }
                self.descend(node, &feed);
            }
            "list" => {
                self.script.tried |= self.is_tried(node);
                self.descend(node, &feed);
            }
            "pipeline" => self.pipeline(node, feed),
            "heredoc_redirect" => {
                self.refeeds(node);
                self.descend(node, &feed);
            }
            "herestring_redirect" => {
                self.refeeds(node);
                let text = self.source(node);
                if sums::is_trap(text) {
                    self.script.traps.push(text.to_owned());
                }
                self.descend(node, &feed);
            }
            "process_substitution" => {
                let writes = self.source(node).starts_with(">(");
                self.descend(node, if writes { &Feed::Unknown } else { &feed });
            }
            // Who calls it may feed it.
            "function_definition" => {
                let name = node.child_by_field_name("name");
                let name = name.map(|name| self.source(name).to_owned());
                // What it answers is believed elsewhere.
                if name.as_deref().is_some_and(|name| BELIEVED.contains(&name)) {
                    self.doubt(node);
                }
                self.script.functions.extend(name);
                self.descend(node, &Feed::Unknown);
            }
            "variable_assignment" => {
                self.assigned(node);
                self.descend(node, &feed);
            }
            "for_statement" => {
                self.looped(node);
                self.descend(node, &feed);
            }
            "comment" => self.comment(node),
            "ansi_c_string" => {
                let inner = self.source(node).get(2..).unwrap_or("");
                if quote::ansi_c(inner).1 != inner.len() {
                    self.doubt(node);
                }
            }
            // `${v@P}` expands the value once more.
            "expansion" if self.source(node).contains("@P") => {
                self.doubt(node);
                self.descend(node, &feed);
            }
            "regex" | "extglob_pattern" | "word" => {
                if quote::hides_substitution(self.source(node)) {
                    self.doubt(node);
                }
                self.descend(node, &feed);
            }
            _ => self.descend(node, &feed),
        }
    }

    /// Whether the grammar takes the end of a command, and what follows, for the pattern that it
    /// wants behind `==`: `echo ==; ls`.
    fn runs_on(&self, command: Node<'t>) -> bool {
        let mut cursor = command.walk();
        let mut children = command.children(&mut cursor);
        children.any(|child| {
            let behind = self.text.get(child.end_byte()..).unwrap_or("");
            matches!(child.kind(), "==" | "=~")
                && behind
                    .trim_start_matches([' ', '\t'])
                    .starts_with([';', '&', '|', ')', '\n'])
        })
    }

    fn descend(&mut self, node: Node<'t>, feed: &Feed) {
        let from = self.pending.len();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            // Words without parts hold no command; they are most of a script.
            if child.child_count() > 0 || worth_a_look(child.kind()) {
                self.pending.push(Item::Node(child, feed.clone()));
            }
        }
        if let Some(added) = self.pending.get_mut(from..) {
            added.reverse();
        }
    }

    /// The words of a command, in the order of the text, and the standard input its
    /// own redirects give it.
    fn command_parts(&self, node: Node<'t>, extra: Vec<Node<'t>>) -> (Vec<Node<'t>>, Option<Feed>) {
        let mut words = extra;
        let mut feed = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_redirect" => {
                    feed = self.file_feed(child).or(feed);
                    words.extend(behind_target(child));
                }
                "herestring_redirect" => feed = self.herestring(child).or(feed),
                // Assignments before a command are not words of it; in `export A=b` they are.
                "variable_assignment" if node.kind() == "command" => {}
                "subshell" | "comment" => {}
                _ => words.push(child),
            }
        }
        words.sort_by_key(Node::start_byte);
        (words, feed)
    }

    fn found(&mut self, nodes: Vec<Node<'t>>, feed: &Feed) {
        let mut words: Vec<Word> = Vec::with_capacity(nodes.len());
        let mut end = None;
        for node in nodes {
            let word = self.word(node);
            let gap = end.and_then(|end| self.text.get(end..node.start_byte()));
            // The shell takes a line continuation out before it looks for words; the
            // grammar ends a word there.
            let gap = gap.map(|gap| gap.replace("\\\n", ""));
            let continued = gap.as_deref() == Some("");
            // Behind a comment the grammar can miss the end of the line.
            self.script.broken |= gap.is_some_and(|gap| gap.contains('\n'));
            match words.last_mut().filter(|_| continued) {
                Some(last) => last.append(&word),
                None => words.push(word),
            }
            end = Some(node.end_byte());
        }
        if words.is_empty() {
            return;
        }
        self.script.sums |= words
            .first()
            .and_then(Word::as_fixed)
            .is_some_and(|name| sums::reads("command", name));
        let fixed = words.iter().filter_map(Word::as_fixed);
        let traps = fixed.filter(|text| sums::is_trap(text));
        self.script.traps.extend(traps.map(str::to_owned));
        self.changed(&words, feed);
        let dirs = self.now.clone();
        if let Some(next) = dirs::moved(&words, &self.now, &self.all) {
            self.all = dirs::either(&self.all, &next);
            let sure = self.chained > 0 || self.ends_on_error;
            self.now = match sure {
                true => next,
                false => dirs::either(&self.now, &next),
            };
        }
        self.script.commands.push(Found {
            words,
            feed: feed.clone(),
            dirs,
            called: self.called > 0,
        });
    }

    /// Notes what holds until this node has been visited.
    fn enter(&mut self, node: Node<'t>) {
        let how = match node.kind() {
            "subshell" | "command_substitution" | "process_substitution" => How::Undone,
            "if_statement"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "elif_clause"
            | "else_clause"
            | "case_item" => How::Maybe,
            "function_definition" => How::Function,
            "list" => match self.ends_script(node) {
                true => How::Sure,
                false => How::Chain,
            },
            _ => return,
        };
        self.pending.push(Item::Leave(Leave {
            before: self.now.clone(),
            chained: self.chained,
            how,
        }));
        match node.kind() {
            // Behind `||` stands what runs if the left was not done.
            "list" if self.ends_script(node) || !self.is_either(node) => self.chained += 1,
            "function_definition" => {
                self.called += 1;
                self.chained = 0;
            }
            _ => self.chained = 0,
        }
    }

    /// Whether what stands behind `||` does something.
    fn is_tried(&self, node: Node<'t>) -> bool {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        let either = children.iter().position(|child| child.kind() == "||");
        either.is_some_and(|at| {
            let right = children.get(at + 1).map_or("", |child| self.source(*child));
            let says = |piece: &str| {
                let first = piece.trim_start_matches(['{', ' ', '\n', '\t']);
                let first = first.split_whitespace().next().unwrap_or("}");
                let words = [
                    "true", ":", "false", "echo", "printf", "exit", "return", "}",
                ];
                words.contains(&first)
            };
            !right.split(';').all(says)
        })
    }

    /// Whether it is joined by `||`.
    fn is_either(&self, node: Node<'t>) -> bool {
        let mut cursor = node.walk();
        node.children(&mut cursor).any(|child| child.kind() == "||")
    }

    /// `cd x || exit`: what follows runs only if it was done.
    fn ends_script(&self, node: Node<'t>) -> bool {
        let count = node.child_count();
        let child = |at: u32| node.child(at).map_or("", |child| self.source(child));
        let right = child(count.saturating_sub(1));
        child(count.saturating_sub(2)) == "||"
            && ["exit", "return", "{ exit", "{ echo"]
                .iter()
                .any(|word| right.starts_with(word))
            && (right.contains("exit") || right.contains("return"))
    }

    fn leave(&mut self, leave: Leave) {
        self.chained = leave.chained;
        self.now = match leave.how {
            How::Undone => leave.before,
            How::Sure => self.now.clone(),
            // Within a chain its success is what the next part runs on.
            How::Chain if leave.chained > 0 || self.ends_on_error => self.now.clone(),
            How::Chain | How::Maybe => dirs::either(&leave.before, &self.now),
            How::Function => {
                self.called = self.called.saturating_sub(1);
                dirs::either(&leave.before, &self.now)
            }
        };
    }

    fn word(&mut self, node: Node<'_>) -> Word {
        word::read(node, self.text).unwrap_or_else(|| {
            self.doubt(node);
            Word::open(self.source(node), word::Known::Many)
        })
    }

    /// `BODY REDIRECTS`: the grammar puts them behind a whole list or pipeline, the shell
    /// gives them to its last command.
    fn redirected(&mut self, node: Node<'t>, feed: Feed) {
        let body = node.child_by_field_name("body");
        let mut attached = Attached::default();
        let mut cursor = node.walk();
        let mut heredocs = Vec::new();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_redirect" => {
                    attached.feed = self.file_feed(child).or(attached.feed);
                    attached.words.extend(behind_target(child));
                }
                "herestring_redirect" => attached.feed = self.herestring(child).or(attached.feed),
                "heredoc_redirect" => {
                    attached.feed = Some(self.heredoc(child));
                    let mut inner = child.walk();
                    attached
                        .words
                        .extend(child.children_by_field_name("argument", &mut inner));
                    let mut inner = child.walk();
                    for redirect in child.children_by_field_name("redirect", &mut inner) {
                        attached.words.extend(behind_target(redirect));
                    }
                    self.refeeds(child);
                    self.check_heredoc(child);
                    heredocs.push(child);
                }
                _ => {}
            }
        }
        let Some(body) = body else {
            let feed = attached.feed.unwrap_or(feed);
            attached.words.sort_by_key(Node::start_byte);
            self.found(attached.words, &feed);
            self.descend(node, &feed);
            return;
        };
        let target = last_command(body);
        let next = heredocs.first().map_or(body.end_byte(), Node::start_byte);
        let dash = self
            .text
            .get(body.end_byte()..next)
            .is_some_and(|gap| gap.trim() == "-");
        let printed = self.printed(target, attached.feed.as_ref().unwrap_or(&feed));
        // The pipe of `cat <<EOF | sh` stands inside the redirect.
        let mut inside = Vec::new();
        for heredoc in heredocs {
            let mut cursor = heredoc.walk();
            for child in heredoc.children(&mut cursor) {
                let piped = child.kind() == "pipeline";
                inside.push((child, if piped { printed.clone() } else { feed.clone() }));
            }
        }
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            if child.id() != body.id() && child.kind() != "heredoc_redirect" {
                inside.push((child, feed.clone()));
            }
        }
        // An outer redirect may have been attached to the same command already.
        let known = self.attached.entry(target.id()).or_default();
        known.words.append(&mut attached.words);
        known.dash |= dash;
        known.feed = attached.feed.or(known.feed.take());
        inside.reverse();
        let inside = inside
            .into_iter()
            .map(|(node, feed)| Item::Node(node, feed));
        self.pending.extend(inside);
        self.pending.push(Item::Node(body, feed));
    }

    fn pipeline(&mut self, node: Node<'t>, feed: Feed) {
        let mut members = Vec::new();
        let mut cursor = node.walk();
        let mut feed = feed;
        for child in node.named_children(&mut cursor) {
            members.push((child, feed.clone()));
            if child.kind() != "comment" {
                feed = self.printed(child, &feed);
            }
        }
        members.reverse();
        let members = members
            .into_iter()
            .map(|(node, feed)| Item::Node(node, feed));
        self.pending.extend(members);
    }

    /// What a member of a pipeline prints.
    fn printed(&self, node: Node<'t>, feed: &Feed) -> Feed {
        match self.told(node, feed) {
            // Whatever is made of it, nobody has read it.
            Feed::Unknown if *feed == Feed::Fetched || self.fetches(node) => Feed::Fetched,
            told => told,
        }
    }

    /// Whether a command in this node fetches something from the network.
    fn fetches(&self, node: Node<'t>) -> bool {
        let mut pending = vec![node];
        for _ in 0..MAX_LOOKED_AT {
            let Some(node) = pending.pop() else { break };
            if node.kind() == "command" {
                let (nodes, _) = self.command_parts(node, Vec::new());
                let words = nodes
                    .into_iter()
                    .map_while(|node| word::read(node, self.text));
                if fetched::calls_fetcher(&words.collect::<Vec<_>>()) {
                    return true;
                }
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        false
    }

    /// What a member of a pipeline prints, as far as its words say.
    fn told(&self, node: Node<'t>, feed: &Feed) -> Feed {
        let (command, outer) = match node.kind() {
            "redirected_statement" => {
                let mut cursor = node.walk();
                let outer = node
                    .children(&mut cursor)
                    .find_map(|child| match child.kind() {
                        "heredoc_redirect" => Some(self.heredoc(child)),
                        "herestring_redirect" => self.herestring(child),
                        _ => None,
                    });
                (node.child_by_field_name("body"), outer)
            }
            _ => (Some(node), None),
        };
        let Some(command) = command.filter(|command| command.kind() == "command") else {
            return Feed::Unknown;
        };
        let (nodes, own) = self.command_parts(command, Vec::new());
        let words: Option<Vec<Word>> = nodes
            .into_iter()
            .map(|node| word::read(node, self.text))
            .collect();
        let input = own.or(outer).unwrap_or_else(|| feed.clone());
        words.map_or(Feed::Unknown, |words| printed(&words, &input))
    }

    /// The shell begins a comment only where a word could begin.
    fn comment(&mut self, node: Node<'t>) {
        let before = node
            .start_byte()
            .checked_sub(1)
            .and_then(|at| self.text.as_bytes().get(at));
        let starts = before.is_none_or(|byte| b" \t\n;&|()<>`".contains(byte));
        // `\ #`: the grammar takes an escaped blank for a blank.
        let escaped = node
            .start_byte()
            .checked_sub(2)
            .and_then(|at| self.text.as_bytes().get(at))
            .is_some_and(|byte| *byte == b'\\');
        if !starts || escaped {
            self.doubt(node);
        }
    }
}

/// Nodes without children that still need a visit.
fn worth_a_look(kind: &str) -> bool {
    matches!(
        kind,
        "comment" | "ansi_c_string" | "regex" | "extglob_pattern" | "word" | "heredoc_body"
    )
}

/// The words of a file redirect that are none of its own: the grammar takes all that
/// follow, the shell one.
fn behind_target<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name("destination", &mut cursor)
        .skip(1)
        .collect()
}

/// The command that a redirect behind `node` belongs to.
fn last_command(node: Node<'_>) -> Node<'_> {
    let mut node = node;
    while matches!(node.kind(), "list" | "pipeline" | "negated_command") {
        let Some(last) = u32::try_from(node.named_child_count())
            .ok()
            .and_then(|count| node.named_child(count.checked_sub(1)?))
        else {
            break;
        };
        node = last;
    }
    node
}
