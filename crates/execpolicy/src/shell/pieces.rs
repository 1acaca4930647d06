//! A script that the grammar gives up on, cut where the shell ends a command: each piece can be
//! read alone. One test that the grammar cannot read (`[ -d ~ ]`) hides nothing behind it.
//!
//! It cuts and does not judge: quotes, substitutions and the bodies of heredocs stay whole, words
//! that only hold commands together (`then`, `{`, `done`) are left out.

use super::word::{Known, Word};

/// Pieces that are told apart.
const MAX_PIECES: usize = 2_000;

/// Words behind which a command can begin. `time` is none here: it has options.
const KEYWORDS: &[&str] = &[
    "if", "then", "else", "elif", "while", "until", "do", "!", "{", "fi", "done", "}",
];

/// What stands between two ends of a command: the members of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Piece {
    pub(super) members: Vec<Member>,
}

/// A command of a pipeline.
#[derive(Debug, Default)]
pub(super) struct Member {
    line: String,
    /// The bodies of its heredocs, with their ends.
    bodies: String,
}

impl Piece {
    /// The pipeline as a script of its own.
    pub(super) fn text(&self) -> String {
        let lines: Vec<&str> = self.members.iter().map(|m| m.line.as_str()).collect();
        let bodies: String = self.members.iter().map(|m| m.bodies.as_str()).collect();
        with_bodies(&lines.join(" | "), &bodies)
    }
}

impl Member {
    /// The command as a script of its own.
    pub(super) fn text(&self) -> String {
        with_bodies(&self.line, &self.bodies)
    }

    /// Whether there is none: a compound command ended before the pipe.
    pub(super) fn is_empty(&self) -> bool {
        self.line.is_empty()
    }

    /// Its words, and the files that it writes, by the rules of quoting alone.
    pub(super) fn words(&self) -> (Vec<Word>, Vec<Word>) {
        let mut split = shlex::split(&self.line).unwrap_or_default().into_iter();
        let (mut words, mut written) = (Vec::new(), Vec::new());
        while let Some(text) = split.next() {
            let operator = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '&');
            let Some(target) = operator.strip_prefix('>') else {
                words.push(word(text));
                continue;
            };
            let target = match target.trim_start_matches(['>', '|']) {
                "" => split.next().unwrap_or_default(),
                target => target.to_owned(),
            };
            written.push(word(target));
        }
        let own = words.iter().take_while(|word| word.is_assignment()).count();
        (words.split_off(own), written)
    }

    /// The scripts of the substitutions in its line, the outermost ones.
    pub(super) fn substitutions(&self) -> Vec<&str> {
        let mut found = Vec::new();
        let mut at = 0;
        while at < self.line.len() {
            // What is a sum may hold substitutions all the same.
            let sum = self.line.get(at..).is_some_and(|l| l.starts_with("$(("));
            at = match sum {
                true => at + "$((".len(),
                false => past(&self.line, at, &mut found),
            };
        }
        found
    }
}

fn with_bodies(line: &str, bodies: &str) -> String {
    match bodies {
        "" => line.to_owned(),
        bodies => format!("{line}\n{bodies}"),
    }
}

fn word(text: String) -> Word {
    match text.contains(['$', '`', '*', '?', '{']) {
        true => Word::open(text, Known::Many),
        false => Word::fixed(text),
    }
}

/// The pieces of a script; beyond the last that is told apart stands the rest as it is.
pub(super) fn of(text: &str) -> Vec<Piece> {
    let mut cut = Cut {
        text,
        at: 0,
        pieces: Vec::new(),
        members: Vec::new(),
        now: Member::default(),
        heredocs: Vec::new(),
        open: Vec::new(),
        loops: false,
        tests: false,
    };
    while cut.at < text.len() && cut.pieces.len() < MAX_PIECES {
        cut.step();
    }
    let rest = cut.rest();
    cut.now.line.push_str(rest);
    cut.end();
    cut.pieces
}

/// A compound command that is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Open {
    Subshell,
    /// `case`, before the bracket that ends a pattern.
    Pattern,
    /// `case`, behind it.
    Case,
}

/// A heredoc whose body begins on the next line.
struct Heredoc {
    piece: usize,
    member: usize,
    end: String,
    tabs: bool,
}

