//! Holds a line before it is printed: plain text in pieces, each with the paint it will get. A line
//! is measured, cut and wrapped as plain text and painted last, so that no escape sequence is ever
//! cut.

use console::measure_text_width;
use unicode_segmentation::UnicodeSegmentation as _;

use crate::ui::printable::{escape_hidden_except_newlines, escape_to_one_line};
use crate::ui::style::TextStyle;

/// The mark for what was cut.
const ELLIPSIS: &str = "…";

/// A blank at which no line is broken. It is printed as an ordinary one.
const UNBROKEN: &str = "\u{a0}";

/// Plain text, painted when it is printed.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct StyledLine {
    pieces: Vec<StyledPiece>,
}

/// Text that is shown in one way. It holds no escape sequence.
#[derive(Debug, Clone, PartialEq, Eq)]
struct StyledPiece {
    text: String,
    paint: Option<TextStyle>,
}

impl<T: AsRef<str> + ?Sized> From<&T> for StyledLine {
    fn from(text: &T) -> Self {
        Self::default().with_plain_suffix(text.as_ref())
    }
}

impl StyledLine {
    pub(crate) fn line_from_styled_text(paint: TextStyle, text: &str) -> Self {
        Self::default().with_painted_suffix(paint, text)
    }

    /// Appends plain text.
    #[must_use]
    pub(crate) fn with_plain_suffix(mut self, text: &str) -> Self {
        self.push_styled_text(text, None);
        self
    }

    /// Appends painted text.
    #[must_use]
    pub(crate) fn with_painted_suffix(mut self, paint: TextStyle, text: &str) -> Self {
        self.push_styled_text(text, Some(paint));
        self
    }

    /// Appends a text in which no line is broken: a command to paste, or a mark and its meaning.
    #[must_use]
    pub(crate) fn append_unwrappable_text(self, text: &str) -> Self {
        self.with_plain_suffix(&text.replace(' ', UNBROKEN))
    }

    /// Appends the other line.
    #[must_use]
    pub(crate) fn append_styled_line(mut self, other: Self) -> Self {
        for piece in other.pieces {
            self.push_styled_text(&piece.text, piece.paint);
        }
        self
    }

    /// Appends text with hidden characters spelled out at once, so that it is measured as it is
    /// shown.
    fn push_styled_text(&mut self, text: &str, paint: Option<TextStyle>) {
        match self.pieces.last_mut() {
            Some(last) if last.paint == paint => {
                last.text.push_str(&escape_hidden_except_newlines(text))
            }
            _ => self.pieces.push(StyledPiece {
                text: escape_hidden_except_newlines(text).into_owned(),
                paint,
            }),
        }
    }

    /// Returns the text without any paint.
    pub(crate) fn text_without_styling(&self) -> String {
        self.pieces
            .iter()
            .map(|piece| piece.text.replace(UNBROKEN, " "))
            .collect()
    }

