//! One word of a command as far as the source fixes it.

use tree_sitter::Node;

use super::quote;

/// How much of a word is known before the script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Known {
    /// All of it.
    Fixed,
    /// That it is one word; some of its text comes from an expansion.
    One,
    /// Not even how many words it becomes: an unquoted expansion, a glob, braces.
    Many,
}

/// A word after quotes were removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Word {
    /// Its text; expansions stand in it as their source.
    pub(crate) text: String,
    /// How much of that is sure.
    pub(crate) known: Known,
    /// Bytes of `text` before the first expansion.
    lead: usize,
    /// Bytes of `text` up to the end of the last expansion.
    tail: usize,
}

impl Word {
    /// A word that is known.
    pub(crate) fn fixed(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            lead: text.len(),
            tail: 0,
            text,
            known: Known::Fixed,
        }
    }

    /// A word nothing is known of.
    pub(crate) fn open(text: impl Into<String>, known: Known) -> Self {
        let text = text.into();
        Self {
            lead: 0,
            tail: text.len(),
            text,
            known,
        }
    }

    /// Continues with `next`, nothing between them.
    pub(crate) fn append(&mut self, next: &Self) {
        let at = self.text.len();
        if self.known == Known::Fixed {
            self.lead = at + next.lead;
        }
        if next.known != Known::Fixed {
            self.tail = at + next.tail;
        }
        self.known = self.known.max(next.known);
        self.text.push_str(&next.text);
    }

    /// The text, if all of it is known.
    pub(crate) fn as_fixed(&self) -> Option<&str> {
        (self.known == Known::Fixed).then_some(self.text.as_str())
    }

    /// The known beginning.
    pub(crate) fn lead(&self) -> &str {
        self.text.get(..self.lead).unwrap_or("")
    }

    /// What stands from this byte on.
    pub(crate) fn from(&self, at: usize) -> Self {
        let lead = self.lead.saturating_sub(at);
        let known = match at >= self.tail && self.known == Known::One {
            true => Known::Fixed,
            false => self.known,
        };
        let text = self.text.get(at..).unwrap_or("").to_owned();
        Self {
            lead: if known == Known::Fixed {
                text.len()
            } else {
                lead
            },
            tail: self.tail.saturating_sub(at),
            known,
            text,
        }
    }

    /// What stands before this byte.
    pub(crate) fn cut(&self, at: usize) -> Self {
        let text = self.text.get(..at).unwrap_or(&self.text).to_owned();
        let known = match self.lead >= text.len() {
            true => Known::Fixed,
            false => self.known,
        };
        Self {
            lead: self.lead.min(text.len()),
            tail: if known == Known::Fixed {
                0
            } else {
                self.tail.min(text.len())
            },
            known,
            text,
        }
    }

    /// What stands behind the first of these; `None` if there is none.
    pub(crate) fn after(&self, c: char) -> Option<Self> {
        let at = self.text.find(c)?;
        Some(self.from(at + c.len_utf8()))
    }

    /// Whether nothing of it is known, not even that it is one word: `$X`, `$(...)`. A glob is
    /// not, nor what `xargs` adds: names of files are not taken for options here.
    pub(crate) fn is_wide_open(&self) -> bool {
        self.known == Known::Many && self.lead == 0 && self.text.starts_with(['$', '`'])
    }

    /// Whether it is one expansion after the other, and may come to nothing.
    pub(crate) fn may_be_nothing(&self) -> bool {
        self.known != Known::Fixed && self.lead == 0 && self.tail == self.text.len()
    }

    /// The text as the name of a program: fixed, or one word whose folder alone is not
    /// known (`"$DIR/bin/cargo"`), since rules look at the last part only.
    pub(crate) fn as_program(&self) -> Option<&str> {
        let known = match self.known {
            Known::Fixed => true,
            Known::One => {
                let end = self.text.get(self.tail..).unwrap_or("");
                end.rsplit_once('/')
                    .is_some_and(|(_, name)| !name.is_empty())
            }
            Known::Many => false,
        };
        known.then_some(self.text.as_str())
    }

    /// Whether it begins `NAME=`, and so is an assignment to `env` and the like.
    pub(crate) fn is_assignment(&self) -> bool {
        self.lead().split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && !name.starts_with('-') && !name.contains('/')
        })
    }

    /// With every `placeholder` in it filled by something unknown, as `xargs -I` and
    /// `find -exec` do.
    pub(crate) fn with_placeholder(&self, placeholder: &str) -> Self {
        let Some(at) = self
            .text
            .find(placeholder)
            .filter(|_| !placeholder.is_empty())
        else {
            return self.clone();
        };
        let last = self.text.rfind(placeholder).unwrap_or(at) + placeholder.len();
        Self {
            text: self.text.clone(),
            known: self.known.max(Known::One),
            lead: self.lead.min(at),
            tail: self.tail.max(last),
        }
    }
}