struct Cut<'s> {
    text: &'s str,
    at: usize,
    pieces: Vec<Piece>,
    /// Of the piece that is read now.
    members: Vec<Member>,
    now: Member,
    heredocs: Vec<Heredoc>,
    open: Vec<Open>,
    /// Whether it is the head of a loop, which the grammar reads with a body only.
    loops: bool,
    /// Whether it is a `[[`, in which no command ends.
    tests: bool,
}

impl<'s> Cut<'s> {
    fn rest(&self) -> &'s str {
        self.text.get(self.at..).unwrap_or("")
    }

    /// Whether nothing of a command stands here yet; blanks before it are left out.
    fn begins(&self) -> bool {
        self.now.line.is_empty()
    }

    /// Whether a word could begin here.
    fn at_word(&self) -> bool {
        let before = self.now.line.chars().next_back();
        before.is_none_or(char::is_whitespace)
    }

    fn push(&mut self, bytes: usize) {
        let end = (self.at + bytes).min(self.text.len());
        let piece = self.text.get(self.at..end).unwrap_or("");
        self.now.line.push_str(piece);
        self.at = end;
    }

    /// A quotation, a substitution or a character.
    fn push_whole(&mut self) {
        let end = past(self.text, self.at, &mut Vec::new());
        self.push(end - self.at);
    }

    fn end_member(&mut self) {
        let mut member = std::mem::take(&mut self.now);
        member.line = member.line.trim().to_owned();
        if std::mem::take(&mut self.loops) {
            member.line.push_str("; do :; done");
        }
        self.members.push(member);
    }

    fn end(&mut self) {
        self.end_member();
        let members = std::mem::take(&mut self.members);
        if members.iter().any(|member| !member.is_empty()) {
            self.pieces.push(Piece { members });
        }
    }

    fn step(&mut self) {
        if self.tests {
            self.tests = !(self.at_word() && first_word(self.rest()) == "]]");
            return match self.tests {
                true => self.push_whole(),
                false => self.push("]]".len()),
            };
        }
        if self.begins() && self.compound() {
            return;
        }
        let rest = self.rest();
        let mut chars = rest.chars();
        match (chars.next().unwrap_or(' '), chars.next()) {
            ('\n', _) => self.newline(),
            (' ' | '\t', _) if self.begins() => self.at += 1,
            ('#', _) if self.at_word() => {
                self.at += rest.find('\n').unwrap_or(rest.len());
            }
            (';', _) => {
                let ends = rest.len() - rest.trim_start_matches([';', '&']).len();
                self.at += ends;
                if ends > 1 && self.open.last() == Some(&Open::Case) {
                    self.open.pop();
                    self.open.push(Open::Pattern);
                }
                self.end();
            }
            ('&', Some('>')) => self.push(2),
            ('&' | '|', _) if self.now.line.ends_with(['>', '<']) => self.push(1),
            ('&', Some('&')) | ('|', Some('|')) => {
                self.at += 2;
                self.end();
            }
            ('&', _) => {
                self.at += 1;
                self.end();
            }
            ('|', next) => {
                self.at += 1 + usize::from(next == Some('&'));
                self.end_member();
            }
            (')', _) => {
                self.at += 1;
                if self.open.last() == Some(&Open::Subshell) {
                    self.open.pop();
                }
                self.end();
            }
            ('(', _) => self.bracket(),
            ('<', Some('<')) if !rest.starts_with("<<<") => self.heredoc(),
            ('<', Some('<')) => self.push(3),
            _ => self.push_whole(),
        }
    }

    /// What begins a compound command, or ends one; says whether there was any.
    fn compound(&mut self) -> bool {
        if self.open.last() == Some(&Open::Pattern) {
            self.pattern();
            return true;
        }
        let word = first_word(self.rest());
        match word {
            "for" | "select" => {
                self.loops = true;
                self.push(word.len());
            }
            "case" => self.case(),
            "esac" => {
                self.at += word.len();
                if self.open.last() == Some(&Open::Case) {
                    self.open.pop();
                }
            }
            "function" => {
                self.at += word.len();
                let rest = self.rest();
                let blanks = rest.len() - rest.trim_start().len();
                let name = first_word(rest.trim_start());
                self.at += blanks + name.len().max(1);
            }
            "coproc" => {
                self.at += word.len();
                // `coproc NAME { ...; }`
                let rest = self.rest().trim_start();
                let behind = rest
                    .get(first_word(rest).len()..)
                    .unwrap_or("")
                    .trim_start();
                if behind.starts_with(['{', '(']) {
                    self.at = self.text.len() - behind.len();
                }
            }
            "[[" => {
                self.tests = true;
                self.push(word.len());
            }
            _ if KEYWORDS.contains(&word) => self.at += word.len(),
            _ => return false,
        }
        true
    }

    /// `case WORD in`: of the word only substitutions run.
    fn case(&mut self) {
        self.at += "case".len();
        self.now.line.push(':');
        while self.at < self.text.len() {
            if self.at_word() && first_word(self.rest()) == "in" {
                self.at += "in".len();
                break;
            }
            self.push_whole();
        }
        self.end();
        self.open.push(Open::Pattern);
    }

    /// Up to the bracket behind a pattern, or to the end of the `case`.
    fn pattern(&mut self) {
        let rest = self.rest();
        let blanks = rest.len() - rest.trim_start().len();
        self.at += blanks;
        let rest = rest.trim_start();
        if rest.starts_with('#') {
            self.at += rest.find('\n').unwrap_or(rest.len());
            return;
        }
        self.open.pop();
        if first_word(rest) == "esac" {
            self.at += "esac".len();
            return;
        }
        self.open.push(Open::Case);
        self.at += usize::from(rest.starts_with('('));
        let from = self.at;
        while self.at < self.text.len() && !self.rest().starts_with(')') {
            self.at = past(self.text, self.at, &mut Vec::new());
        }
        let line = self.text.get(from..self.at).unwrap_or("").to_owned();
        self.at += 1;
        let pattern = Member {
            line,
            bodies: String::new(),
        };
        for script in pattern.substitutions() {
            self.now.line.push_str(script);
            self.end();
        }
    }

    fn bracket(&mut self) {
        let inside = self.rest().get(1..).unwrap_or("").trim_start();
        // `((sum))`, and of a loop.
        let is_sum = self.begins() && inside.starts_with('(') || self.loops;
        if self.begins() && !is_sum {
            self.at += 1;
            self.open.push(Open::Subshell);
        } else if inside.starts_with(')') && !is_sum {
            // `name()`: what follows is the body.
            self.now.line.clear();
            self.at = self.text.len() - inside.len() + 1;
        } else {
            let end = past_bracket(self.text, self.at);
            self.push(end - self.at);
        }
    }

    /// `<<` and the word that ends its body.
    fn heredoc(&mut self) {
        self.push("<<".len());
        let tabs = self.rest().starts_with('-');
        self.push(usize::from(tabs));
        let rest = self.rest();
        self.push(rest.len() - rest.trim_start_matches([' ', '\t']).len());
        let from = self.now.line.len();
        while !self.rest().is_empty() && !self.rest().starts_with(ends_word) {
            self.push_whole();
        }
        let end = self.now.line.get(from..).unwrap_or("");
        self.heredocs.push(Heredoc {
            piece: self.pieces.len(),
            member: self.members.len(),
            end: end.replace(['\'', '"', '\\'], ""),
            tabs,
        });
    }

    fn newline(&mut self) {
        self.at += 1;
        // Behind a pipe the command is still to come.
        if self.members.is_empty() || !self.begins() {
            self.end();
        }
        for heredoc in std::mem::take(&mut self.heredocs) {
            let body = self.body(&heredoc);
            let member = match self.pieces.get_mut(heredoc.piece) {
                Some(piece) => piece.members.get_mut(heredoc.member),
                None => self.members.get_mut(heredoc.member),
            };
            if let Some(member) = member {
                member.bodies.push_str(body);
            }
        }
    }

    fn body(&mut self, heredoc: &Heredoc) -> &'s str {
        let rest = self.rest();
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