    /// Returns the bytes for a terminal.
    pub(super) fn render_styled_line(&self, colours: bool) -> String {
        if !colours {
            return self.text_without_styling();
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
                            text.push_str(&format!("\u{1b}[{}m{line}\u{1b}[0m", paint.ansi_code()));
                        }
                    }
                }
                None => text.push_str(&piece.text),
            }
        }
        text.replace(UNBROKEN, " ")
    }

    /// Splits the text at line breaks.
    pub(super) fn split_at_newlines(self) -> Vec<Self> {
        let mut lines = vec![Self::default()];
        for piece in self.pieces {
            for (at, text) in piece.text.split('\n').enumerate() {
                if at > 0 {
                    lines.push(Self::default());
                }
                if let Some(last) = lines.last_mut() {
                    last.push_styled_text(text, piece.paint);
                }
            }
        }
        lines
    }

    /// Returns the number of blanks at its beginning.
    pub(super) fn leading_blank_count(&self) -> usize {
        self.text_without_styling()
            .chars()
            .take_while(|c| *c == ' ')
            .count()
    }

    /// Returns the columns of a terminal that it takes.
    pub(crate) fn line_display_width(&self) -> usize {
        self.pieces
            .iter()
            .map(|piece| line_display_width(&piece.text))
            .sum()
    }

    /// Returns the line no wider than this: what does not fit is cut, and a mark stands for it.
    #[must_use]
    pub(crate) fn truncated_to_width(self, width: usize) -> Self {
        let line = self.into_single_line();
        if line.line_display_width() <= width {
            return line;
        }
        // The mark itself needs room, also in a piece that would just fit.
        let mut left = width.saturating_sub(line_display_width(ELLIPSIS));
        let mut cut = Self::default();
        for piece in line.pieces {
            let end = prefix_length_for_columns(&piece.text, left);
            cut.push_styled_text(piece.text.get(..end).unwrap_or_default(), piece.paint);
            left -= line_display_width(piece.text.get(..end).unwrap_or_default());
            if end < piece.text.len() {
                cut.push_styled_text(if width > 0 { ELLIPSIS } else { "" }, piece.paint);
                break;
            }
        }
        cut
    }

    /// Returns the line cut or filled up to exactly this width.
    #[must_use]
    pub(crate) fn pad_or_cut_to_width(self, width: usize) -> Self {
        let line = self.truncated_to_width(width);
        let missing = width.saturating_sub(line.line_display_width());
        line.with_plain_suffix(&" ".repeat(missing))
    }

    /// Returns the line filled up to this width, and whole where it is wider.
    #[must_use]
    pub(crate) fn padded_to_min_width(self, width: usize) -> Self {
        let missing = width.saturating_sub(self.line_display_width());
        self.with_plain_suffix(&" ".repeat(missing))
    }

    /// Removes blanks at its end.
    #[must_use]
    pub(crate) fn without_trailing_blanks(mut self) -> Self {
        while let Some(last) = self.pieces.last_mut() {
            last.text.truncate(last.text.trim_end().len());
            if !last.text.is_empty() {
                break;
            }
            self.pieces.pop();
        }
        self
    }

    /// Wraps to lines no wider than this, broken between words; all but the first are indented.
    /// Text to paste, a path or a command of ours, stays in one piece: one that is wider than a
    /// line begins at the left, and the terminal breaks it.
    pub(crate) fn wrapped_to_width(self, width: usize, indent: usize) -> Vec<Self> {
        let line = self.into_single_line();
        if line.line_display_width() <= width {
            return vec![line];
        }
        // On a very narrow terminal the indentation must leave room for words.
        let indent = indent.min(width / 2);
        let mut lines = Vec::new();
        let mut now = Self::default();
        // Blanks that stand between the line so far and the next word.
        let mut gap = Self::default();
        for word in line.into_styled_words() {
            let (blank, word) = (word.is_blank(), word);
            if blank {
                gap = gap.append_styled_line(word);
                continue;
            }
            // A word that begins its line is never moved to the next, which would not end.
            let begins = now.text_without_styling().trim().is_empty();
            if !begins
                && now.line_display_width() + gap.line_display_width() + word.line_display_width()
                    > width
            {
                lines.push(std::mem::take(&mut now));
                let room = width.saturating_sub(indent);
                // A word too wide for the indented line begins at the left, so that a pasted copy
                // holds no blanks.
                if word.line_display_width() <= room {
                    now = Self::from(&" ".repeat(indent));
                }
                // Blanks at a break vanish.
                gap = Self::default();
            }
            now = now
                .append_styled_line(std::mem::take(&mut gap))
                .append_styled_line(word);
        }
        lines.push(now);
        lines
    }

    /// Returns the same line with whatever breaks lines in it spelled out.
    pub(crate) fn into_single_line(self) -> Self {
        let mut line = Self::default();
        for piece in self.pieces {
            line.push_styled_text(&escape_to_one_line(&piece.text), piece.paint);
        }
        line
    }

    fn is_blank(&self) -> bool {
        self.pieces
            .iter()
            .all(|piece| piece.text.chars().all(|c| c == ' '))
    }

    /// Splits into words and the blanks between them, in order. A command of ours is one word.
    fn into_styled_words(self) -> Vec<Self> {
        let mut words: Vec<Self> = Vec::new();
        for piece in self.pieces {
            let mut rest = piece.text.as_str();
            while let Some(first) = rest.chars().next() {
                let blank = first == ' ';
                let end = rest.find(|c| (c == ' ') != blank).unwrap_or(rest.len());
                let (word, tail) = rest.split_at_checked(end).unwrap_or((rest, ""));
                rest = tail;
                // A word may go on in the next piece, where only the paint changes.
                let goes_on = words.last().is_some_and(|last| last.is_blank() == blank);
                match words.last_mut().filter(|_| goes_on) {
                    Some(last) => last.push_styled_text(word, piece.paint),
                    None => words.push(Self::default().append_styled_line(Self {
                        pieces: vec![StyledPiece {
                            text: word.to_owned(),
                            paint: piece.paint,
                        }],
                    })),
                }
            }
        }
        keep_commands_unbroken(words)
    }
}

