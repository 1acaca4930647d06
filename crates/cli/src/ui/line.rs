//! A line before it is printed: plain text in pieces, each with how it will be painted. It is
//! measured, cut and wrapped as plain text and painted last: nothing that is painted can be cut.

use console::measure_text_width;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::ui::printable::{one_line, safe};
use crate::ui::style::Paint;

/// Stands for what was cut.
const ELLIPSIS: &str = "…";

/// A blank at which no line is broken; it is printed as any other.
const UNBROKEN: &str = "\u{a0}";

/// Plain text, painted when it is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    pieces: Vec<Piece>,
}

/// Text that is shown in one way. It holds no escape sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Piece {
    text: String,
    paint: Option<Paint>,
}

impl<T: AsRef<str> + ?Sized> From<&T> for Line {
    fn from(text: &T) -> Self {
        Self::default().with(text.as_ref())
    }
}

impl Line {
    pub(crate) fn painted(paint: Paint, text: &str) -> Self {
        Self::default().with_painted(paint, text)
    }

    /// This line, and plain text behind it.
    #[must_use]
    pub(crate) fn with(mut self, text: &str) -> Self {
        self.push(text, None);
        self
    }

    /// This line, and painted text behind it.
    #[must_use]
    pub(crate) fn with_painted(mut self, paint: Paint, text: &str) -> Self {
        self.push(text, Some(paint));
        self
    }

    /// This line, and behind it a text of which no line is broken: a command that is pasted, a mark
    /// and its meaning.
    #[must_use]
    pub(crate) fn with_unbroken(self, text: &str) -> Self {
        self.with(&text.replace(' ', UNBROKEN))
    }

    /// This line, and the other behind it.
    #[must_use]
    pub(crate) fn then(mut self, other: Self) -> Self {
        for piece in other.pieces {
            self.push(&piece.text, piece.paint);
        }
        self
    }

    /// What strangers wrote into it is spelled out at once, so that it is measured as it is shown.
    fn push(&mut self, text: &str, paint: Option<Paint>) {
        match self.pieces.last_mut() {
            Some(last) if last.paint == paint => last.text.push_str(&safe(text)),
            _ => self.pieces.push(Piece {
                text: safe(text).into_owned(),
                paint,
            }),
        }
    }

