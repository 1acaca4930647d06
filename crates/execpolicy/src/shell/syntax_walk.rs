//! Walks the syntax tree of a script and collects its commands. Every node is visited, so a
//! command is found wherever it stands.
//!
//! The walk is iterative, since a script may nest as deep as it likes. Where the grammar and the
//! shell could disagree, the piece is reported as doubtful.

mod redirects;
mod variables;

use std::collections::HashMap;

use tree_sitter::Node;

use super::arithmetic;
use super::downloaded_code;
use super::grammar_mask;
use super::parse_cache::ParsedShellScriptCache;
use super::quoting;
use super::stdin::{StdinSource, predicted_command_output};
use super::word::{self, CommandWord};
use super::working_dirs::{self, WorkingDirs};

/// Commands whose effects or output are believed by their names. A function with such a name makes
/// the script doubtful.
const TRUSTED_COMMANDS: &[&str] = &[
    "cd", "pushd", "popd", "pwd", "date", "nproc", "whoami", "hostname", "uname", "basename",
    "dirname", "mktemp", "seq", "id", "expr", "find", "fd", "ls", "git", "grep", "rg", "echo",
    "printf", "cat", "read", "xargs", "wc", "test", "[", "exit", "return", "set", "unset",
    "export", "eval", "exec", "command", "builtin", "source",
];

/// How deep brackets may be nested; the parser takes memory for each level.
const MAX_DEPTH: usize = 2_000;
/// Nodes of a statement that are searched for a downloader.
const MAX_LOOKED_AT: usize = 256;
/// Heredocs of a script; each is looked at with those around it.
const MAX_HEREDOCS: usize = 512;
/// Bytes that the grammar may scan for patterns: after each `==` it can scan to the end.
const MAX_PATTERN_BYTES: usize = 32 << 20;

/// Returns how deep brackets can be nested in this text.
fn max_bracket_nesting(text: &str) -> usize {
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

/// Returns how many operators there are that a pattern can follow.
fn count_equality_and_regex_operators(text: &str) -> usize {
    text.matches("==").count() + text.matches("=~").count()
}

/// A command as the script spells it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ScriptCommand {
    /// Its words; never empty.
    pub(crate) words: Vec<CommandWord>,
    /// Its standard input.
    pub(crate) stdin: StdinSource,
    /// The folders it can run in.
    pub(crate) dirs: WorkingDirs,
    /// Whether it stands in a function, and so runs wherever that function is called.
    called: bool,
}

/// A file that a redirect names.
#[derive(Debug, Clone)]
pub(crate) struct FileRedirect {
    /// Its path.
    pub(crate) path: CommandWord,
    /// Whether it is written, not read.
    pub(crate) written: bool,
    /// Whether it is appended to what is there.
    pub(crate) appended: bool,
    /// Whether what is written comes from the network.
    pub(crate) fetched: bool,
    /// The folders from which it is named.
    pub(crate) dirs: WorkingDirs,
}

/// The contents of a script.
#[derive(Debug, Default)]
pub(crate) struct AnalyzedShellScript {
    /// Its commands, in the order of the text.
    pub(crate) commands: Vec<ScriptCommand>,
    /// Files that its redirects write or read.
    pub(crate) redirected: Vec<FileRedirect>,
    /// The values that variables are set to; `None` if only the run knows the value.
    pub(crate) assigned: Vec<(String, Option<CommandWord>)>,
    /// Names of its functions.
    pub(crate) functions: Vec<String>,
    /// Pieces that the grammar and the shell may read differently.
    pub(crate) doubtful: Vec<String>,
    /// Texts that would run code if something evaluated them as arithmetic.
    pub(crate) arithmetic_injections: Vec<String>,
    /// Whether something evaluates arithmetic.
    pub(crate) reads_arithmetic: bool,
    /// Whether the grammar could not read all of it.
    pub(crate) broken: bool,
    /// Whether something is tried where something else fails (`a || b`), unless it only prints a
    /// message or ends the script.
    pub(crate) has_fallback: bool,
    /// The folders in which it can end.
    pub(crate) ends_in: Option<WorkingDirs>,
}

