//! Splits a script that the grammar cannot parse where the shell ends a command, so that each
//! piece can be parsed alone. One test that the grammar cannot read (`[ -d ~ ]`) then hides
//! nothing behind it.
//!
//! Splitting follows the rules of quoting and does not judge: quotes, substitutions and heredoc
//! bodies stay whole. Keywords that only join commands (`then`, `{`, `done`) are left out.

use super::word::{CommandWord, WordKnowledge};

/// Pieces that are split off; the rest of the script stays one piece.
const MAX_PIECES: usize = 2_000;

/// Words after which a command can begin. `time` is not among them because it takes options.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "fi", "done", "}",
];

/// One pipeline: the text between two command separators.
#[derive(Debug, Default)]
pub(super) struct ScriptPipeline {
    pub(super) members: Vec<PipelineMember>,
}

/// One command of a pipeline.
#[derive(Debug, Default)]
pub(super) struct PipelineMember {
    line: String,
    /// The bodies of its heredocs, with their closing words.
    bodies: String,
}

impl ScriptPipeline {
    /// Returns the pipeline as a script of its own.
    pub(super) fn pipeline_to_script_text(&self) -> String {
        let lines: Vec<&str> = self.members.iter().map(|m| m.line.as_str()).collect();
        let bodies: String = self.members.iter().map(|m| m.bodies.as_str()).collect();
        line_with_heredoc_bodies(&lines.join(" | "), &bodies)
    }
}

impl PipelineMember {
    /// Returns the command as a script of its own.
    pub(super) fn pipeline_member_to_script_text(&self) -> String {
        line_with_heredoc_bodies(&self.line, &self.bodies)
    }

    /// Returns whether nothing stands here, as where a compound command ended before the pipe.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Splits the line into its words and the files that it writes, by the rules of quoting alone.
    pub(super) fn words_and_write_targets(&self) -> (Vec<CommandWord>, Vec<CommandWord>) {
        let mut split = shlex::split(&self.line).unwrap_or_default().into_iter();
        let (mut words, mut written) = (Vec::new(), Vec::new());
        while let Some(text) = split.next() {
            // `2>`, `&>` and `>` all write a file; the descriptor in front does not matter.
            let operator = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
            let Some(target) = operator.strip_prefix('>') else {
                words.push(command_word_from_text(text));
                continue;
            };
            let target = match target.trim_start_matches(['>', '|']) {
                "" => split.next().unwrap_or_default(),
                target => target.to_owned(),
            };
            written.push(command_word_from_text(target));
        }
        // Assignments before the command are not words of it.
        let own = words.iter().take_while(|word| word.is_assignment()).count();
        (words.split_off(own), written)
    }

    /// Returns the scripts of the outermost substitutions in the line.
    pub(super) fn substitution_scripts(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.line.len() {
            // An arithmetic expansion may hold substitutions itself, so only its opening is
            // skipped.
            let sum = self.line.get(at..).is_some_and(|l| l.starts_with("$(("));
            at = match sum {
                true => at + "$((".len(),
                false => end_of_quote_or_substitution(&self.line, at, &mut found),
            };
        }
        found
    }
}

fn line_with_heredoc_bodies(line: &str, bodies: &str) -> String {
    match bodies {
        "" => line.to_owned(),
        bodies => format!("{line}\n{bodies}"),
    }
}

fn command_word_from_text(text: String) -> CommandWord {
    match text.contains(['$', '`', '*', '?', '{']) {
        true => CommandWord::word_from_unresolved_text(text, WordKnowledge::Unbounded),
        false => CommandWord::new_literal_word(text),
    }
}

/// Splits a script into pieces. Beyond `MAX_PIECES` the rest is left whole.
pub(super) fn split_script_fragments(text: &str) -> Vec<ScriptPipeline> {
    let mut cut = ScriptToPipelinesSplitter {
        text,
        at: 0,
        pieces: Vec::new(),
        members: Vec::new(),
        now: PipelineMember::default(),
        heredocs: Vec::new(),
        open: Vec::new(),
        in_loop_head: false,
        in_test: false,
    };
    while cut.at < text.len() && cut.pieces.len() < MAX_PIECES {
        cut.advance_script_splitter();
    }
    // The rest is kept even beyond the bound: a piece that is dropped would be a command that
    // nobody judges.
    let rest = cut.remaining_script_text();
    cut.now.line.push_str(rest);
    cut.end_script_fragment();
    cut.pieces
}