    /// The text without any paint.
    pub(crate) fn plain(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| piece.text.replace(UNBROKEN, " "))
            .collect()
    }

    /// What a terminal reads.
    pub(super) fn for_terminal(&self, colours: bool) -> String {
        if !colours {
            return self.plain();
        }
        let mut text = String::new();
        for piece in &self.pieces {
            match piece.paint {
                // Each line begins and ends its own paint: a pager may show any one of them.
                Some(paint) => {
                    for (at, line) in piece.text.split('\n').enumerate() {
                        if at > 0 {
                            text.push('\n');
                        }
                        if !line.is_empty() {
                            text.push_str(&format!("\u{1b}[{}m{line}\u{1b}[0m", paint.code()));
                        }
                    }
                }
                None => text.push_str(&piece.text),
            }
        }
        text.replace(UNBROKEN, " ")
    }

    /// It is one line of its text each.
    pub(super) fn lines(self) -> Vec<Self> {
        let mut lines = vec![Self::default()];
        for piece in self.pieces {
            for (at, text) in piece.text.split('\n').enumerate() {
                if at > 0 {
                    lines.push(Self::default());
                }
                if let Some(last) = lines.last_mut() {
                    last.push(text, piece.paint);
                }
            }
        }
        lines
    }

    /// Blanks at its beginning.
    pub(super) fn indent(&self) -> usize {
        self.plain().chars().take_while(|c| *c == ' ').count()
    }

    /// Columns of a terminal that it takes.
    pub(crate) fn columns(&self) -> usize {
        self.pieces.iter().map(|piece| columns(&piece.text)).sum()
    }

    /// No wider than this: what does not fit is cut, and a mark stands for it.
    #[must_use]
    pub(crate) fn cut(self, width: usize) -> Self {
        let line = self.in_one();
        if line.columns() <= width {
            return line;
        }
        let mut left = width.saturating_sub(columns(ELLIPSIS));
        let mut cut = Self::default();
        for piece in line.pieces {
            let end = fitting(&piece.text, left);
            cut.push(piece.text.get(..end).unwrap_or_default(), piece.paint);
            left -= columns(piece.text.get(..end).unwrap_or_default());
            if end < piece.text.len() {
                cut.push(if width > 0 { ELLIPSIS } else { "" }, piece.paint);
                break;
            }
        }
        cut
    }

    /// Cut or filled up to exactly this width.
    #[must_use]
    pub(crate) fn padded(self, width: usize) -> Self {
        let line = self.cut(width);
        let missing = width.saturating_sub(line.columns());
        line.with(&" ".repeat(missing))
    }

    /// Filled up to this width, and whole where it is wider.
    #[must_use]
    pub(crate) fn at_least(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.columns());
        self.with(&" ".repeat(missing))
    }

    /// Without blanks at its end.
    #[must_use]
    pub(crate) fn trimmed(mut self) -> Self {
        while let Some(last) = self.pieces.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            self.pieces.pop();
        }
        self
    }

    /// Lines that are no wider than this, broken between words; all but the first are indented. What
    /// is pasted, a path or a command of ours, stays in one: wider than a line it begins at the
    /// left, and the terminal breaks it.
    pub(crate) fn wrapped(self, width: usize, indent: usize) -> Vec<Self> {
        let line = self.in_one();
        if line.columns() <= width {
            return vec![line];
        }
        let indent = indent.min(width / 2);
        let mut lines = Vec::new();
        let mut now = Self::default();
        // Blanks that stand between the line so far and the next word.
        let mut gap = Self::default();
        for word in line.words() {
            let (blank, word) = (word.is_blank(), word);
            if blank {
                gap = gap.then(word);
                continue;
            }
            let begins = now.plain().trim().is_empty();
            if !begins && now.columns() + gap.columns() + word.columns() > width {
                lines.push(std::mem::take(&mut now));
                let room = width.saturating_sub(indent);
                if word.columns() <= room {
                    now = Self::from(&" ".repeat(indent));
                }
                gap = Self::default();
            }
            now = now.then(std::mem::take(&mut gap)).then(word);
        }
        lines.push(now);
        lines
    }

    /// The same line, whatever breaks lines in it spelled out.
    pub(crate) fn in_one(self) -> Self {
        let mut line = Self::default();
        for piece in self.pieces {
            line.push(&one_line(&piece.text), piece.paint);
        }
        line
    }

    fn is_blank(&self) -> bool {
        self.pieces
            .iter()
            .all(|piece| piece.text.chars().all(|c| c == ' '))
    }

    /// Words and the blanks between them, in order; a command of ours is one word.
    fn words(self) -> Vec<Self> {
        let mut words: Vec<Self> = Vec::new();
        for piece in self.pieces {
            let mut rest = piece.text.as_str();
            while let Some(first) = rest.chars().next() {
                let blank = first == ' ';
                let end = rest.find(|c| (c == ' ') != blank).unwrap_or(rest.len());
                let (word, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
                rest = tail;
                let goes_on = words.last().is_some_and(|last| last.is_blank() == blank);
                match words.last_mut().filter(|_| goes_on) {
                    Some(last) => last.push(word, piece.paint),
                    None => words.push(Self::default().then(Self {
                        pieces: vec![Piece {
                            text: word.to_owned(),
                            paint: piece.paint,
                        }],
                    })),
                }
            }
        }
        commands_in_one(words)
    }
}

/// `checkrein show ID --why` is pasted: it is one word.
fn commands_in_one(words: Vec<Line>) -> Vec<Line> {
    let mut joined: Vec<Line> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(mut word) = words.next() {
        let mut belongs: fn(&str) -> bool = is_subcommand;
        if word.plain() == "checkrein" {
            let mut ahead = words.clone();
            while let (Some(blank), Some(next)) = (ahead.next(), ahead.next()) {
                let text = next.plain();
                if !belongs(&text) {
                    break;
                }
                word = word.then(blank).then(next);
                words.nth(1);
                belongs = is_argument;
                // A sentence ends here.
                if text.ends_with(['.', ',', ';', ':']) {
                    break;
                }
            }
        }
        joined.push(word);
    }
    joined
}

fn is_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// `--why`, `ID`, `8ade297d-6b1/1`, `ap-12`: what stands behind a command and is no prose.
fn is_argument(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ';', ':']);
    let capitals = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '-');
    word.starts_with('-') || word.contains('/') || word.starts_with("ap-") || capitals
}

/// How many columns a terminal takes for a text at most: of an emoji of several parts some show one
/// picture and some all parts.
fn columns(text: &str) -> usize {
    text.graphemes(true).map(cluster_columns).sum()
}

fn cluster_columns(cluster: &str) -> usize {
    let mut bytes = [0; 4];
    let parts = cluster.chars();
    let parts = parts.map(|c| measure_text_width(c.encode_utf8(&mut bytes)));
    parts.sum::<usize>().max(measure_text_width(cluster))
}

