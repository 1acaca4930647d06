//! One word of a command, as far as the source determines it.

use tree_sitter::Node;

use super::quoting;

/// How much of a word is known before the script runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum WordKnowledge {
    /// All of it.
    Literal,
    /// That it is one word; some of its text comes from an expansion.
    SingleWord,
    /// Not even how many words it becomes: an unquoted expansion, a glob, braces.
    Unbounded,
}

/// A word after quotes were removed.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct CommandWord {
    /// Its text; expansions stand in it as their source.
    pub(crate) text: String,
    /// How much of that is sure.
    pub(crate) knowledge: WordKnowledge,
    /// Bytes of `text` before the first expansion.
    literal_len: usize,
    /// Bytes of `text` up to the end of the last expansion.
    expansion_end: usize,
}

impl CommandWord {
    /// Creates a word that is known in full.
    pub(crate) fn new_literal_word(text: impl Into<String>) -> Self {
        let text = text.into();
        Self {
            literal_len: text.len(),
            expansion_end: 0,
            text,
            knowledge: WordKnowledge::Literal,
        }
    }

    /// Creates a word of which only the source text is known.
    pub(crate) fn word_from_unresolved_text(text: impl Into<String>, known: WordKnowledge) -> Self {
        let text = text.into();
        Self {
            literal_len: 0,
            expansion_end: text.len(),
            text,
            knowledge: known,
        }
    }

    /// Appends `next` without a blank between the two.
    pub(crate) fn append_word_without_blank(&mut self, next: &Self) {
        let at = self.text.len();
        // The known beginning grows only as long as no expansion stands before it.
        if self.knowledge == WordKnowledge::Literal {
            self.literal_len = at + next.literal_len;
        }
        if next.knowledge != WordKnowledge::Literal {
            self.expansion_end = at + next.expansion_end;
        }
        self.knowledge = self.knowledge.max(next.knowledge);
        self.text.push_str(&next.text);
    }

    /// Returns the text, if all of it is known.
    pub(crate) fn as_literal(&self) -> Option<&str> {
        (self.knowledge == WordKnowledge::Literal).then_some(self.text.as_str())
    }

    /// Returns the known beginning.
    pub(crate) fn literal_prefix_of_word(&self) -> &str {
        self.text.get(..self.literal_len).unwrap_or("")
    }

    /// Returns the part from this byte on.
    pub(crate) fn word_suffix_from_byte(&self, at: usize) -> Self {
        let lead = self.literal_len.saturating_sub(at);
        // Nothing unknown stands after the last expansion.
        let known = match at >= self.expansion_end && self.knowledge == WordKnowledge::SingleWord {
            true => WordKnowledge::Literal,
            false => self.knowledge,
        };
        let text = self.text.get(at..).unwrap_or("").to_owned();
        Self {
            literal_len: if known == WordKnowledge::Literal {
                text.len()
            } else {
                lead
            },
            expansion_end: self.expansion_end.saturating_sub(at),
            knowledge: known,
            text,
        }
    }

    /// Returns the part before this byte.
    pub(crate) fn word_prefix_before_byte(&self, at: usize) -> Self {
        let text = self.text.get(..at).unwrap_or(&self.text).to_owned();
        let known = match self.literal_len >= text.len() {
            true => WordKnowledge::Literal,
            false => self.knowledge,
        };
        Self {
            literal_len: self.literal_len.min(text.len()),
            expansion_end: if known == WordKnowledge::Literal {
                0
            } else {
                self.expansion_end.min(text.len())
            },
            knowledge: known,
            text,
        }
    }

    /// Returns the part after the first `c`; `None` if there is none.
    pub(crate) fn suffix_after_char(&self, c: char) -> Option<Self> {
        let at = self.text.find(c)?;
        Some(self.word_suffix_from_byte(at + c.len_utf8()))
    }

    /// Returns whether nothing of it is known, not even that it is one word: `$X`, `$(...)`. A
    /// glob does not count, nor what `xargs` adds: names of files are not taken for options here.
    pub(crate) fn is_wholly_unknown_word(&self) -> bool {
        self.knowledge == WordKnowledge::Unbounded
            && self.literal_len == 0
            && self.text.starts_with(['$', '`'])
    }