/// A compound command that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum OpenCompoundCommand {
    Subshell,
    /// In a `case`, before the bracket that ends a pattern.
    Pattern,
    /// In a `case`, after that bracket.
    Case,
}

/// A heredoc whose body begins on the next line.
struct PendingHeredoc {
    // The indices of the command that the body belongs to: other commands may follow on the same
    // line before the body begins.
    piece: usize,
    member: usize,
    end: String,
    tabs: bool,
}

struct ScriptToPipelinesSplitter<'s> {
    text: &'s str,
    at: usize,
    pieces: Vec<ScriptPipeline>,
    /// The members of the piece that is being read.
    members: Vec<PipelineMember>,
    now: PipelineMember,
    heredocs: Vec<PendingHeredoc>,
    open: Vec<OpenCompoundCommand>,
    /// Whether a loop head is being read, which the grammar accepts only with a body.
    in_loop_head: bool,
    /// Whether a `[[` is being read, in which no command ends.
    in_test: bool,
}

impl<'s> ScriptToPipelinesSplitter<'s> {
    fn remaining_script_text(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Returns whether nothing of a command stands here yet; blanks before it are skipped.
    fn at_command_start(&self) -> bool {
        self.now.line.is_empty()
    }

    /// Returns whether a word could begin here.
    fn at_word_start(&self) -> bool {
        let before = self.now.line.chars().next_back();
        before.is_none_or(char::is_whitespace)
    }

    fn append_script_text_to_pipeline_member(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        let piece = self.text.get(self.at..end).unwrap_or("");
        self.now.line.push_str(piece);
        self.at = end;
    }

    /// Copies a whole quotation or substitution, or a single character.
    fn push_whole_quotation_or_char(&mut self) {
        let end = end_of_quote_or_substitution(self.text, self.at, &mut Vec::new());
        self.append_script_text_to_pipeline_member(end - self.at);
    }

    fn finish_split_pipeline_member(&mut self) {
        let mut member = std::mem::take(&mut self.now);
        member.line = member.line.trim().to_owned();
        if std::mem::take(&mut self.in_loop_head) {
            // The body is split off as commands of its own, so the head gets an empty one.
            member.line.push_str("; do :; done");
        }
        self.members.push(member);
    }

    fn end_script_fragment(&mut self) {
        self.finish_split_pipeline_member();
        let members = std::mem::take(&mut self.members);
        if members.iter().any(|member| !member.is_empty()) {
            self.pieces.push(ScriptPipeline { members });
        }
    }

    fn advance_script_splitter(&mut self) {
        // Inside `[[` the operators `&&`, `||` and `(` belong to the test and end no command.
        if self.in_test {
            self.in_test =
                !(self.at_word_start() && first_shell_word(self.remaining_script_text()) == "]]");
            return match self.in_test {
                true => self.push_whole_quotation_or_char(),
                false => self.append_script_text_to_pipeline_member("]]".len()),
            };
        }
        // Keywords count only where a command can begin; elsewhere they are arguments.
        if self.at_command_start() && self.consume_compound_keyword() {
            return;
        }
        let rest = self.remaining_script_text();
        let mut chars = rest.chars();
        match (chars.next().unwrap_or(' '), chars.next()) {
            ('\n', _) => self.end_fragment_at_newline(),
            (' ' | '\t', _) if self.at_command_start() => self.at += 1,
            ('#', _) if self.at_word_start() => {
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            // `;;` and `;&` end an arm of a `case`, after which the next pattern stands.
            (';', _) => {
                let ends = rest.len() - rest.trim_start_matches([';', '&']).len();
                self.at += ends;
                if ends > 1 && self.open.last() == Some(&OpenCompoundCommand::Case) {
                    self.open.pop();
                    self.open.push(OpenCompoundCommand::Pattern);
                }
                self.end_script_fragment();
            }
            // `&>` is a redirect; the `&` does not end the command.
            ('&', Some('>')) => self.append_script_text_to_pipeline_member(2),
            // `>&` and `>|` are redirects as well.
            ('&' | '|', _) if self.now.line.ends_with(['>', '<']) => {
                self.append_script_text_to_pipeline_member(1)
            }
            ('&', Some('&')) | ('|', Some('|')) => {
                self.at += 2;
                self.end_script_fragment();
            }
            ('&', _) => {
                self.at += 1;
                self.end_script_fragment();
            }
            // `|&` also pipes standard error; for the commands it is the same pipe.
            ('|', next) => {
                self.at += 1 + usize::from(next == Some('&'));
                self.finish_split_pipeline_member();
            }
            // A `)` that closes no subshell still ends the piece; it belongs to something already
            // left out.
            (')', _) => {
                self.at += 1;
                if self.open.last() == Some(&OpenCompoundCommand::Subshell) {
                    self.open.pop();
                }
                self.end_script_fragment();
            }
            ('(', _) => self.scan_opening_parenthesis(),
            ('<', Some('<')) if !rest.starts_with("<<<") => self.read_heredoc_start(),
            ('<', Some('<')) => self.append_script_text_to_pipeline_member(3),
            _ => self.push_whole_quotation_or_char(),
        }
    }

    /// Reads a keyword that begins or ends a compound command; returns whether there was one.
    fn consume_compound_keyword(&mut self) -> bool {
        if self.open.last() == Some(&OpenCompoundCommand::Pattern) {
            self.read_case_pattern();
            return true;
        }
        let word = first_shell_word(self.remaining_script_text());
        match word {
            "for" | "select" => {
                self.in_loop_head = true;
                self.append_script_text_to_pipeline_member(word.len());
            }
            "case" => self.read_case_statement_header(),
            "esac" => {
                self.at += word.len();
                if self.open.last() == Some(&OpenCompoundCommand::Case) {
                    self.open.pop();
                }
            }
            // The name is skipped and the body is read as commands: it can run wherever it is
            // called.
            "function" => {
                self.at += word.len();
                let rest = self.remaining_script_text();
                let blanks = rest.len() - rest.trim_start().len();
                let name = first_shell_word(rest.trim_start());
                self.at += blanks + name.len().max(1);
            }
            "coproc" => {
                self.at += word.len();
                // `coproc NAME { ...; }`
                let rest = self.remaining_script_text().trim_start();
                let behind = rest
                    .get(first_shell_word(rest).len()..)
                    .unwrap_or("")
                    .trim_start();
                if behind.starts_with(['{', '(']) {
                    self.at = self.text.len() - behind.len();
                }
            }
            "[[" => {
                self.in_test = true;
                self.append_script_text_to_pipeline_member(word.len());
            }
            _ if KEYWORDS.contains(&word) => self.at += word.len(),
            _ => return false,
        }
        true
    }

    /// Reads `case WORD in`. Only the substitutions in the word run, so it becomes the argument of
    /// `:`.
    fn read_case_statement_header(&mut self) {
        self.at += "case".len();
        self.now.line.push(':');
        while self.at < self.text.len() {
            if self.at_word_start() && first_shell_word(self.remaining_script_text()) == "in" {
                self.at += "in".len();
                break;
            }
            self.push_whole_quotation_or_char();
        }
        self.end_script_fragment();
        self.open.push(OpenCompoundCommand::Pattern);
    }

    /// Reads up to the bracket after a pattern, or to the end of the `case`.
    fn read_case_pattern(&mut self) {
        let rest = self.remaining_script_text();
        let blanks = rest.len() - rest.trim_start().len();
        self.at += blanks;
        let rest = rest.trim_start();
        if rest.starts_with('#') {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return;
        }
        self.open.pop();
        if first_shell_word(rest) == "esac" {
            self.at += "esac".len();
            return;
        }
        self.open.push(OpenCompoundCommand::Case);
        // The bracket before a pattern is optional.
        self.at += usize::from(rest.starts_with('('));
        let from = self.at;
        while self.at < self.text.len() && !self.remaining_script_text().starts_with(')') {
            self.at = end_of_quote_or_substitution(self.text, self.at, &mut Vec::new());
        }
        let line = self.text.get(from..self.at).unwrap_or("").to_owned();
        self.at += 1;
        let pattern = PipelineMember {
            line,
            bodies: String::new(),
        };
        // A pattern runs nothing but the substitutions in it.
        for script in pattern.substitution_scripts() {
            self.now.line.push_str(script);
            self.end_script_fragment();
        }
    }

    fn scan_opening_parenthesis(&mut self) {
        let inside = self
            .remaining_script_text()
            .get(1..)
            .unwrap_or("")
            .trim_start();
        // `((...))` is arithmetic, as is the bracket in the head of a loop.
        let is_sum = self.at_command_start() && inside.starts_with('(') || self.in_loop_head;
        if self.at_command_start() && !is_sum {
            self.at += 1;
            self.open.push(OpenCompoundCommand::Subshell);
        } else if inside.starts_with(')') && !is_sum {
            // `name()` defines a function; what follows is its body.
            self.now.line.clear();
            self.at = self.text.len() - inside.len() + 1;
        } else {
            let end = end_of_parenthesis(self.text, self.at);
            self.append_script_text_to_pipeline_member(end - self.at);
        }
    }

    /// Reads `<<` and the word that ends its body.
    fn read_heredoc_start(&mut self) {
        self.append_script_text_to_pipeline_member("<<".len());
        // `<<-` strips leading tabs from the body, also from the line that ends it.
        let tabs = self.remaining_script_text().starts_with('-');
        self.append_script_text_to_pipeline_member(usize::from(tabs));
        let rest = self.remaining_script_text();
        self.append_script_text_to_pipeline_member(
            rest.len() - rest.trim_start_matches([' ', '\t']).len(),
        );
        let from = self.now.line.len();
        while !self.remaining_script_text().is_empty()
            && !self
                .remaining_script_text()
                .starts_with(char_ends_shell_word)
        {
            self.push_whole_quotation_or_char();
        }
        let end = self.now.line.get(from..).unwrap_or("");
        self.heredocs.push(PendingHeredoc {
            piece: self.pieces.len(),
            member: self.members.len(),
            // Any quoting of the end word is removed before lines are compared with it.
            end: end.replace(['\'', '"', '\\'], ""),
            tabs,
        });
    }

    fn end_fragment_at_newline(&mut self) {
        self.at += 1;
        // After a pipe the command stands on the next line.
        if self.members.is_empty() || !self.at_command_start() {
            self.end_script_fragment();
        }
        // The bodies follow in the order in which their heredocs were opened.
        for heredoc in std::mem::take(&mut self.heredocs) {
            let body = self.read_heredoc_body(&heredoc);
            let member = match self.pieces.get_mut(heredoc.piece) {
                Some(piece) => piece.members.get_mut(heredoc.member),
                None => self.members.get_mut(heredoc.member),
            };
            if let Some(member) = member {
                member.bodies.push_str(body);
            }
        }
    }

    fn read_heredoc_body(&mut self, heredoc: &PendingHeredoc) -> &'s str {
        let rest = self.remaining_script_text();
        let mut length = 0;
        for line in rest.split_inclusive('\n') {
            length += line.len();
            let line = line.trim_end_matches('\n');
            let line = match heredoc.tabs {
                true => line.trim_start_matches('\t'),
                false => line,
            };
            if line == heredoc.end {
                break;
            }
        }
        self.at += length;
        rest.get(..length).unwrap_or("")
    }
}

fn char_ends_shell_word(c: char) -> bool {
    c.is_whitespace() || ";|&<>()".contains(c)
}

fn first_shell_word(text: &str) -> &str {
    let end = text.find(char_ends_shell_word).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

/// What ends an open quotation or substitution.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ShellClosingDelimiter {
    Quote,
    Backquote,
    Bracket,
    Brace,
}

/// Returns where the character, quotation or substitution that begins at `at` ends. Adds the
/// scripts of its outermost substitutions to `scripts`.
fn end_of_quote_or_substitution<'s>(text: &'s str, at: usize, scripts: &mut Vec<&'s str>) -> usize {
    ShellQuoteScanner {
        text,
        at,
        open: Vec::new(),
        script: None,
    }
    .scan_to_closing_delimiter(scripts)
}