fn ends_word(c: char) -> bool {
    c.is_whitespace() || ";|&<>()".contains(c)
}

fn first_word(text: &str) -> &str {
    let end = text.find(ends_word).unwrap_or(text.len());
    text.get(..end).unwrap_or("")
}

/// What a quotation or a substitution ends with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Closer {
    Quote,
    Backquote,
    Bracket,
    Brace,
}

/// Where the character, the quotation or the substitution that begins at `at` ends. Adds the
/// scripts of its outermost substitutions to `scripts`.
fn past<'s>(text: &'s str, at: usize, scripts: &mut Vec<&'s str>) -> usize {
    Past {
        text,
        at,
        open: Vec::new(),
        script: None,
    }
    .end(scripts)
}

/// Where the bracket that begins at `at` ends.
fn past_bracket(text: &str, at: usize) -> usize {
    Past {
        text,
        at: at + 1,
        open: vec![(Closer::Bracket, false)],
        script: None,
    }
    .end(&mut Vec::new())
}

struct Past<'s> {
    text: &'s str,
    at: usize,
    /// What is open, and whether a single quote is a character there.
    open: Vec<(Closer, bool)>,
    /// How much was open where the outermost substitution began, and where its script does.
    script: Option<(usize, usize)>,
}

impl<'s> Past<'s> {
    fn end(mut self, scripts: &mut Vec<&'s str>) -> usize {
        while self.at < self.text.len() {
            self.step(scripts);
            if self.open.is_empty() {
                break;
            }
        }
        // It is never closed: the shell runs none of it.
        self.at.min(self.text.len())
    }