/// Reads a word from the tree; `None` if the grammar and the shell do not agree on it.
pub(crate) fn read(node: Node<'_>, source: &str) -> Option<Word> {
    let mut reader = Reader {
        source,
        word: Word::fixed(""),
        brace: None,
        agreed: true,
    };
    reader.word.lead = usize::MAX;
    reader.part(node, 0);
    let mut word = reader.word;
    word.lead = word.lead.min(word.text.len());
    reader.agreed.then_some(word)
}

struct Reader<'s> {
    source: &'s str,
    word: Word,
    /// Where an unquoted `{` stands, and whether `,` or `..` followed it.
    brace: Option<(usize, bool)>,
    agreed: bool,
}

impl<'s> Reader<'s> {
    fn piece(&self, from: usize, to: usize) -> &'s str {
        self.source.get(from..to).unwrap_or("")
    }

    fn part(&mut self, node: Node<'_>, depth: u8) {
        let piece = self.piece(node.start_byte(), node.end_byte());
        match node.kind() {
            "concatenation" | "command_name" | "variable_assignment" if depth < 8 => {
                self.children(node, depth);
            }
            "string" => self.string(node),
            "translated_string" if depth < 8 => match node.named_child(0) {
                Some(string) => self.part(string, depth + 1),
                None => self.expansion(piece, Known::One),
            },
            "raw_string" => {
                let inner = piece.get(1..piece.len().saturating_sub(1)).unwrap_or("");
                self.word.text.push_str(inner);
            }
            "ansi_c_string" => {
                let inner = piece.get(2..).unwrap_or("");
                let (text, taken) = quote::ansi_c(inner);
                self.agreed &= taken == inner.len();
                self.word.text.push_str(&text);
            }
            _ if node.child_count() == 0 => self.bare(piece),
            _ => self.expansion(piece, Known::Many),
        }
    }

    /// Parts side by side; what lies between them is source of its own.
    fn children(&mut self, node: Node<'_>, depth: u8) {
        let mut at = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.bare(self.piece(at, child.start_byte()));
            self.part(child, depth + 1);
            at = child.end_byte();
        }
        self.bare(self.piece(at, node.end_byte()));
    }

    /// The grammar drops blanks at the edges of `string_content`, so the text is taken
    /// from the source and only the expansions from the tree.
    fn string(&mut self, node: Node<'_>) {
        let mut at = node.start_byte() + 1;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if child.kind() == "string_content" {
                continue;
            }
            self.quoted(self.piece(at, child.start_byte()));
            let piece = self.piece(child.start_byte(), child.end_byte());
            // "$@" and "${a[@]}" become many words even between quotes; what a command prints
            // does not.
            let known =
                if piece.contains('@') && !piece.starts_with(['`']) && !piece.starts_with("$(") {
                    Known::Many
                } else {
                    Known::One
                };
            self.expansion(piece, known);
            at = child.end_byte();
        }
        self.quoted(self.piece(at, node.end_byte().saturating_sub(1)));
    }

    fn quoted(&mut self, text: &str) {
        self.agreed &= !quote::hides_substitution(text);
        quote::double_quoted(text, true, &mut self.word.text);
    }

    fn expansion(&mut self, piece: &str, known: Known) {
        // Always a number, without quotes too.
        let number = matches!(piece, "$(nproc)" | "$#" | "$?" | "$$" | "$!");
        let known = if number { Known::One } else { known };
        self.word.lead = self.word.lead.min(self.word.text.len());
        self.word.text.push_str(piece);
        self.word.tail = self.word.text.len();
        self.word.known = self.word.known.max(known);
    }

    /// Unquoted text: backslashes keep the next character, globs and braces open the word.
    fn bare(&mut self, text: &str) {
        let mut chars = text.chars().peekable();
        while let Some(c) = chars.next() {
            let at = self.word.text.len();
            match c {
                '\\' => {
                    match chars.next() {
                        Some('\n') | None => {}
                        Some(kept) => self.word.text.push(kept),
                    }
                    continue;
                }
                '*' | '?' => self.opens_at(at),
                '[' if chars.clone().any(|c| c == ']') => self.opens_at(at),
                '{' => self.brace = Some((at, false)),
                // The grammar may cut `r[m]` anywhere.
                ']' => {
                    if let Some(at) = self
                        .word
                        .text
                        .find('[')
                        .filter(|_| self.word.text.len() > 1)
                    {
                        self.opens_at(at);
                    }
                }
                ',' => self.brace = self.brace.map(|(at, _)| (at, true)),
                '.' if chars.peek() == Some(&'.') => {
                    self.brace = self.brace.map(|(at, _)| (at, true));
                }
                '}' => {
                    if let Some((at, true)) = self.brace.take() {
                        self.opens_at(at);
                    }
                }
                '`' => self.agreed = false,
                '$' if chars.peek() == Some(&'(') => self.agreed = false,
                _ => {}
            }
            self.word.text.push(c);
            if self.word.known == Known::Many && matches!(c, '*' | '?' | ']' | '}') {
                self.word.tail = self.word.text.len();
            }
        }
    }

    fn opens_at(&mut self, at: usize) {
        self.word.lead = self.word.lead.min(at);
        self.word.tail = self.word.tail.max(at + 1);
        self.word.known = Known::Many;
    }
}