/// Returns where the bracket that begins at `at` ends.
fn end_of_parenthesis(text: &str, at: usize) -> usize {
    ShellQuoteScanner {
        text,
        at: at + 1,
        open: vec![(ShellClosingDelimiter::Bracket, false)],
        script: None,
    }
    .scan_to_closing_delimiter(&mut Vec::new())
}

struct ShellQuoteScanner<'s> {
    text: &'s str,
    at: usize,
    /// The open delimiters, each with whether a single quote is an ordinary character inside it.
    open: Vec<(ShellClosingDelimiter, bool)>,
    /// The nesting depth at which the outermost substitution began, and where its script begins.
    script: Option<(usize, usize)>,
}

impl<'s> ShellQuoteScanner<'s> {
    fn scan_to_closing_delimiter(mut self, scripts: &mut Vec<&'s str>) -> usize {
        while self.at < self.text.len() {
            self.advance_quote_scanner(scripts);
            if self.open.is_empty() {
                break;
            }
        }
        // It is never closed, so the shell runs none of it.
        self.at.min(self.text.len())
    }

    fn push_open_shell_delimiter(&mut self, closer: ShellClosingDelimiter, length: usize) {
        // Between double quotes a single quote is text. A brace keeps the rule that holds around
        // it, and a substitution starts afresh.
        let literal = match closer {
            ShellClosingDelimiter::Quote => true,
            ShellClosingDelimiter::Brace => self.open.last().is_some_and(|(_, literal)| *literal),
            ShellClosingDelimiter::Backquote | ShellClosingDelimiter::Bracket => false,
        };
        self.at += length;
        if matches!(
            closer,
            ShellClosingDelimiter::Backquote | ShellClosingDelimiter::Bracket
        ) && self.script.is_none()
        {
            self.script = Some((self.open.len(), self.at));
        }
        self.open.push((closer, literal));
    }