    /// Returns whether it consists of expansions alone, so that it may be empty.
    pub(crate) fn may_be_empty(&self) -> bool {
        self.knowledge != WordKnowledge::Literal
            && self.literal_len == 0
            && self.expansion_end == self.text.len()
    }

    /// Returns the text as the name of a program: a literal, or one word whose folder alone is not
    /// known (`"$DIR/bin/cargo"`), since rules look at the last part only.
    pub(crate) fn program_path_if_known(&self) -> Option<&str> {
        let known = match self.knowledge {
            WordKnowledge::Literal => true,
            WordKnowledge::SingleWord => {
                let end = self.text.get(self.expansion_end..).unwrap_or("");
                end.rsplit_once('/')
                    .is_some_and(|(_, name)| !name.is_empty())
            }
            WordKnowledge::Unbounded => false,
        };
        known.then_some(self.text.as_str())
    }

    /// Returns whether it begins with `NAME=`, which `env` and the like take for an assignment.
    pub(crate) fn is_assignment(&self) -> bool {
        self.literal_prefix_of_word()
            .split_once('=')
            .is_some_and(|(name, _)| {
                !name.is_empty() && !name.starts_with('-') && !name.contains('/')
            })
    }

    /// Returns the word with every `placeholder` filled by something unknown, as `xargs -I` and
    /// `find -exec` do.
    pub(crate) fn replace_placeholder_by_unknown(&self, placeholder: &str) -> Self {
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
            knowledge: self.knowledge.max(WordKnowledge::SingleWord),
            literal_len: self.literal_len.min(at),
            expansion_end: self.expansion_end.max(last),
        }
    }
}

/// Reads a word from the tree; `None` if the grammar and the shell do not agree on it.
pub(crate) fn command_word_from_syntax_node(node: Node<'_>, source: &str) -> Option<CommandWord> {
    let mut reader = ShellWordReader {
        source,
        word: CommandWord::new_literal_word(""),
        brace: None,
        agreed: true,
    };
    // The known beginning has no end until an expansion sets one.
    reader.word.literal_len = usize::MAX;
    reader.read_word_part(node, 0);
    let mut word = reader.word;
    word.literal_len = word.literal_len.min(word.text.len());
    reader.agreed.then_some(word)
}

struct ShellWordReader<'s> {
    source: &'s str,
    word: CommandWord,
    /// Where an unquoted `{` stands, and whether `,` or `..` followed it.
    brace: Option<(usize, bool)>,
    agreed: bool,
}