impl AnalyzedShellScript {
    /// A script of one command, read without the grammar.
    pub(super) fn single_command_script_from_words(
        words: Vec<CommandWord>,
        written: Vec<CommandWord>,
        feed: StdinSource,
        dirs: &WorkingDirs,
    ) -> Self {
        let redirected = written.into_iter().map(|path| FileRedirect {
            path,
            written: true,
            appended: false,
            fetched: false,
            dirs: dirs.clone(),
        });
        let command = (!words.is_empty()).then(|| ScriptCommand {
            words,
            stdin: feed,
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
pub(crate) fn parse_script_into_commands(
    scripts: &ParsedShellScriptCache,
    text: &str,
    feed: &StdinSource,
    dirs: &WorkingDirs,
) -> AnalyzedShellScript {
    // No argument can hold a NUL, so no shell is meant. The other bounds limit the parser's memory
    // and time.
    if text.contains('\0')
        || max_bracket_nesting(text) > MAX_DEPTH
        || text.matches("<<").count() > MAX_HEREDOCS
        || count_equality_and_regex_operators(text).saturating_mul(text.len()) > MAX_PATTERN_BYTES
    {
        return AnalyzedShellScript {
            broken: true,
            ..AnalyzedShellScript::default()
        };
    }
    let Some(tree) = scripts.shell_syntax_tree(text) else {
        return AnalyzedShellScript {
            broken: true,
            ..AnalyzedShellScript::default()
        };
    };
    let root = tree.root_node();
    let mut walk = ShellSyntaxWalker {
        text,
        script: AnalyzedShellScript {
            broken: root.has_error(),
            ..AnalyzedShellScript::default()
        },
        attached: HashMap::new(),
        pending: vec![SyntaxWalkItem::Node(root, feed.clone())],
        now: dirs.clone(),
        all: dirs.clone(),
        and_depth: 0,
        function_depth: 0,
        errexit: false,
        stdin_replaced: false,
        backquoted: false,
    };
    while let Some(item) = walk.pending.pop() {
        match item {
            SyntaxWalkItem::Node(node, feed) => walk.visit_shell_syntax_node(node, feed),
            SyntaxWalkItem::Leave(leave) => walk.leave_compound_shell_node(leave),
        }
    }
    // Inside backquotes, a backslash before another backquote begins a nested substitution.
    if walk.backquoted && (text.contains("\\`") || text.contains("\\$(")) {
        walk.script.doubtful.push(text.to_owned());
    }
    let inherits = |found: &&mut ScriptCommand| {
        matches!(
            found.stdin,
            StdinSource::Interactive | StdinSource::PlainFile
        )
    };
    // After `exec < FILE` somewhere in the script, no inherited input is certain.
    if walk.stdin_replaced {
        for found in walk.script.commands.iter_mut().filter(inherits) {
            found.stdin = StdinSource::CommandOutput;
        }
    }
    // A function can run in any folder that the script reaches.
    for found in walk.script.commands.iter_mut().filter(|found| found.called) {
        found.dirs = walk.all.clone();
    }
    walk.script.ends_in = Some(walk.now);
    walk.script
}

/// An entry on the stack of work still to be done.
enum SyntaxWalkItem<'t> {
    /// A node to visit, with the standard input it inherits.
    Node(Node<'t>, StdinSource),
    /// The end of a construct that limits what a `cd` in it changes.
    Leave(WorkingDirsBeforeBlock),
}

/// The state before such a construct was visited.
struct WorkingDirsBeforeBlock {
    before: WorkingDirs,
    chained: usize,
    kind: WorkingDirMergeRule,
}

enum WorkingDirMergeRule {
    /// A subshell: its `cd` ends with it.
    Subshell,
    /// It may not have run.
    Maybe,
    /// A chain of `&&`: what follows in it runs only if this succeeded.
    Chain,
    /// A list like `cd x || exit`: what follows runs only if the left side succeeded.
    ExitGuarded,
    /// As `Maybe`, for the body of a function.
    Function,
}

/// What the redirects around a command add to it.
#[derive(Default)]
struct WordsAndStdinFromRedirects<'t> {
    /// Words behind a redirect's target belong to the command: `env > out rm x`.
    words: Vec<Node<'t>>,
    /// Its standard input.
    stdin: Option<StdinSource>,
    /// A last word `-`, which the grammar drops before a heredoc.
    dash: bool,
}

struct ShellSyntaxWalker<'t, 's> {
    text: &'s str,
    script: AnalyzedShellScript,
    attached: HashMap<usize, WordsAndStdinFromRedirects<'t>>,
    pending: Vec<SyntaxWalkItem<'t>>,
    /// The folders in which the next command can run.
    now: WorkingDirs,
    /// The folders of all commands so far.
    all: WorkingDirs,
    /// How many chains of `&&` the next command stands in.
    and_depth: usize,
    /// How many functions the next command stands in.
    function_depth: usize,
    /// Whether `set -e` holds.
    errexit: bool,
    /// Whether `exec` replaces standard input somewhere.
    stdin_replaced: bool,
    /// Whether a substitution is written with backquotes.
    backquoted: bool,
}

impl<'t, 's> ShellSyntaxWalker<'t, 's> {
    fn node_text(&self, node: Node<'_>) -> &'s str {
        self.text.get(node.byte_range()).unwrap_or("")
    }

    fn mark_shell_node_doubtful(&mut self, node: Node<'_>) {
        let piece = self.node_text(node).to_owned();
        self.script.doubtful.push(piece);
    }

    fn visit_shell_syntax_node(&mut self, node: Node<'t>, feed: StdinSource) {
        // Redirects around a list were attached to its last command before that command is
        // visited.
        let attached = self.attached.remove(&node.id()).unwrap_or_default();
        let feed = attached.stdin.unwrap_or(feed);
        self.enter_compound_shell_node(node);
        self.script.reads_arithmetic |=
            arithmetic::evaluates_arithmetic(node.kind(), self.node_text(node));
        self.backquoted |=
            node.kind() == "command_substitution" && self.node_text(node).starts_with('`');
        match node.kind() {
            "command" => {
                // The grammar took a keyword for a name, and what follows may be cut wrongly.
                let name = node.child_by_field_name("name");
                self.script.broken |=
                    name.is_some_and(|name| grammar_mask::is_keyword(self.node_text(name)));
                self.script.broken |= self.grammar_misses_command_end(node);
                let (words, own) = self.command_words_and_redirected_stdin(node, attached.words);
                let feed = own.unwrap_or(feed);
                self.add_command_found_in_script(words, &feed);
                if let Some(last) = self.script.commands.last_mut().filter(|_| attached.dash) {
                    last.words.push(CommandWord::new_literal_word("-"));
                }
                self.queue_child_nodes(node, &feed);
            }
            "declaration_command" | "unset_command" => {
                let (words, _) = self.command_words_and_redirected_stdin(node, attached.words);
                self.add_command_found_in_script(words, &feed);
                self.queue_child_nodes(node, &feed);
            }
            "test_command" => {
                let name = if self.node_text(node).starts_with("[[") {
                    "[["
                } else {
                    "["
                };
                let text = self.node_text(node);
                // Without a blank behind it, the bracket is part of a word.
                let behind = text.strip_prefix(name).unwrap_or("");
                if text.starts_with('[') && !behind.starts_with(|c: char| c.is_whitespace()) {
                    self.mark_shell_node_doubtful(node);
                }
                if arithmetic::is_arithmetic_injection(text) {
                    self.script.arithmetic_injections.push(text.to_owned());
                }
                // Only the name is recorded. A test runs nothing but the substitutions in it,
                // which are visited as its children.
                self.script.commands.push(ScriptCommand {
                    words: vec![CommandWord::new_literal_word(name)],
                    stdin: StdinSource::PlainFile,
                    dirs: self.now.clone(),
                    called: false,
                });
                self.queue_child_nodes(node, &feed);
            }
            "redirected_statement" => self.visit_redirected_statement(node, feed),
            "file_redirect" => {
                let operator = self
                    .node_text(node)
                    .trim_start_matches(|c: char| c.is_ascii_digit());
                let target = node.child_by_field_name("destination");
                self.note_exec_stdin_redirect(node);
                let written = !operator.starts_with('<') || operator.starts_with("<>");
                let duplicates = operator.starts_with("<&");
                // The shell expects the target on the same line.
                let line =
                    target.and_then(|target| self.text.get(node.start_byte()..target.start_byte()));
                if line.is_some_and(|line| line.replace("\\\n", "").contains('\n')) {
                    self.mark_shell_node_doubtful(node);
                }
                if !duplicates
                    && let Some(path) =
                        target.and_then(|node| word::command_word_from_syntax_node(node, self.text))
                {
                    let dirs = self.now.clone();
                    let fetched = written
                        && node
                            .parent()
                            .is_some_and(|node| self.contains_download(node));
                    let redirected = FileRedirect {
                        path,
                        written,
                        appended: operator.contains(">>"),
                        fetched,
                        dirs,
                    };
                    self.script.redirected.push(redirected);
                }
                self.queue_child_nodes(node, &feed);
            }
            "list" => {
                self.script.has_fallback |= self.or_branch_does_more_than_exit(node);
                self.queue_child_nodes(node, &feed);
            }
            "pipeline" => self.visit_pipeline(node, feed),
            "heredoc_redirect" => {
                self.note_exec_stdin_redirect(node);
                self.queue_child_nodes(node, &feed);
            }
            "herestring_redirect" => {
                self.note_exec_stdin_redirect(node);
                let text = self.node_text(node);
                if arithmetic::is_arithmetic_injection(text) {
                    self.script.arithmetic_injections.push(text.to_owned());
                }
                self.queue_child_nodes(node, &feed);
            }
            "process_substitution" => {
                // `>(...)` reads what the command around it writes.
                let writes = self.node_text(node).starts_with(">(");
                self.queue_child_nodes(
                    node,
                    if writes {
                        &StdinSource::CommandOutput
                    } else {
                        &feed
                    },
                );
            }
            // The caller may feed it, so its input is not known.
            "function_definition" => {
                let name = node.child_by_field_name("name");
                let name = name.map(|name| self.node_text(name).to_owned());
                // Other code believes these commands by their names, which such a function would
                // make wrong.
                if name
                    .as_deref()
                    .is_some_and(|name| TRUSTED_COMMANDS.contains(&name))
                {
                    self.mark_shell_node_doubtful(node);
                }
                self.script.functions.extend(name);
                self.queue_child_nodes(node, &StdinSource::CommandOutput);
            }
            "variable_assignment" => {
                self.visit_shell_assignment(node);
                self.queue_child_nodes(node, &feed);
            }
            "for_statement" => {
                self.add_loop_variable(node);
                self.queue_child_nodes(node, &feed);
            }
            "comment" => self.mark_comment_doubtful_if_misread(node),
            "ansi_c_string" => {
                let inner = self.node_text(node).get(2..).unwrap_or("");
                // The grammar and the shell disagree about where the literal ends.
                if quoting::unquote_ansi_c(inner).1 != inner.len() {
                    self.mark_shell_node_doubtful(node);
                }
            }
            // `${v@P}` expands the value once more.
            "expansion" if self.node_text(node).contains("@P") => {
                self.mark_shell_node_doubtful(node);
                self.queue_child_nodes(node, &feed);
            }
            "regex" | "extglob_pattern" | "word" => {
                // The grammar took a substitution for text, so the commands in it would be missed.
                if quoting::has_unescaped_substitution(self.node_text(node)) {
                    self.mark_shell_node_doubtful(node);
                }
                self.queue_child_nodes(node, &feed);
            }
            _ => self.queue_child_nodes(node, &feed),
        }
    }

    /// Returns whether the grammar took the end of a command, and what follows it, for the pattern
    /// that it expects after `==`: `echo ==; ls`.
    fn grammar_misses_command_end(&self, command: Node<'t>) -> bool {
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

    fn queue_child_nodes(&mut self, node: Node<'t>, feed: &StdinSource) {
        let from = self.pending.len();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            // Words without parts hold no command; they are most of a script.
            if child.child_count() > 0 || childless_node_kind_needs_visit(child.kind()) {
                self.pending.push(SyntaxWalkItem::Node(child, feed.clone()));
            }
        }
        // The last entry of the stack is visited first, so the children are pushed in reverse
        // order.
        if let Some(added) = self.pending.get_mut(from..) {
            added.reverse();
        }
    }

    /// Returns the words of a command, in the order of the text, and the standard input that its
    /// own redirects give it.
    fn command_words_and_redirected_stdin(
        &self,
        node: Node<'t>,
        extra: Vec<Node<'t>>,
    ) -> (Vec<Node<'t>>, Option<StdinSource>) {
        let mut words = extra;
        let mut feed = None;
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_redirect" => {
                    feed = self.stdin_from_redirect(child).or(feed);
                    words.extend(words_after_redirect_target(child));
                }
                "herestring_redirect" => feed = self.herestring_stdin(child).or(feed),
                // Assignments before a command are not words of it; in `export A=b` they are.
                "variable_assignment" if node.kind() == "command" => {}
                "subshell" | "comment" => {}
                _ => words.push(child),
            }
        }
        // The words around redirects were found out of order.
        words.sort_by_key(Node::start_byte);
        (words, feed)
    }

    fn add_command_found_in_script(&mut self, nodes: Vec<Node<'t>>, feed: &StdinSource) {
        let mut words: Vec<CommandWord> = Vec::with_capacity(nodes.len());
        let mut end = None;
        for node in nodes {
            let word = self.read_word_or_doubt(node);
            let gap = end.and_then(|end| self.text.get(end..node.start_byte()));
            // The shell takes a line continuation out before it looks for words; the
            // grammar ends a word there.
            let gap = gap.map(|gap| gap.replace("\\\n", ""));
            let continued = gap.as_deref() == Some("");
            // Behind a comment the grammar can miss the end of the line.
            self.script.broken |= gap.is_some_and(|gap| gap.contains('\n'));
            match words.last_mut().filter(|_| continued) {
                Some(last) => last.append_word_without_blank(&word),
                None => words.push(word),
            }
            end = Some(node.end_byte());
        }
        if words.is_empty() {
            return;
        }
        self.script.reads_arithmetic |= words
            .first()
            .and_then(CommandWord::as_literal)
            .is_some_and(|name| arithmetic::evaluates_arithmetic("command", name));
        let fixed = words.iter().filter_map(CommandWord::as_literal);
        let traps = fixed.filter(|text| arithmetic::is_arithmetic_injection(text));
        self.script
            .arithmetic_injections
            .extend(traps.map(str::to_owned));
        self.apply_shell_state_builtin(&words, feed);
        // A `cd` moves the commands after it and not itself.
        let dirs = self.now.clone();
        if let Some(next) = working_dirs::working_dirs_after_cd(&words, &self.now, &self.all) {
            self.all = working_dirs::union_of_working_dirs(&self.all, &next);
            // In a chain of `&&`, or under `set -e`, the next command runs only if the `cd`
            // succeeded. Otherwise both folders are possible.
            let sure = self.and_depth > 0 || self.errexit;
            self.now = match sure {
                true => next,
                false => working_dirs::union_of_working_dirs(&self.now, &next),
            };
        }
        self.script.commands.push(ScriptCommand {
            words,
            stdin: feed.clone(),
            dirs,
            called: self.function_depth > 0,
        });
    }

    /// Notes the state to which this node's end has to be merged.
    fn enter_compound_shell_node(&mut self, node: Node<'t>) {
        let how = match node.kind() {
            "subshell" | "command_substitution" | "process_substitution" => {
                WorkingDirMergeRule::Subshell
            }
            "if_statement"
            | "while_statement"
            | "for_statement"
            | "c_style_for_statement"
            | "case_statement"
            | "elif_clause"
            | "else_clause"
            | "case_item" => WorkingDirMergeRule::Maybe,
            "function_definition" => WorkingDirMergeRule::Function,
            "list" => match self.is_or_exit_list(node) {
                true => WorkingDirMergeRule::ExitGuarded,
                false => WorkingDirMergeRule::Chain,
            },
            _ => return,
        };
        self.pending
            .push(SyntaxWalkItem::Leave(WorkingDirsBeforeBlock {
                before: self.now.clone(),
                chained: self.and_depth,
                kind: how,
            }));
        match node.kind() {
            // What stands after `||` runs if the left side failed.
            "list" if self.is_or_exit_list(node) || !self.is_or_list(node) => self.and_depth += 1,
            "function_definition" => {
                self.function_depth += 1;
                self.and_depth = 0;
            }
            _ => self.and_depth = 0,
        }
    }

    /// Returns whether what stands after `||` does more than print a message or end the script.
    fn or_branch_does_more_than_exit(&self, node: Node<'t>) -> bool {
        let mut cursor = node.walk();
        let children: Vec<Node<'t>> = node.children(&mut cursor).collect();
        let either = children.iter().position(|child| child.kind() == "||");
        either.is_some_and(|at| {
            let right = children
                .get(at + 1)
                .map_or("", |child| self.node_text(*child));
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

    /// Returns whether the list is joined by `||`.
    fn is_or_list(&self, node: Node<'t>) -> bool {
        let mut cursor = node.walk();
        node.children(&mut cursor).any(|child| child.kind() == "||")
    }

    /// Returns whether the list is like `cd x || exit`: what follows runs only if the left side
    /// succeeded.
    fn is_or_exit_list(&self, node: Node<'t>) -> bool {
        let count = node.child_count();
        let child = |at: u32| node.child(at).map_or("", |child| self.node_text(child));
        let right = child(count.saturating_sub(1));
        child(count.saturating_sub(2)) == "||"
            && ["exit", "return", "{ exit", "{ echo"]
                .iter()
                .any(|word| right.starts_with(word))
            && (right.contains("exit") || right.contains("return"))
    }

    fn leave_compound_shell_node(&mut self, leave: WorkingDirsBeforeBlock) {
        self.and_depth = leave.chained;
        self.now = match leave.kind {
            WorkingDirMergeRule::Subshell => leave.before,
            WorkingDirMergeRule::ExitGuarded => self.now.clone(),
            // Inside a longer chain the next part runs only if this one succeeded.
            WorkingDirMergeRule::Chain if leave.chained > 0 || self.errexit => self.now.clone(),
            WorkingDirMergeRule::Chain | WorkingDirMergeRule::Maybe => {
                working_dirs::union_of_working_dirs(&leave.before, &self.now)
            }
            WorkingDirMergeRule::Function => {
                self.function_depth = self.function_depth.saturating_sub(1);
                working_dirs::union_of_working_dirs(&leave.before, &self.now)
            }
        };
    }

    fn read_word_or_doubt(&mut self, node: Node<'_>) -> CommandWord {
        word::command_word_from_syntax_node(node, self.text).unwrap_or_else(|| {
            self.mark_shell_node_doubtful(node);
            CommandWord::word_from_unresolved_text(
                self.node_text(node),
                word::WordKnowledge::Unbounded,
            )
        })
    }

    /// Visits `BODY REDIRECTS`. The grammar puts the redirects after a whole list or pipeline; the
    /// shell gives them to its last command.
    fn visit_redirected_statement(&mut self, node: Node<'t>, feed: StdinSource) {
        let body = node.child_by_field_name("body");
        let mut attached = WordsAndStdinFromRedirects::default();
        let mut cursor = node.walk();
        let mut heredocs = Vec::new();
        for child in node.children(&mut cursor) {
            match child.kind() {
                "file_redirect" => {
                    attached.stdin = self.stdin_from_redirect(child).or(attached.stdin);
                    attached.words.extend(words_after_redirect_target(child));
                }
                "herestring_redirect" => {
                    attached.stdin = self.herestring_stdin(child).or(attached.stdin)
                }
                "heredoc_redirect" => {
                    attached.stdin = Some(self.heredoc_stdin(child));
                    let mut inner = child.walk();
                    attached
                        .words
                        .extend(child.children_by_field_name("argument", &mut inner));
                    let mut inner = child.walk();
                    for redirect in child.children_by_field_name("redirect", &mut inner) {
                        attached.words.extend(words_after_redirect_target(redirect));
                    }
                    self.note_exec_stdin_redirect(child);
                    self.mark_misread_heredoc(child);
                    heredocs.push(child);
                }
                _ => {}
            }
        }
        // Without a body, the words after the target are the command: `< in cmd`.
        let Some(body) = body else {
            let feed = attached.stdin.unwrap_or(feed);
            attached.words.sort_by_key(Node::start_byte);
            self.add_command_found_in_script(attached.words, &feed);
            self.queue_child_nodes(node, &feed);
            return;
        };
        let target = command_of_redirect(body);
        let next = heredocs.first().map_or(body.end_byte(), Node::start_byte);
        let dash = self
            .text
            .get(body.end_byte()..next)
            .is_some_and(|gap| gap.trim() == "-");
        let printed = self.pipeline_member_output(target, attached.stdin.as_ref().unwrap_or(&feed));
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
        known.stdin = attached.stdin.or(known.stdin.take());
        // The body is pushed last, so it is visited before its redirects.
        inside.reverse();
        let inside = inside
            .into_iter()
            .map(|(node, feed)| SyntaxWalkItem::Node(node, feed));
        self.pending.extend(inside);
        self.pending.push(SyntaxWalkItem::Node(body, feed));
    }

    fn visit_pipeline(&mut self, node: Node<'t>, feed: StdinSource) {
        let mut members = Vec::new();
        let mut cursor = node.walk();
        let mut feed = feed;
        for child in node.named_children(&mut cursor) {
            members.push((child, feed.clone()));
            if child.kind() != "comment" {
                feed = self.pipeline_member_output(child, &feed);
            }
        }
        members.reverse();
        let members = members
            .into_iter()
            .map(|(node, feed)| SyntaxWalkItem::Node(node, feed));
        self.pending.extend(members);
    }

    /// Returns what a member of a pipeline prints.
    fn pipeline_member_output(&self, node: Node<'t>, feed: &StdinSource) -> StdinSource {
        match self.pipeline_member_output_from_words(node, feed) {
            // A filter changes the downloaded text, but nobody has read the result either.
            StdinSource::CommandOutput
                if *feed == StdinSource::Downloaded || self.contains_download(node) =>
            {
                StdinSource::Downloaded
            }
            told => told,
        }
    }

    /// Returns whether a command in this node downloads something.
    fn contains_download(&self, node: Node<'t>) -> bool {
        let mut pending = vec![node];
        for _ in 0..MAX_LOOKED_AT {
            let Some(node) = pending.pop() else { break };
            if node.kind() == "command" {
                let (nodes, _) = self.command_words_and_redirected_stdin(node, Vec::new());
                let words = nodes
                    .into_iter()
                    .map_while(|node| word::command_word_from_syntax_node(node, self.text));
                if downloaded_code::calls_downloader(&words.collect::<Vec<_>>()) {
                    return true;
                }
            }
            let mut cursor = node.walk();
            pending.extend(node.named_children(&mut cursor));
        }
        false
    }

    /// Returns what a member of a pipeline prints, as far as its words tell.
    fn pipeline_member_output_from_words(&self, node: Node<'t>, feed: &StdinSource) -> StdinSource {
        let (command, outer) = match node.kind() {
            "redirected_statement" => {
                let mut cursor = node.walk();
                let outer = node
                    .children(&mut cursor)
                    .find_map(|child| match child.kind() {
                        "heredoc_redirect" => Some(self.heredoc_stdin(child)),
                        "herestring_redirect" => self.herestring_stdin(child),
                        _ => None,
                    });
                (node.child_by_field_name("body"), outer)
            }
            _ => (Some(node), None),
        };
        let Some(command) = command.filter(|command| command.kind() == "command") else {
            return StdinSource::CommandOutput;
        };
        let (nodes, own) = self.command_words_and_redirected_stdin(command, Vec::new());
        let words: Option<Vec<CommandWord>> = nodes
            .into_iter()
            .map(|node| word::command_word_from_syntax_node(node, self.text))
            .collect();
        // A redirect of the command itself takes precedence over one around it, and both over the
        // pipe.
        let input = own.or(outer).unwrap_or_else(|| feed.clone());
        words.map_or(StdinSource::CommandOutput, |words| {
            predicted_command_output(&words, &input)
        })
    }

    /// Reports a comment as doubtful if no word could begin there: only where one could does the
    /// shell begin a comment.
    fn mark_comment_doubtful_if_misread(&mut self, node: Node<'t>) {
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
            self.mark_shell_node_doubtful(node);
        }
    }
}

/// Returns whether a node of this kind needs a visit even without children.
fn childless_node_kind_needs_visit(kind: &str) -> bool {
    matches!(
        kind,
        "comment" | "ansi_c_string" | "regex" | "extglob_pattern" | "word" | "heredoc_body"
    )
}

/// Returns the words after the target of a file redirect. The grammar takes all of them for
/// targets; the shell takes one.
fn words_after_redirect_target<'t>(node: Node<'t>) -> Vec<Node<'t>> {
    let mut cursor = node.walk();
    node.children_by_field_name("destination", &mut cursor)
        .skip(1)
        .collect()
}

/// Returns the command that a redirect after `node` belongs to.
fn command_of_redirect(node: Node<'_>) -> Node<'_> {
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