/// Joins the words of a command such as `checkrein show ID --why` into one, since people paste it.
fn keep_commands_unbroken(words: Vec<StyledLine>) -> Vec<StyledLine> {
    let mut joined: Vec<StyledLine> = Vec::new();
    let mut words = words.into_iter().peekable();
    while let Some(mut word) = words.next() {
        // Behind `checkrein` comes a subcommand, then arguments; prose such as "checkrein is" joins
        // only one word.
        let mut belongs: fn(&str) -> bool = could_be_checkrein_subcommand;
        if word.text_without_styling() == "checkrein" {
            let mut ahead = words.clone();
            while let (Some(blank), Some(next)) = (ahead.next(), ahead.next()) {
                let text = next.text_without_styling();
                if !belongs(&text) {
                    break;
                }
                word = word.append_styled_line(blank).append_styled_line(next);
                words.nth(1);
                belongs = looks_like_cli_argument;
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

fn could_be_checkrein_subcommand(word: &str) -> bool {
    word.starts_with(|c: char| c.is_ascii_lowercase())
}

/// Returns whether a word can be an argument: `--why`, `ID`, `8ade297d-6b1/1`, `ap-12`, but not
/// prose.
fn looks_like_cli_argument(word: &str) -> bool {
    let word = word.trim_end_matches(['.', ',', ';', ':']);
    let capitals = !word.is_empty() && word.chars().all(|c| c.is_ascii_uppercase() || c == '-');
    word.starts_with('-') || word.contains('/') || word.starts_with("ap-") || capitals
}

/// Returns how many columns a terminal takes for a text at most. Of an emoji of several parts some
/// terminals show one picture and some all parts.
fn line_display_width(text: &str) -> usize {
    text.graphemes(true).map(grapheme_columns).sum()
}

fn grapheme_columns(cluster: &str) -> usize {
    let mut bytes = [0; 4];
    let parts = cluster.chars();
    let parts = parts.map(|c| measure_text_width(c.encode_utf8(&mut bytes)));
    // The larger of both counts, so that no terminal wraps a line that was measured to fit.
    parts.sum::<usize>().max(measure_text_width(cluster))
}

/// Returns where the part of `text` ends that takes no more than so many columns. No cluster of
/// characters is taken apart.
fn prefix_length_for_columns(text: &str, width: usize) -> usize {
    let mut left = width;
    for (at, cluster) in text.grapheme_indices(true) {
        match left.checked_sub(grapheme_columns(cluster)) {
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
            let line = StyledLine::line_from_styled_text(TextStyle::Good, text)
                .with_plain_suffix(" between ")
                .with_painted_suffix(TextStyle::Bad, text);
            for width in 0..60 {
                let cut = line.clone().truncated_to_width(width);
                assert!(
                    cut.line_display_width() <= width,
                    "{width}: {}",
                    cut.text_without_styling()
                );
                let shown = cut.render_styled_line(true);
                let escapes = shown.matches('\u{1b}').count();
                let whole = ["\u{1b}[32m", "\u{1b}[31m", "\u{1b}[0m"];
                let whole: usize = whole.iter().map(|mark| shown.matches(mark).count()).sum();
                assert_eq!(escapes, whole, "{shown:?}");
                assert_eq!(shown.matches("\u{1b}[0m").count() * 2, whole, "{shown:?}");
                assert!(!cut.text_without_styling().contains('\n'));
            }
            let padded = line.pad_or_cut_to_width(200);
            assert_eq!(padded.line_display_width(), 200);
        }
    }

    #[test]
    fn a_family_stays_together() {
        let cut = StyledLine::from("👩‍👩‍👧‍👦 and more").truncated_to_width(6);
        assert_eq!(cut.text_without_styling(), "…");
        let cut = StyledLine::from("e\u{301}e\u{301}e\u{301}").truncated_to_width(2);
        assert_eq!(cut.text_without_styling(), "e\u{301}…");
    }

    #[track_caller]
    fn wraps(text: &str, width: usize, indent: usize, expected: &[&str]) {
        let lines = StyledLine::from(text).wrapped_to_width(width, indent);
        let plain: Vec<String> = lines.iter().map(StyledLine::text_without_styling).collect();
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
        let line = StyledLine::from("The check is: ").append_unwrappable_text("cargo test --quiet");
        let lines = line.wrapped_to_width(24, 2);
        let plain: Vec<String> = lines.iter().map(StyledLine::text_without_styling).collect();
        assert_eq!(plain, ["The check is:", "  cargo test --quiet"]);
        assert!(!lines[1].render_styled_line(true).contains(UNBROKEN));
    }

    #[test]
    fn a_column_is_as_wide_whatever_it_holds() {
        for text in [
            "checkrein.toml",
            "\u{6771}\u{4eac}/checkrein.toml",
            "e\u{301}t\u{e9}",
        ] {
            assert_eq!(
                StyledLine::from(text)
                    .padded_to_min_width(30)
                    .line_display_width(),
                30,
                "{text}"
            );
        }
    }

    #[test]
    fn what_is_wrapped_stays_painted() {
        let line = StyledLine::line_from_styled_text(TextStyle::Dim, "one two three")
            .with_plain_suffix(" four");
        let lines = line.wrapped_to_width(8, 1);
        let shown: Vec<String> = lines
            .iter()
            .map(|line| line.render_styled_line(true))
            .collect();
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