impl<'s> ShellWordReader<'s> {
    fn source_slice(&self, from: usize, to: usize) -> &'s str {
        self.source.get(from..to).unwrap_or("")
    }

    fn read_word_part(&mut self, node: Node<'_>, depth: u8) {
        let piece = self.source_slice(node.start_byte(), node.end_byte());
        match node.kind() {
            // What is nested deeper counts as an expansion, by the last arm.
            "concatenation" | "command_name" | "variable_assignment" if depth < 8 => {
                self.read_word_parts(node, depth);
            }
            "string" => self.read_double_quoted(node),
            "translated_string" if depth < 8 => match node.named_child(0) {
                Some(string) => self.read_word_part(string, depth + 1),
                None => self.append_unresolved_expansion(piece, WordKnowledge::SingleWord),
            },
            "raw_string" => {
                let inner = piece.get(1..piece.len().saturating_sub(1)).unwrap_or("");
                self.word.text.push_str(inner);
            }
            "ansi_c_string" => {
                let inner = piece.get(2..).unwrap_or("");
                let (text, taken) = quoting::unquote_ansi_c(inner);
                self.agreed &= taken == inner.len();
                self.word.text.push_str(&text);
            }
            _ if node.child_count() == 0 => self.append_unquoted_text(piece),
            _ => self.append_unresolved_expansion(piece, WordKnowledge::Unbounded),
        }
    }

    /// Reads parts that stand side by side; the source between them belongs to the word as well.
    fn read_word_parts(&mut self, node: Node<'_>, depth: u8) {
        let mut at = node.start_byte();
        let mut cursor = node.walk();
        for child in node.children(&mut cursor) {
            self.append_unquoted_text(self.source_slice(at, child.start_byte()));
            self.read_word_part(child, depth + 1);
            at = child.end_byte();
        }
        self.append_unquoted_text(self.source_slice(at, node.end_byte()));
    }

    /// The grammar drops blanks at the edges of `string_content`, so the text is taken
    /// from the source and only the expansions from the tree.
    fn read_double_quoted(&mut self, node: Node<'_>) {
        let mut at = node.start_byte() + 1;
        let mut cursor = node.walk();
        for child in node.named_children(&mut cursor) {
            if child.kind() == "string_content" {
                continue;
            }
            self.append_unescaped_double_quoted_text(self.source_slice(at, child.start_byte()));
            let piece = self.source_slice(child.start_byte(), child.end_byte());
            // "$@" and "${a[@]}" become many words even between quotes; what a command prints
            // does not.
            let known =
                if piece.contains('@') && !piece.starts_with(['`']) && !piece.starts_with("$(") {
                    WordKnowledge::Unbounded
                } else {
                    WordKnowledge::SingleWord
                };
            self.append_unresolved_expansion(piece, known);
            at = child.end_byte();
        }
        self.append_unescaped_double_quoted_text(
            self.source_slice(at, node.end_byte().saturating_sub(1)),
        );
    }

    fn append_unescaped_double_quoted_text(&mut self, text: &str) {
        // The expansions were cut out, so what is found here the grammar took for text.
        self.agreed &= !quoting::has_unescaped_substitution(text);
        quoting::unescape_double_quoted(text, true, &mut self.word.text);
    }

    fn append_unresolved_expansion(&mut self, piece: &str, known: WordKnowledge) {
        // Always a number, without quotes too.
        let number = matches!(piece, "$(nproc)" | "$#" | "$?" | "$$" | "$!");
        let known = if number {
            WordKnowledge::SingleWord
        } else {
            known
        };
        self.word.literal_len = self.word.literal_len.min(self.word.text.len());
        self.word.text.push_str(piece);
        self.word.expansion_end = self.word.text.len();
        self.word.knowledge = self.word.knowledge.max(known);
    }

    /// Appends unquoted text. A backslash keeps the next character; globs and braces make the
    /// number of words unknown.
    fn append_unquoted_text(&mut self, text: &str) {
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
                '*' | '?' => self.mark_expansion_at(at),
                '[' if chars.clone().any(|c| c == ']') => self.mark_expansion_at(at),
                '{' => self.brace = Some((at, false)),
                // The grammar may cut `r[m]` anywhere.
                ']' => {
                    if let Some(at) = self
                        .word
                        .text
                        .find('[')
                        .filter(|_| self.word.text.len() > 1)
                    {
                        self.mark_expansion_at(at);
                    }
                }
                // Braces expand only if a comma or `..` stands between them.
                ',' => self.brace = self.brace.map(|(at, _)| (at, true)),
                '.' if chars.peek() == Some(&'.') => {
                    self.brace = self.brace.map(|(at, _)| (at, true));
                }
                '}' => {
                    if let Some((at, true)) = self.brace.take() {
                        self.mark_expansion_at(at);
                    }
                }
                // The grammar cuts substitutions out, so this one it took for text.
                '`' => self.agreed = false,
                '$' if chars.peek() == Some(&'(') => self.agreed = false,
                _ => {}
            }
            self.word.text.push(c);
            // The end of a glob or of braces is the end of the last expansion so far.
            if self.word.knowledge == WordKnowledge::Unbounded && matches!(c, '*' | '?' | ']' | '}')
            {
                self.word.expansion_end = self.word.text.len();
            }
        }
    }

    fn mark_expansion_at(&mut self, at: usize) {
        self.word.literal_len = self.word.literal_len.min(at);
        self.word.expansion_end = self.word.expansion_end.max(at + 1);
        self.word.knowledge = WordKnowledge::Unbounded;
    }
}