    fn close_innermost_shell_delimiter(&mut self, scripts: &mut Vec<&'s str>) {
        self.open.pop();
        if let Some((_, from)) = self.script.filter(|(depth, _)| *depth == self.open.len()) {
            scripts.extend(self.text.get(from..self.at));
            self.script = None;
        }
        self.at += 1;
    }

    fn advance_quote_scanner(&mut self, scripts: &mut Vec<&'s str>) {
        let rest = self.text.get(self.at..).unwrap_or("");
        let (top, literal) = match self.open.last() {
            Some((top, literal)) => (Some(*top), *literal),
            None => (None, false),
        };
        let mut chars = rest.chars();
        let first = chars.next().unwrap_or(' ');
        match (first, chars.next()) {
            ('\\', next) => self.at += 1 + next.map_or(0, char::len_utf8),
            ('\'', _) if !literal => {
                let inner = rest.get(1..).unwrap_or("");
                self.at += inner.find('\'').map_or(rest.len(), |end| end + 2);
            }
            // `$'...'` knows escapes, so a `\'` does not end it.
            ('$', Some('\'')) if !literal => {
                let inner = rest.get(2..).unwrap_or("");
                self.at += 2 + super::quoting::unquote_ansi_c(inner).1;
            }
            ('"', _) if top == Some(ShellClosingDelimiter::Quote) => {
                self.close_innermost_shell_delimiter(scripts)
            }
            ('"', _) => self.push_open_shell_delimiter(ShellClosingDelimiter::Quote, 1),
            ('`', _) if top == Some(ShellClosingDelimiter::Backquote) => {
                self.close_innermost_shell_delimiter(scripts)
            }
            ('`', _) => self.push_open_shell_delimiter(ShellClosingDelimiter::Backquote, 1),
            ('$', Some('(')) => self.push_open_shell_delimiter(ShellClosingDelimiter::Bracket, 2),
            ('$', Some('{')) => self.push_open_shell_delimiter(ShellClosingDelimiter::Brace, 2),
            ('<' | '>', Some('(')) if !literal => {
                self.push_open_shell_delimiter(ShellClosingDelimiter::Bracket, 2)
            }
            ('(', _) if top == Some(ShellClosingDelimiter::Bracket) => {
                self.push_open_shell_delimiter(ShellClosingDelimiter::Bracket, 1)
            }
            (')', _) if top == Some(ShellClosingDelimiter::Bracket) => {
                self.close_innermost_shell_delimiter(scripts)
            }
            ('}', _) if top == Some(ShellClosingDelimiter::Brace) => {
                self.close_innermost_shell_delimiter(scripts)
            }
            _ => self.at += first.len_utf8(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let pieces: Vec<String> = split_script_fragments(text)
            .iter()
            .map(ScriptPipeline::pipeline_to_script_text)
            .collect();
        assert_eq!(pieces, expected, "{text}");
    }

    #[test]
    fn a_script_ends_where_the_shell_ends_a_command() {
        check("a && b || c; d & e\nf", &["a", "b", "c", "d", "e", "f"]);
        check("a | b |& c", &["a | b | c"]);
        check("a |\n  b\nc", &["a | b", "c"]);
        check(
            "a 'x; y' \"z; $(u; v)\" \\; b",
            &["a 'x; y' \"z; $(u; v)\" \\; b"],
        );
        check(
            "a `b; c`; d ${x:-;}; e $((1 | 2))",
            &["a `b; c`", "d ${x:-;}", "e $((1 | 2))"],
        );
        check(
            "a > x 2>&1; b &> y; c >| z",
            &["a > x 2>&1", "b &> y", "c >| z"],
        );
        check("a # it's; b\nc", &["a", "c"]);
        check("a#b; c", &["a#b", "c"]);
        check("a \"it's\"; b", &["a \"it's\"", "b"]);
        check("a \"${x:-it's}\"; b", &["a \"${x:-it's}\"", "b"]);
        check("a $'it\\'s'; b", &["a $'it\\'s'", "b"]);
        check("x=(a; b) c", &["x=(a; b) c"]);
        check("[[ a && (b || c) ]] && d", &["[[ a && (b || c) ]]", "d"]);
        check("é; a é", &["é", "a é"]);
    }

    #[test]
    fn words_that_hold_commands_together_are_left_out() {
        check("if a; then b; else c; fi", &["a", "b", "c"]);
        check("while a; do b; done < c", &["a", "b", "< c"]);
        check(
            "for x in 1 2; do a; done",
            &["for x in 1 2; do :; done", "a"],
        );
        check(
            "for ((i = 0; i < 2; i++)); do a; done",
            &["for ((i = 0; i < 2; i++)); do :; done", "a"],
        );
        check("! { a; }", &["a"]);
        check("(a; b)", &["a", "b"]);
        check("((a | b)); c", &["((a | b))", "c"]);
        check("f() { a; }; g () (b)", &["a", "b"]);
        check("function f { a; }", &["a"]);
        check("coproc a b; coproc c { d; }", &["a b", "d"]);
        check("{ a; } | b", &["a", " | b"]);
        check(
            "case $x in a | b) c;; (d) e ;; *) f; esac; g",
            &[": $x", "c", "e", "f", "g"],
        );
        check("case x in $(a)) b;; esac", &[": x", "a", "b"]);
    }

    #[test]
    fn bodies_stay_with_their_commands() {
        check("a <<E; b\nit's\nE\nc", &["a <<E\nit's\nE\n", "b", "c"]);
        check(
            "a <<-'E' | b\nx; y\n\tE\nc",
            &["a <<-'E' | b\nx; y\n\tE\n", "c"],
        );
        check("a <<E <<F\n1\nE\n2\nF", &["a <<E <<F\n1\nE\n2\nF"]);
        check("a <<E |\n1\nE\nb", &["a <<E | b\n1\nE\n"]);
        check("a <<< b; c", &["a <<< b", "c"]);
    }

    #[test]
    fn what_never_closes_ends() {
        for text in [
            "a 'b; c",
            "a \"b; $(c",
            "a `b",
            "((",
            "[[ a",
            "case",
            "case a in",
            "a <<",
            "for",
            "$'",
            "\\",
        ] {
            assert!(split_script_fragments(text).len() <= 2, "{text}");
        }
        assert!(split_script_fragments(&"a;".repeat(100_000)).len() <= MAX_PIECES + 1);
    }

    #[test]
    fn a_command_without_the_grammar() {
        let pieces = split_script_fragments("A=1 [ \"$(a; b)\" = -- ] 2> x >>y `c`");
        let member = &pieces[0].members[0];
        assert_eq!(member.substitution_scripts(), ["a; b", "c"]);
        let (words, written) = member.words_and_write_targets();
        let texts =
            |words: &[CommandWord]| words.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&words), ["[", "$(a; b)", "=", "--", "]", "`c`"]);
        assert_eq!(texts(&written), ["x", "y"]);
    }
}