    fn opens(&mut self, closer: Closer, length: usize) {
        let literal = match closer {
            Closer::Quote => true,
            Closer::Brace => self.open.last().is_some_and(|(_, literal)| *literal),
            Closer::Backquote | Closer::Bracket => false,
        };
        self.at += length;
        if matches!(closer, Closer::Backquote | Closer::Bracket) && self.script.is_none() {
            self.script = Some((self.open.len(), self.at));
        }
        self.open.push((closer, literal));
    }

    fn closes(&mut self, scripts: &mut Vec<&'s str>) {
        self.open.pop();
        if let Some((_, from)) = self.script.filter(|(depth, _)| *depth == self.open.len()) {
            scripts.extend(self.text.get(from..self.at));
            self.script = None;
        }
        self.at += 1;
    }

    fn step(&mut self, scripts: &mut Vec<&'s str>) {
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
            ('$', Some('\'')) if !literal => {
                let inner = rest.get(2..).unwrap_or("");
                self.at += 2 + super::quote::ansi_c(inner).1;
            }
            ('"', _) if top == Some(Closer::Quote) => self.closes(scripts),
            ('"', _) => self.opens(Closer::Quote, 1),
            ('`', _) if top == Some(Closer::Backquote) => self.closes(scripts),
            ('`', _) => self.opens(Closer::Backquote, 1),
            ('$', Some('(')) => self.opens(Closer::Bracket, 2),
            ('$', Some('{')) => self.opens(Closer::Brace, 2),
            ('<' | '>', Some('(')) if !literal => self.opens(Closer::Bracket, 2),
            ('(', _) if top == Some(Closer::Bracket) => self.opens(Closer::Bracket, 1),
            (')', _) if top == Some(Closer::Bracket) => self.closes(scripts),
            ('}', _) if top == Some(Closer::Brace) => self.closes(scripts),
            _ => self.at += first.len_utf8(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &[&str]) {
        let pieces: Vec<String> = of(text).iter().map(Piece::text).collect();
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
            assert!(of(text).len() <= 2, "{text}");
        }
        assert!(of(&"a;".repeat(100_000)).len() <= MAX_PIECES + 1);
    }

    #[test]
    fn a_command_without_the_grammar() {
        let pieces = of("A=1 [ \"$(a; b)\" = -- ] 2> x >>y `c`");
        let member = &pieces[0].members[0];
        assert_eq!(member.substitutions(), ["a; b", "c"]);
        let (words, written) = member.words();
        let texts = |words: &[Word]| words.iter().map(|w| w.text.clone()).collect::<Vec<_>>();
        assert_eq!(texts(&words), ["[", "$(a; b)", "=", "--", "]", "`c`"]);
        assert_eq!(texts(&written), ["x", "y"]);
    }
}