/// Where the part of `text` ends that takes no more than so many columns. No cluster of characters
/// is taken apart.
fn fitting(text: &str, width: usize) -> usize {
    let mut left = width;
    for (at, cluster) in text.grapheme_indices(true) {
        match left.checked_sub(cluster_columns(cluster)) {
            Some(rest) => left = rest,
            None => return at,
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cut_line_is_no_wider_and_cuts_no_mark() {
        for text in [
            "plain words and more of them",
            "東京都の東京タワー、東京駅、東京湾",
            "e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}e\u{301}",
            "👩‍👩‍👧‍👦👩‍👩‍👧‍👦👩‍👩‍👧‍👦 family",
            "\u{1b}[31mred\u{1b}[0m \u{1b}]0;title\u{7}\u{202e}",
            "a\nb\tc",
        ] {
            let line = Line::painted(Paint::Good, text)
                .with(" between ")
                .with_painted(Paint::Bad, text);
            for width in 0..60 {
                let cut = line.clone().cut(width);
                assert!(cut.columns() <= width, "{width}: {}", cut.plain());
                let shown = cut.for_terminal(true);
                let escapes = shown.matches('\u{1b}').count();
                let whole = ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[0m"];
                let whole: usize = whole.iter().map(|mark| shown.matches(mark).count()).sum();
                assert_eq!(escapes, whole, "{shown:?}");
                assert_eq!(shown.matches("\u{1b}[0m").count() * 2, whole, "{shown:?}");
                assert!(!cut.plain().contains('\n'));
            }
            let padded = line.padded(200);
            assert_eq!(padded.columns(), 200);
        }
    }

    #[test]
    fn a_family_stays_together() {
        let cut = Line::from("👩‍👩‍👧‍👦 and more").cut(6);
        assert_eq!(cut.plain(), "…");
        let cut = Line::from("e\u{301}e\u{301}e\u{301}").cut(2);
        assert_eq!(cut.plain(), "e\u{301}…");
    }

    #[track_caller]
    fn wraps(text: &str, width: usize, indent: usize, expected: &[&str]) {
        let lines = Line::from(text).wrapped(width, indent);
        let plain: Vec<String> = lines.iter().map(Line::plain).collect();
        assert_eq!(plain, expected);
    }

    #[test]
    fn lines_break_between_words_and_never_within_a_command() {
        wraps("one two three", 20, 2, &["one two three"]);
        wraps("  one two three", 9, 2, &["  one two", "  three"]);
        wraps(
            "Why: checkrein show 8ade297d-6b1/1 --why",
            30,
            2,
            &["Why:", "checkrein show 8ade297d-6b1/1 --why"],
        );
        wraps(
            "next: checkrein check shows what still fails",
            24,
            2,
            &["next: checkrein check", "  shows what still fails"],
        );
        wraps(
            "run checkrein run -- YOUR-AGENT. Or: checkrein init. It helps",
            22,
            0,
            &[
                "run",
                "checkrein run -- YOUR-AGENT.",
                "Or: checkrein init. It",
                "helps",
            ],
        );
        wraps(
            "full output: .checkrein/logs/tests-fefa7e082e8cf311.log",
            30,
            4,
            &["full output:", ".checkrein/logs/tests-fefa7e082e8cf311.log"],
        );
    }

    #[test]
    fn a_command_that_is_pasted_is_one_word() {
        let line = Line::from("The check is: ").with_unbroken("cargo test --quiet");
        let lines = line.wrapped(24, 2);
        let plain: Vec<String> = lines.iter().map(Line::plain).collect();
        assert_eq!(plain, ["The check is:", "  cargo test --quiet"]);
        assert!(!lines[1].for_terminal(true).contains(UNBROKEN));
    }

    #[test]
    fn a_column_is_as_wide_whatever_it_holds() {
        for text in [
            "checkrein.toml",
            "\u{6771}\u{4eac}/checkrein.toml",
            "e\u{301}t\u{e9}",
        ] {
            assert_eq!(Line::from(text).at_least(30).columns(), 30, "{text}");
        }
    }

    #[test]
    fn what_is_wrapped_stays_painted() {
        let line = Line::painted(Paint::Dim, "one two three").with(" four");
        let lines = line.wrapped(8, 1);
        let shown: Vec<String> = lines.iter().map(|line| line.for_terminal(true)).collect();
        assert_eq!(
            shown,
            [
                "\u{1b}[2mone two\u{1b}[0m",
                " \u{1b}[2mthree\u{1b}[0m",
                " four"
            ]
        );
    }
}
